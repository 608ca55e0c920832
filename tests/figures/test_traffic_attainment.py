"""The shares that meet the targets, by hand; the bars; the words."""

from itertools import pairwise

import plotly.graph_objects as go
import pytest

from s11.figures.traffic_attainment import (
    attainment_alt,
    attainment_columns,
    attainment_figure,
    attainment_info,
    stalled_share,
)
from tests.figures.traffic_runs import pair, plain, ran
from tests.loads import load, request

TARGETS = {"itl_target_ms": 50.0, "ttft_target_ms": 110.0}


def test_shares_by_hand():
    # Whole: A and B stall for 104 ms, C wants one token. Chunked: nobody stalls; C's ten chunks
    # take 140 ms, and what is left of the step under way.
    runs = pair()
    info = attainment_info(runs, **TARGETS)
    assert list(info.rows) == [
        "First token within 110 ms",
        "All tokens, none later than 50 ms",
        "Both: SLO attainment",
    ]
    assert [*info.rows.values()] == [
        (1.0, pytest.approx(2 / 3)),
        (pytest.approx(1 / 3), 1.0),
        (pytest.approx(1 / 3), pytest.approx(2 / 3)),
    ]
    assert info.title == "SLO attainment: A 33.3%, B 66.7%"
    assert stalled_share(runs[0], itl_target_ms=50.0) == pytest.approx(2 / 3)
    assert stalled_share(runs[0], itl_target_ms=104.0) == 0.0  # a wait at the target meets it
    assert stalled_share(runs[1], itl_target_ms=50.0) == 0.0


def test_without_a_ttft_target_the_stalls_decide():
    info = attainment_info(pair(), itl_target_ms=50.0, ttft_target_ms=None)
    assert list(info.rows) == ["All tokens, none later than 50 ms"]
    assert info.title == "SLO attainment: A 33.3%, B 100%"


def test_who_is_never_served_meets_no_target():
    run = ran("stuck", load(request("A", 1), request("B", 9), policy="whole_prompt", budget=4))
    info = attainment_info([run], **TARGETS)
    assert [*info.rows.values()] == [(0.5,), (0.5,), (0.5,)]
    assert stalled_share(run, itl_target_ms=50.0) == 0.0


def test_no_request_has_no_share():
    info = attainment_info([ran("none", load())], **TARGETS)
    assert info.title == "No request asks for anything"
    assert "none no request" in attainment_alt(info)
    spec = attainment_figure(info)
    go.Figure(spec)
    assert sum("no request" in note["text"] for note in spec["layout"]["annotations"]) == 3


def test_equal_shares_are_said_to_be():
    assert attainment_info([pair()[0]] * 2, **TARGETS).title == "SLO attainment 33.3% in both"


@pytest.mark.parametrize("runs", [1, 2])
def test_the_spec_is_valid_and_every_bar_has_its_number(runs):
    info = attainment_info(pair()[:runs], **TARGETS)
    spec = attainment_figure(info)
    go.Figure(spec)  # raises on any unknown name or impossible value
    layout = spec["layout"]
    assert plain(layout["title"]["text"]) == info.title
    texts = [note["text"] for note in layout["annotations"]]
    assert texts[:3] == ["<b>100%</b>", "<b>33.3%</b>", "<b>33.3%</b>"]
    assert texts[-3:] == list(info.rows)
    assert len(spec["data"]) == runs
    assert layout["showlegend"] == (runs == 2)
    plot = layout["height"] - layout["margin"]["t"] - layout["margin"]["b"]
    assert layout["yaxis"]["range"] == [plot, 0]  # y counts px
    places = sorted([y for trace in spec["data"] for y in trace["y"]])
    assert all(after - before >= 20 for before, after in pairwise(places))


def test_runs_differ_in_pattern_as_well_as_colour():
    first, second = attainment_figure(attainment_info(pair(), **TARGETS))["data"]
    assert first["marker"]["color"] != second["marker"]["color"]
    assert first["marker"]["pattern"]["shape"] != second["marker"]["pattern"]["shape"]


def test_the_table_has_a_column_for_each_run():
    columns = attainment_columns(attainment_info(pair(), **TARGETS))
    assert columns["B: chunked 40"] == [pytest.approx(2 / 3), 1.0, pytest.approx(2 / 3)]
    assert "Both: SLO attainment: A: whole prompts 33.3%, B: chunked 40 66.7%" in attainment_alt(
        attainment_info(pair(), **TARGETS)
    )
