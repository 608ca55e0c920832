"""A link from the simulator to the engines' launch commands with its settings."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

import streamlit as st

from s11.ui.machine import link_parameters
from s11.ui.simulator_state import DEFAULTS, MODEL_KEY, value_of

SHARED = ("budget", "chunk", "seats", "chunking", "mixed")
"""The simulator's parameters that this page has too, beside the machine's."""


def production_link() -> None:
    """Lay the simulator's link to the engines' commands with its settings.

    It belongs where the simulator runs again at every change, or it would be out of date.
    """
    changed = {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name in SHARED
        if (value := value_of(name)) is not None and value != DEFAULTS[name]
    }
    address = f"./production?{urlencode(link_parameters(MODEL_KEY) | changed)}"
    st.html(
        f'<nav class="presets"><a href="{escape(address)}" target="_self">'
        "These settings as launch commands</a></nav>"
    )
