"""The trust page's state: the one control's value, and what is worked out once a server."""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import Any

import streamlit as st

from s11.figures.trust_info import QUANTITIES
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of
from s11.validation.published import (
    ChunkOverhead,
    Gap,
    Published,
    chunk_overheads,
    decode_costs,
    falcon_gap,
    sarathi,
)

DEFAULT_QUANTITY = next(iter(QUANTITIES))
LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "quantity": one_of(*QUANTITIES),
    "picture": one_of(*PICTURE_FORMATS),
}


def quantity() -> str:
    """Return which quantity is drawn."""
    return str(st.session_state.get("quantity") or DEFAULT_QUANTITY)


@lru_cache(maxsize=1)
def sarathi_rows() -> tuple[tuple[Published, ...], tuple[Published, Published]]:
    """Return SARATHI's table beside ours, and what a decode costs alone and piggybacked."""
    rows = sarathi()
    return rows, decode_costs(rows)


@lru_cache(maxsize=1)
def overheads() -> tuple[ChunkOverhead, ...]:
    """Return what chunking adds to Yi-34B's prefill."""
    return chunk_overheads()


@lru_cache(maxsize=1)
def gap() -> Gap:
    """Return what a long prompt does to Falcon-180B's streams."""
    return falcon_gap()
