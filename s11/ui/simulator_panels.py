"""The simulator page's panels: figures, timeline, sentence, downloads."""

from __future__ import annotations

import time

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from s11 import exports
from s11.experiment import Experiment
from s11.figures.timeline_pair import figure_columns
from s11.machine_words import machine_words
from s11.ui import simulator_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.live_chart import can_change_in_place
from s11.ui.live_parts import (
    CHART_KEY,
    figures_above,
    hold_stops,
    what_follows_on_release,
    words_below,
)
from s11.ui.production_link import production_link
from s11.ui.runs import Run, run
from s11.ui.simulator_controls import chunk_controls, slider_sizes
from s11.ui.simulator_picture import Picture, picture
from s11.ui.simulator_pin import pinned_experiment
from s11.ui.simulator_stops import slider_stops
from s11.ui.slide_pair import offer_pair

# Lets the server's other thread send the picture off by itself: the browser then draws it while
# the rest is still being made. On two cores the picture then stands 40 ms earlier, and the figures
# about as much later (benchmarks/ui.py).
FLUSH_S = 0.04
MOST_TABLE_ROWS = 1_000


@st.fragment  # a change redraws this part, not the frame around it
def simulator() -> None:
    """Lay the chunk size and what it gives.

    Once the controls hold values, the picture is sent before them: it is what the eye waits
    for, and the browser draws it while the rest is still on its way.
    """
    controls_place, figures_place, chart_place, words_place = (st.container() for _ in range(4))
    picture_first = state.is_known()
    if not picture_first:
        with controls_place:
            chunk_controls()
    try:
        with chart_place:
            pinned = pinned_experiment()
        shown = _shown(chart_place, pinned)
    except ValueError as error:
        show_refusal(error, chart_place)
        shown = None
    if shown:
        with figures_place:
            figures_above(shown)
    if picture_first:
        with controls_place:
            chunk_controls()
    if shown:
        with words_place:
            words_below(shown)
            _machine(shown.experiment)
            production_link()
            _take_away(shown, pinned)
            _follow_the_slider(shown.experiment, pinned, controls_place)


def _shown(chart_place: DeltaGenerator, pinned: Experiment | None) -> Picture:
    """Run what the controls say, draw the picture, and return it."""
    shown = picture(state.experiment(), state.view(), pinned)
    with chart_place:
        chart(shown.spec, key="timeline", alt=shown.alt, filename="s11-timeline")
    time.sleep(FLUSH_S)
    return shown


def _follow_the_slider(
    experiment: Experiment, pinned: Experiment | None, note_place: DeltaGenerator
) -> None:
    """Send what the slider's other stops would show, last: the page is painted by then."""
    if not experiment.chunking or not can_change_in_place(CHART_KEY):
        return
    stops = slider_stops(experiment, state.view(), pinned, slider_sizes())
    hold_stops(stops)
    if stops.left_out:
        note_place.caption(what_follows_on_release(stops))


def _machine(experiment: Experiment) -> None:
    """Say what the chosen machine's step times rest on, and how much KV it holds."""
    told = machine_words(experiment)
    if told:
        st.markdown(f":small[{told} How far off it is: [Models & trust](models).]")


def _take_away(shown: Picture, pinned: Experiment | None) -> None:
    """Lay what can leave the page; what is folded away is not sent until it is opened."""
    experiment, this, spec = shown.experiment, shown.this, shown.spec

    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title="s11: step timeline")

    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        fold = st.popover(
            "Take it with you: picture, CSV, JSON, HTML",
            icon=":material/download:",
            on_change="rerun",
            key="take_away",
        )
        numbers = st.popover(
            "The numbers as a table", icon=":material/table:", on_change="rerun", key="table"
        )
        offer_pair(experiment, pinned)
    if fold.open:
        with fold:
            if pinned is not None:
                st.caption("CSV and JSON hold the run that is set now, without A.")
            picture_control()
            st.download_button(
                "Steps as CSV",
                data=lambda: exports.steps_to_csv(this.result),
                file_name="s11-steps.csv",
                mime="text/csv",
                on_click="ignore",
                icon=":material/table:",
            )
            st.download_button(
                "Run as JSON",
                data=lambda: exports.to_json(experiment, this.result, this.metrics),
                file_name="s11-run.json",
                mime="application/json",
                on_click="ignore",
                icon=":material/data_object:",
            )
            st.download_button(
                "Picture as HTML",
                data=page,
                file_name="s11-timeline.html",
                mime="text/html",
                on_click="ignore",
                icon=":material/html:",
            )
    if numbers.open:
        with numbers:
            if pinned is None:
                _steps_table(this)
            else:
                _tables_beside_pinned(this, run(pinned))


def _tables_beside_pinned(this: Run, pinned: Run) -> None:
    """Lay the figures of A and of what is set now side by side, then the steps of each."""
    # A table that breaks its lines: both columns stand on a phone, too.
    columns = figure_columns({"A, pinned": pinned.metrics, "now": this.metrics})
    st.table(
        {name: [_cell(value) for value in told] for name, told in columns.items()}, hide_index=True
    )
    st.caption("The steps of A, the pinned run")
    _steps_table(pinned)
    st.caption("The steps of what is set now")
    _steps_table(this)


def _cell(value: object) -> str:
    if value is None:
        return "none"
    return f"{value:,.7g}" if isinstance(value, int | float) else str(value)


def _steps_table(this: Run) -> None:
    steps = len(this.result.steps)
    rows = min(steps, MOST_TABLE_ROWS)
    if rows < steps:
        st.caption(f"The first {rows:,} of {steps:,} steps; the CSV has all.")
    columns = this.result.steps.columns().items()
    st.dataframe({name: column[:rows] for name, column in columns}, hide_index=False)
