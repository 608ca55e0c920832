"""The pinned state A: kept in the page's link, and held against what the controls say.

A link loses it at a switch to another page; the session keeps it for the way back.
"""

from __future__ import annotations

from urllib.parse import urlencode

import streamlit as st

from s11.experiment import Experiment
from s11.kv_pool import within_memory
from s11.ui import simulator_state as state
from s11.ui.frame import show_refusal
from s11.ui.machine import link_parameters

PIN = "pin"
KEPT = "kept_pin"


def present_state() -> str:
    """Return what the controls say of the scenario, as text for the link."""
    machine = link_parameters(state.MODEL_KEY)
    settings = {
        name: str(value).lower() if isinstance(value, bool) else f"{value}"
        for name in state.SCENARIO_CHECKS
        if name in state.DEFAULTS
        and (value := state.value_of(name)) is not None
        and (value != state.DEFAULTS[name] or name == "chunk")
    }
    return urlencode(settings | machine)


def pinned_experiment() -> Experiment | None:
    """Return the pinned experiment, None without one; one that cannot run is said and left out."""
    text = _pinned_text()
    if not text:
        return None
    try:
        experiment = state.experiment(state.pinned_values(text))
        within_memory(experiment)
    except ValueError as error:
        show_refusal(f"A, the pinned state, cannot run: {error}")
        return None
    return experiment


def pin_controls() -> None:
    """Lay the button that pins the present state as A, and where one is, the one that unpins it."""
    is_pinned = bool(_pinned_text())
    st.button(
        "Pin this as A instead" if is_pinned else "Pin as A",
        on_click=_pin,
        key="pin_a",
        icon=":material/push_pin:",
        help="Keeps this state as an outline, in the link too; whatever is changed then is shown "
        "and measured against it.",
    )
    if is_pinned:
        st.button("Unpin", on_click=_unpin, key="unpin_a", icon=":material/close:")


def _pinned_text() -> str:
    """Return what the link says of A; where it says nothing, what the session keeps of it."""
    text = st.query_params.get(PIN)
    if text is None and st.session_state.get(KEPT):
        text = st.query_params[PIN] = st.session_state[KEPT]
    st.session_state[KEPT] = text
    return text or ""


def _pin() -> None:
    st.query_params[PIN] = st.session_state[KEPT] = present_state()


def _unpin() -> None:
    st.query_params.pop(PIN, None)
    st.session_state.pop(KEPT, None)
