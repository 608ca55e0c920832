"""The simulator page's controls; what they hold is read in `simulator_state`."""

from __future__ import annotations

from typing import Any

import streamlit as st

from s11.figures.timeline_info import Axis
from s11.kv_pool import within_memory
from s11.policies import CHUNKING, DISAGGREGATED
from s11.presets import ABOUT, FLAGS, TITLES
from s11.ui import simulator_state as state
from s11.ui.frame import link_row
from s11.ui.machine import CHAPTER, link_parameters, machine_pills
from s11.ui.runs import largest_chunk
from s11.ui.simulator_pin import pin_controls
from s11.ui.simulator_state import DEFAULTS, ENGINES, LINK_CHECKS, PRESETS, SPEAKS_FOR
from s11.words import count

KNOBS = {
    "token_budget": "token budget",
    "chunk_tokens": "chunk cap",
    "max_seqs": "most running requests",
    "chunking": "chunking",
    "mixed": "decodes ride along",
    "prefill_interval": "prefill interval",
}
"""The knobs of this page that engines have names for."""


def scenario_controls() -> None:
    """Lay the controls that say what is asked of the engine."""
    places = st.container(key="pair_controls").columns(
        [3, 3, 3, 4, 3, 3], vertical_alignment="bottom"
    )
    with places[0]:
        _number(
            "prompt",
            "Prompt length (tokens)",
            (1, state.MAX_PROMPT, 512),
            help="The long prompt that arrives among running streams, 1 to 131,072 tokens.",
        )
    with places[1]:
        _number(
            "users",
            "Streaming users",
            (0, state.MAX_USERS, 1),
            help="Requests that decode from the first step to the last, one token a step each.",
        )
    with places[2]:
        _number(
            "target",
            "ITL target (ms)",
            (state.MIN_TARGET_MS, state.MAX_TARGET_MS, 5.0),
            help="The longest gap between two tokens that a user should see.",
        )
    with places[3]:
        st.selectbox(
            "Scheduler",
            options=list(TITLES.values()),
            index=list(TITLES.values()).index(DEFAULTS["policy"]),
            key="policy",
            bind="query-params",
            help="Who decides what a step holds.\n\n"
            + "\n".join(f"- **{TITLES[policy]}**: {ABOUT[policy]}" for policy in TITLES),
        )
    with places[4].popover("Model & GPU", icon=":material/memory:", width="stretch"):
        machine_pills(state.MODEL_KEY, chapter=True)
    with places[5].popover("Advanced", icon=":material/tune:", width="stretch"):
        _advanced()


def chunk_controls() -> None:
    """Lay the dominant control, the chunk size, and how its picture is looked at."""
    slider_place, toggle_place = st.columns([6, 1], vertical_alignment="bottom")
    toggle_place.toggle(
        "Chunking",
        value=DEFAULTS["chunking"],
        key="chunking",
        bind="query-params",
        disabled=state.policy() not in CHUNKING,
        help="Off: the prompt is one indivisible slice."
        if state.policy() in CHUNKING
        else f"{TITLES[state.policy()]} always takes prompts whole.",
    )
    best = _best()
    with slider_place:
        _chunk_slider(best)
    with st.container(horizontal=True, vertical_alignment="center", gap="small"):
        _snap(best)
        _view()
        pin_controls()


def preset_links() -> None:
    """Lay the presets as links, and the engines as they come, on the machine that is chosen."""
    machine = link_parameters(state.MODEL_KEY)
    engines = {name: machine | parameters for name, parameters in ENGINES.items()}
    st.html(
        link_row("Try", "Presets", PRESETS)
        + link_row("As it comes", "Engines as they come", engines, SPEAKS_FOR)
    )


def _best() -> int | None:
    """Return the largest chunk within the target, None where none is or values clash."""
    if state.policy() not in CHUNKING:
        return None
    try:
        return largest_chunk(state.experiment().with_chunk_tokens(1))
    except ValueError:
        return None


def _runs() -> bool:
    """Return whether the settings go together, and the model fits its machine."""
    try:
        within_memory(state.experiment())
    except ValueError:
        return False
    return True


def _number(key: str, label: str, bounds: tuple[Any, Any, Any], **options: Any) -> None:
    lowest, highest, step = bounds
    st.number_input(
        label,
        min_value=lowest,
        max_value=highest,
        value=DEFAULTS[key],
        step=step,
        format="%g" if isinstance(step, float) else None,
        key=key,
        bind="query-params",
        **options,
    )


def slider_sizes(best: int | None = None) -> tuple[int, ...]:
    """Return the chunk sizes at which the slider stops; best: the largest within the target."""
    asked = st.session_state.get("chunk")
    if asked is None:
        asked = LINK_CHECKS["chunk"](st.query_params.get("chunk", str(DEFAULTS["chunk"])))
    best = best or _best()
    extra = [DEFAULTS["chunk"], asked] + ([best] if best else [])
    return tuple(state.chunk_stops(prompt_tokens=int(state.value_of("prompt")), extra=extra))


def _chunk_slider(best: int | None) -> None:
    st.select_slider(
        "Chunk size (tokens)",
        options=slider_sizes(best),
        value=DEFAULTS["chunk"],
        key="chunk",
        bind="query-params",
        disabled=not state.value_of("chunking") or state.policy() not in CHUNKING,
        help="The most tokens of one prompt that are computed in one step. "
        "Arrow keys move it; any other size is set as the chunk cap under Advanced.",
    )


def _advanced() -> None:
    names = FLAGS.get(state.policy())
    if names:
        knobs = " · ".join(f"{KNOBS[knob]} `{names[knob]}`" for knob in KNOBS if knob in names)
        st.caption(f"{TITLES[state.policy()]} calls them: {knobs}.")
    left, right = st.columns(2)
    with left:
        _number(
            "budget",
            "Token budget (tokens per step)",
            (1, state.MAX_BUDGET, 512),
            placeholder="no budget",
            help=f"Most tokens in one step, decodes included{_flags('token_budget')}.",
        )
        _number(
            "seats",
            "Most running requests",
            (1, state.MAX_BUDGET, 1),
            placeholder="no limit",
            help=f"Seats for requests that prefill or decode{_flags('max_seqs')}.",
        )
        _number(
            "interval",
            "At most one prefill step in every (steps)",
            (1, state.MAX_STEPS_APART, 1),
            help="While anyone decodes, a step that carries prompt tokens is followed by so many "
            f"less one that do not{_flags('prefill_interval')}.",
        )
    with right:
        st.number_input(
            "Chunk cap, exact (tokens)",
            min_value=1,
            max_value=state.MAX_PROMPT,
            value=None,
            step=1,
            placeholder="as the slider",
            key="exact_chunk",
            on_change=_take_exact_chunk,
            help="Sets the chunk size to any number, also one that does not divide the prompt"
            f"{_flags('chunk_tokens')}.",
        )
        _number(
            "prompts",
            "Long prompts at once",
            (1, state.MAX_PROMPTS, 1),
            help="How many prompts of that length arrive together.",
        )
        st.toggle(
            "Decodes ride along (SGLang)",
            value=DEFAULTS["mixed"],
            key="mixed",
            bind="query-params",
            disabled=state.policy() != "sglang",
            help="SGLang's --enable-mixed-chunk: off, a step is prefill or decode.",
        )
    if state.policy() == DISAGGREGATED:
        travel = st.columns(3)
        for place, key, label, bounds in (
            (travel[0], "kv_bytes", "KV of a token (bytes)", (1, state.MAX_KV_BYTES, 1024)),
            (travel[1], "link", "Link (GB/s)", (0.01, state.MAX_LINK_GB_PER_S, 10.0)),
            (travel[2], "latency", "Link latency (ms)", (0.0, state.MAX_TARGET_MS, 1.0)),
        ):
            with place:
                _number(key, label, bounds)
    on_a_machine = st.session_state.get(state.MODEL_KEY, CHAPTER) != CHAPTER
    cost = st.columns(2)
    for place, key, label, step in (
        (cost[0], "fixed", "Fixed cost of a step (ms)", 0.5),
        (cost[1], "prefill", "Cost of a prefill token (ms)", 0.001),
        (cost[0], "decode", "Cost of a decode token (ms)", 0.01),
        (cost[1], "attended", "Cost of a cached token attended to (ms)", 0.00001),
    ):
        with place:
            _number(
                key,
                label,
                (0.0, state.MAX_COEFFICIENT_MS, step),
                disabled=on_a_machine,
                help="The chosen model and GPU say it." if on_a_machine else None,
            )
    with cost[0]:
        _number(
            "context",
            "Context of each stream (tokens)",
            (0, state.MAX_PROMPT, 512),
            help="What each streaming user has in the KV cache before the first step. It costs "
            "time on a machine, and where cached tokens have a cost.",
        )


def _flags(knob: str) -> str:
    """Return what the engines call a knob, in brackets."""
    names = [f"{TITLES[policy]}: {flags[knob]}" for policy, flags in FLAGS.items() if knob in flags]
    return f" ({'; '.join(names)})"


def _take_exact_chunk() -> None:
    exact = st.session_state.get("exact_chunk")
    if exact:
        st.session_state["chunk"] = int(exact)
        st.session_state["exact_chunk"] = None


def _take_chunk(chunk_tokens: int) -> None:
    st.session_state["chunk"] = chunk_tokens
    st.session_state["chunking"] = True


def _snap(best: int | None) -> None:
    if best is None:
        whole = state.policy() not in CHUNKING
        label = "This scheduler has no chunk size" if whole else "No chunk size meets the target"
        if not _runs():
            label = "Largest chunk: these settings cannot run"
        st.button(label, disabled=True, key="snap")
        return
    label = f"Largest chunk within the target: {count(best, 'token')}"
    if best >= int(state.value_of("prompt")):
        label = "Every chunk size meets the target"
    st.button(
        label,
        on_click=_take_chunk,
        args=(best,),
        key="snap",
        icon=":material/my_location:",
        help="Sets the largest chunk size with which no step exceeds the ITL target.",
    )


def _view() -> None:
    st.segmented_control(
        "Horizontal axis",
        options=[str(choice) for choice in Axis],
        default=DEFAULTS["axis"],
        required=True,
        key="axis",
        bind="query-params",
        label_visibility="collapsed",
    )
    st.toggle(
        "Zoom on the target",
        value=DEFAULTS["zoom"],
        key="zoom",
        bind="query-params",
        help="Shows step durations up to twice the target.",
    )
