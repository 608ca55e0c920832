"""The mask's picture, by value: cells drawn by hand for a chunk of 3 after 2 cached tokens."""

import numpy as np
import pytest

from s11.attention import Fault
from s11.figures.mask import CACHED_CELL, CHUNK_CELL, WRONG_CELL, mask_figure
from s11.figures.mask_info import Cell, mask_alt, mask_columns, mask_info, span

# . hidden, C cached, K this chunk, x wrongly hidden, o wrongly visible, d wrong distance
SIGNS = dict(zip(".CKxod", Cell, strict=True))

DRAWN = {
    None: ("CCK..", "CCKK.", "CCKKK"),
    Fault.CHUNK_RELATIVE_POSITIONS: ("ddK..", "ddKK.", "ddKKK"),
    Fault.CACHED_KEYS_HIDDEN: ("xxK..", "xxKK.", "xxKKK"),
    Fault.NO_CAUSALITY_IN_CHUNK: ("CCKoo", "CCKKo", "CCKKK"),
    Fault.MASK_SHIFTED_BY_ONE: ("CCKo.", "CCKKo", "CCKKK"),
    Fault.CACHE_NOT_APPENDED: ("xxK..", "xxKK.", "xxKKK"),
}


def cells(rows):
    return np.array([[SIGNS[sign] for sign in row] for row in rows], np.uint8)


@pytest.mark.parametrize("fault", DRAWN)
def test_cells_are_as_drawn_by_hand(fault):
    info = mask_info(chunk_tokens=3, cached_tokens=2, fault=fault)
    np.testing.assert_array_equal(info.cells, cells(DRAWN[fault]))
    assert info.cells.dtype == np.uint8
    assert info.right_pairs == 12  # 3 x 2 cached + 1 + 2 + 3
    assert info.wrong_pairs == sum(sign in "xod" for row in DRAWN[fault] for sign in row)


def test_all_faults_are_drawn():
    assert set(DRAWN) == {None, *Fault}


@pytest.mark.parametrize(
    ("chunk_tokens", "cached_tokens", "fault", "title"),
    [
        (3, 2, None, "Every query sees all 2 cached keys"),
        (3, 1, None, "Every query sees the cached key"),
        (1, 2, None, "The query sees all 2 cached keys"),
        (3, 0, None, "First chunk: the plain causal triangle"),
        (3, 2, Fault.CHUNK_RELATIVE_POSITIONS, "Wrong distance in 6 of 12 pairs"),
        (3, 2, Fault.CACHED_KEYS_HIDDEN, "6 of 12 pairs are lost"),
        (3, 2, Fault.NO_CAUSALITY_IN_CHUNK, "3 pairs look into the future"),
        (2, 0, Fault.MASK_SHIFTED_BY_ONE, "1 pair looks into the future"),
        (1, 9, Fault.MASK_SHIFTED_BY_ONE, "This bug changes nothing in this mask"),
        (3, 0, Fault.CACHED_KEYS_HIDDEN, "This bug changes nothing in this mask"),
        (3, 0, Fault.CHUNK_RELATIVE_POSITIONS, "This bug changes nothing in this mask"),
    ],
)
def test_title_is_the_finding(chunk_tokens, cached_tokens, fault, title):
    info = mask_info(chunk_tokens=chunk_tokens, cached_tokens=cached_tokens, fault=fault)
    assert info.title == title


def test_caption_has_the_parameters_with_units():
    assert mask_info(chunk_tokens=3, cached_tokens=2).caption == [
        "chunk 3 tokens (positions 2–4), 2 tokens in the cache",
        "right mask: 12 of 15 query-key pairs visible",
    ]
    faulty = mask_info(chunk_tokens=1, cached_tokens=1, fault=Fault.CACHED_KEYS_HIDDEN)
    assert faulty.caption == [
        "chunk 1 token (position 1), 1 token in the cache",
        "bug: cached-keys-hidden; 1 pair wrong",
    ]


@pytest.mark.parametrize("fault", [None, *Fault])
def test_titles_and_captions_fit_a_phone(fault):
    for chunk_tokens in (1, 7, 32):
        for cached_tokens in (0, 1, 48):
            info = mask_info(chunk_tokens=chunk_tokens, cached_tokens=cached_tokens, fault=fault)
            assert len(info.title) <= 45
            assert max(len(line) for line in info.caption) <= 60


@pytest.mark.parametrize(("chunk_tokens", "cached_tokens"), [(0, 3), (3, -1)])
def test_impossible_lengths_are_refused(chunk_tokens, cached_tokens):
    with pytest.raises(ValueError, match="allowed"):
        mask_info(chunk_tokens=chunk_tokens, cached_tokens=cached_tokens)


def heatmaps(spec):
    return [trace for trace in spec["data"] if trace["type"] == "heatmap"]


def test_figure_draws_every_cell_at_its_absolute_position():
    spec = mask_figure(mask_info(chunk_tokens=3, cached_tokens=2))
    drawn = {trace["colorscale"][0][1]: trace for trace in heatmaps(spec)}
    cached, chunk = drawn[CACHED_CELL], drawn[CHUNK_CELL]
    # Keys 0 and 1 of the queries at 2, 3 and 4; then the triangle whose corner is (2, 2).
    assert (cached["x0"], cached["y0"], cached["z"].shape) == (0, 2, (3, 2))
    assert cached["z"].dtype == np.uint8
    assert (chunk["x0"], chunk["y0"]) == (2, 2)
    np.testing.assert_array_equal(np.nan_to_num(chunk["z"]), [[1, 0, 0], [1, 1, 0], [1, 1, 1]])
    assert spec["layout"]["xaxis"]["range"] == [-0.5, 4.5]
    assert spec["layout"]["yaxis"]["range"][1] == 1.5  # the first query, at 2, on top


def test_hover_names_both_positions_and_the_cache():
    spec = mask_figure(mask_info(chunk_tokens=3, cached_tokens=2))
    words = {trace["hovertemplate"].removesuffix("<extra></extra>") for trace in heatmaps(spec)}
    assert "query at position %{y} sees key at position %{x} (cached)" in words
    assert "query at position %{y} sees key at position %{x} (this chunk)" in words


def test_boundary_stands_between_cached_and_chunk_keys():
    layout = mask_figure(mask_info(chunk_tokens=3, cached_tokens=2))["layout"]
    upright = [shape for shape in layout["shapes"] if shape["x0"] == shape["x1"]]
    assert {shape["x0"] for shape in upright} == {1.5}
    texts = {label["text"] for label in layout["annotations"]}
    assert texts == {"in the cache: 0–1", "this chunk: 2–4"}
    first = mask_figure(mask_info(chunk_tokens=3, cached_tokens=0))["layout"]
    assert [label["text"] for label in first["annotations"]] == ["this chunk: 0–2"]


@pytest.mark.parametrize(
    ("fault", "name", "symbol", "where"),
    [
        (Fault.CACHED_KEYS_HIDDEN, "should be seen", "x", [(2, 0), (2, 1), (3, 0), (3, 1)]),
        (Fault.MASK_SHIFTED_BY_ONE, "should be hidden", "diamond", [(2, 3)]),
        (
            Fault.CHUNK_RELATIVE_POSITIONS,
            "wrong distance",
            "triangle-left",
            [(2, 0), (2, 1), (3, 0), (3, 1)],
        ),
    ],
)
def test_wrong_cells_are_marked_in_form(fault, name, symbol, where):
    spec = mask_figure(mask_info(chunk_tokens=2, cached_tokens=2, fault=fault))
    (marks,) = [trace for trace in spec["data"] if trace.get("name") == name]
    assert marks["marker"]["symbol"] == symbol
    assert list(zip(marks["y"].tolist(), marks["x"].tolist(), strict=True)) == where


def test_leak_is_marked_in_colour_too():
    spec = mask_figure(mask_info(chunk_tokens=2, cached_tokens=2, fault=Fault.MASK_SHIFTED_BY_ONE))
    assert WRONG_CELL in {trace["colorscale"][0][1] for trace in heatmaps(spec)}


def test_data_names_every_pair():
    columns = mask_columns(
        mask_info(chunk_tokens=2, cached_tokens=1, fault=Fault.CACHED_KEYS_HIDDEN)
    )
    assert columns == {
        "query_position": [1, 1, 1, 2, 2, 2],
        "key_position": [0, 1, 2, 0, 1, 2],
        "key_is_cached": [1, 0, 0, 1, 0, 0],
        "visible": [0, 1, 0, 0, 1, 1],
        "should_be_visible": [1, 1, 0, 1, 1, 1],
        "at_right_distance": [1, 1, 1, 1, 1, 1],
    }


def test_alt_has_the_numbers():
    alt = mask_alt(mask_info(chunk_tokens=3, cached_tokens=2))
    assert "position 2 3 keys" in alt
    assert "position 4 5 keys" in alt
    assert "12 of 15 query-key pairs visible" in alt


def test_span_reads_as_positions():
    assert [span(4, 5), span(4, 7)] == ["4", "4–6"]
