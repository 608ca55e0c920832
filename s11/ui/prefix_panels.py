"""The prefix cache page's panels: figures, sentences, pictures, rules, numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from s11.exports import to_csv
from s11.figures.prefix import steps_alt, steps_figure
from s11.figures.prefix_blocks import blocks_figure
from s11.figures.prefix_blocks_info import blocks_alt, blocks_info
from s11.figures.prefix_info import FourRuns, per_request_columns
from s11.figures.prefix_tables import block_columns, step_columns
from s11.figures.prefix_ttft import ttft_alt, ttft_figure
from s11.figures.prefix_words import composition, recomputed, rules
from s11.figures.theme import Spec
from s11.prefix_blocks import admitted_blocks
from s11.ui import prefix_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.prefix_controls import prefix_controls
from s11.ui.prefix_state import Load
from s11.words import count, ms

SMALLEST_CHANGE_MS = 0.05
STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-prefix"] .modebar-container{top:auto !important;bottom:54px}
[class*="st-key-prefix-steps"] .modebar-container{bottom:26px}
[class*="st-key-prefix-ttft"] .modebar-container{bottom:68px}
}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def prefix_page() -> None:
    """Lay the controls and all that they give."""
    prefix_controls()
    try:
        four = state.four_runs()
    except ValueError as error:
        show_refusal(error)
        return
    blocks = admitted_blocks(four.both.experiment, four.both.result)
    _metrics(four)
    st.markdown(composition(four))
    _arrivals()
    steps_place, ttft_place = st.columns([5, 3])
    with steps_place:
        steps = steps_figure(four)
        chart(steps, key="prefix-steps", alt=steps_alt(four), filename="s11-prefix-steps")
    with ttft_place:
        ttft = ttft_figure(four)
        chart(ttft, key="prefix-ttft", alt=ttft_alt(four), filename="s11-prefix-ttft")
    st.header("Block by block", anchor="blocks")
    limits = four.both.experiment.limits
    info = blocks_info(
        blocks,
        request_ids=four.both.result.requests.request_id,
        block_size=limits.block_size,
        kv_blocks=limits.kv_blocks,
    )
    drawn = blocks_figure(info)
    chart(drawn, key="prefix-blocks", alt=blocks_alt(info), filename="s11-prefix-blocks")
    st.markdown(recomputed(blocks))
    st.markdown("\n".join(f"{place}. {rule}" for place, rule in enumerate(_rules(), start=1)))
    tables = {
        "Requests": per_request_columns(four, blocks),
        "Steps": step_columns(four),
        "Blocks": block_columns(info),
    }
    _take_away(tables, {"Steps": steps, "TTFT": ttft, "Blocks": drawn})


def _rules() -> list[str]:
    return rules(int(state.value_of("block")))


def _metrics(four: FourRuns) -> None:
    places = st.container(key="pair_prefix_figures").columns(4)
    last = four.both.result.requests.request_id[-1]
    cached, uncached = float(four.both.ttft_ms[-1]), float(four.chunking.ttft_ms[-1])
    change = cached - uncached
    told = abs(change) >= SMALLEST_CHANGE_MS
    places[0].metric(
        f"TTFT, {last}",
        "never" if cached != cached else ms(cached),
        delta=f"{'+' if change > 0 else '-'}{ms(abs(change))}" if told else "as without the cache",
        delta_color="inverse" if told else "off",
        delta_arrow="auto" if told else "off",
        delta_description="vs no cache" if told else None,
        border=True,
        help="Time to first token of the last request, chunking on, with the cache.",
    )
    computed = four.both.metrics.computed_prefill_tokens
    fewer = computed - four.chunking.metrics.computed_prefill_tokens
    places[1].metric(
        "Computed tokens",
        f"{computed:,}",
        delta=f"{fewer:+,}" if fewer else "as without the cache",
        delta_color="inverse" if fewer else "off",
        delta_arrow="auto" if fewer else "off",
        delta_description="vs no cache" if fewer else None,
        border=True,
        help="Tokens that prefill computed, with the cache and chunking.",
    )
    chunks = four.chunking.chunks
    places[2].metric(
        "Skipped chunks",
        f"{four.skipped_chunks:,} of {chunks:,}",
        delta=f"{count(four.both.chunks, 'chunk')} left",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="Chunks that chunking without the cache computes and both together do not.",
    )
    places[3].metric(
        "Hit rate",
        f"{100 * four.hit_share:.1f}%",
        delta=f"{four.both.metrics.cached_tokens:,} tokens",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="Share of the tokens asked of prefill that the cache held.",
    )


def _arrivals() -> None:
    gap_ms = state.gap_ms()
    if state.load() is Load.CONVERSATION:
        told = (
            f"A turn arrives every {gap_ms:,} ms: long enough for the slowest of the four runs to "
            "have answered the one before. The times are fixed beforehand (open loop)."
        )
    elif gap_ms:
        told = f"A request arrives every {gap_ms:,} ms, answered or not (open loop)."
    else:
        told = "All requests arrive at once."
    st.markdown(
        f":small[{told} No token budget, so that with chunking off a whole prompt fits in a step.]"
    )


Columns = Mapping[str, Sequence[Any]]


def _take_away(tables: Mapping[str, Columns], specs: Mapping[str, Spec]) -> None:
    fold = st.popover(
        "Take it with you: pictures, CSV, HTML",
        icon=":material/download:",
        on_change="rerun",
        key="prefix_take_away",
    )
    numbers = st.expander(
        "The numbers as a table", icon=":material/table:", on_change="rerun", key="prefix_table"
    )
    if fold.open:
        with fold:
            picture_control()
            _downloads(tables["Requests"], specs)
    if numbers.open:
        with numbers:
            for name, columns in tables.items():
                st.markdown(f"**{name}**")
                st.dataframe(columns, hide_index=True)


def _downloads(columns: Columns, specs: Mapping[str, Spec]) -> None:
    st.download_button(
        "Requests as CSV",
        data=lambda: to_csv(columns),
        file_name="s11-prefix.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
    )

    def page(name: str, spec: Spec) -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title=f"s11: prefix cache, {name.lower()}")

    for name, spec in specs.items():
        st.download_button(
            f"{name} as HTML",
            data=partial(page, name, spec),
            file_name=f"s11-prefix-{name.lower()}.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )
