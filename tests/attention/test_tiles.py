import numpy as np
import pytest

from s11.attention import TILE_TOKENS
from s11.attention.tiles import Span, Tile, plain_layout, tile_product, tiled_layout


def test_a_row_stands_in_slot_position_mod_64():
    layout = tiled_layout([Span(62, 67)])
    assert layout.tiles == (Tile(0, 0), Tile(0, 1))
    assert layout.row_tile.tolist() == [0, 0, 1, 1, 1]
    assert layout.row_slot.tolist() == [62, 63, 0, 1, 2]
    assert (layout.tile_count, layout.slots_per_tile) == (2, TILE_TOKENS)


def test_every_slice_has_tiles_of_its_own():
    # A decode at position 130, a chunk 60..129, another decode at position 130.
    layout = tiled_layout([Span(130, 131), Span(60, 130), Span(130, 131)])
    assert layout.tiles == (Tile(0, 2), Tile(1, 0), Tile(1, 1), Tile(1, 2), Tile(2, 2))
    assert layout.row_tile.tolist() == [0] + [1] * 4 + [2] * 64 + [3] * 2 + [4]
    assert layout.row_slot.tolist() == [2, 60, 61, 62, 63, *range(64), 0, 1, 2]


def test_a_span_that_fills_its_tile_needs_no_second():
    assert tiled_layout([Span(64, 128)]).tiles == (Tile(0, 1),)


def test_scatter_leaves_zero_elsewhere_and_gather_undoes_it():
    rows = np.arange(1, 11, dtype=np.float32).reshape(5, 2)
    layout = tiled_layout([Span(63, 65), Span(0, 3)])
    laid = layout.scatter(rows)
    assert laid.shape == (3, TILE_TOKENS, 2)
    assert laid[0, 63].tolist() == [1, 2]
    assert laid[1, 0].tolist() == [3, 4]
    assert laid[2, :3].tolist() == [[5, 6], [7, 8], [9, 10]]
    assert np.count_nonzero(laid) == 10
    assert np.array_equal(layout.gather(laid), rows)


def test_the_plain_layout_is_the_rows_themselves():
    rows = np.arange(8, dtype=np.float32).reshape(4, 2)
    layout = plain_layout([Span(9, 12), Span(70, 71)])
    assert np.array_equal(layout.scatter(rows), rows[None])
    assert np.array_equal(layout.gather(rows[None]), rows)


@pytest.mark.parametrize("columns", [2, 64, 100, 512])
@pytest.mark.parametrize("count", [1, 2, 3, 7])
def test_a_tiles_product_does_not_depend_on_its_neighbours(count, columns):
    """What the aligned path rests on: products of one shape per tile, however many there are."""
    rng = np.random.default_rng(columns)
    tiles = rng.standard_normal((8, TILE_TOKENS, 128)).astype(np.float32)
    weights = rng.standard_normal((128, columns)).astype(np.float32)
    whole = tile_product(tiles, weights)
    assert np.array_equal(tile_product(tiles[:count], weights), whole[:count])
    lonely = np.zeros((count, TILE_TOKENS, 128), np.float32)  # one row per tile, as in a decode
    lonely[:, 5] = tiles[:count, 5]
    assert np.array_equal(tile_product(lonely, weights)[:, 5], whole[:count, 5])


@pytest.mark.parametrize(("inner", "columns"), [(1, 3), (128, 33), (300, 100), (5_000, 2)])
def test_a_tiles_product_is_the_product(inner, columns):
    """Columns that panels do not divide, and panels of one column, included."""
    rng = np.random.default_rng(inner)
    tiles = rng.standard_normal((2, TILE_TOKENS, inner)).astype(np.float32)
    weights = rng.standard_normal((inner, columns)).astype(np.float32)
    product = tile_product(tiles, weights)
    assert product.dtype == np.float32
    expected = tiles.astype(np.float64) @ weights.astype(np.float64)
    np.testing.assert_allclose(product, expected, rtol=0, atol=1e-3)
