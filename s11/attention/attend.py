"""Grouped-query attention over the cache (Ainslie et al. 2023), plain and in aligned tiles."""

import math
from collections.abc import Sequence, Set

import numpy as np

from .arrays import FloatArray
from .faults import Fault
from .kv_cache import TILE_TOKENS, KVCache
from .layers import masked_softmax
from .mask import visible_keys
from .tiles import Layout, Span, Tile


def plain_attention(
    queries: FloatArray,
    layer: int,
    *,
    caches: Sequence[KVCache],
    spans: Sequence[Span],
    faults: Set[Fault],
) -> FloatArray:
    """Attend slice by slice and head by head, each with one full softmax.

    Args:
        queries: (1, n, h, e), the slices one after the other.
        layer: which layer's keys and values.
        caches: one per slice.
        spans: one per slice.
        faults: bugs to switch on.

    Returns:
        (1, n, h, e).
    """
    _, _, query_heads, head_dim = queries.shape
    scale = np.float32(1 / math.sqrt(head_dim))
    attended = np.empty_like(queries)  # (1, n, h, e)
    row = 0
    for cache, span in zip(caches, spans, strict=True):
        rows = slice(row, row := row + span.end - span.start)
        keys, values = cache.keys[layer], cache.values[layer]  # (p, k, e)
        visible = visible_keys(
            query_positions=np.arange(span.start, span.end)[:, None],
            key_positions=np.arange(span.end)[None, :],
            chunk_start=span.start,
            chunk_end=span.end,
            faults=faults,
        )  # (n, p)
        heads_per_kv_head = query_heads // keys.shape[1]
        for head in range(query_heads):
            kv_head = head // heads_per_kv_head
            scores = queries[0, rows, head] * scale @ keys[:, kv_head].T  # (n, p)
            attended[0, rows, head] = masked_softmax(scores, visible) @ values[:, kv_head]
    return attended


def tiled_attention(
    queries: FloatArray,
    layer: int,
    *,
    layout: Layout,
    caches: Sequence[KVCache],
    biases: Sequence[FloatArray],
) -> FloatArray:
    """Attend tile by tile over key blocks aligned to absolute positions.

    Args:
        queries: (g, t, h, e).
        layer: which layer's keys and values.
        layout: the tiles.
        caches: one per slice.
        biases: `tile_bias` of each tile.

    Returns:
        (g, t, h, e).
    """
    attended = np.empty_like(queries)  # (g, t, h, e)
    for row, (tile, bias) in enumerate(zip(layout.tiles, biases, strict=True)):
        cache = caches[tile.slice_index]
        attended[row] = attend_tile(
            queries[row],
            keys=cache.key_blocks(layer, len(bias)),
            values=cache.value_blocks(layer, len(bias)),
            bias=bias,
        )
    return attended


def tile_bias(tile: Tile, span: Span, *, faults: Set[Fault]) -> FloatArray:
    """Return what a tile's scores get added: 0 where the key is visible, else -inf.

    Args:
        tile: the tile.
        span: the positions of its slice.
        faults: bugs to switch on.

    Returns:
        (b, t, t), [block, query slot, key slot], over the blocks that the tile can see.
    """
    blocks = tile.index + 1
    if faults & {Fault.NO_CAUSALITY_IN_CHUNK, Fault.MASK_SHIFTED_BY_ONE}:
        blocks = -(-span.end // TILE_TOKENS)
    first_query = tile.index * TILE_TOKENS
    visible = visible_keys(
        query_positions=np.arange(first_query, first_query + TILE_TOKENS)[:, None],
        key_positions=np.arange(blocks * TILE_TOKENS).reshape(blocks, 1, TILE_TOKENS),
        chunk_start=span.start,
        chunk_end=span.end,
        faults=faults,
    )  # (b, t, t)
    return np.where(visible, np.float32(0), np.float32(-np.inf))


def attend_tile(
    queries: FloatArray, *, keys: FloatArray, values: FloatArray, bias: FloatArray
) -> FloatArray:
    """Attend one tile of queries over key blocks, in order, with an online softmax.

    The online softmax is Milakov & Gimelshein's (2018): every block's weights are relative to
    the largest score so far, and what was summed before is rescaled to it. Every product is of
    one tile and one block, whatever their number. A row that sees no key (an empty slot, under
    a fault) gives 0.

    Args:
        queries: (t, h, e).
        keys: (b, t, k, e).
        values: (b, t, k, e).
        bias: (b, t, t), see `tile_bias`.

    Returns:
        (t, h, e).
    """
    slots, query_heads, head_dim = queries.shape
    blocks, _, kv_heads, _ = keys.shape
    group = query_heads // kv_heads
    grouped = queries.reshape(slots, kv_heads, group, head_dim).transpose(1, 2, 0, 3)
    stacked = grouped.reshape(kv_heads, group * slots, head_dim)  # (k, r*t, e)
    stacked = stacked * np.float32(1 / math.sqrt(head_dim))

    scores: FloatArray = stacked @ keys.transpose(0, 2, 3, 1)  # (b, k, r*t, t)
    scores.reshape(blocks, kv_heads, group, slots, slots)[...] += bias[:, None, None]
    largest = np.maximum.accumulate(scores.max(axis=-1, keepdims=True), axis=0)  # (b, k, r*t, 1)
    base = np.where(np.isneginf(largest), np.float32(0), largest)  # (b, k, r*t, 1)
    scores -= base
    weights = np.exp(scores, out=scores)  # (b, k, r*t, t)
    weight_sums = weights.sum(axis=-1, keepdims=True)  # (b, k, r*t, 1)
    weighted = weights @ values.transpose(0, 2, 1, 3)  # (b, k, r*t, e)

    total, attended = weight_sums[0], weighted[0]  # (k, r*t, 1), (k, r*t, e)
    rescale = np.exp(largest[:-1] - base[1:])  # (b-1, k, r*t, 1)
    for block in range(1, blocks):
        total = total * rescale[block - 1] + weight_sums[block]
        attended = attended * rescale[block - 1] + weighted[block]
    attended = attended / np.where(total > 0, total, np.float32(1))
    by_slot: FloatArray = attended.reshape(kv_heads, group, slots, head_dim).transpose(2, 0, 1, 3)
    return by_slot.reshape(slots, query_heads, head_dim)
