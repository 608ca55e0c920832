"""The prefix cache page's controls; what they hold is read in `prefix_state`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from s11.ui import prefix_state as state
from s11.ui.prefix_state import BLOCK_SIZES, BOUNDS, CHUNK_SIZES, DEFAULTS, Load


def prefix_controls() -> None:
    """Lay the dominant choice, the load, and what it is made of."""
    st.segmented_control(
        "Whose prompts begin alike?",
        options=[str(load) for load in Load],
        default=DEFAULTS["load"],
        required=True,
        key="load",
        bind="query-params",
        help="A conversation sends all turns so far again with every new one. Behind a shared "
        "system prompt, only the beginning is the same.",
    )
    first = st.container(key="pair_load").columns(4, vertical_alignment="bottom")
    second = st.container(key="pair_engine").columns(4, vertical_alignment="bottom")
    if state.load() is Load.CONVERSATION:
        _conversation(first)
    else:
        _shared(first)
    _engine(second)


def _conversation(places: Sequence[DeltaGenerator]) -> None:
    with places[0]:
        _number("turns", "Turns", help="Requests of one conversation, each longer than the last.")
    with places[1]:
        _number("system", "System prompt (tokens)", help="The beginning of every conversation.")
    with places[2]:
        _number("message", "User message (tokens)", help="What is new in a turn.")
    with places[3]:
        _number(
            "answer",
            "Answer (tokens)",
            help="Filled by decodes, and part of the next turn's prompt.",
        )


def _shared(places: Sequence[DeltaGenerator]) -> None:
    with places[0]:
        _number("requests", "Requests", help="They arrive one after the other.")
    with places[1]:
        _number("shared", "Shared (tokens)", help="The system prompt that all begin with.")
    with places[2]:
        _number("own", "Own (tokens)", help="What follows; 0: all prompts are the same.")
    with places[3]:
        _number("gap", "Between arrivals (ms)", help="0: all arrive in the same step.")


def _engine(places: Sequence[DeltaGenerator]) -> None:
    with places[0]:
        st.select_slider(
            "Chunk size (tokens)",
            options=CHUNK_SIZES,
            value=DEFAULTS["prefix_chunk"],
            key="prefix_chunk",
            bind="query-params",
            help="The most tokens of one prompt in one step, where chunking is on (vLLM: "
            "long_prefill_token_threshold). There is no token budget, so that with chunking off "
            "the longest prompt fits in one step.",
        )
    with places[1]:
        st.select_slider(
            "Block size (tokens)",
            options=BLOCK_SIZES,
            value=DEFAULTS["block"],
            key="block",
            bind="query-params",
            help="Tokens in one KV block; only whole blocks are shared (vLLM: --block-size).",
        )
    with places[2]:
        _number(
            "pool",
            "Pool size (KV blocks)",
            placeholder="no limit",
            help="Blocks of the GPU's KV cache; streaming users' own are not among them (vLLM: "
            "--num-gpu-blocks-override). Cached blocks are evicted when it is full.",
        )
    with places[3].popover("More", icon=":material/tune:", width="stretch"):
        if state.load() is Load.CONVERSATION:
            _number("chats", "Conversations", help="They take turns, and share the system prompt.")
        else:
            _number("systems", "Different system prompts", help="Used in turn.")
            _number("output", "Answer (tokens)", help="Tokens that each request wants.")
        _number(
            "prefix_users",
            "Streaming users",
            help="Requests that decode in every step: who sees the stalls.",
        )


def _number(key: str, label: str, **options: Any) -> None:
    lowest, highest, step = BOUNDS[key]
    st.number_input(
        label,
        min_value=lowest,
        max_value=highest,
        value=DEFAULTS[key],
        step=step,
        key=key,
        bind="query-params",
        **options,
    )
