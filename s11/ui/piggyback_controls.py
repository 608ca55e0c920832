"""The piggybacking page's controls; what they hold is read in `piggyback_state`."""

from __future__ import annotations

from typing import Any

import streamlit as st

from s11.ui import piggyback_state as state
from s11.ui.machine import machine_pills
from s11.ui.piggyback_state import CHUNKS, CONTEXTS, DECODES, DEFAULTS, EDGES, STARTS


def step_controls() -> None:
    """Lay the dominant control, the prefill's tokens, and what rides along, and the machine."""
    _stops(
        "piggy_chunk",
        "Prefill tokens in the step (chunk size)",
        CHUNKS,
        help="Tokens of one prompt that the step computes; marked in every picture. Arrow keys "
        "move it.",
    )
    places = st.container(key="pair_piggyback").columns([3, 3, 3, 2], vertical_alignment="bottom")
    with places[0]:
        _stops(
            "decodes",
            "Decodes that ride along",
            DECODES,
            help="Running requests; each gets one token from the step.",
        )
    with places[1]:
        _stops(
            "context",
            "Context of each decode (tokens)",
            CONTEXTS,
            help="Cached tokens whose keys and values each decode reads.",
        )
    with places[2]:
        _stops(
            "start",
            "Tokens before the chunk",
            STARTS,
            help="Tokens of the same prompt that are already computed: the chunk attends to them.",
        )
    with places[3].popover("Model & GPU", icon=":material/memory:", width="stretch"):
        machine_pills(state.MODEL_KEY, chapter=False)


def scale_control() -> None:
    """Lay the choice of the main picture's axes."""
    st.segmented_control(
        "Axes",
        options=[str(scale) for scale in state.Scale],
        default=DEFAULTS["scale"],
        required=True,
        key="scale",
        bind="query-params",
        help="Linear: as far as four times the turning point.",
    )


def edge_control() -> None:
    """Lay the choice of the edge that the tile picture looks at."""
    st.segmented_control(
        "Every single count around (tokens)",
        options=[str(edge) for edge in EDGES],
        default=DEFAULTS["edge"],
        required=True,
        key="edge",
        bind="query-params",
        help="Half of it to one and a half of it; zoom further by dragging in the picture.",
    )


def _stops(key: str, label: str, stops: tuple[int, ...], **options: Any) -> None:
    st.select_slider(
        label,
        options=stops,
        value=DEFAULTS[key],
        key=key,
        bind="query-params",
        **options,
    )
