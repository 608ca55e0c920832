"""The mask page's controls and what its link may say."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.attention import Fault
from s11.figures.key_difference_info import Path
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole
from s11.ui.mask_checks import SIZES

MAX_MASK_CHUNK, MAX_MASK_CACHED = 32, 48
DEFAULT_MASK_CHUNK, DEFAULT_MASK_CACHED = 8, 24
DEFAULT_TOKENS, DEFAULT_OWN_SIZE = 256, 50
BUG_TOKENS, DEFAULT_BUG_CHUNK = 256, 100
NO_BUG, DEFAULT_BUG = "none", Fault.CHUNK_RELATIVE_POSITIONS
MAX_TOKENS = max(SIZES)
BUGS = [NO_BUG, *(str(fault) for fault in Fault)]


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "mask_chunk": whole(1, MAX_MASK_CHUNK),
    "cached": whole(0, MAX_MASK_CACHED),
    "tokens": one_of(*(str(tokens) for tokens in SIZES)),
    "own_size": whole(1, MAX_TOKENS),
    "bug": one_of(*BUGS),
    "bug_chunk": whole(1, BUG_TOKENS),
    "path": one_of(*Path),
    "picture": one_of(*PICTURE_FORMATS),
}


def mask_controls() -> tuple[int, int]:
    """Lay the sliders of the mask; return its chunk and cached length in tokens."""
    chunk_place, cached_place = st.columns(2)
    chunk_tokens = chunk_place.slider(
        "Chunk length (tokens)",
        min_value=1,
        max_value=MAX_MASK_CHUNK,
        value=DEFAULT_MASK_CHUNK,
        key="mask_chunk",
        bind="query-params",
        help="Tokens computed in this step: the queries, and the newest keys.",
    )
    cached_tokens = cached_place.slider(
        "Cached length (tokens)",
        min_value=0,
        max_value=MAX_MASK_CACHED,
        value=DEFAULT_MASK_CACHED,
        key="cached",
        bind="query-params",
        help="Tokens of the same prompt whose keys earlier chunks left in the cache.",
    )
    return int(chunk_tokens), int(cached_tokens)


def same_bits_controls() -> tuple[int, int]:
    """Lay the controls of the table; return prompt and own chunk size in tokens."""
    tokens_place, own_place = st.columns(2)
    tokens = tokens_place.segmented_control(
        "Prompt length (tokens)",
        options=list(SIZES),
        default=DEFAULT_TOKENS,
        required=True,
        key="tokens",
        bind="query-params",
    )
    own_size = own_place.number_input(
        "A chunk size of your own (tokens)",
        min_value=1,
        max_value=MAX_TOKENS,
        value=DEFAULT_OWN_SIZE,
        step=1,
        key="own_size",
        bind="query-params",
        help="One that does not divide the prompt is the harder case. "
        "A size above the prompt's length is the whole prompt.",
    )
    return int(tokens or DEFAULT_TOKENS), int(own_size)


def bug_controls() -> tuple[Fault | None, int, Path]:
    """Lay the controls of the bugs; return bug, chunk size in tokens, and path."""
    bug = st.pills(
        "Bug switched on",
        options=BUGS,
        default=str(DEFAULT_BUG),
        required=True,
        key="bug",
        bind="query-params",
    )
    chunk_place, path_place = st.columns([3, 1])
    chunk_tokens = chunk_place.slider(
        f"Chunk size of the {BUG_TOKENS}-token prompt (tokens)",
        min_value=1,
        max_value=BUG_TOKENS,
        value=DEFAULT_BUG_CHUNK,
        key="bug_chunk",
        bind="query-params",
    )
    path = path_place.segmented_control(
        "Matrix products",
        options=[str(path) for path in Path],
        default=str(Path.TILES),
        required=True,
        key="path",
        bind="query-params",
        help="tiles: rows in tiles of 64, aligned to absolute positions. plain: as they come.",
    )
    fault = None if bug in (None, NO_BUG) else Fault(bug)
    return fault, int(chunk_tokens), Path(path or Path.TILES)


def show_chunk_size(chunk_tokens: int) -> None:
    """Move the slider of the bugs (a button's callback)."""
    st.session_state["bug_chunk"] = chunk_tokens
