"""The trust page's one control: which quantity is held against its measurements."""

from __future__ import annotations

import streamlit as st

from s11.figures.trust_info import QUANTITIES
from s11.ui.models_state import DEFAULT_QUANTITY


def quantity_control() -> None:
    """Lay the choice of the quantity drawn."""
    st.pills(
        "What to compare",
        options=list(QUANTITIES),
        default=DEFAULT_QUANTITY,
        required=True,
        key="quantity",
        bind="query-params",
        help="TPOT, request latency and TTFT are of whole serving runs, simulated and compared "
        "with their client's report. The others are single kernels.",
    )
