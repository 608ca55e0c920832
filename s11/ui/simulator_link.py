"""A link from another page into the simulator: its machine and its settings as they stand there."""

from __future__ import annotations

from html import escape
from urllib.parse import urlencode

import streamlit as st

from s11.catalog import MODELS, Deployment
from s11.ui.machine import GPU_LABELS, OWN, compact_config


def simulator_parameters(machine: Deployment, **settings: object) -> dict[str, str]:
    """Return the simulator's link parameters for a machine; a setting that is None is left out."""
    own = MODELS.get(machine.model.name) != machine.model
    parameters = {
        "model": OWN if own else machine.model.title,
        "gpu": GPU_LABELS[machine.gpu],
        "tp": str(machine.tensor_parallel),
        "precision": machine.precision,
    }
    if own:
        parameters["config"] = compact_config(machine.model)
    told = {name: value for name, value in settings.items() if value is not None}
    return parameters | {
        name: str(value).lower() if isinstance(value, bool) else str(value)
        for name, value in told.items()
    }


def simulator_link(label: str, parameters: dict[str, str]) -> None:
    """Lay the link; it is one to the app's first page, wherever the app stands."""
    st.html(
        f'<nav class="presets"><a href="./?{escape(urlencode(parameters))}" target="_self">'
        f"{escape(label)}</a></nav>"
    )
