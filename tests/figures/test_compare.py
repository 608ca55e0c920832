"""The comparison's spec: valid, in few traces, in px, readable in print."""

import json
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import plotly.io
import pytest

from s11 import EngineLimits, Experiment, LinearCost, Request, measure, simulate
from s11.comparison import compare
from s11.entries import entry_labels
from s11.figures.compare import compare_figure
from s11.figures.compare_info import compare_info
from s11.figures.compare_labels import LEFT_MARGIN, NARROW, WIDE, Density, chunk_words
from s11.figures.compare_rows import Pass
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
    assert len(spec["data"]) <= 16
    assert len(spec["layout"]["shapes"]) <= 5
    assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
    assert len(plotly.io.to_json(spec, validate=False)) < 400_000


@pytest.mark.parametrize("slug", SCENES)
def test_title_and_knobs_fit_a_phone(slug: str):
    spec = scene_figure(slug)
    title = spec["layout"]["title"]["text"].split("<br>")[0]
    assert len(title.removeprefix("<b>").removesuffix("</b>")) <= 44
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
    words, _ = [each for each in spec["data"] if each.get("mode") == "text"]
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


def a_pass(*widths: float, tokens: int = 64) -> Pass:
    width = np.array(widths)
    return Pass(np.cumsum(width) - width, width, len(widths), tokens)


@pytest.mark.parametrize(
    ("widths", "density", "said"),
    [
        ([20.0] * 3, WIDE, ["1", "2", "3"]),  # 2 % of the axis each: room beside the star too
        ([10.0, 20.0, 20.0, 10.0], WIDE, ["1", "2", "3", "4"]),  # the star overlaps the last
        ([20.0] * 12, NARROW, ["12 chunks"]),
        ([8.0] * 12, NARROW, ["×12"]),
        ([2.0] * 3, NARROW, []),
    ],
)
def test_chunks_are_numbered_or_counted(widths: list[float], density: Density, said: list[str]):
    found = chunk_words(a_pass(*widths), axis_ms=1000.0, density=density, starred=True)
    assert [text for _, text in found] == said
    assert all(x <= sum(widths) for x, _ in found)


def test_number_of_the_last_chunk_stands_left_of_its_star():
    found = chunk_words(a_pass(20.0, 20.0), axis_ms=1000.0, density=WIDE, starred=True)
    # The star's left half covers 8.7 of the last 20 ms: the middle of the other 11.3 is at 25.65.
    assert found == [(10.0, "1"), (pytest.approx(25.65), "2")]


def shared_prefix_pair(output_tokens: int) -> Experiment:
    first, second = (
        Request(
            request_id=name,
            prompt_tokens=10,
            output_tokens=outputs,
            arrival_ms=arrival_ms,
            shared_group="g",
            shared_tokens=8,
        )
        for name, outputs, arrival_ms in (("A", output_tokens, 0.0), ("B", 1, 2.0))
    )
    limits = EngineLimits(chunk_tokens=None, block_size=4, prefix_caching=True)
    return replace(load(first, second), limits=limits)


def test_cached_prefix_is_marked_within_its_first_chunk_and_counted_behind_the_row():
    spec = figure(shared_prefix_pair(20))
    mark = trace(spec, "cached prefix")
    assert mark["base"].tolist() == [2.0]  # B's admission: nothing is drawn ahead of it
    assert 0 < mark["x"][0] <= 0.5  # of its chunk's one millisecond
    assert "8 cached" in texts(spec)


def test_strips_are_told_in_the_legend():
    mixed = figure(load(request("A", 1, output_tokens=2), request("B", 2, arrival_ms=0.5)))
    shown = {each["name"] for each in mixed["data"] if each.get("showlegend")}
    assert {"prefill step", "mixed step"} <= shown
    assert "decode step" not in shown


def test_stall_label_leaves_bars_and_chunks_uncovered():
    """vLLM's chat 3: preempted and computed anew for all of its stall, so the label is behind."""
    spec = scene_figure("kv-pressure")
    (label,) = [note for note in spec["layout"]["annotations"] if "59.1 ms</b>" in note["text"]]
    (vllm,) = [
        result
        for result in map(simulate, SCENES["kv-pressure"].experiments())
        if len(result.preemptions) == 1
    ]
    row = vllm.requests.request_id.index("chat 3")
    assert label["text"] == "<b>stall 59.1 ms</b>"
    assert label["x"] > vllm.requests.last_token_ms[row]


def test_note_of_who_began_stands_under_its_marks():
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=3)
    spec = figure(replace(load(request("A", 10, output_tokens=4)), limits=limits))
    (label,) = [note for note in spec["layout"]["annotations"] if "never ends" in note["text"]]
    row = spec["layout"]["yaxis"]["tickvals"][0]
    assert label["y"] - row >= 16  # half a row of 23 px, and half a label


def test_ttft_label_leaves_its_queue_to_be_seen():
    """Of 3,200 ms B queues 3,050 and C 1,000, which 13 letters would cover at 390 px."""
    experiment = load(
        request("A", 1, output_tokens=31),
        request("B", 1, arrival_ms=50.0),
        request("C", 1, arrival_ms=2100.0),
        policy="request_level",
        cost=LinearCost(fixed_ms=100.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
    )
    named = [text for text in texts(figure(experiment)) if text.startswith("TTFT")]
    assert named == ["TTFT 3,150 ms"]


def test_knobs_are_never_dropped():
    """All knobs of a long line stand, the seats too, in two lines."""
    limits = EngineLimits(
        token_budget=16_384,
        chunk_tokens=1024,
        max_seqs=1024,
        kv_blocks=65_536,
        prefix_caching=True,
        prefill_interval=4,
    )
    spec = figure(replace(load(request("A", 1)), policy="sglang", limits=limits))
    (knobs,) = [text for text in texts(spec) if text.startswith("budget")]
    assert knobs.endswith("1,024 seats")
    assert all(len(line) <= 58 for line in knobs.split("<br>"))
