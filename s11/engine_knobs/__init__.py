"""The knobs of serving engines that have to do with chunked prefill: one table, with sources.

A default speaks for the version beside it and no other: engines change them. Where something
could not be read in the engine's own source or documents, the row says what. Names and defaults
that `s11.presets` has too are the same there (a test holds them together).
"""

from __future__ import annotations

from s11.engine_knobs.others import LLAMA_CPP_KNOBS, LMDEPLOY_KNOBS
from s11.engine_knobs.row import LLAMA_CPP, LMDEPLOY, SGLANG, TENSORRT_LLM, VLLM, EngineKnob
from s11.engine_knobs.sglang import SGLANG_KNOBS
from s11.engine_knobs.tensorrt_llm import TENSORRT_LLM_KNOBS
from s11.engine_knobs.vllm import VLLM_KNOBS

__all__ = ["LLAMA_CPP", "LMDEPLOY", "SGLANG", "TENSORRT_LLM", "VLLM", "EngineKnob"]

ENGINE_KNOBS: tuple[EngineKnob, ...] = (
    *VLLM_KNOBS,
    *SGLANG_KNOBS,
    *TENSORRT_LLM_KNOBS,
    *LLAMA_CPP_KNOBS,
    *LMDEPLOY_KNOBS,
)
"""All rows, engine by engine."""

ENGINES = tuple(dict.fromkeys(row.engine for row in ENGINE_KNOBS))
ENGINE_OF_POLICY = {"vllm_v1": VLLM, "sglang": SGLANG, "tensorrt_llm": TENSORRT_LLM}
"""By policy, the engine that it is the scheduler of."""


def chosen_knobs(
    rows: tuple[EngineKnob, ...] = ENGINE_KNOBS,
    *,
    engine: str | None = None,
    knob: str | None = None,
) -> tuple[EngineKnob, ...]:
    """Return the rows of an engine, those that turn one of our knobs, or both; None takes all."""
    return tuple(
        row
        for row in rows
        if (engine is None or row.engine == engine) and (knob is None or row.knob == knob)
    )


def flag_of(engine: str, knob: str) -> str | None:
    """Return the engine's first flag for one of our knobs, None where it has none."""
    return next((row.flag for row in chosen_knobs(engine=engine, knob=knob)), None)


def knob_columns(rows: tuple[EngineKnob, ...]) -> dict[str, list[str]]:
    """Return rows of the table as columns of texts."""
    texts = [row.columns() for row in rows]
    return {name: [text[name] for text in texts] for name in ENGINE_KNOBS[0].columns()}
