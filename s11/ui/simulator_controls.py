"""The simulator page's controls, and the experiment they describe."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from s11.checks import require_choice, require_int, require_ms
from s11.costs import LinearCost
from s11.experiment import Experiment
from s11.explain import count
from s11.figures.timeline_info import Axis
from s11.plan import EngineLimits
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.runs import largest_chunk
from s11.workload import Request, chapter_scenario

DEFAULT_CHUNK, DEFAULT_PROMPT, DEFAULT_USERS, DEFAULT_TARGET_MS = 1024, 8192, 24, 50.0
MAX_PROMPT, MAX_USERS, MAX_PROMPTS = 131_072, 1_024, 8
MAX_BUDGET, MAX_TARGET_MS, MAX_COEFFICIENT_MS = 1_048_576, 10_000.0, 1_000.0
SMALLEST_STOP, SHORTEST_SLIDER = 64, 512

PRESETS: dict[str, dict[str, str]] = {
    "32k, chunking off": {"prompt": "32768", "chunking": "false"},
    "32k in 1,024-token chunks": {"prompt": "32768"},
    "Chunk = prompt": {"chunk": "8192"},
    "Longer than the budget: never runs": {
        "prompt": "32768",
        "chunking": "false",
        "budget": "8192",
    },
}


@dataclass(frozen=True, slots=True)
class View:
    """How the timeline is looked at."""

    axis: Axis
    zoom_on_target: bool


def _whole(low: int, high: int) -> Callable[[str], Any]:
    def check(text: str) -> int:
        return require_int("value", int(text) if text.strip().isdigit() else text, low, high)

    return check


def _number(low: float, high: float, *, above: bool = False) -> Callable[[str], Any]:
    def check(text: str) -> float:
        try:
            value: object = float(text)
        except ValueError:
            value = text
        return require_ms("value", value, low, high, above=above)

    return check


def _one_of(*choices: str) -> Callable[[str], Any]:
    return lambda text: require_choice("value", text, choices)


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "chunk": _whole(1, MAX_PROMPT),
    "chunking": _one_of("true", "false"),
    "prompt": _whole(1, MAX_PROMPT),
    "prompts": _whole(1, MAX_PROMPTS),
    "users": _whole(0, MAX_USERS),
    "target": _number(0.1, MAX_TARGET_MS),
    "budget": _whole(1, MAX_BUDGET),
    "seats": _whole(1, MAX_BUDGET),
    "fixed": _number(0, MAX_COEFFICIENT_MS),
    "prefill": _number(0, MAX_COEFFICIENT_MS),
    "decode": _number(0, MAX_COEFFICIENT_MS),
    "axis": _one_of(*Axis),
    "zoom": _one_of("true", "false"),
    "picture": _one_of(*PICTURE_FORMATS),
}


def chunk_stops(*, prompt_tokens: int, extra: list[int]) -> list[int]:
    """Return the slider's stops: powers of two and the halves between, the prompt, and `extra`."""
    last = max(prompt_tokens, SHORTEST_SLIDER)
    stops = {prompt_tokens, last, *extra}
    size = SMALLEST_STOP
    while size <= last:
        stops |= {size, size * 3 // 2} if size * 3 // 2 <= last else {size}
        size *= 2
    return sorted(stops)


def controls() -> tuple[Experiment, View]:
    """Lay the controls and return what they say.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """
    chunk_place, numbers_place = st.columns([13, 12], vertical_alignment="bottom")
    slider_place, toggle_place = chunk_place.columns([10, 3], vertical_alignment="bottom")
    numbers = numbers_place.container(key="pair_controls").columns(3, vertical_alignment="bottom")
    prompt_place, users_place, target_place = numbers
    options_place = st.container(horizontal=True, vertical_alignment="center", gap="small")
    snap_place = options_place.container(width="content")
    advanced = options_place.popover("Advanced", icon=":material/tune:")
    prompt_tokens = prompt_place.number_input(
        "Prompt length (tokens)",
        min_value=1,
        max_value=MAX_PROMPT,
        value=DEFAULT_PROMPT,
        step=512,
        key="prompt",
        bind="query-params",
        help="The long prompt that arrives among running streams, 1 to 131,072 tokens.",
    )
    users = users_place.number_input(
        "Streaming users",
        min_value=0,
        max_value=MAX_USERS,
        value=DEFAULT_USERS,
        step=1,
        key="users",
        bind="query-params",
        help="Requests that decode from the first step to the last, one token a step each.",
    )
    target_ms = target_place.number_input(
        "ITL target (ms)",
        min_value=0.1,
        max_value=MAX_TARGET_MS,
        value=DEFAULT_TARGET_MS,
        step=5.0,
        format="%g",
        key="target",
        bind="query-params",
        help="The longest gap between two tokens that a user should see.",
    )
    with advanced:
        prompts, limits, coefficients = _advanced()
    chunking = toggle_place.toggle(
        "Chunking",
        value=True,
        key="chunking",
        bind="query-params",
        help="Off: the prompt is one indivisible slice.",
    )

    def experiment(chunk_tokens: int) -> Experiment:
        return Experiment(
            workload=replace(
                chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=users),
                requests=tuple(
                    Request(request_id=f"long-{number + 1}", prompt_tokens=prompt_tokens)
                    for number in range(prompts)
                ),
            ),
            policy="chunked" if chunking else "whole_prompt",
            limits=replace(limits, chunk_tokens=chunk_tokens),
            cost=LinearCost(**coefficients),
            itl_target_ms=target_ms,
        )

    best, refusal = None, None
    try:
        best = largest_chunk(experiment(1).with_chunk_tokens(1))
    except ValueError as error:
        refusal = error
    with slider_place:
        chunk = _chunk_slider(prompt_tokens, best, disabled=not chunking)
    with snap_place:
        _snap(best)
    with options_place:
        view = _view()
    if refusal:
        raise refusal
    return experiment(chunk), view


def _chunk_slider(prompt_tokens: int, best: int | None, *, disabled: bool) -> int:
    asked = st.session_state.get("chunk")
    if asked is None:
        try:
            asked = LINK_CHECKS["chunk"](st.query_params.get("chunk", str(DEFAULT_CHUNK)))
        except ValueError:
            asked = DEFAULT_CHUNK
    extra = [DEFAULT_CHUNK, asked] + ([best] if best else [])
    return int(
        st.select_slider(
            "Chunk size (tokens)",
            options=chunk_stops(prompt_tokens=prompt_tokens, extra=extra),
            value=DEFAULT_CHUNK,
            key="chunk",
            bind="query-params",
            disabled=disabled,
            help="The most tokens of one prompt that are computed in one step. "
            "Arrow keys move it; any other size is set as the chunk cap under Advanced.",
        )
    )


def _advanced() -> tuple[int, EngineLimits, dict[str, float]]:
    limits_row = st.columns(2) + st.columns(2)
    budget = limits_row[0].number_input(
        "Token budget (tokens per step)",
        min_value=1,
        max_value=MAX_BUDGET,
        value=None,
        step=512,
        placeholder="no budget",
        key="budget",
        bind="query-params",
        help="Most tokens in one step, decodes included (vLLM: max_num_batched_tokens).",
    )
    limits_row[1].number_input(
        "Chunk cap, exact (tokens)",
        min_value=1,
        max_value=MAX_PROMPT,
        value=None,
        step=1,
        placeholder="as the slider",
        key="exact_chunk",
        on_change=_take_exact_chunk,
        help="Sets the chunk size to any number, also one that does not divide the prompt "
        "(vLLM: long_prefill_token_threshold).",
    )
    seats = limits_row[2].number_input(
        "Most running requests",
        min_value=1,
        max_value=MAX_BUDGET,
        value=None,
        step=1,
        placeholder="no limit",
        key="seats",
        bind="query-params",
        help="Seats for requests that prefill or decode (vLLM: max_num_seqs).",
    )
    prompts = limits_row[3].number_input(
        "Long prompts at once",
        min_value=1,
        max_value=MAX_PROMPTS,
        value=1,
        step=1,
        key="prompts",
        bind="query-params",
        help="How many prompts of that length arrive together.",
    )
    cost_row = st.columns(3)
    coefficients = {
        name: place.number_input(
            label,
            min_value=0.0,
            max_value=MAX_COEFFICIENT_MS,
            value=default,
            step=step,
            format="%g",
            key=key,
            bind="query-params",
        )
        for place, (name, label, key, default, step) in zip(
            cost_row,
            (
                ("fixed_ms", "Fixed cost of a step (ms)", "fixed", 4.0, 0.5),
                ("prefill_ms_per_token", "Cost of a prefill token (ms)", "prefill", 0.018, 0.001),
                ("decode_ms_per_token", "Cost of a decode token (ms)", "decode", 0.05, 0.01),
            ),
            strict=True,
        )
    }
    limits = EngineLimits(token_budget=budget, max_seqs=seats, chunk_tokens=None)
    return int(prompts), limits, coefficients


def _take_exact_chunk() -> None:
    exact = st.session_state.get("exact_chunk")
    if exact:
        st.session_state["chunk"] = int(exact)
        st.session_state["exact_chunk"] = None


def _take_chunk(chunk_tokens: int) -> None:
    st.session_state["chunk"] = chunk_tokens
    st.session_state["chunking"] = True


def _snap(best: int | None) -> None:
    if best:
        st.button(
            f"Largest chunk within the target: {count(best, 'token')}",
            on_click=_take_chunk,
            args=(best,),
            key="snap",
            icon=":material/my_location:",
            help="Sets the largest chunk size with which no step exceeds the ITL target.",
        )
    else:
        st.button("No chunk size meets the target", disabled=True, key="snap")


def _view() -> View:
    axis = st.segmented_control(
        "Horizontal axis",
        options=[str(choice) for choice in Axis],
        default=str(Axis.TIME),
        required=True,
        key="axis",
        bind="query-params",
        label_visibility="collapsed",
    )
    zoom = st.toggle(
        "Zoom on the target",
        key="zoom",
        bind="query-params",
        help="Shows step durations up to twice the target.",
    )
    return View(axis=Axis(axis or Axis.TIME), zoom_on_target=zoom)


def preset_links() -> None:
    """Lay the presets as links: each is a whole state, so it can be copied and sent too."""
    links = " ".join(
        f'<a href="?{escape(urlencode(parameters))}" target="_self">{escape(label)}</a>'
        for label, parameters in PRESETS.items()
    )
    st.html(f'<nav class="presets" aria-label="Presets">Try: {links}</nav>')
