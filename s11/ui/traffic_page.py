"""The traffic page: controls, then what two schedulers make of the same requests."""

from __future__ import annotations

import streamlit as st

from s11.ui import traffic_state as state
from s11.ui.frame import show_refusal
from s11.ui.traffic_capacity import capacity
from s11.ui.traffic_controls import (
    arrivals_control,
    closed_loop_note,
    details,
    mode_control,
    pace_control,
    side_control,
    sides,
    traffic_control,
)
from s11.ui.traffic_panels import results
from s11.ui.traffic_runs import request_count
from s11.ui.traffic_search import MOST_REQUESTS as MOST_SEARCHED
from s11.ui.traffic_search import precision_words
from s11.ui.traffic_setup import MAX_STEPS, MOST_REQUESTS
from s11.ui.traffic_state import CAPACITY
from s11.ui.traffic_upload import has_upload

NEEDS_A_RATE = (
    "Capacity varies the request rate, so it needs arrivals at a rate: closed-loop clients set "
    "their own pace."
)
STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
.stalls{width:100%;border-collapse:collapse;font-size:.875rem}
.stalls th,.stalls td{text-align:right;padding:.25rem .5rem;vertical-align:top;
border-bottom:1px solid light-dark(#E3E8EE,#26303B);white-space:nowrap}
.stalls th:last-child,.stalls td:last-child{text-align:left;white-space:normal}
.stalls tr[aria-current]{background:light-dark(#F3F6F9,#1A222C);font-weight:600}
.stalls a{color:light-dark(#005B8F,#8CCBF0)}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
.stalls :is(th,td):nth-child(n+4):nth-child(-n+6){display:none}
.stalls :is(th,td){padding:.25rem}
[class*="st-key-traffic_"] .modebar-container{top:auto !important;bottom:26px}
}
</style>"""


def traffic_page() -> None:
    """Lay the controls and all that they give."""
    st.html(STYLE)
    searching = mode_control() == CAPACITY
    traffic_control()
    with st.container(horizontal=True, gap="medium"):
        if not state.is_trace():
            arrivals_control()
        if not searching:
            pace_control()
    if searching:
        side_control("b", "Scheduler", every_size=True)
    else:
        note = st.container()
        sides()
    details()
    if state.is_closed_loop() and not searching:
        with note:  # how many requests there are is known now
            closed_loop_note()
    if not state.is_uploaded() or has_upload():
        _answers(searching)
    st.caption(
        f"This page is shared, so its work is bounded: up to {MOST_REQUESTS:,} requests and "
        f"{MAX_STEPS:,} steps a run. More than that: `python -m s11 simulate`."
    )


def _answers(searching: bool) -> None:
    """Lay what the traffic gives, or in one sentence why it cannot be had."""
    try:
        if not searching:
            results([state.setup("a"), state.setup("b")])
        elif state.is_closed_loop():
            st.info(NEEDS_A_RATE, icon=":material/sync_disabled:")
        else:
            requests = request_count(state.source().shortened(MOST_SEARCHED))
            st.markdown(f":small[{precision_words(requests)}]")
            capacity()
    except ValueError as error:
        show_refusal(error)
