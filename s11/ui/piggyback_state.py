"""The piggybacking page's state: the values of its controls by key, and what they ask for."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from enum import StrEnum
from typing import Any

import streamlit as st

from s11 import piggyback, piggyback_rides
from s11.catalog import PRECISIONS, Deployment, KvCapacity, kv_capacity
from s11.piggyback import StepCurve
from s11.piggyback_rides import AttentionShare, Ride, RideByDecodes
from s11.ui import machine
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of
from s11.ui.simulator_link import simulator_parameters

MODEL_KEY = "llm"


class Scale(StrEnum):
    """How the main picture's axes run."""

    LOG = "log–log"
    LINEAR = "linear"


SMALL_CHUNKS = (16, 32, 64, 128, 256, 257, 384, 512, 513, 768, 992, 1021)
CHUNKS = (*SMALL_CHUNKS, 1024, 1536, 2048, 3072, 4096, 6144, 8192, 16_384)
DECODES = (1, 2, 3, 4, 8, 16, 24, 32, 48, 64, 96, 128, 256, 512)
CONTEXTS = (128, 256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
STARTS = (0, 1024, 2048, 4096, 8192, 16_384, 32_768, 65_536, 131_072)
EDGES = (64, 128, 256, 384, 512, 1024)

DEFAULTS: dict[str, Any] = {
    "piggy_chunk": 992,
    "decodes": 32,
    "context": 1024,
    "start": 0,
    "edge": "256",
    "scale": str(Scale.LOG),
}

PRESETS: dict[str, dict[str, str]] = {
    "Llama-3.1-8B on H100": {},
    "Llama-2-70B on 4 × H100": {MODEL_KEY: "Llama-2-70B", "tp": "4"},
    "SARATHI: LLaMA-13B on A6000": {
        MODEL_KEY: "LLaMA-13B",
        "gpu": "A6000",
        "piggy_chunk": "1021",
        "decodes": "3",
    },
    "One tile too many": {"piggy_chunk": "1024", "edge": "1024"},
    "fp8 against bf16": {"precision": "fp8", "edge": "128"},
    "Long context": {"start": "65536", "context": "65536", "decodes": "4"},
}


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none yet."""
    value = st.session_state.get(key)
    return DEFAULTS[key] if value is None else value


def scale() -> Scale:
    """Return how the main picture's axes run."""
    return Scale(value_of("scale"))


def deployment() -> Deployment:
    """Return the chosen machine, where the model fits it.

    Raises:
        ValueError: heads that cannot be shared out, or a model that does not fit.
    """
    chosen = machine.deployment(MODEL_KEY, chapter=False)
    if chosen is None:
        raise ValueError(f"{MODEL_KEY}: no machine is chosen (allowed: a model of the catalog)")
    capacity(chosen)
    return chosen


def capacity(chosen: Deployment) -> KvCapacity:
    """Return the KV pool that is left beside a step of the chunk and its decodes.

    Raises:
        ValueError: a model that does not fit.
    """
    riding = int(value_of("decodes"))
    return kv_capacity(
        chosen, token_budget=int(value_of("piggy_chunk")) + riding, max_seqs=riding + 1
    )


def held_tokens() -> int:
    """Return the tokens of KV that the step with decodes needs: all contexts and the prompt."""
    contexts = int(value_of("decodes")) * (int(value_of("context")) + 1)
    return contexts + int(value_of("start")) + int(value_of("piggy_chunk"))


def step_curve(chosen: Deployment) -> StepCurve:
    """Return a step's time by its tokens."""
    return piggyback.step_curve(chosen, int(value_of("start")))


def riding(chosen: Deployment) -> Ride:
    """Return what the decodes cost aboard and alone."""
    return piggyback_rides.ride(
        chosen,
        prefill_tokens=int(value_of("piggy_chunk")),
        start_token=int(value_of("start")),
        decodes=int(value_of("decodes")),
        context_tokens=int(value_of("context")),
    )


def riding_by_decodes(chosen: Deployment) -> RideByDecodes:
    """Return what one decode costs, by how many of them there are."""
    return piggyback_rides.ride_by_decodes(
        chosen,
        prefill_tokens=int(value_of("piggy_chunk")),
        start_token=int(value_of("start")),
        context_tokens=int(value_of("context")),
    )


def shares(chosen: Deployment) -> tuple[AttentionShare, AttentionShare]:
    """Return attention's share of the chunk's step, and of the decodes'."""
    return (
        piggyback_rides.chunk_share(chosen, int(value_of("piggy_chunk"))),
        piggyback_rides.decode_share(chosen, int(value_of("decodes"))),
    )


def other_precision(chosen: Deployment) -> Deployment:
    """Return the same machine in the other precision."""
    other = next(name for name in PRECISIONS if name != chosen.precision)
    return replace(chosen, precision=other)


def in_the_simulator(chosen: Deployment) -> dict[str, str]:
    """Return the simulator's parameters for this step: the last of a prompt that ends with it."""
    chunk = int(value_of("piggy_chunk"))
    return simulator_parameters(
        chosen,
        prompt=min(piggyback.MOST_CONTEXT_TOKENS, int(value_of("start")) + chunk),
        chunk=chunk,
        users=int(value_of("decodes")),
        context=int(value_of("context")),
    )


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    **machine.link_checks(MODEL_KEY, chapter=False),
    "piggy_chunk": one_of(*map(str, CHUNKS)),
    "decodes": one_of(*map(str, DECODES)),
    "context": one_of(*map(str, CONTEXTS)),
    "start": one_of(*map(str, STARTS)),
    "edge": one_of(*map(str, EDGES)),
    "scale": one_of(*Scale),
    "picture": one_of(*PICTURE_FORMATS),
}
