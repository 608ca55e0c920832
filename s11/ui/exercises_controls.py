"""The controls that set the exercises' numbers."""

from __future__ import annotations

import streamlit as st

from s11.exercises_bug import CASES
from s11.ui.exercises_state import DEFAULTS, STOPS, other_numbers


def stops_control(key: str, label: str) -> None:
    """Lay a slider over a control's stops."""
    st.select_slider(label, options=STOPS[key], value=DEFAULTS[key], key=key, bind="query-params")


def case_control() -> None:
    """Lay the choice of the case whose bug is to be found."""
    st.segmented_control(
        "Case",
        options=list(CASES),
        default=DEFAULTS["bug_case"],
        required=True,
        key="bug_case",
        bind="query-params",
        help="Each case has another bug switched on.",
    )


def other_numbers_button(name: str) -> None:
    """Lay the button that sets an exercise's next numbers."""
    st.button(
        "Other numbers",
        on_click=other_numbers,
        args=(name,),
        key=f"other_{name}",
        icon=":material/autorenew:",
        help="The same exercise again with other numbers.",
    )
