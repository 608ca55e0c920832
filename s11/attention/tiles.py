"""Where the rows of a step lie while matrices multiply them.

Plain BLAS products are not batch-invariant: which kernel computes a row, and in which order it
adds, depends on how many rows stand beside it. In aligned tiles a row at absolute position p
always stands in slot p mod 64 of a tile of 64 rows that belongs to its request alone, so it meets
products of one shape, in one place, whatever its chunk and whoever shares its step (the cause and
the cure are told in He & Thinking Machines Lab 2025, "Defeating Nondeterminism in LLM Inference").
"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import FloatArray, IntArray
from .kv_cache import TILE_TOKENS

SINGLE_THREAD_MULTIPLY_ADDS = 2**18
"""OpenBLAS keeps a product of up to this many multiply-adds on the calling thread.

SMP_THRESHOLD_MIN * GEMM_MULTITHREAD_THRESHOLD in its interface/gemm.c.
"""


@dataclass(frozen=True)
class Span:
    """The absolute positions of one request that a step computes: start..end - 1."""

    start: int
    end: int


@dataclass(frozen=True)
class Tile:
    """One tile: the positions index * 64 and on, of the request of one slice."""

    slice_index: int
    index: int


@dataclass(frozen=True, eq=False)
class Layout:
    """The place of every row of a step: a tile and a slot in it; all other slots are zero."""

    tile_count: int
    slots_per_tile: int
    row_tile: IntArray  # (n,)
    row_slot: IntArray  # (n,)
    tiles: tuple[Tile, ...]  # empty in the plain layout

    def scatter(self, rows: np.ndarray) -> np.ndarray:
        """Lay (n, ...) rows out as (g, t, ...)."""
        laid = np.zeros((self.tile_count, self.slots_per_tile, *rows.shape[1:]), rows.dtype)
        laid[self.row_tile, self.row_slot] = rows
        return laid

    def gather(self, laid: FloatArray) -> FloatArray:
        """Pick the (n, ...) rows out of (g, t, ...)."""
        return laid[self.row_tile, self.row_slot]


def plain_layout(spans: Sequence[Span]) -> Layout:
    """Lay all rows of a step, one after the other, in one tile of their number."""
    rows = sum(span.end - span.start for span in spans)
    return Layout(
        tile_count=1,
        slots_per_tile=rows,
        row_tile=np.zeros(rows, np.int64),
        row_slot=np.arange(rows),
        tiles=(),
    )


def tiled_layout(spans: Sequence[Span]) -> Layout:
    """Lay each slice in its own tiles of 64, aligned to absolute positions."""
    tiles: list[Tile] = []
    row_tile: list[IntArray] = []
    row_slot: list[IntArray] = []
    for slice_index, span in enumerate(spans):
        positions = np.arange(span.start, span.end)
        first, last = span.start // TILE_TOKENS, (span.end - 1) // TILE_TOKENS
        row_tile.append(positions // TILE_TOKENS - first + len(tiles))
        row_slot.append(positions % TILE_TOKENS)
        tiles.extend(Tile(slice_index, index) for index in range(first, last + 1))
    return Layout(
        tile_count=len(tiles),
        slots_per_tile=TILE_TOKENS,
        row_tile=np.concatenate(row_tile),
        row_slot=np.concatenate(row_slot),
        tiles=tuple(tiles),
    )


def tile_product(laid: FloatArray, weights: FloatArray) -> FloatArray:
    """Multiply every tile by the weights, in panels of columns small enough for one thread.

    A second thread gains nothing on 64 rows, and where another process holds its core the two
    wait for each other: 40 times slower was measured. The panels depend on the weights' shape
    alone, so every tile meets the same ones.

    Args:
        laid: (g, t, d).
        weights: (d, m).

    Returns:
        (g, t, m).
    """
    tiles, slots, inner = laid.shape
    columns = weights.shape[1]
    width = max(1, SINGLE_THREAD_MULTIPLY_ADDS // (slots * inner))
    result = np.empty((tiles, slots, columns), np.float32)
    for start in range(0, columns, width):
        panel = slice(start, start + width)
        np.matmul(laid, weights[:, panel], out=result[..., panel])
    return result
