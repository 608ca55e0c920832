"""The traffic page's runs over time: a zoom is answered with finer numbers."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from s11.figures.traffic_look import TrafficRun
from s11.figures.traffic_over_time import over_time_figure
from s11.figures.traffic_over_time_info import (
    over_time_alt,
    over_time_columns,
    over_time_info,
)
from s11.over_time import run_span_ms
from s11.ui import traffic_state as state
from s11.ui.frame import chart
from s11.ui.live_chart import Zoomed
from s11.ui.traffic_controls import real
from s11.ui.traffic_take_away import numbers

LEAST_WINDOW_S = 0.001
AROUND = 3
DECIMALS = 4  # of seconds: a tenth of a ms
FROM, TO = "look_from", "look_to"


@st.fragment  # a zoom runs this part alone
def time_panel(runs: Sequence[TrafficRun]) -> None:
    """Lay the runs over time, all of them or the stretch that was zoomed to."""
    end_s = max([run_span_ms(run.result)[1] for run in runs]) / 1000

    def look(zoomed: Zoomed) -> None:
        """Take what was zoomed to, in the picture's unit; all of it again for None."""
        low, high = (0.0, end_s) if zoomed is None else (zoomed[0] * unit_s, zoomed[1] * unit_s)
        low, high = max(0.0, low), min(end_s, high)
        whole = low <= 0 and high >= end_s * (1 - 1e-6)
        st.session_state[FROM] = 0.0 if whole else round(low, DECIMALS)
        st.session_state[TO] = None if whole else round(high, DECIMALS)

    chart_place = st.container()
    places = st.container(key="pair_traffic_look").columns([2, 2, 1], vertical_alignment="bottom")
    with places[0]:
        real(FROM, "Look from (s)", help="Or drag across the picture: it is drawn anew, finer.")
    with places[1]:
        real(TO, "to (s)", placeholder="the end")
    with places[2]:
        st.button("Whole run", on_click=look, args=(None,), key="traffic_look_all")
    window, note = _window(end_s)
    begin_ms, end_ms = 1000 * window[0], 1000 * window[1]
    info = over_time_info(
        runs,
        itl_target_ms=runs[0].experiment.itl_target_ms,
        begin_ms=begin_ms,
        end_ms=end_ms,
    )
    spec = over_time_figure(info)
    unit_s = info.unit_ms / 1000
    with chart_place:
        chart(
            spec,
            key="traffic_time",
            alt=over_time_alt(info),
            filename="s11-over-time",
            on_zoom=look,
        )
    if note:
        st.caption(note)
    table = {name: column.tolist() for name, column in over_time_columns(info).items()}
    numbers("over time", table, spec)


def look_at(begin_ms: float, end_ms: float) -> None:
    """Make the picture show a moment, with a few times its length around it."""
    around_ms = AROUND * (end_ms - begin_ms)
    st.session_state[FROM] = round(max(0.0, begin_ms - around_ms) / 1000, DECIMALS)
    st.session_state[TO] = round((end_ms + around_ms) / 1000, DECIMALS)


def _window(end_s: float) -> tuple[tuple[float, float], str | None]:
    """Return the stretch to look at, in s, and a note where what was asked for has nothing."""
    begin, end = float(state.value_of(FROM)), state.value_of(TO)
    last = end_s if end is None else min(float(end), end_s)
    if begin == 0 and last == end_s:
        return (0.0, end_s), None
    if begin + LEAST_WINDOW_S > last:
        told = f"{begin:g} s to {last:g} s" if end is not None else f"from {begin:g} s on"
        return (0.0, end_s), (
            f"There is nothing to look at {told}: the runs end at {end_s:,.4g} s, and a stretch "
            "is at least 1 ms long. The whole run is shown."
        )
    return (begin, last), None
