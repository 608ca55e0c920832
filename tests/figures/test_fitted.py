"""A fit's pictures: valid, white, fitting a phone, and a bend is found where there is one."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.costs.least_squares import fit
from s11.costs.measurements import Measurements, read_measurements
from s11.figures.fitted import fit_alt, fit_figure
from s11.figures.fitted_info import MOST_POINTS, fit_info, shape_sentence
from s11.figures.fitted_residuals import SMALLEST_TOP_PCT, residuals_alt, residuals_figure, top_pct
from s11.figures.log_axis import log_axis, nice_range
from s11.sample_measurements import sample_steps


def steps(*, bend=0.0, rows=60, wild=0.0):
    """Rows of 5 + 0.02 · prefill + 0.1 · decode ms, and `bend` · prefill² ms on top."""
    prefill = np.array([(row % 8) * 256 for row in range(rows)])
    decode = np.array([1 + (row * 7) % 40 for row in range(rows)])
    duration_ms = 5 + 0.02 * prefill + 0.1 * decode + bend * prefill**2
    duration_ms[rows // 2] *= 1 + wild
    return Measurements(
        file_row=np.arange(rows) + 2,
        prefill_tokens=prefill,
        decode_tokens=decode,
        context_tokens=np.zeros(rows, dtype=np.int64),
        duration_ms=duration_ms,
    )


def info_of(measurements):
    return fit_info(measurements, fit(measurements), source="steps.csv")


SCENES = {
    "straight": steps(),
    "bent": steps(bend=1e-5),
    "one wild row": steps(wild=4.0),
    "many": steps(rows=9_000, wild=1.0),
    "sample": read_measurements(sample_steps()),
}


@pytest.mark.parametrize("scene", SCENES)
def test_specs_are_valid_white_and_fit_a_phone(scene):
    info = info_of(SCENES[scene])
    for spec in (fit_figure(info), residuals_figure(info)):
        go.Figure(spec)  # raises on any unknown name or impossible value
        assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
        json.dumps(spec["layout"]["meta"], allow_nan=False)
        title, *caption = spec["layout"]["title"]["text"].split("<br>")
        assert len(title) - len("<b></b>") <= 45
        for line in caption:
            assert len(line.split(">")[1].split("<")[0]) <= 60


def test_errors_are_above_zero_where_the_model_says_too_much():
    measurements = steps(wild=1.0)
    info = info_of(measurements)
    worst = info.worst[0]
    assert info.file_row[worst] == 32  # row 30 of the arrays, which took twice as long
    assert info.error_pct[worst] < 0
    expected = 100 * (info.predicted_ms / measurements.duration_ms - 1)
    np.testing.assert_allclose(info.error_pct, expected)


def test_a_straight_line_has_no_shape():
    info = info_of(SCENES["straight"])
    assert [column.name for column in info.columns] == ["prefill_tokens", "decode_tokens"]
    assert all(column.bend is None for column in info.columns)
    assert "the straight line holds" in shape_sentence(info)
    assert residuals_figure(info)["layout"]["meta"]["bent"] == []


def test_a_bent_one_has():
    info = info_of(SCENES["bent"])
    prefill = info.columns[0]
    assert prefill.bend is not None
    assert "does not hold everywhere" in shape_sentence(info)
    assert f"{abs(prefill.bend.median_error_pct):.1f}% too" in shape_sentence(info)
    assert "prefill_tokens" in residuals_figure(info)["layout"]["meta"]["bent"]
    # A line through a parabola says too little where it is steepest, and too much before.
    before, last = prefill.groups[-3], prefill.groups[-1]
    assert last.median_error_pct < -2 < 2 < before.median_error_pct
    assert prefill.bend == last
    assert (last.low, last.high) == (1536, 1792)


def test_one_wild_row_is_no_shape():
    assert all(column.bend is None for column in info_of(SCENES["one wild row"]).columns)


def test_groups_hold_every_row_once_and_equal_tokens_together():
    measurements = SCENES["sample"]
    for column in info_of(measurements).columns:
        assert sum(group.rows for group in column.groups) == len(measurements)
        assert all(group.rows >= 5 for group in column.groups)
        for before, after in zip(column.groups, column.groups[1:], strict=False):
            assert before.low <= before.high < after.low <= after.high


def test_many_rows_are_thinned_and_the_worst_stay():
    info = info_of(SCENES["many"])
    assert len(info.file_row) <= MOST_POINTS
    assert info.file_row[info.worst[0]] == 4_502
    assert f"{len(info.file_row):,} of them drawn" in fit_figure(info)["layout"]["title"]["text"]


def test_rows_far_off_do_not_flatten_the_rest():
    # P90 of 1 ... 10 is 9; 2.5 times that is 22.5.
    assert top_pct(np.array([*range(1, 10), 400.0])) == 22.5
    assert top_pct(np.array([*range(1, 10), 10.0])) == 10
    assert top_pct(np.zeros(10)) == SMALLEST_TOP_PCT
    spec = residuals_figure(info_of(SCENES["one wild row"]))
    beyond = [trace for trace in spec["data"] if trace["name"] == "beyond edge"]
    assert len(beyond) == 2  # in both panels, at the edge
    assert beyond[0]["y"].tolist() == pytest.approx([-spec["layout"]["meta"]["top_pct"]])


def test_a_mark_at_the_edge_is_whole():
    for scene in ("one wild row", "sample"):
        spec = residuals_figure(info_of(SCENES[scene]))
        top = spec["layout"]["meta"]["top_pct"]
        for trace in spec["data"]:
            assert np.abs(trace["y"]).max() <= top + 1e-5
        beyond = [trace for trace in spec["data"] if trace["name"] == "beyond edge"]
        assert all(trace["cliponaxis"] is False for trace in beyond)
        assert spec["layout"]["yaxis"]["range"][1] >= 1.15 * top


def test_the_medians_reach_as_far_as_the_rows():
    spec = residuals_figure(info_of(SCENES["sample"]))
    lines = [trace for trace in spec["data"] if trace["name"] == "median"]
    info = info_of(SCENES["sample"])
    for line, column in zip(lines, info.columns, strict=True):
        assert (line["x"][0], line["x"][-1]) == (column.tokens.min(), column.tokens.max())


@pytest.mark.parametrize("scene", SCENES)
def test_every_circled_row_has_its_number(scene):
    info = info_of(SCENES[scene])
    named = [
        int(number.replace(",", ""))
        for note in fit_figure(info)["layout"]["annotations"]
        for number in note["text"].removeprefix("rows ").removeprefix("row ").split(", ")
    ]
    assert sorted(named) == sorted(int(info.file_row[at]) for at in info.worst)


def test_pictures_say_whose_they_are():
    info = info_of(SCENES["sample"])
    for spec in (fit_figure(info), residuals_figure(info)):
        assert "s11" in spec["layout"]["title"]["text"]


def test_alt_has_the_numbers():
    info = info_of(SCENES["one wild row"])
    assert "Worst: row 32" in fit_alt(info)
    # The wild row pulls the line up a little: measured 100% of the others, said 100.1 to 100.5%.
    assert "prefill tokens 0 to 256: " in residuals_alt(info)
    assert "36 to 40: +0." in residuals_alt(info)


def test_log_axes_end_at_round_numbers():
    assert nice_range(7.0, 180.0) == (5.0, 200.0)
    assert nice_range(0.02, 1000.0) == (0.02, 1000.0)
    axis = log_axis(5.0, 200.0, title="ms")
    assert axis["ticktext"] == ["5", "10", "20", "50", "100", "200"]
    assert log_axis(0.001, 10_000.0, title="ms")["ticktext"] == [
        "0.001", "0.01", "0.1", "1", "10", "100", "1,000", "10,000",
    ]  # fmt: skip
