"""The distributions: curves by hand and against exact ones, the spec, the words."""

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.figures.traffic_cdf import cdf_figure
from s11.figures.traffic_cdf_info import (
    CELLS,
    MARKED,
    cdf_alt,
    cdf_columns,
    cdf_info,
    curve,
    share_words,
)
from tests.figures.traffic_runs import pair, plain, ran
from tests.loads import load, request

TARGETS = {"itl_target_ms": 50.0, "ttft_target_ms": 100.0}


def distribution(values, weights=None, target_ms=None):
    values = np.array(values, dtype=np.float64)
    ones = np.ones(len(values), dtype=np.int64)
    return curve("x", values, ones if weights is None else np.array(weights), target_ms=target_ms)


def test_by_hand_shares_reach_up_in_steps_and_weights_count():
    # 1 once, 2 three times, 8 six times; what nobody saw (5) is not there.
    found = distribution([2.0, 8.0, 1.0, 2.0, 5.0], [1, 6, 1, 2, 0], target_ms=2.0)
    assert found.value_ms.tolist() == [1, 2, 8]
    assert found.share.tolist() == [0.1, 0.4, 1.0]
    assert found.marks_ms == (8, 8, 8)
    assert (found.within, found.total) == (0.4, 10)


def test_by_hand_percentiles_are_of_the_inverted_cdf():
    found = distribution(range(1, 201))
    assert found.marks_ms == (100, 180, 198)


@pytest.mark.parametrize(("target_ms", "within"), [(0.5, 0.0), (1.0, 0.5), (1.5, 0.5), (3.0, 1.0)])
def test_a_value_at_the_target_is_within_it(target_ms, within):
    assert distribution([1.0, 2.0], target_ms=target_ms).within == within


def test_no_value_is_no_curve():
    found = distribution([], target_ms=5.0)
    assert (len(found.value_ms), found.marks_ms, found.within, found.total) == (0, None, None, 0)


VALUES = st.lists(st.floats(1e-3, 1e6), min_size=1, max_size=60)


@given(VALUES, st.integers(1, 3000), st.integers(0, 2**32 - 1))
def test_a_thinned_curve_is_never_off_by_more_than_a_cell(some, more, seed):
    spread = np.random.default_rng(seed).lognormal(3.0, 2.0, more)
    values = np.sort(np.concatenate((some, spread)))
    found = distribution(values)
    assert len(found.value_ms) <= 2 * CELLS + 10 < 400
    exact = np.searchsorted(values, values, side="right") / len(values)  # at each value

    def thinned(at):
        place = np.searchsorted(found.value_ms, at, side="right")
        return np.append(0.0, found.share)[place]

    cell = (values[-1] / values[0]) ** (1 / CELLS) * (1 + 1e-9)
    assert (thinned(values) <= exact).all()  # a step holds until the next one that is kept
    assert (thinned(values * cell) >= exact - 1 / CELLS - 1e-9).all()
    for mark, share in zip(found.marks_ms, MARKED, strict=True):  # the first that reaches it
        place = found.value_ms.tolist().index(mark)
        assert Fraction(round(found.share[place] * len(values)), len(values)) >= share
        assert place == 0 or found.share[place - 1] < share


def test_what_takes_no_time_counts_though_a_log_axis_cannot_show_it():
    found = distribution([0.0, 0.0, 4.0, 8.0])
    assert found.marks_ms == (0, 8, 8)
    info = cdf_info([pair()[0]], **TARGETS)
    spec = cdf_figure(replace(info, panels=(replace(info.panels[2], curves=(found,)),)))
    line = spec["data"][0]
    assert line["x"].tolist() == [4, 4, 8]
    assert line["y"].tolist() == [0.5, 0.75, 1.0]


def test_the_three_quantities_of_two_runs_by_hand():
    # Whole: the step of C's 400 prompt tokens takes 104 ms. Of 38 gaps of A and B it is two.
    info = cdf_info(pair(), **TARGETS)
    ttft, itl, tpot = info.panels
    assert [panel.title for panel in info.panels] == ["TTFT", "ITL", "TPOT"]
    assert [one.total for one in ttft.curves] == [3, 3]
    assert [one.total for one in itl.curves] == [38, 38]
    assert [one.total for one in tpot.curves] == [2, 2]
    assert [(one.marks_ms or ())[-1] for one in itl.curves] == [104.0, 14.0]  # 4 + 0.25 x 40
    assert itl.curves[0].within == 36 / 38
    assert itl.curves[1].within == 1.0
    assert (ttft.target_ms, itl.target_ms, tpot.target_ms) == (100.0, 50.0, None)
    assert info.title == "P99 ITL: A 104 ms, B 14 ms"
    assert info.caption[:2] == ["A: whole prompts · B: chunked 40", "3 requests, simulated by s11"]


@pytest.mark.parametrize("side_by_side", [False, True])
def test_the_spec_is_valid_and_marks_lie_on_their_curves(side_by_side):
    spec = cdf_figure(cdf_info(pair(), **TARGETS), side_by_side=side_by_side)
    go.Figure(spec)  # raises on any unknown name or impossible value
    lines = {(t["legendgroup"], t["xaxis"]): t for t in spec["data"] if t["mode"] == "lines"}
    marks = [t for t in spec["data"] if t["mode"] == "markers"]
    assert len(lines) == len(marks) == 6
    for mark in marks:
        line = lines[mark["legendgroup"], mark["xaxis"]]
        assert mark["y"].tolist() == [0.5, 0.9, 0.99]
        for value, share in zip(mark["x"], mark["y"], strict=True):
            at = line["x"] == np.float32(value)  # a step goes up there, through the share
            assert line["y"][at].max() >= np.float32(share)
            assert line["y"][line["x"] < np.float32(value)].max(initial=0.0) < share
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [100.0, 50.0]
    names = [t["name"] for t in spec["data"] if t.get("showlegend")]
    assert sorted(names) == ["A: whole prompts", "B: chunked 40"]
    assert len({t["line"]["dash"] for t in lines.values()}) == 2  # told apart in grey


def test_wide_is_what_makes_the_pile_a_row():
    info = cdf_info(pair(), **TARGETS)
    pile, row = cdf_figure(info)["layout"], cdf_figure(info, side_by_side=True)["layout"]
    changed = pile | pile["meta"]["wide"]
    assert {k: v for k, v in changed.items() if k != "meta"} == {
        k: v for k, v in row.items() if k != "meta"
    }
    assert row["height"] < pile["height"]
    for layout, across in ((pile, False), (row, True)):
        places = [layout[f"{'x' if across else 'y'}axis{n}"]["domain"] for n in ("", "2", "3")]
        places = places if across else places[::-1]
        assert all(left[1] < right[0] for left, right in pairwise(places))


def test_panels_show_all_values_and_the_targets():
    info = cdf_info(pair(), itl_target_ms=5000.0, ttft_target_ms=0.5)
    layout = cdf_figure(info)["layout"]
    for number, panel in zip(("", "2", "3"), info.panels, strict=True):
        low, high = (10**end for end in layout[f"xaxis{number}"]["range"])
        shown = [v for one in panel.curves for v in one.value_ms.tolist()]
        assert all(low < v < high for v in [*shown, panel.target_ms or shown[0]])


@pytest.mark.parametrize(
    ("experiment", "title"),
    [
        (load(), "Nobody streams"),
        (load(request("A", 3)), "Nobody streams"),
        (load(request("A", 9), policy="whole_prompt", budget=4), "Nobody streams"),
        (load(request("A", 3, output_tokens=2)), "P99 ITL 1 ms"),
    ],
)
def test_a_run_alone_and_one_without_values(experiment, title):
    info = cdf_info([ran("alone", experiment)], **TARGETS)
    assert info.title == title
    spec = cdf_figure(info)
    go.Figure(spec)
    assert plain(spec["layout"]["title"]["text"]) == title
    if title == "Nobody streams":
        assert "ITL, alone: no value" in cdf_alt(info)


def test_equal_runs_are_said_to_be():
    runs = [pair()[1], pair()[1]]
    assert cdf_info(runs, **TARGETS).title == "P99 ITL 14 ms in both"


def test_the_table_and_the_alt_text_hold_the_same_numbers():
    info = cdf_info(pair(), **TARGETS)
    columns = cdf_columns(info)
    assert columns["quantity"] == ["TTFT", "TTFT", "ITL", "ITL", "TPOT", "TPOT"]
    assert columns["p99_ms"][2:4] == [104.0, 14.0]
    assert columns["within"][2:] == [36 / 38, 1.0, None, None]
    assert "ITL, A: whole prompts: p50 4 ms, p90 4 ms, p99 104 ms, 94.7% within target, of 38 " in (
        cdf_alt(info)
    )


@pytest.mark.parametrize("count", [0, 3])
def test_more_than_two_runs_are_refused(count):
    with pytest.raises(ValueError, match=f"runs: {count} is not a number from 1 to 2"):
        cdf_info([pair()[0]] * count, **TARGETS)


@pytest.mark.parametrize(
    ("share", "words"),
    [
        (0.0, "0%"),
        (1.0, "100%"),
        (0.0004, "<0.1%"),
        (0.9996, ">99.9%"),
        (0.372, "37.2%"),
    ],
)
def test_only_all_is_a_hundred_percent(share, words):
    assert share_words(share) == words
