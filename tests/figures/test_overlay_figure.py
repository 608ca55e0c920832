"""The overlay's picture: two CDFs, their percentiles, and where they part, drawn and named."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.figures.overlay import overlay_alt, overlay_figure
from s11.figures.overlay_info import MOST_POINTS, overlay_info, percentile_columns
from s11.overlay import overlay

HUNDRED = np.arange(1.0, 101.0)  # percentile P is P ms
CAPTION = ["Llama-3.1-8B on H100, bf16", "vLLM V1; open loop", "bench.json; 100 requests"]
SCENES = {
    "alike": (HUNDRED, HUNDRED),
    "tail": (HUNDRED, np.where(HUNDRED > 80, HUNDRED * 2, HUNDRED)),
    "shorter": (HUNDRED, HUNDRED / 4),
    "no time": (np.zeros(5), np.array([0.0, 3.0])),
    "one each": (np.array([7.0]), np.array([9.0])),
    "many": (np.linspace(5, 500, 40_000), np.linspace(4, 700, 30_000)),
    "far apart": (HUNDRED, HUNDRED * 1e4),
}


def info_of(scene):
    measured, simulated = SCENES[scene]
    return overlay_info(overlay(measured, simulated, name="ITL"), caption=CAPTION)


@pytest.mark.parametrize("scene", SCENES)
def test_specs_are_valid_white_and_fit_a_phone(scene):
    spec = overlay_figure(info_of(scene))
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
    json.dumps(spec["layout"]["meta"], allow_nan=False)
    title, *caption = spec["layout"]["title"]["text"].split("<br>")
    assert len(title) - len("<b></b>") <= 45
    for line in caption:
        assert len(line.split(">")[1].split("<")[0]) <= 60


def test_the_part_that_differs_is_outlined_and_named():
    info = info_of("tail")
    # By hand: from P81 on each simulated value is twice the measured one.
    assert info.named == ("P81–P99: simulated up to 2.0× longer",)
    assert "from P81 to P99 (up to 2.0×)" in info.sentence  # the same number in both
    assert info.outline_ms[~np.isnan(info.outline_ms)].min() == 81
    assert info.outline_ms[~np.isnan(info.outline_ms)].max() == 198
    assert np.nanmin(info.outline_percent) == 80.5
    assert np.nanmax(info.outline_percent) == 99.5
    spec = overlay_figure(info)
    assert spec["layout"]["meta"]["partings"] == 1
    assert "P81–P99: simulated up to 2.0× longer" in spec["layout"]["annotations"][0]["text"]
    assert spec["layout"]["title"]["text"].startswith("<b>ITL: P50 1.00×, P99 2.00× measured</b>")
    assert "P50 50 → 50 ms" in spec["layout"]["title"]["text"]
    assert "up to P80; they are longer from P81 to P99" in overlay_alt(info)


def test_where_they_agree_nothing_is_shaded():
    spec = overlay_figure(info_of("alike"))
    assert not [trace for trace in spec["data"] if trace.get("fill")]
    assert "never more than 15% apart" in spec["layout"]["annotations"][0]["text"]
    assert spec["layout"]["title"]["text"].startswith("<b>ITL: within 15% from P1 to P99</b>")


def test_percentiles_are_marked_on_both_curves():
    spec = overlay_figure(info_of("shorter"))
    marks = [trace for trace in spec["data"] if trace["mode"] == "markers"]
    assert [trace["x"].tolist() for trace in marks] == [[50, 99], [12.5, 24.75]]
    assert [trace["y"].tolist() for trace in marks] == [[50, 99], [50, 99]]
    assert marks[0]["marker"]["symbol"] != marks[1]["marker"]["symbol"]
    lines = [trace["line"]["dash"] for trace in spec["data"] if "dash" in trace.get("line", {})]
    assert lines == ["solid", "dash"]


def test_the_axis_stays_while_the_simulated_side_moves_inside_it():
    measured = SCENES["alike"][0]
    ranges = {
        (info.low_ms, info.high_ms)
        for factor in (0.6, 1.0, 1.5, 2.0)
        for info in [overlay_info(overlay(measured, measured * factor, name="ITL"), caption=[])]
    }
    assert ranges == {(0.5, 200.0)}
    far = info_of("far apart")
    assert (far.low_ms, far.high_ms) == (10.0, 1e6)
    assert far.below_axis


def test_curves_climb_from_nothing_to_all_in_few_points():
    info = info_of("many")
    for curve in (info.measured, info.simulated):
        assert len(curve.value_ms) <= MOST_POINTS + 1
        assert (curve.percent[0], curve.percent[-1]) == (0, 100)
        assert (np.diff(curve.percent) >= 0).all()
        assert (np.diff(curve.value_ms) >= 0).all()
    assert info.measured.value_ms[-1] == 500


def test_gaps_of_no_time_are_drawn_at_the_edge():
    info = info_of("no time")
    assert info.below_axis
    assert info.measured.value_ms.min() == info.low_ms > 0
    assert "at the edge" in overlay_figure(info)["layout"]["xaxis"]["title"]["text"]


def test_the_table_has_both_sides():
    columns = percentile_columns([overlay(*SCENES["tail"], name="ITL")], (50, 90))
    assert columns == {
        "latency": ["ITL", "ITL"],
        "percentile": [50, 90],
        "measured_ms": [50.0, 90.0],
        "simulated_ms": [50.0, 180.0],
        "simulated_by_measured": [1.0, 2.0],
    }
