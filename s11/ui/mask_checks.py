"""Checks of single chunk sizes, shared by all sessions and bounded for a public deployment."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from threading import Lock

import streamlit as st

from s11.attention import ChunkSizeCheck, Decoder, Fault, check_chunk_sizes

MAX_CHUNKS = 256
"""Most chunks in one check: one costs about 4 ms on both paths, however short it is."""

SIZES = {
    64: (1, 3, 7, 16, 25, 32, 63, 64),
    128: (1, 3, 7, 32, 50, 64, 127, 128),
    256: (1, 3, 7, 64, 100, 128, 255, 256),
    512: (1, 3, 7, 64, 100, 128, 255, 256, 511, 512),
}
"""The table's chunk sizes by prompt length, in tokens."""

# One core is left for the visitors who only look.
_ONE_AT_A_TIME = Lock()


@dataclass(frozen=True, slots=True)
class SameBitsRow:
    """One chunk size in the table; `check` is missing while it is computed or out of bounds."""

    chunk_tokens: int
    prompt_tokens: int
    own: bool
    check: ChunkSizeCheck | None

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return -(-self.prompt_tokens // self.chunk_tokens)

    @property
    def divides_prompt(self) -> bool:
        """Whether all chunks are of one size."""
        return self.prompt_tokens % self.chunk_tokens == 0

    @property
    def out_of_bounds(self) -> bool:
        """Whether this page does not compute it."""
        return self.chunks > MAX_CHUNKS


def same_bits_rows(*, prompt_tokens: int, own_size: int) -> list[SameBitsRow]:
    """Return the table's rows by chunk size, not computed yet; a longer size is the prompt."""
    own = min(own_size, prompt_tokens)
    return [
        SameBitsRow(chunk_tokens=size, prompt_tokens=prompt_tokens, own=size == own, check=None)
        for size in sorted({*SIZES[prompt_tokens], own})
    ]


def verdict(check: ChunkSizeCheck) -> str:
    """Return how the plain path fares: identical, rounding or wrong."""
    if check.plain.identical:
        return "identical"
    return "rounding" if check.plain_within_rounding else "wrong"


@st.cache_resource(max_entries=256, show_spinner=False)
def chunk_check(*, prompt_tokens: int, chunk_tokens: int, fault: Fault | None) -> ChunkSizeCheck:
    """Check one chunk size on both paths, once for all sessions.

    Raises:
        ValueError: more chunks than `MAX_CHUNKS`.
    """
    if -(-prompt_tokens // chunk_tokens) > MAX_CHUNKS:
        raise ValueError(
            f"chunk_tokens: got {chunk_tokens}; allowed: at most {MAX_CHUNKS} chunks "
            f"of a prompt of {prompt_tokens} tokens"
        )
    with _ONE_AT_A_TIME:
        (check,) = check_chunk_sizes(
            tokens=prompt_tokens, chunk_sizes=[chunk_tokens], decoder=_decoder(), fault=fault
        )
    return check


@lru_cache(maxsize=1)
def _decoder() -> Decoder:
    return Decoder()
