"""The picture over time: its numbers by hand, its spec, its words."""

from itertools import pairwise

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.figures.drawn import as_json
from s11.figures.traffic_over_time import over_time_figure
from s11.figures.traffic_over_time_info import (
    number_words,
    over_time_alt,
    over_time_columns,
    over_time_info,
)
from tests.figures.traffic_runs import pair, plain, ran, two_streams_and_a_prompt
from tests.loads import load, request


def rows(info):
    return {row.title: row for row in info.rows}


def test_the_longest_step_and_the_most_tokens_are_those_of_the_runs():
    info = over_time_info(pair(), itl_target_ms=50.0)
    found = rows(info)
    assert list(found) == [
        "Waiting",
        "Running",
        "Step duration",
        "Prefill in a step",
        "Decode in a step",
    ]
    assert found["Step duration"].highest == (104.0, 14.0)
    assert found["Prefill in a step"].highest == (400.0, 40.0)
    assert found["Decode in a step"].highest == (2.0, 2.0)
    assert found["Running"].highest == (3.0, 3.0)
    assert found["Step duration"].target == 50.0
    assert info.title == "Longest step: A 104 ms, B 14 ms"


def test_a_pools_use_is_a_share_and_a_run_without_a_pool_has_none():
    # Pages of 1 token: A and B hold 23 tokens each at most, C 400; a pool of 1,000.
    pooled = ran("pool", two_streams_and_a_prompt(chunk=40, kv_blocks=1000, block_size=1))
    info = over_time_info([pair()[0], pooled], itl_target_ms=50.0)
    row = rows(info)["KV blocks held"]
    assert row.bands[0] is None
    assert row.highest[0] is None
    most = int(pooled.result.steps.kv_blocks.max())
    assert 400 < most <= 446
    assert row.highest[1] == pytest.approx(most / 10)
    assert "KV blocks held, at most: A: whole prompts not counted, B: pool" in over_time_alt(info)
    go.Figure(over_time_figure(info))


def test_a_window_shows_what_lies_in_it():
    # C comes at 40 and the steps end at multiples of 4 but for the prompts': A's and B's
    # prompts of 4 take 5 ms each, or both 6 ms together.
    info = over_time_info(pair(), itl_target_ms=50.0, begin_ms=0.0, end_ms=20.0, buckets=10)
    assert rows(info)["Step duration"].highest[0] < 104.0
    assert info.edges_ms.tolist() == list(range(0, 21, 2))
    assert info.unit_ms == 1.0
    assert info.caption[-1] == "0 to 20 ms, each mark 2 ms: mean, min to max"


def test_a_long_run_counts_in_seconds():
    run = ran("late", load(request("A", 1, arrival_ms=19_999.0)))  # 19,999 to 20,000 ms
    info = over_time_info([run], itl_target_ms=50.0)
    layout = over_time_figure(info)["layout"]
    assert layout["xaxis"]["range"] == [0.0, 20.0]
    assert layout["xaxis"]["title"]["text"] == "time (s)"
    assert (layout["meta"]["unit_ms"], layout["meta"]["end_ms"]) == (1000.0, 20_000.0)


def test_the_spec_is_valid_light_and_its_lines_span_the_window():
    info = over_time_info(pair(), itl_target_ms=50.0, begin_ms=10.0, end_ms=150.0)
    spec = over_time_figure(info)
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert len(as_json(spec)) < 150_000
    assert len(spec["data"]) == 3 * 2 * len(info.rows)
    for trace in spec["data"]:
        assert trace["x0"] == 10.0
        assert trace["x0"] + trace["dx"] * (len(trace["y"]) - 1) == pytest.approx(150.0)
    shown = [trace["name"] for trace in spec["data"] if trace["showlegend"]]
    assert sorted(shown) == ["A: whole prompts", "B: chunked 40"]


def test_no_spike_is_cut_and_no_row_lies_on_another():
    info = over_time_info(pair(), itl_target_ms=50.0)
    layout = over_time_figure(info)["layout"]
    axes = [layout[f"yaxis{n}"] for n in ("", "2", "3", "4", "5")]
    for axis, row in zip(axes, info.rows, strict=True):
        assert axis["range"][0] == 0
        assert axis["range"][1] > max(value or 0.0 for value in row.highest)
    domains = [axis["domain"] for axis in axes]
    assert all(lower[1] < upper[0] for upper, lower in pairwise(domains))
    assert domains[0][1] == 1
    assert domains[-1][0] == pytest.approx(0, abs=1e-9)


def test_a_target_far_above_all_steps_does_not_flatten_them():
    info = over_time_info(pair(), itl_target_ms=100_000.0)
    layout = over_time_figure(info)["layout"]
    assert layout["yaxis3"]["range"][1] < 2 * 104.0
    near = over_time_figure(over_time_info(pair(), itl_target_ms=150.0))["layout"]
    assert near["yaxis3"]["range"][1] > 150.0


def test_highest_of_a_bucket_is_what_a_hover_tells():
    spec = over_time_figure(over_time_info(pair(), itl_target_ms=50.0))
    means = [t for t in spec["data"] if t.get("hovertemplate") and t["yaxis"] == "y3"]
    assert sorted(float(np.max(t["customdata"])) for t in means) == [14.0, 104.0]


@pytest.mark.parametrize(
    ("runs", "title"),
    [
        ([ran("none", load())], "No step in this stretch"),
        ([ran("one", load(request("A", 1)))], "Longest step 1 ms"),
        ([ran("none", load()), ran("one", load(request("A", 1)))], "Longest step 1 ms, in B alone"),
        ([pair()[1], pair()[1]], "Longest step 14 ms in both"),
    ],
)
def test_every_kind_of_run_has_a_true_title(runs, title):
    info = over_time_info(runs, itl_target_ms=50.0)
    assert info.title == title
    spec = over_time_figure(info)
    go.Figure(spec)
    assert plain(spec["layout"]["title"]["text"]) == title


def test_the_table_has_a_row_for_each_bucket():
    columns = over_time_columns(over_time_info(pair(), itl_target_ms=50.0, buckets=7))
    assert all(len(column) == 7 for column in columns.values())
    assert columns["step_duration_ms_a_highest"].max() == 104.0
    assert columns["step_duration_ms_b_highest"].max() == 14.0
    alone = over_time_columns(over_time_info(pair()[:1], itl_target_ms=50.0, buckets=7))
    assert alone["step_duration_ms_highest"].max() == 104.0


@pytest.mark.parametrize(
    ("value", "unit", "words"),
    [
        (None, "%", "not counted"),
        (12.345, "%", "12.3%"),
        (1234.0, "tokens", "1,234 tokens"),
        (23.63, "ms", "23.6 ms"),
    ],
)
def test_numbers_stand_with_their_units(value, unit, words):
    assert number_words(value, unit) == words


def test_refusals_are_those_of_the_numbers():
    with pytest.raises(ValueError, match="end_ms: 1 leaves no room"):
        over_time_info(pair(), itl_target_ms=50.0, begin_ms=1.0, end_ms=1.0)
    with pytest.raises(ValueError, match="runs: 3 is not"):
        over_time_info([*pair(), *pair()[:1]], itl_target_ms=50.0)
