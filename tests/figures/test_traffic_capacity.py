"""The capacity pictures from made-up rates: values, spec, words."""

from dataclasses import dataclass, replace

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.figures.traffic_capacity import (
    CapacityCurve,
    capacity_figure,
    capacity_info,
    rate_words,
)
from s11.figures.traffic_capacity_words import (
    capacity_alt,
    capacity_columns,
    chunk_capacity_alt,
    chunk_capacity_columns,
)
from s11.figures.traffic_chunk_capacity import (
    TargetCurve,
    WholePrompts,
    chunk_capacity_figure,
    chunk_capacity_info,
)
from tests.figures.traffic_runs import plain


@dataclass(frozen=True)
class Point:
    rate_per_s: float
    holds: bool
    goodput_per_s: float | None = 1.0
    itl_p99_ms: float | None = 40.0
    scheduling_delay_p50_ms: float | None = 12.0


def info(*curves, targets="P99 ITL 50 ms"):
    made = [CapacityCurve(label=label, points=tuple(points)) for label, points in curves]
    return capacity_info(made, targets=targets, caption=["openchat, 100 requests"])


SMALL = ("128 tokens", [Point(8.0, False, 0.5), Point(2.0, True, 2.0), Point(4.0, True, 3.5)])
LARGE = ("2048 tokens", [Point(1.0, True, 1.0), Point(2.0, False, None, None, None)])


def test_the_highest_rate_that_holds_is_marked_and_told():
    found = info(SMALL, LARGE)
    assert found.title == "Holds up to 4.0 requests/s (128 tokens)"
    assert found.caption == ["openchat, 100 requests", "holds: P99 ITL 50 ms"]
    spec = capacity_figure(found)
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert spec["layout"]["meta"]["highest_per_s"] == {"128 tokens": 4.0, "2048 tokens": 1.0}
    rings = next(t for t in spec["data"] if t["name"] == "highest that holds")
    assert (rings["x"].tolist(), rings["y"].tolist()) == ([4.0, 1.0], [3.5, 1.0])
    line = next(t for t in spec["data"] if t["name"] == "128 tokens")
    assert line["x"].tolist() == [2.0, 4.0, 8.0]  # in order, whatever was tried first
    assert line["marker"]["symbol"] == ["circle", "circle", "x-thin"]
    assert plain(spec["layout"]["title"]["text"]) == found.title


def test_the_axes_hold_every_point_and_the_diagonal():
    spec = capacity_figure(info(SMALL, LARGE))
    assert spec["layout"]["xaxis"]["range"][1] > 8.0
    assert spec["layout"]["yaxis"]["range"][1] > 3.5
    diagonal = spec["data"][0]
    assert diagonal["x"].tolist() == diagonal["y"].tolist()


@pytest.mark.parametrize(
    ("curves", "title"),
    [
        ([], "Nothing was tried yet"),
        ([("one", [])], "Nothing was tried yet"),
        ([("one", [Point(1.0, False)])], "No tried rate holds the targets"),
        ([("one", [Point(0.25, True)])], "Holds up to 0.25 requests/s"),
        ([("a", [Point(12.0, True)]), ("b", [Point(12.0, True)])], "Holds up to 12 requests/s"),
        ([("a" * 40, [Point(3.0, True)]), LARGE], "Holds up to 3.0 requests/s"),
    ],
)
def test_every_outcome_has_a_true_title(curves, title):
    found = info(*curves)
    assert found.title == title
    spec = capacity_figure(found)
    go.Figure(spec)
    notes = [note["text"] for note in spec["layout"]["annotations"]]
    assert ("nothing was tried yet" in notes) == (title == "Nothing was tried yet")
    rings = [t for t in spec["data"] if t["name"] == "highest that holds"]
    assert bool(rings) == ("Holds" in title)


def test_the_words_and_the_table_tell_every_tried_rate():
    found = info(SMALL, LARGE, ("none", [Point(1.0, False)]))
    columns = capacity_columns(found)
    assert columns["setting"] == ["128 tokens"] * 3 + ["2048 tokens"] * 2 + ["none"]
    assert columns["rate_per_s"] == [2.0, 4.0, 8.0, 1.0, 2.0, 1.0]
    assert columns["holds"] == [True, True, False, True, False, False]
    assert columns["itl_p99_ms"][4] is None
    alt = capacity_alt(found)
    assert "128 tokens: holds up to 4.0 requests per s, with P99 ITL 40 ms and a median" in alt
    assert "none: none of 1 tried rate holds" in alt


TIGHT = TargetCurve(
    label="P99 ITL 25 ms", chunk_tokens=(128, 512, 2048), highest_per_s=(3.0, 2.0, None)
)
LOOSE = TargetCurve(
    label="P99 ITL 100 ms", chunk_tokens=(128, 512, 2048), highest_per_s=(3.0, 6.0, 7.5)
)
NONE = TargetCurve(label="P99 ITL 1 ms", chunk_tokens=(128, 512), highest_per_s=(None, None))


def test_the_best_chunk_is_a_property_of_the_targets():
    found = chunk_capacity_info([TIGHT, LOOSE, NONE], caption=["openchat"])
    assert found.title == "Best chunk: 128 to 2,048, by target"
    spec = chunk_capacity_figure(found)
    go.Figure(spec)
    assert spec["layout"]["meta"]["best_tokens"] == {
        "P99 ITL 25 ms": 128,
        "P99 ITL 100 ms": 2048,
        "P99 ITL 1 ms": None,
    }
    rings = next(t for t in spec["data"] if t["name"] == "best chunk size")
    assert (rings["x"].tolist(), rings["y"].tolist()) == ([128, 2048], [3.0, 7.5])
    crosses = next(t for t in spec["data"] if t["name"] == "no rate holds")
    assert crosses["x"].tolist() == [2048, 128, 512]
    line = next(t for t in spec["data"] if t["name"] == "P99 ITL 25 ms")
    assert np.isnan(line["y"]).tolist() == [False, False, True]
    low, high = (10**end for end in spec["layout"]["xaxis"]["range"])
    assert low < 128 < 2048 < high


@pytest.mark.parametrize(
    ("curves", "title"),
    [
        ([], "Nothing was tried yet"),
        ([NONE], "No tried rate holds the targets"),
        ([TIGHT], "Best chunk size: 128 tokens"),
        ([TIGHT, NONE], "Best chunk size: 128 tokens"),
    ],
)
def test_every_outcome_by_chunk_has_a_true_title(curves, title):
    found = chunk_capacity_info(curves, caption=[])
    assert found.title == title
    spec = chunk_capacity_figure(found)
    go.Figure(spec)
    notes = [note["text"] for note in spec["layout"]["annotations"]]
    assert ("nothing was tried yet" in notes) == (not curves)


def test_of_equal_rates_the_smaller_chunk_is_best():
    curve = TargetCurve(label="x", chunk_tokens=(64, 128), highest_per_s=(2.0, 2.0))
    assert curve.best == 0


def test_the_words_and_the_table_by_chunk():
    found = chunk_capacity_info([LOOSE, NONE], caption=["openchat"])
    assert chunk_capacity_columns(found) == {
        "targets": ["P99 ITL 100 ms"] * 3 + ["P99 ITL 1 ms"] * 2,
        "chunk_tokens": [128, 512, 2048, 128, 512],
        "highest_per_s": [3.0, 6.0, 7.5, None, None],
        "whole_prompts": [False] * 5,
    }
    assert chunk_capacity_alt(found) == (
        "Highest rate by chunk size. Best chunk size: 2,048 tokens. openchat. "
        "P99 ITL 100 ms: best at 2,048 tokens, up to 7.5 requests per s; "
        "P99 ITL 1 ms: no rate holds at any chunk size."
    )


BOTH = (
    replace(TIGHT, whole_prompts=WholePrompts(highest_per_s=None)),
    replace(LOOSE, whole_prompts=WholePrompts(highest_per_s=9.0)),
)


def test_whole_prompts_stand_beside_the_sizes_with_a_line_over_all_of_them():
    spec = chunk_capacity_figure(chunk_capacity_info(BOTH, caption=[]))
    go.Figure(spec)
    layout = spec["layout"]
    assert layout["meta"]["whole_per_s"] == {"P99 ITL 25 ms": None, "P99 ITL 100 ms": 9.0}
    at = layout["xaxis"]["tickvals"][-1]
    assert layout["xaxis"]["ticktext"][-1] == "whole"
    assert 2048 < at < 10 ** layout["xaxis"]["range"][1]
    assert [note["text"] for note in layout["annotations"]] == ["whole prompts"]
    line = next(t for t in spec["data"] if t["name"] == "P99 ITL 100 ms, whole prompts")
    chunked = next(t for t in spec["data"] if t["name"] == "P99 ITL 100 ms")
    assert (line["x"].tolist(), line["y"].tolist()) == ([128, at], [9.0, 9.0])
    assert line["marker"]["size"][0] == 0  # an open mark at its end alone
    assert line["marker"]["symbol"] == f"{chunked['marker']['symbol']}-open"
    assert line["line"]["color"] == chunked["line"]["color"]
    assert line["line"]["dash"] != chunked["line"]["dash"]
    crosses = next(t for t in spec["data"] if t["name"] == "no rate holds")
    assert crosses["x"].tolist() == [2048, at]
    assert layout["yaxis"]["range"][1] > 9.0


def test_without_whole_prompts_there_is_no_place_for_them():
    spec = chunk_capacity_figure(chunk_capacity_info([TIGHT], caption=[]))
    assert spec["layout"]["annotations"] == []
    assert "whole" not in spec["layout"]["xaxis"]["ticktext"]
    assert not [t for t in spec["data"] if "whole" in t["name"]]


def test_the_words_and_the_table_of_whole_prompts():
    found = chunk_capacity_info(BOTH, caption=[])
    columns = chunk_capacity_columns(found)
    assert columns["chunk_tokens"] == [128, 512, 2048, None, 128, 512, 2048, None]
    assert columns["highest_per_s"] == [3.0, 2.0, None, None, 3.0, 6.0, 7.5, 9.0]
    assert columns["whole_prompts"] == [False, False, False, True] * 2
    alt = chunk_capacity_alt(found)
    assert "best at 128 tokens, up to 3.0 requests per s, with whole prompts no rate; " in alt
    assert alt.endswith("up to 7.5 requests per s, with whole prompts up to 9.0.")


@pytest.mark.parametrize(("rate", "words"), [(0.849, "0.85"), (6.43, "6.4"), (1234.0, "1,234")])
def test_rates_read_as_people_say_them(rate, words):
    assert rate_words(rate) == words
