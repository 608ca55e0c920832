"""What the piggybacking page's pictures share: the operators' looks, and the machine in a line."""

from __future__ import annotations

import math
from typing import NamedTuple

from s11.catalog import Deployment
from s11.costs.breakdown import Floats
from s11.costs.constants import constants_of
from s11.costs.roofline import StepParts
from s11.figures.theme import DECODE, FIXED, IDLE, INK, MUTED, PREEMPTED, PREFILL, Spec
from s11.piggyback_rides import rest_ms

LONGEST_MODEL_NAME = 24
SIMULATED = "simulated by s11 · vLLM's time on the host"
AXIS_ROOM, LEGEND_ROW = 68, 19  # px: a phone's buttons stand between axis and legend
LEGEND_ENTRY = 90  # px: two entries in a row on a phone
NICE = (1.0, 1.2, 1.5, 2.0, 2.5, 3.0, 4.0, 5.0, 6.0, 8.0, 10.0)


class Operator(NamedTuple):
    """One kind of operator: its name and look, and its time in each of some steps."""

    name: str
    colour: str
    pattern: Spec
    duration_ms: Floats


def operators(parts: StepParts) -> list[Operator]:
    """Return the operators in the order of the stacks; those without any time are left out."""
    pattern: Spec = {"size": 7, "solidity": 0.3, "fillmode": "overlay", "fgcolor": INK}
    all_of_them = [
        Operator("linear operators", PREFILL, {}, parts.linear_ms),
        Operator("all-reduce", IDLE, {**pattern, "shape": "|"}, parts.all_reduce_ms),
        Operator("rest", FIXED, {**pattern, "shape": "."}, rest_ms(parts)),
        Operator(
            "prefill attention",
            PREEMPTED,
            {**pattern, "shape": "/"},
            parts.prefill_attention_ms,
        ),
        Operator(
            "decode attention",
            DECODE,
            {**pattern, "shape": "\\", "fgcolor": "#FFFFFF"},
            parts.decode_attention_ms,
        ),
    ]
    return [each for each in all_of_them if each.duration_ms.any()]


def machine_line(deployment: Deployment) -> str:
    """Return model, GPUs and precision as a caption names them, and whether they were measured."""
    model, gpus = deployment.model.title, deployment.hardware.title
    if len(model) > LONGEST_MODEL_NAME:
        model = model[: LONGEST_MODEL_NAME - 1] + "…"
    if deployment.tensor_parallel > 1:
        gpus = f"{deployment.tensor_parallel} × {gpus}"
    calibrated = constants_of(deployment.gpu, deployment.precision).calibrated
    return f"{model} on {gpus}, {deployment.precision}" + ("" if calibrated else ", not calibrated")


def hovered(noun: str) -> Spec:
    """Return how an axis of counts names the one that is pointed at, and marks it."""
    return {
        "unifiedhovertitle": {"text": f"%{{x:,}} {noun}"},
        "spikethickness": 1,
        "spikecolor": MUTED,
        "spikedash": "solid",
    }


def foot(*, legend_rows: int) -> int:
    """Return the margin below a plot, in px: the same however many entries the legend has."""
    return AXIS_ROOM + LEGEND_ROW * legend_rows


def nice_above(value: float) -> float:
    """Return a round number a little above, one of few: an axis that seldom changes."""
    power = 10.0 ** math.floor(math.log10(value))
    return next(step * power for step in (*NICE, 12.0) if step * power >= 1.02 * value)
