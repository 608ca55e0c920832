"""The chunk size page's controls, and how its sweeps are run, stopped and gone on with."""

from __future__ import annotations

import time
from collections.abc import Callable, Hashable, Sequence
from typing import Any, TypeVar

import streamlit as st

from s11.ui import chunk_size_state as state
from s11.ui.chunk_size_state import BOUNDS, DEFAULTS, ENGINES, MODEL_KEY, TARGETS, Across
from s11.ui.machine import machine_pills

QUIET_S = 0.3  # shorter work shows no progress: it would only flicker

Done = TypeVar("Done")


def controls() -> None:
    """Lay the dominant control, the machine, and the load."""
    st.select_slider(
        "ITL target (ms): the longest gap between two tokens that users shall see",
        options=TARGETS,
        value=DEFAULTS["size_target"],
        key="size_target",
        bind="query-params",
    )
    machine_pills(MODEL_KEY, chapter=False)
    st.pills(
        "Engine",
        options=list(ENGINES),
        default=DEFAULTS["size_engine"],
        required=True,
        key="size_engine",
        bind="query-params",
        help="Whose scheduler and whose flags. The machine is the same for all.",
    )
    places = st.container(key="pair_size_load").columns(3)
    with places[0]:
        number("size_prompt", "Prompt (tokens)", help="The one long prompt that is cut to chunks.")
    with places[1]:
        number("size_users", "Streaming users", help="Who decodes beside it and sees the stalls.")
    with places[2]:
        number(
            "size_context",
            "Their context (tokens)",
            help="What each streaming user has in the KV cache when the prompt comes.",
        )
    if state.policy() == "sglang":
        st.toggle(
            "Mixed chunks (--enable-mixed-chunk; off as SGLang comes)",
            value=DEFAULTS["size_mixed"],
            key="size_mixed",
            bind="query-params",
            help="On: decodes ride along in prefill steps. Off: they stand still meanwhile.",
        )


def across_control() -> None:
    """Lay the choice of what the small multiples go through."""
    st.segmented_control(
        "Compare",
        options=[str(kind) for kind in Across],
        default=DEFAULTS["across"],
        required=True,
        key="across",
        bind="query-params",
        help="All GPUs run the chosen model; all models run on the chosen GPU.",
    )


def busy_controls() -> None:
    """Lay the busy load of the budget experiment."""
    places = st.container(key="pair_size_busy").columns(3)
    with places[0]:
        number("size_clients", "Clients", help="Each sends its next request when its last ends.")
    with places[1]:
        number("size_busy_prompt", "Their prompts (tokens)")
    with places[2]:
        number("size_answer", "Their answers (tokens)")


def number(key: str, label: str, **options: Any) -> None:
    """Lay a field for a whole number within its bounds."""
    lowest, highest, step = BOUNDS[key]
    st.number_input(
        label,
        min_value=lowest,
        max_value=highest,
        value=DEFAULTS[key],
        step=step,
        key=key,
        bind="query-params",
        **options,
    )


def worked(
    name: str, asked: Hashable, jobs: Sequence[tuple[str, Callable[[], Done]]]
) -> list[Done]:
    """Do jobs one by one and return what they gave; a stop keeps what is done so far.

    A click on Stop interrupts the page between two jobs and runs it anew, which then shows what
    was done. Other controls do too, and a job that is asked for again comes from its cache.

    Args:
        name: of the sweep, for its buttons.
        asked: what the jobs are about: another value begins anew.
        jobs: each with what it runs, for the progress line.
    """
    kept_key, stopped_key = f"size_{name}_kept", f"size_{name}_stopped"
    kept = st.session_state.get(kept_key)
    # By number: an interrupted run ends its job beside the run that came after it.
    results: dict[int, Done] = kept[1] if kept is not None and kept[0] == asked else {}
    st.session_state[kept_key] = (asked, results)
    place = st.empty()
    if st.session_state.get(stopped_key) == asked and len(results) < len(jobs):
        done = _in_order(results)
        with place.container(border=True):
            st.markdown(f"**Stopped** after {len(done)} of {len(jobs)}; what is done is shown.")
            st.button("Go on", key=f"size_{name}_go", on_click=_set, args=(stopped_key, None))
        return done
    begun_s, bar = time.perf_counter(), None
    for number, (label, job) in enumerate(jobs):
        if number in results:
            continue
        if bar is None and time.perf_counter() - begun_s > QUIET_S:
            with place.container(border=True):
                bar = st.progress(0.0)
                st.button("Stop", key=f"size_{name}_stop", on_click=_set, args=(stopped_key, asked))
        if bar is not None:
            bar.progress(number / len(jobs), text=f"{label} ({number + 1} of {len(jobs)})")
        results[number] = job()
    place.empty()
    return _in_order(results)


def _in_order(results: dict[int, Done]) -> list[Done]:
    return [results[number] for number in sorted(results)]


def _set(key: str, value: Hashable) -> None:
    st.session_state[key] = value
