"""The production page's state: the values of its controls by key, and what they describe.

Token budget, chunk size, seats, chunking, riding decodes and the machine have the simulator's own
parameter names, so that its links can be taken over.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.catalog import Deployment, kv_capacity
from s11.costs import RooflineCost
from s11.engine_commands import Launch
from s11.engine_knobs import ENGINE_KNOBS, ENGINES, EngineKnob, chosen_knobs
from s11.myths_mixing import Load
from s11.ui import machine as machines
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole
from s11.ui.simulator_state import MAX_BUDGET, MAX_PROMPT

MODEL_KEY = "model"  # the simulator's
ALL_ENGINES, ALL_KNOBS, NOT_OURS = "All engines", "All", "Not simulated"
KNOB_TITLES = {
    "token_budget": "Token budget",
    "chunk_tokens": "Chunk cap",
    "max_seqs": "Seats",
    "chunking": "Chunking",
    "mixed": "Riding decodes",
    "prefill_interval": "Prefill interval",
    "prefix_caching": "Prefix caching",
    "block_size": "Block size",
    "kv_blocks": "KV blocks",
    "reserve_full_prompt": "Reserve prompt",
    "max_model_len": "Longest sequence",
}
CACHING = {"as it comes": None, "on": True, "off": False}
STREAMS = 24
PROMPT, LONG_PROMPT = 8_192, 32_768
FLOPS_CHUNKS = (256, 512, 1024, 2048, 4096, 8192, 16_384, 32_768)
MEAN_CHUNKS = (128, 256, 512, 1024, 2048, 4096, 8192)
SMALL_CHUNKS = (16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)

DEFAULTS: dict[str, Any] = {
    "of_engine": ALL_ENGINES,
    "of_knob": KNOB_TITLES["token_budget"],
    "budget": None,
    "chunk": 1024,
    "seats": None,
    "chunking": True,
    "mixed": False,
    "prefix": "as it comes",
    "flops_chunk": 1024,
    "mean_chunk": 1024,
    "small_chunk": 64,
    "mix_load": str(Load.MANY_PROMPTS),
}

PRESETS: dict[str, dict[str, str]] = {
    "Short gaps: budget 1,024": {"budget": "1024", "chunk": "512", "seats": "128"},
    "Throughput: budget 16,384": {"budget": "16384", "chunk": "16384", "seats": "512"},
    "70B on 4 × H100": {MODEL_KEY: "Llama-3.1-70B", "tp": "4", "budget": "4096", "seats": "256"},
    "fp8, no prefix cache": {"precision": "fp8", "prefix": "off", "budget": "8192"},
    "All flags of vLLM": {"of_engine": "vLLM", "of_knob": ALL_KNOBS},
}


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none yet."""
    return st.session_state.get(key, DEFAULTS[key])


def shown_knobs() -> tuple[EngineKnob, ...]:
    """Return the rows of the table that the filters leave."""
    engine = value_of("of_engine") or ALL_ENGINES
    title = value_of("of_knob") or ALL_KNOBS
    rows = chosen_knobs(engine=None if engine == ALL_ENGINES else engine)
    if title == NOT_OURS:
        return tuple(row for row in rows if row.knob is None)
    knob = next((knob for knob, shown in KNOB_TITLES.items() if shown == title), None)
    return chosen_knobs(rows, knob=knob)


def machine() -> Deployment:
    """Return the chosen machine.

    Raises:
        ValueError: heads that cannot be shared out, no config.json, or a model that does not fit.
    """
    chosen = machines.deployment(MODEL_KEY, chapter=False)
    assert chosen is not None
    kv_capacity(chosen, token_budget=int(value_of("budget") or PROMPT), max_seqs=STREAMS)
    return chosen


def launch(on: Deployment) -> Launch:
    """Return what the engines are to be started with."""
    return Launch(
        machine=on,
        token_budget=value_of("budget"),
        chunk_tokens=value_of("chunk"),
        max_seqs=value_of("seats"),
        chunking=bool(value_of("chunking")),
        mixed=bool(value_of("mixed")),
        prefix_caching=CACHING[value_of("prefix") or DEFAULTS["prefix"]],
    )


def cost(on: Deployment) -> RooflineCost:
    """Return the machine's step times."""
    return RooflineCost(deployment=on)


def prompt_tokens(on: Deployment, most: int) -> int:
    """Return a prompt's length: `most`, or the longest that the model was made for."""
    return min(most, on.model.max_positions)


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "of_engine": one_of(ALL_ENGINES, *ENGINES),
    "of_knob": one_of(ALL_KNOBS, *KNOB_TITLES.values(), NOT_OURS),
    **machines.link_checks(MODEL_KEY, chapter=False),
    "budget": whole(1, MAX_BUDGET),
    "chunk": whole(1, MAX_PROMPT),
    "seats": whole(1, MAX_BUDGET),
    "chunking": one_of("true", "false"),
    "mixed": one_of("true", "false"),
    "prefix": one_of(*CACHING),
    "flops_chunk": one_of(*map(str, FLOPS_CHUNKS)),
    "mean_chunk": one_of(*map(str, MEAN_CHUNKS)),
    "small_chunk": one_of(*map(str, SMALL_CHUNKS)),
    "mix_load": one_of(*Load),
    "picture": one_of(*PICTURE_FORMATS),
}

assert set(KNOB_TITLES) == {row.knob for row in ENGINE_KNOBS if row.knob}
