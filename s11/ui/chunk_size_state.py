"""The chunk size page's state: its controls' values by key, and the runs that they ask for."""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from functools import lru_cache
from typing import Any

import streamlit as st

from s11.budgets import BudgetTried, BusyLoad, try_budget
from s11.catalog import MODELS, Deployment
from s11.costs.constants import constants_of
from s11.experiment import Experiment
from s11.figures.chunk_size_many import MachineCurve
from s11.presets import TITLES
from s11.tuning import (
    MOST_SEATS,
    Tried,
    largest_that_fits,
    stands_still,
    try_chunk,
    tuned_experiment,
    tuned_sizes,
)
from s11.ui import machine
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole

MODEL_KEY = "llm"
MAX_STEPS, MAX_BUSY_STEPS = 20_000, 60_000
ENGINES = {TITLES[name]: name for name in ("vllm_v1", "sglang", "tensorrt_llm")} | {
    "Chapter's": "chunked"
}
TARGETS = (5, 10, 15, 20, 25, 30, 40, 50, 60, 75, 100, 150, 200, 300, 500, 750, 1000)


class Across(StrEnum):
    """What the small multiples go through."""

    GPUS = "All GPUs"
    MODELS = "All models"


BOUNDS: dict[str, tuple[int, int, int]] = {  # lowest, highest, step
    "size_prompt": (64, 131_072, 1_024),
    "size_users": (1, MOST_SEATS - 1, 4),
    "size_context": (1, 131_072, 256),
    "size_clients": (1, 128, 8),
    "size_busy_prompt": (1, 8_192, 256),
    "size_answer": (1, 512, 64),
}

DEFAULTS: dict[str, Any] = {
    "size_target": 50,
    "size_engine": TITLES["vllm_v1"],
    "size_mixed": True,
    "size_prompt": 8_192,
    "size_users": 24,
    "size_context": 1_024,
    "across": str(Across.GPUS),
    "size_clients": 64,
    "size_busy_prompt": 1_024,
    "size_answer": 256,
}

PRESETS: dict[str, dict[str, str]] = {
    "Llama-3.1-8B on an H100": {},
    "32k prompt on an A100": {"gpu": "A100 80 GB", "size_prompt": "32768", "size_target": "100"},
    "Qwen3-32B on one H100: tight memory": {"llm": "Qwen3-32B"},
    "LLaMA-13B on an L40S: tight memory": {
        "llm": "LLaMA-13B",
        "gpu": "L40S",
        "size_users": "8",
        "size_prompt": "2048",
        "size_target": "100",
        "size_context": "512",
    },
    "SGLang as it comes: decodes wait": {"size_engine": "SGLang", "size_mixed": "false"},
}


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none (left empty, or not yet)."""
    value = st.session_state.get(key, DEFAULTS[key])
    return DEFAULTS[key] if value is None else value


def policy() -> str:
    """Return the chosen engine's scheduler in the registry."""
    return ENGINES[str(value_of("size_engine"))]


def mixed() -> bool:
    """Return whether decodes ride along in SGLang's prefill steps."""
    return bool(value_of("size_mixed"))


def waiting() -> bool:
    """Return whether the decodes wait for the whole prompt, whatever the chunk size."""
    return policy() == "sglang" and not mixed()


def deployment() -> Deployment:
    """Return the chosen machine.

    Raises:
        ValueError: heads that cannot be shared out, or no config.json for an own model.
    """
    chosen = machine.deployment(MODEL_KEY, chapter=False)
    assert chosen is not None
    return chosen


def experiment(on: Deployment) -> Experiment:
    """Return what the controls describe, on a machine; its chunk size is yet to be set."""
    return tuned_experiment(
        on,
        policy=policy(),
        prompt_tokens=int(value_of("size_prompt")),
        streaming_users=int(value_of("size_users")),
        user_context_tokens=int(value_of("size_context")),
        itl_target_ms=float(value_of("size_target")),
        mixed=mixed(),
    )


def busy_load() -> BusyLoad:
    """Return the clients of the budget experiment."""
    return BusyLoad(
        clients=int(value_of("size_clients")),
        prompt_tokens=int(value_of("size_busy_prompt")),
        output_tokens=int(value_of("size_answer")),
    )


def compared() -> list[tuple[str, Callable[[], Deployment]]]:
    """Return the small multiples' machines by label; a call may refuse to make one."""
    chosen = deployment()

    def of(model: Any, gpu: str) -> Callable[[], Deployment]:
        return lambda: Deployment(
            model=model,
            gpu=gpu,
            tensor_parallel=chosen.tensor_parallel,
            precision=chosen.precision,
        )

    if value_of("across") == Across.MODELS:
        return [(model.title, of(model, chosen.gpu)) for model in MODELS.values()]
    return [(label, of(chosen.model, gpu)) for gpu, label in machine.GPU_LABELS.items()]


@lru_cache(maxsize=4_096)
def tried(asked: Experiment, chunk_tokens: int) -> Tried:
    """Return what a chunk size gives, cut at `MAX_STEPS` steps."""
    return try_chunk(asked, chunk_tokens, max_steps=MAX_STEPS)


@lru_cache(maxsize=512)
def largest(asked: Experiment) -> int | None:
    """Return the largest chunk within the target.

    Raises:
        ValueError: a model that does not fit, or streams whose contexts do not.
    """
    return largest_that_fits(asked, max_steps=MAX_STEPS)


@lru_cache(maxsize=256)
def budget_tried(
    on: Deployment, load: BusyLoad, budget: int, smallest_budget: int, scheduler: str
) -> BudgetTried:
    """Return what a busy load gets under a budget, cut at `MAX_BUSY_STEPS` steps."""
    return try_budget(
        on,
        load,
        budget,
        smallest_budget=smallest_budget,
        policy=scheduler,
        max_steps=MAX_BUSY_STEPS,
    )


def machine_curve(label: str, make: Callable[[], Deployment]) -> MachineCurve:
    """Return one panel of the small multiples; what cannot run is told why."""
    calibrated = True
    try:
        on = make()
        calibrated = constants_of(on.gpu, on.precision).calibrated
        asked = experiment(on)
        best = largest(asked)
    except ValueError as error:
        return MachineCurve(
            label=label, calibrated=calibrated, points=(), largest=None, refused=str(error)
        )
    ran = [tried(asked, size) for size in tuned_sizes(asked, halves=False)]
    points = tuple(one.point for one in ran if one.point)
    refused = "" if points else next((one.refused for one in ran if one.refused), "")
    first = next((one for one in ran if one.refused), None)
    dropped = f"chunks of {first.chunk_tokens:,} tokens: {first.refused}" if first else ""
    return MachineCurve(
        label=label,
        calibrated=calibrated,
        points=points,
        largest=best,
        refused=refused,
        dropped=dropped if points else "",
        waiting=stands_still(asked),
    )


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    **machine.link_checks(MODEL_KEY, chapter=False),
    "size_target": one_of(*map(str, TARGETS)),
    "size_engine": one_of(*ENGINES),
    "size_mixed": one_of("true", "false"),
    "across": one_of(*Across),
    **{key: whole(low, high) for key, (low, high, _) in BOUNDS.items()},
    "picture": one_of(*PICTURE_FORMATS),
}
