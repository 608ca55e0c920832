"""The numbers behind the piggybacking page's pictures, as columns; SARATHI's own beside ours."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from s11.catalog import MODELS, Deployment
from s11.costs.roofline import StepParts
from s11.figures.piggyback_curve import curve_lines
from s11.piggyback import LinearTimes, StepCurve, linear_times
from s11.piggyback_rides import (
    AttentionShare,
    Ride,
    RideByDecodes,
    ride,
)

Columns = Mapping[str, Sequence[Any]]

DIGITS = 4
PART_NAMES = (
    "linear_ms",
    "elementwise_ms",
    "all_reduce_ms",
    "lm_head_ms",
    "prefill_attention_ms",
    "decode_attention_ms",
    "host_ms",
)
# Agrawal et al. 2023, SARATHI (arXiv:2308.16369), LLaMA-13B on A6000: linear, attention.
PAPER_PREFILL_MS = (224.8, 10.0)  # 1,024 tokens
PAPER_TOGETHER_MS = (223.2, 15.2)  # 1,021 tokens and 3 decodes at 1,024 context
PAPER_DECODES_MS = (44.28, 5.68)  # 4 decodes at 1,024 context
PAPER_LINEAR_MS = {128: 55.0, 256: 69.8, 257: 92.33}
PAPER_TOKENS, PAPER_RIDING, PAPER_ALONE = 1_024, 3, 4


def curve_columns(curve: StepCurve) -> Columns:
    """Return every point of the curves."""
    columns: dict[str, Sequence[Any]] = {"tokens": curve.linear.tokens.tolist()}
    for line in curve_lines(curve):
        columns[f"{line.name.replace(' ', '_').removesuffix('_time')}_ms"] = _plain(
            line.duration_ms
        )
    return columns


def tiles_columns(steps: LinearTimes) -> Columns:
    """Return every single count of the window, and what the next token adds."""
    return {
        "tokens": steps.tokens.tolist(),
        "linear_ms": _plain(steps.linear_ms),
        "compute_ms": _plain(steps.compute_ms),
        "memory_ms": _plain(steps.memory_ms),
        "next_token_adds_ms": [*_plain(np.diff(steps.linear_ms)), None],
    }


def ride_columns(told: Ride) -> Columns:
    """Return the three steps by operator."""
    return {
        "step": ["prefill alone", "prefill + decodes", "decodes alone"],
        "prefill_tokens": [told.prefill_tokens, told.prefill_tokens, 0],
        "decodes": [0, told.decodes, told.decodes],
        **_parts(told.parts),
        "step_ms": [round(value, DIGITS) for value in told.step_ms],
    }


def many_columns(many: RideByDecodes) -> Columns:
    """Return one decode's cost by how many of them there are."""
    return {
        "decodes": many.decodes.tolist(),
        "decode_aboard_ms": _plain(many.aboard_ms),
        "decode_alone_ms": _plain(many.alone_ms),
    }


def share_columns(chunk: AttentionShare, decodes: AttentionShare) -> Columns:
    """Return both panels' shares by context."""
    columns: dict[str, Sequence[Any]] = {"context_tokens": chunk.context_tokens.tolist()}
    for name, share in (("chunk", chunk), ("decodes", decodes)):
        columns[f"{name}_step_ms"] = _plain(share.parts.total_ms())
        columns[f"{name}_linear_pct"] = _plain(100 * share.linear)
        columns[f"{name}_attention_pct"] = _plain(100 * share.attention)
        columns[f"{name}_rest_pct"] = _plain(100 * (1 - share.linear - share.attention))
    return columns


def is_sarathis(deployment: Deployment) -> bool:
    """Return whether this is the machine that SARATHI's Table 2 measured."""
    return deployment == Deployment(model=MODELS["llama-13b"], gpu="a6000")


def sarathi_columns(deployment: Deployment) -> Columns:
    """Return SARATHI's measured figures beside ours, arranged as in the paper.

    The paper sets 1,021 prefill tokens and 3 decodes against 1,024 prefill tokens, and counts
    linear operators and attention alone.
    """
    whole, part = (
        ride(
            deployment,
            prefill_tokens=PAPER_TOKENS - riding,
            start_token=0,
            decodes=decodes,
            context_tokens=PAPER_TOKENS,
        )
        for riding, decodes in ((0, PAPER_ALONE), (PAPER_RIDING, PAPER_RIDING))
    )
    prefill, decodes = _two(whole.parts, 0), _two(whole.parts, 2)
    together = _two(part.parts, 1)
    rows: list[tuple[str, float, float]] = []
    for name, paper, ours in (
        ("1,024 prefill tokens", PAPER_PREFILL_MS, prefill),
        ("1,021 prefill tokens + 3 decodes", PAPER_TOGETHER_MS, together),
        ("4 decodes, 1,024 context", PAPER_DECODES_MS, decodes),
    ):
        for kind, measured, predicted in zip(("linear", "attention"), paper, ours, strict=True):
            rows.append((f"{name}: {kind}", measured, predicted))
    linear = linear_times(deployment, np.array(list(PAPER_LINEAR_MS))).linear_ms
    for (tokens, measured), predicted in zip(PAPER_LINEAR_MS.items(), linear, strict=True):
        rows.append((f"{tokens:,} tokens: linear", measured, float(predicted)))
    aboard = [
        (sum(two) - sum(one)) / PAPER_RIDING
        for two, one in ((PAPER_TOGETHER_MS, PAPER_PREFILL_MS), (together, prefill))
    ]
    alone = [sum(each) / PAPER_ALONE for each in (PAPER_DECODES_MS, decodes)]
    rows.append(("a decode aboard", aboard[0], aboard[1]))
    rows.append(("a decode alone", alone[0], alone[1]))
    return {
        "LLaMA-13B on A6000": [name for name, _, _ in rows],
        "SARATHI (ms)": [round(measured, 2) for _, measured, _ in rows],
        "ours (ms)": [round(predicted, 2) for _, _, predicted in rows],
        "difference (%)": [
            round(100 * (predicted / measured - 1), 1) for _, measured, predicted in rows
        ],
    }


def _two(parts: StepParts, step: int) -> tuple[float, float]:
    attention = parts.prefill_attention_ms + parts.decode_attention_ms
    return float(parts.linear_ms[step]), float(attention[step])


def _parts(parts: StepParts) -> dict[str, list[float]]:
    return {name: _plain(getattr(parts, name)) for name in PART_NAMES}


def _plain(values: Any) -> list[float]:
    rounded: list[float] = np.round(values, DIGITS).tolist()
    return rounded
