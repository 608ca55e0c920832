"""The traffic page's capacity mode: the highest rate that holds the targets, by chunk size."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

import streamlit as st

from s11.capacity import Capacity, CapacityTargets
from s11.capacity_words import chunking_words
from s11.figures.traffic_capacity import (
    CapacityCurve,
    capacity_figure,
    capacity_info,
    rate_words,
)
from s11.figures.traffic_capacity_words import (
    capacity_alt,
    capacity_columns,
    chunk_capacity_alt,
    chunk_capacity_columns,
)
from s11.figures.traffic_chunk_capacity import (
    WHOLE,
    TargetCurve,
    WholePrompts,
    chunk_capacity_figure,
    chunk_capacity_info,
)
from s11.policies import CHUNKING
from s11.presets import TITLES
from s11.ui import traffic_state as state
from s11.ui.frame import chart, picture_control, plain
from s11.ui.traffic_command import capacity_command
from s11.ui.traffic_search import (
    CHUNK_SIZES,
    DELAY_MS,
    ITL_FACTORS,
    MAX_STEPS,
    MOST_REQUESTS,
    PRECISION,
    SEARCHED,
    Search,
    capacity_words,
    found_of,
    search,
    targets_of,
)
from s11.ui.traffic_setup import Setup, Side
from s11.ui.traffic_take_away import numbers
from s11.ui.traffic_upload import uploaded
from s11.words import count, ms
from s11.workload import Workload

KEPT, SEARCHING = "traffic_capacity_kept", "traffic_capacity_searching"


def capacity() -> None:
    """Lay the search and what it found.

    Raises:
        ValueError: a scheduler without a chunk size, values that do not go together.
    """
    asked = _asked()
    found = st.session_state.get(KEPT)
    if not isinstance(found, Search) or found.asked != asked:
        found = st.session_state[KEPT] = Search(asked)
    _run(found)
    if any(found.points.values()):
        _found(found)
    st.markdown(
        f":small[Bounded: {len(CHUNK_SIZES)} chunk sizes and whole prompts, the first "
        f"{MOST_REQUESTS:,} of the requests, {MAX_STEPS:,} steps a run, rates within "
        f"{PRECISION:.0%}. A rate holds where P99 ITL is within its target and the median request "
        "is first scheduled within 2 s of its arrival (Agrawal et al., Sarathi-Serve, OSDI 2024).]"
    )
    st.code(
        capacity_command(
            asked,
            chunk_sizes=CHUNK_SIZES,
            itl_p99_ms=[one.itl_p99_ms for one in targets_of(asked)],
            trace_name=uploaded().trace.name if state.is_uploaded() else "TRACE",
        ),
        language="bash",
        wrap_lines=True,
    )


def _asked() -> Setup:
    """Return what is searched, whatever the rate slider and the chunk size say."""
    setup = state.setup("b")
    if setup.side.policy not in CHUNKING:
        cutting = [title for title, name in state.POLICIES.items() if name in CHUNKING]
        raise ValueError(
            f"scheduler: {TITLES[setup.side.policy]} takes prompts whole and has no chunk size to "
            f"search (allowed: {', '.join(cutting)})"
        )
    side = Side(policy=setup.side.policy, chunk_tokens=CHUNK_SIZES[0])
    return replace(setup, side=side, source=setup.source.shortened(MOST_REQUESTS))


def _run(found: Search) -> None:
    """Lay the button, and search while it is on; each tried rate is kept at once."""
    place = st.empty()
    if st.session_state.get(SEARCHING) != found.asked or found.finished:
        if not found.finished:
            begun = any(found.points.values())
            place.button(
                "Go on searching" if begun else "Search the highest rates",
                type="primary",
                icon=":material/search:",
                key="traffic_search",
                on_click=_set,
                args=(found.asked,),
            )
        return
    with place.container(border=True):
        bar = st.progress(0.0, text="Trying the first rate")
        st.button("Stop", key="traffic_stop", on_click=_set, args=(None,))
    for size, point in search(found):
        what = WHOLE.capitalize() if size is None else f"Chunks of {size:,}"
        holds = "holds" if point.holds else "does not hold"
        text = f"{what}: {rate_words(point.rate_per_s)} requests/s {holds}"
        bar.progress(SEARCHED.index(size) / len(SEARCHED), text=text)
    place.empty()


def _set(value: Setup | None) -> None:
    st.session_state[SEARCHING] = value


def _found(found: Search) -> None:
    """Show what was tried so far."""
    targets = targets_of(found.asked)
    chosen = targets[ITL_FACTORS.index(1.0)]
    sizes = [size for size in CHUNK_SIZES if found.points.get(size)]
    capacities = {
        (each, size): found_of(found.points[size], each) for each in targets for size in sizes
    }
    whole = found.points[None] if found.finished else []
    uncut = {each: found_of(whole, each) for each in targets if whole}
    if not found.finished:
        st.markdown(f"**Not finished**: {count(len(sizes), 'chunk size')} so far.")
    first, *others = capacity_words(capacities, chosen)
    st.markdown(f"**{plain(first)}** {plain(' '.join(others))}")
    if uncut:
        st.markdown(plain(_what_chunking_buys(capacities, uncut, chosen)))
    caption = _caption(found)
    curves = [
        TargetCurve(
            label=f"P99 ITL {ms(each.itl_p99_ms)}",
            chunk_tokens=tuple(sizes),
            highest_per_s=tuple([capacities[each, size].highest_per_s for size in sizes]),
            whole_prompts=WholePrompts(highest_per_s=uncut[each].highest_per_s) if uncut else None,
        )
        for each in targets
    ]
    chunks = chunk_capacity_info(curves, caption=caption)
    spec = chunk_capacity_figure(chunks)
    chart(
        spec, key="traffic_chunks", alt=chunk_capacity_alt(chunks), filename="s11-capacity-by-chunk"
    )
    numbers("highest rates", chunk_capacity_columns(chunks), spec)
    tried_rates = [
        CapacityCurve(label=f"{size:,} tokens", points=capacities[chosen, size].points)
        for size in sizes
    ]
    if uncut:
        tried_rates.append(CapacityCurve(label=WHOLE, points=uncut[chosen].points))
    tried = capacity_info(
        tried_rates,
        targets=f"P99 ITL {ms(chosen.itl_p99_ms)}, median delay {ms(DELAY_MS)}",
        caption=caption,
    )
    spec = capacity_figure(tried)
    chart(spec, key="traffic_goodput", alt=capacity_alt(tried), filename="s11-goodput")
    st.markdown(
        ":small[Goodput counts requests that meet the TTFT target and whose every ITL is within "
        "the ITL target; a rate can hold its P99 while goodput falls.]"
    )
    numbers("tried rates", capacity_columns(tried), spec)
    picture_control()


def _what_chunking_buys(
    capacities: Mapping[tuple[CapacityTargets, int], Capacity],
    uncut: Mapping[CapacityTargets, Capacity],
    chosen: CapacityTargets,
) -> str:
    """Return the best chunk size against whole prompts, a sentence for each target."""
    sentences = []
    for each in (chosen, *[other for other in uncut if other != chosen]):
        words = chunking_words(
            {size: one for (of, size), one in capacities.items() if of == each},
            uncut[each],
            rate_words=rate_words,
        )
        sentences.append(f"At a P99 ITL of {ms(each.itl_p99_ms)}, {words}.")
    return " ".join(sentences)


def _caption(found: Search) -> list[str]:
    asked, tried = found.asked, next(points[0] for points in found.points.values() if points)
    cost = asked.experiment(Workload(requests=())).cost.formula()
    load = f"{TITLES[asked.side.policy]}, {count(tried.request_count, 'request')}"
    return [f"{load}, simulated by s11", cost]
