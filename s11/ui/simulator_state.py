"""The simulator page's state: the values of its controls by key, and what they describe."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any
from urllib.parse import parse_qsl

import streamlit as st

from s11.catalog import Deployment
from s11.checks import require_ms
from s11.costs import AnyCost, FittedCost, LinearCost, RooflineCost
from s11.costs.host import HOST_OF_POLICY
from s11.experiment import Experiment
from s11.figures.timeline_info import Axis
from s11.plan import EngineLimits, HandOver
from s11.presets import PRESETS as ENGINE_PRESETS
from s11.presets import TITLES
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole
from s11.ui.machine import deployment
from s11.ui.machine import link_checks as machine_checks
from s11.workload import USER_CONTEXT_TOKENS, Request, chapter_scenario

MODEL_KEY = "model"

MAX_PROMPT, MAX_USERS, MAX_PROMPTS = 131_072, 1_024, 8
MAX_BUDGET, MIN_TARGET_MS, MAX_TARGET_MS, MAX_COEFFICIENT_MS = 1_048_576, 0.1, 10_000.0, 1_000.0
MAX_KV_BYTES, MAX_LINK_GB_PER_S, BYTES_IN_A_GB = 16_777_216, 10_000.0, 1e9
SMALLEST_STOP, SHORTEST_SLIDER, MAX_STEPS_APART = 64, 512, 100
MOST_PINNED_CHARACTERS = 6_000  # an own model's config may be in it

DEFAULTS: dict[str, Any] = {
    "policy": TITLES["chunked"],
    "mixed": False,
    "interval": 1,
    "kv_bytes": HandOver().kv_bytes_per_token,
    "link": HandOver().link_bytes_per_s / BYTES_IN_A_GB,
    "latency": HandOver().link_latency_ms,
    "chunk": 1024,
    "chunking": True,
    "prompt": 8192,
    "prompts": 1,
    "users": 24,
    "target": 50.0,
    "budget": None,
    "seats": None,
    "fixed": 4.0,
    "prefill": 0.018,
    "decode": 0.05,
    "attended": 0.0,
    "context": USER_CONTEXT_TOKENS,
    "axis": str(Axis.TIME),
    "zoom": False,
}

PRESETS: dict[str, dict[str, str]] = {
    "32k, chunking off": {"prompt": "32768", "chunking": "false"},
    "32k in 1,024-token chunks": {"prompt": "32768"},
    "Chunk = prompt": {"chunk": "8192"},
    "Llama-3.1-8B, H100": {"model": "Llama-3.1-8B", "prompt": "32768", "chunk": "768"},
    "70B, 4 × H100": {"model": "Llama-3.1-70B", "tp": "4", "chunk": "384"},
    "Longer than the budget: never runs": {
        "prompt": "32768",
        "chunking": "false",
        "budget": "8192",
    },
}


ENGINES: dict[str, dict[str, str]] = {
    preset.title: {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in {
            "policy": TITLES[preset.policy],
            "chunking": preset.limits.chunking,
            "chunk": preset.limits.chunk_tokens or MAX_PROMPT,
            "budget": preset.limits.token_budget,
            "seats": preset.limits.max_seqs,
        }.items()
        if value is not None and value != DEFAULTS[name]
    }
    for preset in (
        ENGINE_PRESETS["vllm-16k"],
        ENGINE_PRESETS["vllm-2k"],
        ENGINE_PRESETS["sglang-8k"],
        ENGINE_PRESETS["tensorrt-llm"],
    )
}
"""Links to engines as they come; a chunk cap that is off is the longest prompt."""


SPEAKS_FOR = {preset.title: preset.speaks_for for preset in ENGINE_PRESETS.values()}


@dataclass(frozen=True, slots=True)
class View:
    """How the timeline is looked at."""

    axis: Axis
    zoom_on_target: bool


def is_known() -> bool:
    """Return whether the controls hold values already, so that they need not be laid first."""
    return all(key in st.session_state for key in DEFAULTS)


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none yet."""
    return st.session_state.get(key, DEFAULTS[key])


def policy(values: Mapping[str, Any] | None = None) -> str:
    """Return the scheduler's name in the registry: the chosen one, or that of given values."""
    chosen = _reader(values)("policy")
    return next(name for name, title in TITLES.items() if title == chosen)


def _reader(values: Mapping[str, Any] | None) -> Callable[[str], Any]:
    if values is None:
        return value_of
    return lambda key: values.get(key, DEFAULTS[key])


def experiment(values: Mapping[str, Any] | None = None) -> Experiment:
    """Return the experiment that the controls describe, or that given values would.

    values: by parameter name, of the type that the control holds; what is left out is as it comes.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """
    value_of = _reader(values)
    prompt_tokens = int(value_of("prompt"))
    scenario = chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=int(value_of("users")))
    requests = tuple(
        Request(request_id=f"long-{number + 1}", prompt_tokens=prompt_tokens)
        for number in range(int(value_of("prompts")))
    )
    described = Experiment(
        workload=replace(scenario, requests=requests, user_context_tokens=int(value_of("context"))),
        policy=policy(values),
        limits=EngineLimits(
            token_budget=value_of("budget"),
            max_seqs=value_of("seats"),
            chunk_tokens=int(value_of("chunk")),
            mixed=bool(value_of("mixed")),
            prefill_interval=int(value_of("interval")),
        ),
        cost=_cost(values),
        itl_target_ms=value_of("target"),
        hand_over=HandOver(
            kv_bytes_per_token=int(value_of("kv_bytes")),
            link_bytes_per_s=value_of("link") * BYTES_IN_A_GB,
            link_latency_ms=value_of("latency"),
        ),
    )
    return described if value_of("chunking") else described.chunking_off()


def machine(values: Mapping[str, Any] | None = None) -> Deployment | None:
    """Return the machine whose steps are simulated; None where coefficients say it all.

    Raises:
        ValueError: a model that cannot be shared out over so many GPUs.
    """
    return deployment(MODEL_KEY, chapter=True, values=values)


def _cost(values: Mapping[str, Any] | None) -> AnyCost:
    value_of, chosen = _reader(values), machine(values)
    if chosen is not None:
        return RooflineCost(deployment=chosen, engine=HOST_OF_POLICY.get(policy(values), "vllm"))
    coefficients = {
        "fixed_ms": value_of("fixed"),
        "prefill_ms_per_token": value_of("prefill"),
        "decode_ms_per_token": value_of("decode"),
    }
    if value_of("attended"):
        return FittedCost(**coefficients, context_ms_per_token=value_of("attended"))
    return LinearCost(**coefficients)


def view() -> View:
    """Return how the timeline is to be shown."""
    axis = value_of("axis") or DEFAULTS["axis"]
    return View(axis=Axis(axis), zoom_on_target=bool(value_of("zoom")))


def chunk_stops(*, prompt_tokens: int, extra: list[int]) -> list[int]:
    """Return the slider's stops: powers of two and the halves between, the prompt, and `extra`."""
    last = max(prompt_tokens, SHORTEST_SLIDER)
    stops = {prompt_tokens, last, *extra}
    size = SMALLEST_STOP
    while size <= last:
        stops |= {size, size * 3 // 2} if size * 3 // 2 <= last else {size}
        size *= 2
    return sorted(stops)


def _number(low: float, high: float) -> Callable[[str], Any]:
    def check(text: str) -> float:
        try:
            value: object = float(text)
        except ValueError:
            value = text
        return require_ms("value", value, low, high)

    return check


SCENARIO_CHECKS: dict[str, Callable[[str], Any]] = {
    "policy": one_of(*TITLES.values()),
    "mixed": one_of("true", "false"),
    "interval": whole(1, MAX_STEPS_APART),
    "kv_bytes": whole(1, MAX_KV_BYTES),
    "link": _number(0.01, MAX_LINK_GB_PER_S),
    "latency": _number(0, MAX_TARGET_MS),
    "chunk": whole(1, MAX_PROMPT),
    "chunking": one_of("true", "false"),
    "prompt": whole(1, MAX_PROMPT),
    "prompts": whole(1, MAX_PROMPTS),
    "users": whole(0, MAX_USERS),
    "target": _number(MIN_TARGET_MS, MAX_TARGET_MS),
    "budget": whole(1, MAX_BUDGET),
    "seats": whole(1, MAX_BUDGET),
    "fixed": _number(0, MAX_COEFFICIENT_MS),
    "prefill": _number(0, MAX_COEFFICIENT_MS),
    "decode": _number(0, MAX_COEFFICIENT_MS),
    "attended": _number(0, MAX_COEFFICIENT_MS),
    "context": whole(0, MAX_PROMPT),
    **machine_checks(MODEL_KEY, chapter=True),
}
"""Of the parameters that say what is simulated; a pinned state is made of them."""


def pinned_values(text: str) -> dict[str, Any]:
    """Return the values of a pinned state, by parameter name, from its text in the link.

    Raises:
        ValueError: a text that is no such state, in one sentence.
    """
    if len(text) > MOST_PINNED_CHARACTERS:
        raise ValueError(
            f"value: {len(text):,} characters are too many (allowed: {MOST_PINNED_CHARACTERS:,})"
        )
    values: dict[str, Any] = {}
    try:
        pairs = parse_qsl(text, strict_parsing=True, max_num_fields=len(SCENARIO_CHECKS))
    except ValueError as error:
        raise ValueError("value: no settings of this page, as in chunk=512&users=8") from error
    for name, value in pairs:
        if name not in SCENARIO_CHECKS or name in values:
            told = "is given twice" if name in values else "is no setting of a scenario"
            raise ValueError(f"value: {name[:40]} {told}")
        try:
            checked = SCENARIO_CHECKS[name](value)
        except ValueError as error:
            raise ValueError(f"value: {name}: {str(error).partition(': ')[2]}") from error
        values[name] = value == "true" if isinstance(DEFAULTS.get(name), bool) else checked
    return values


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    **SCENARIO_CHECKS,
    "pin": pinned_values,
    "axis": one_of(*Axis),
    "zoom": one_of("true", "false"),
    "picture": one_of(*PICTURE_FORMATS),
}
