"""The comparison's spec: valid, in few traces, in px, readable in print."""

import json
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import pytest

from s11 import Experiment, measure, simulate
from s11.comparison import compare
from s11.entries import entry_labels
from s11.figures.compare import compare_figure
from s11.figures.compare_info import compare_info
from s11.figures.compare_labels import LEFT_MARGIN
from s11.figures.compare_traces import spread
from s11.metric_rows import EngineRun
from s11.scenes import SCENES
from tests.loads import load, request

Spec = dict[str, Any]


def figure(*experiments: Experiment, labels: list[str] | None = None, scene: str = "") -> Spec:
    runs = []
    for number, experiment in enumerate(experiments):
        result = simulate(experiment)
        metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
        label = labels[number] if labels else f"Engine {number}"
        runs.append(EngineRun(label=label, experiment=experiment, result=result, metrics=metrics))
    return compare_figure(compare_info(runs, compare(runs), scene=scene))


def scene_figure(slug: str) -> Spec:
    scene = SCENES[slug]
    return figure(*scene.experiments(), labels=entry_labels(scene.entries), scene=scene.title)


def trace(spec: Spec, name: str) -> Spec:
    (found,) = [each for each in spec["data"] if each.get("name") == name]
    return found


def texts(spec: Spec) -> list[str]:
    return [note["text"] for note in spec["layout"]["annotations"]]


@pytest.mark.parametrize("slug", SCENES)
def test_scene_is_a_valid_spec_of_few_traces(slug: str):
    spec = scene_figure(slug)
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert len(spec["data"]) <= 12
    assert len(spec["layout"]["shapes"]) <= 5
    assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
    assert len(plotly.io.to_json(spec, validate=False)) < 400_000


@pytest.mark.parametrize("slug", SCENES)
def test_title_and_knobs_fit_a_phone(slug: str):
    spec = scene_figure(slug)
    title = spec["layout"]["title"]["text"].split("<br>")[0]
    assert len(title.removeprefix("<b>").removesuffix("</b>")) <= 41
    knobs = [note for note in spec["layout"]["annotations"] if note["xref"] == "paper"][1:-1:2]
    assert len(knobs) == len(SCENES[slug].entries)
    assert all(len(note["text"]) <= 58 for note in knobs)


def test_y_is_in_px_and_the_figure_grows_with_its_rows():
    heights = []
    for requests in (1, 4):
        layout = figure(load(*[request(f"r{n}", 1) for n in range(requests)]))["layout"]
        margin = layout["margin"]
        assert layout["yaxis"]["range"] == [layout["height"] - margin["t"] - margin["b"], 0]
        heights.append(layout["height"])
    assert heights[1] - heights[0] == 3 * 23


def test_every_step_of_every_engine_can_be_hovered():
    experiment = load(request("A", 1, output_tokens=3), request("B", 2))
    stories = trace(figure(experiment, experiment), "step stories")
    assert len(stories["hovertext"]) == 2 * 3
    assert np.array_equal(stories["base"], [0, 1, 2, 0, 1, 2])
    assert stories["hovertemplate"] == "%{hovertext}<extra></extra>"


def test_step_with_both_is_orange_above_and_blue_below():
    spec = figure(load(request("A", 1, output_tokens=2), request("B", 2, arrival_ms=0.5)))
    cells = [each for each in spec["data"] if each["type"] == "bar" and not each.get("name")]
    prefill, decode = cells
    assert prefill["width"].tolist() == [15.0, 7.5]
    assert decode["width"].tolist() == [7.5]
    assert decode["y"][0] - prefill["y"][1] == 7.5


def test_marks_differ_in_pattern_or_form_as_well_as_colour():
    spec = scene_figure("kv-pressure")
    kinds = ["stall over target", "queued", "preempted", "prompt chunk"]
    looks = {
        (trace(spec, kind)["marker"].get("pattern", {}).get("shape"), trace(spec, kind)["width"])
        for kind in kinds
    }
    assert len(looks) == len(kinds)


def test_legend_names_only_what_is_drawn():
    names = {each.get("name") for each in figure(load(request("A", 1)))["data"]}
    assert "preempted" not in names
    assert "cached prefix" not in names
    assert {"prompt chunk", "token", "first token"} <= names


def test_stall_is_labelled_and_the_chunks_numbered():
    spec = figure(
        load(
            request("A", 1, output_tokens=3),
            request("L", 4, arrival_ms=0.5),
            policy="prefill_first",
            target_ms=1.5,
        ),
        load(request("L", 6), chunk=2),
    )
    assert "<b>2 ms</b>" in texts(spec)
    (words,) = [each for each in spec["data"] if each.get("mode") == "text"]
    assert words["text"][-3:] == ["1", "2", "3"]


def test_long_names_are_cut_and_markup_is_shown_as_text():
    labels = figure(load(request("a-very-long-name", 1), request("<b>x", 1)))["layout"]["yaxis"]
    assert labels["ticktext"][:2] == ["a-very-lon…", "&lt;b&gt;x"]
    assert LEFT_MARGIN >= 92  # 11 letters of 12 px


def test_seconds_where_the_run_is_long():
    spec = figure(load(request("A", 1, output_tokens=12_000)))
    assert "time (s)" in texts(spec)
    assert spec["layout"]["xaxis"]["range"][1] == pytest.approx(12 * 1.012)


def test_ticks_are_thinned_but_no_gap_is_filled():
    times = np.array([0.0, 0.1, 0.2, 5.0, 5.1])
    assert spread(times, least_ms=1.0).tolist() == [0.0, 5.0]
    assert spread(times, least_ms=0.01).tolist() == times.tolist()


def test_nothing_to_draw_is_a_labelled_figure():
    spec = figure()
    go.Figure(spec)
    assert "Nothing to compare" in spec["layout"]["title"]["text"]
    json.dumps(spec["layout"])
