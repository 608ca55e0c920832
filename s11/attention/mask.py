"""Which keys a query may see: by place in the chunk, or by absolute position."""

from collections.abc import Set

import numpy as np

from .arrays import BoolArray, IntArray, checked_count
from .faults import Fault


def chunk_attention_mask(chunk_len: int, cached_len: int) -> BoolArray:
    """Return the keys that each query of a chunk may see: all cached ones, then its past.

    Args:
        chunk_len: tokens in the chunk, at least 1.
        cached_len: tokens of the prompt already in the cache, at least 0.

    Returns:
        (chunk_len, cached_len + chunk_len) bool, True where query i sees key j:
        j <= cached_len + i.

    Raises:
        ValueError: an argument that is not an integer in its range.
    """
    chunk_len = checked_count("chunk_len", chunk_len, low=1)
    cached_len = checked_count("cached_len", cached_len, low=0)
    end = cached_len + chunk_len
    return visible_keys(
        query_positions=np.arange(cached_len, end)[:, None],
        key_positions=np.arange(end)[None, :],
        chunk_start=cached_len,
        chunk_end=end,
    )


def visible_keys(
    *,
    query_positions: IntArray,
    key_positions: IntArray,
    chunk_start: int,
    chunk_end: int,
    faults: Set[Fault] = frozenset(),
) -> BoolArray:
    """Return which keys each query may see; the shapes broadcast against each other.

    Keys at `chunk_end` and beyond are not computed yet and are never visible. Every position of
    the chunk sees itself, under every fault, so its softmax is never empty.

    Args:
        query_positions: absolute positions of the queries.
        key_positions: absolute positions of the keys.
        chunk_start: position of the chunk's first token.
        chunk_end: position after the chunk's last token.
        faults: bugs to switch on.
    """
    first, last = np.int64(0), query_positions
    if Fault.MASK_SHIFTED_BY_ONE in faults:
        last = query_positions + 1
    if Fault.NO_CAUSALITY_IN_CHUNK in faults:
        last = np.full_like(query_positions, chunk_end)
    if faults & {Fault.CACHED_KEYS_HIDDEN, Fault.CACHE_NOT_APPENDED}:
        first = np.int64(chunk_start)
    return (first <= key_positions) & (key_positions <= last) & (key_positions < chunk_end)
