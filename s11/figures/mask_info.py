"""What one chunk's mask shows: which query sees which key, and where a bug is wrong."""

from __future__ import annotations

from dataclasses import dataclass
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.attention import Fault, chunk_attention_mask
from s11.attention.mask import visible_keys


class Cell(IntEnum):
    """What one query makes of one key."""

    HIDDEN = 0
    CACHED = 1
    CHUNK = 2
    WRONGLY_HIDDEN = 3
    WRONGLY_VISIBLE = 4
    WRONG_DISTANCE = 5


@dataclass(frozen=True, slots=True, eq=False)
class MaskInfo:
    """What the picture shows. Row i is the query at `cached_tokens + i`, column j the key at j."""

    chunk_tokens: int
    cached_tokens: int
    fault: Fault | None
    cells: NDArray[np.uint8]  # (chunk_tokens, cached_tokens + chunk_tokens), values of `Cell`
    right_pairs: int

    @property
    def end(self) -> int:
        """The position after the chunk's last token."""
        return self.cached_tokens + self.chunk_tokens

    @property
    def wrong_pairs(self) -> int:
        """Number of query-key pairs that the bug gets wrong."""
        return int(np.count_nonzero(self.cells >= Cell.WRONGLY_HIDDEN))

    @property
    def title(self) -> str:
        """The finding, in about 45 characters."""
        wrong, right = self.wrong_pairs, self.right_pairs
        if self.fault is not None:
            if not wrong:
                return "This bug changes nothing in this mask"
            if self.fault is Fault.CHUNK_RELATIVE_POSITIONS:
                return f"Wrong distance in {wrong:,} of {right:,} pairs"
            if self.fault in (Fault.CACHED_KEYS_HIDDEN, Fault.CACHE_NOT_APPENDED):
                return f"{wrong:,} of {right:,} pairs are lost"
            return f"{counted(wrong, 'pair')} {'looks' if wrong == 1 else 'look'} into the future"
        if not self.cached_tokens:
            return "First chunk: the plain causal triangle"
        who = "The query" if self.chunk_tokens == 1 else "Every query"
        cached = self.cached_tokens
        return f"{who} sees {'the cached key' if cached == 1 else f'all {cached} cached keys'}"

    @property
    def caption(self) -> list[str]:
        """The parameters, two lines of about 60 characters."""
        first, last = self.cached_tokens, self.end - 1
        place = f"position {first}" if first == last else f"positions {first}–{last}"
        pairs = f"{self.right_pairs:,} of {self.cells.size:,} query-key pairs"
        return [
            f"chunk {counted(self.chunk_tokens, 'token')} ({place}), "
            f"{counted(self.cached_tokens, 'token')} in the cache",
            f"right mask: {pairs} visible"
            if self.fault is None
            else f"bug: {self.fault}; {counted(self.wrong_pairs, 'pair')} wrong",
        ]


def counted(number: int, noun: str) -> str:
    """Return a number with its noun in the right form."""
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def mask_info(*, chunk_tokens: int, cached_tokens: int, fault: Fault | None = None) -> MaskInfo:
    """Compare the mask that a bug makes with the right one, pair by pair.

    Under chunk-relative positions the cached tokens count as one earlier chunk.

    Raises:
        ValueError: chunk_tokens below 1 or cached_tokens below 0.
    """
    right = chunk_attention_mask(chunk_tokens, cached_tokens)
    start, end = cached_tokens, cached_tokens + chunk_tokens
    queries, keys = np.arange(start, end)[:, None], np.arange(end)[None, :]
    seen = visible_keys(
        query_positions=queries,
        key_positions=keys,
        chunk_start=start,
        chunk_end=end,
        faults=frozenset() if fault is None else frozenset({fault}),
    )
    cells = np.where(right, np.where(keys < start, Cell.CACHED, Cell.CHUNK), Cell.HIDDEN)
    cells[right & ~seen] = Cell.WRONGLY_HIDDEN
    cells[~right & seen] = Cell.WRONGLY_VISIBLE
    if fault is Fault.CHUNK_RELATIVE_POSITIONS:
        distance_taken = (queries - start) - np.where(keys < start, keys, keys - start)
        cells[right & (distance_taken != queries - keys)] = Cell.WRONG_DISTANCE
    return MaskInfo(
        chunk_tokens=chunk_tokens,
        cached_tokens=cached_tokens,
        fault=fault,
        cells=cells.astype(np.uint8),
        right_pairs=int(right.sum()),
    )


def mask_alt(info: MaskInfo) -> str:
    """Return the mask's numbers for those who cannot see it."""
    first, last = info.cached_tokens, info.end - 1
    return (
        f"Attention mask: {info.title}. {'; '.join(info.caption)}. The right mask shows the query "
        f"at position {first} {counted(first + 1, 'key')} and the query at position {last} "
        f"{counted(last + 1, 'key')}."
    )


def mask_columns(info: MaskInfo) -> dict[str, list[Any]]:
    """Return the picture's data, one row per query-key pair."""
    queries, keys = np.indices(info.cells.shape)
    cells = info.cells.ravel()
    should = np.isin(cells, [Cell.HIDDEN, Cell.WRONGLY_VISIBLE], invert=True)
    sees = np.isin(cells, [Cell.HIDDEN, Cell.WRONGLY_HIDDEN], invert=True)
    return {
        "query_position": (queries.ravel() + info.cached_tokens).tolist(),
        "key_position": keys.ravel().tolist(),
        "key_is_cached": (keys.ravel() < info.cached_tokens).astype(int).tolist(),
        "visible": sees.astype(int).tolist(),
        "should_be_visible": should.astype(int).tolist(),
        "at_right_distance": (cells != Cell.WRONG_DISTANCE).astype(int).tolist(),
    }


def span(start: int, end: int) -> str:
    """Return the positions start..end - 1 as they are read."""
    return f"{start}" if end - start == 1 else f"{start}–{end - 1}"
