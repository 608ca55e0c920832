import math

import numpy as np
import pytest

from s11.attention import TILE_TOKENS, Fault, KVCache
from s11.attention.attend import attend_tile, plain_attention, tile_bias, tiled_attention
from s11.attention.tiles import Span, Tile, tiled_layout

from .reference import attend


def random_cache(rng, tokens, kv_heads, head_dim):
    cache = KVCache(layers=1, kv_heads=kv_heads, head_dim=head_dim)
    cache.extend(tokens)
    rows = rng.standard_normal((2, tokens, kv_heads, head_dim)).astype(np.float32)
    cache.write(0, 0, rows[0], rows[1])
    return cache


@pytest.mark.parametrize("kv_heads", [1, 2, 6])
@pytest.mark.parametrize("tiled", [False, True])
def test_grouped_query_attention_against_a_loop_over_heads(kv_heads, tiled):
    """Two slices of two requests: a chunk across a tile border, and a decode."""
    rng = np.random.default_rng(kv_heads)
    spans = [Span(50, 140), Span(70, 71)]
    caches = [random_cache(rng, span.end, kv_heads, 4) for span in spans]
    rows = rng.standard_normal((91, 6, 4)).astype(np.float32)
    if tiled:
        layout = tiled_layout(spans)
        biases = [
            tile_bias(tile, spans[tile.slice_index], faults=frozenset()) for tile in layout.tiles
        ]
        attended = layout.gather(
            tiled_attention(layout.scatter(rows), 0, layout=layout, caches=caches, biases=biases)
        )
    else:
        attended = plain_attention(rows[None], 0, caches=caches, spans=spans, faults=frozenset())[0]
    places = [(caches[0], p) for p in range(50, 140)] + [(caches[1], 70)]
    for row, (cache, position) in enumerate(places):
        for head in range(6):
            kv_head = head // (6 // kv_heads)
            seen = slice(position + 1)
            expected = attend(
                rows[row, head].astype(np.float64),
                list(cache.keys[0, seen, kv_head].astype(np.float64)),
                list(cache.values[0, seen, kv_head].astype(np.float64)),
            )
            assert attended[row, head] == pytest.approx(expected, abs=2e-6)


def test_the_online_softmax_rescales_by_hand():
    """Scores 0, ln 2 in the first block, ln 5, 200 + ln 3 in the second, per query.

    head_dim 4 halves a score: query (2, 0, 0, 0) gives the key's first number. Query 0 sees
    three keys, weights 1/8, 2/8, 5/8 of values 8, 16, 24: 1 + 4 + 15 = 20. Query 1 sees all
    four; e ** 200 overflows float32, but relative to it the other three vanish: value 40.
    """
    queries = np.zeros((TILE_TOKENS, 1, 4), np.float32)
    queries[:, 0, 0] = 2
    keys = np.zeros((2, TILE_TOKENS, 1, 4), np.float32)
    values = np.zeros((2, TILE_TOKENS, 1, 4), np.float32)
    keys[:, :2, 0, 0] = [[0, math.log(2)], [math.log(5), 200 + math.log(3)]]
    values[:, :2, 0, 3] = [[8, 16], [24, 40]]
    bias = np.full((2, TILE_TOKENS, TILE_TOKENS), -np.inf, np.float32)
    bias[0, :2, :2] = 0
    bias[1, 0, 0] = 0
    bias[1, 1, :2] = 0
    attended = attend_tile(queries, keys=keys, values=values, bias=bias)
    assert attended[0, 0] == pytest.approx([0, 0, 0, 20], rel=1e-5)
    assert attended[1, 0] == pytest.approx([0, 0, 0, 40], rel=1e-5)
    assert not attended[2:].any()  # rows that see nothing


def test_a_first_block_that_a_row_cannot_see_adds_nothing():
    queries = np.ones((TILE_TOKENS, 1, 2), np.float32)
    keys = np.full((2, TILE_TOKENS, 1, 2), -300, np.float32)  # far below a score of 0
    values = np.ones((2, TILE_TOKENS, 1, 2), np.float32)
    values[1] = 7
    bias = np.full((2, TILE_TOKENS, TILE_TOKENS), -np.inf, np.float32)
    bias[1] = 0
    attended = attend_tile(queries, keys=keys, values=values, bias=bias)
    assert attended == pytest.approx(np.full_like(attended, 7), rel=1e-6)


def test_tile_bias_blocks():
    # A chunk at positions 60..139 covers tiles 0, 1, 2; a tile needs the blocks up to its own.
    span = Span(60, 140)
    shapes = [len(tile_bias(Tile(0, i), span, faults=frozenset())) for i in range(3)]
    assert shapes == [1, 2, 3]
    future = frozenset({Fault.NO_CAUSALITY_IN_CHUNK})
    assert [len(tile_bias(Tile(0, i), span, faults=future)) for i in range(3)] == [3, 3, 3]


def test_tile_bias_is_minus_infinity_after_the_query():
    bias = tile_bias(Tile(0, 1), Span(60, 140), faults=frozenset())
    assert not bias[0].any()
    for slot in (0, 1, 40, 63):
        assert not bias[1, slot, : slot + 1].any()
        assert np.isneginf(bias[1, slot, slot + 1 :]).all()
