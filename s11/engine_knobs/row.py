"""A row of the table of engines' knobs."""

from __future__ import annotations

from dataclasses import dataclass

VLLM, SGLANG, TENSORRT_LLM = "vLLM", "SGLang", "TensorRT-LLM"
LLAMA_CPP, LMDEPLOY = "llama.cpp", "LMDeploy"


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineKnob:
    """One flag of one engine.

    flag: its name as one types it. also: another name of it.
    default: as the engine comes. version: which version that is true of.
    meaning: what it does, in one sentence.
    knob: the field of `EngineLimits` that it turns; None: it is not simulated.
    values: the defaults as values of that field, the largest GPU's first.
    note: how far our knob is the same.
    source: the document or source file, as read in November 2026.
    unverified: what could not be read there; "" where nothing is open.
    """

    engine: str
    flag: str
    default: str
    version: str
    meaning: str
    source: str
    also: str = ""
    knob: str | None = None
    values: tuple[int | bool, ...] = ()
    note: str = ""
    unverified: str = ""

    def columns(self) -> dict[str, str]:
        """Return the row as texts, for a table or a CSV file."""
        return {
            "engine": self.engine,
            "flag": f"{self.flag}, {self.also}" if self.also else self.flag,
            "default": self.default,
            "version": self.version,
            "meaning": self.meaning,
            "s11_knob": self.knob or "",
            "note": self.note,
            "source": self.source,
            "not_verified": self.unverified,
        }
