"""The timeline's spec: what is drawn, in which form, and that it fits."""

import itertools
import json
from dataclasses import replace
from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from s11 import EngineLimits, Experiment, chapter_scenario, measure
from s11.explain import explain
from s11.figures import theme
from s11.figures.page import self_contained_html
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import Axis, timeline_info
from s11.figures.timeline_steps import MOST_BARS
from s11.simulator import simulate

CHAPTER = Experiment()


def figure(experiment: Experiment, **view: Any) -> tuple[dict[str, Any], str]:
    result, whole = simulate(experiment), simulate(experiment.chunking_off())
    metrics, other = (measure(r, itl_target_ms=experiment.itl_target_ms) for r in (result, whole))
    explanation = explain(experiment, result, metrics, whole=other)
    info = timeline_info(experiment, result, explanation, whole=whole, **view)
    return timeline_figure(info, metrics=metrics), timeline_alt(info, metrics)


def named(spec: dict[str, Any], name: str) -> list[dict[str, Any]]:
    return [trace for trace in spec["data"] if trace.get("name") == name]


def texts(spec: dict[str, Any]) -> str:
    return " ".join(note["text"] for note in spec["layout"]["annotations"])


SCENES = {
    "chunked": CHAPTER,
    "off": CHAPTER.chunking_off(),
    "many steps": CHAPTER.with_chunk_tokens(16),
    "thousands of steps": replace(
        CHAPTER, workload=chapter_scenario(prompt_tokens=131_072)
    ).with_chunk_tokens(32),
    "one token, no users": replace(
        CHAPTER, workload=chapter_scenario(prompt_tokens=1, streaming_users=0)
    ),
    "never": Experiment(
        workload=chapter_scenario(prompt_tokens=32_768), limits=EngineLimits(token_budget=8192)
    ).chunking_off(),
}


@pytest.mark.parametrize(("scene", "axis"), list(itertools.product(SCENES, Axis)))
def test_spec_is_valid_plotly_and_white(scene: str, axis: Axis):
    spec, _ = figure(SCENES[scene], axis=axis)
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"


def test_parts_differ_in_pattern_as_well_as_colour():
    spec, _ = figure(CHAPTER)
    bars = [named(spec, name)[0] for name in ("prefill work", "decode work", "fixed overhead")]
    patterns = [bar["marker"].get("pattern", {}).get("shape", "") for bar in bars]
    assert len(set(patterns)) == 3
    assert all(isinstance(bar["y"], np.ndarray) for bar in bars)


def test_steps_over_target_are_outlined_and_pointed_at():
    spec, _ = figure(CHAPTER.chunking_off())
    outline = named(spec, "step over target")[0]
    assert np.nanmax(outline["y"]) == pytest.approx(152.656)
    labels = [text for trace in spec["data"] for text in trace.get("text") or ()]
    assert "<b>▲ 153 ms</b>" in labels
    assert not named(figure(CHAPTER)[0], "step over target")


def test_freeze_is_labelled_in_ms():
    assert "every stream frozen 153 ms" in texts(figure(CHAPTER.chunking_off())[0])
    assert "2 freezes, up to 78.9 ms" in texts(figure(CHAPTER.with_chunk_tokens(4096))[0])
    assert "froze" not in texts(figure(CHAPTER)[0])


def test_ghost_ttft_and_target_are_labelled():
    shown = texts(figure(CHAPTER)[0])
    for label in ("chunking off: 153 ms", "TTFT 189 ms", "ITL target 50 ms", "time (ms)"):
        assert label in shown


def test_at_most_four_streams_and_the_rest_counted():
    labels = figure(CHAPTER)[0]["layout"]["yaxis2"]["ticktext"]
    assert labels == ["long prompt", "user 1", "user 2", "user 3", "user 4", "+ 20 alike"]
    few = replace(CHAPTER, workload=chapter_scenario(streaming_users=1))
    assert figure(few)[0]["layout"]["yaxis2"]["ticktext"] == ["long prompt", "user 1"]


@pytest.mark.parametrize("chunk", [8192 // MOST_BARS + 1, 20])
def test_many_steps_become_areas(chunk: int):
    spec, _ = figure(CHAPTER.with_chunk_tokens(chunk))
    kind = "bar" if -(-8192 // chunk) + 5 <= MOST_BARS else "scatter"
    assert named(spec, "prefill work")[0]["type"] == kind


def test_both_rows_share_one_horizontal_axis():
    spec, _ = figure(CHAPTER)
    assert {trace.get("xaxis") for trace in spec["data"]} == {"x"}
    assert {trace.get("yaxis") for trace in spec["data"]} == {"y", "y2"}


def test_head_fits_a_phone():
    for experiment in SCENES.values():
        for line in figure(experiment)[0]["layout"]["title"]["text"].split("<br>"):
            visible = line.split(">", 1)[-1].rsplit("<", 1)[0]
            assert len(visible) <= 75, visible


def test_alt_text_has_the_numbers():
    alt = figure(CHAPTER)[1]
    for words in ("Longest stall 23.6 ms", "TTFT 189 ms", "0 of 13 steps over the target of 50 ms"):
        assert words in alt


def test_meta_tells_what_is_drawn():
    meta = figure(CHAPTER)[0]["layout"]["meta"]
    assert meta["step_count"] == 13
    assert meta["longest_stall_ms"] == pytest.approx(23.632)


def test_html_is_self_contained():
    page = self_contained_html(figure(CHAPTER)[0], title="a <b> title")
    assert page.startswith("<!doctype html>")
    assert "<title>a &lt;b&gt; title</title>" in page
    assert 'src="http' not in page
    assert "No stream waits over 50 ms" in page


def test_dark_twin_covers_every_colour_of_the_figure():
    css = theme.dark_twin_css()
    for colour in (theme.PAPER, theme.INK, theme.MUTED, theme.GRID, theme.STALL_TEXT):
        red, green, blue = (int(colour[at : at + 2], 16) for at in (1, 3, 5))
        assert f"fill: rgb({red}, {green}, {blue})" in css


@pytest.mark.parametrize(
    ("text", "paper"),
    [
        (theme.INK, theme.PAPER),
        (theme.MUTED, theme.PAPER),
        (theme.STALL_TEXT, theme.PAPER),
        (theme.DARK_TWIN[theme.INK], theme.DARK_TWIN[theme.PAPER]),
        (theme.DARK_TWIN[theme.MUTED], theme.DARK_TWIN[theme.PAPER]),
        (theme.DARK_TWIN[theme.STALL_TEXT], theme.DARK_TWIN[theme.PAPER]),
    ],
)
def test_text_has_contrast(text: str, paper: str):
    """WCAG 2.2, relative luminance and contrast ratio: at least 4.5 for text."""

    def luminance(colour: str) -> float:
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]

    light, dark = sorted((luminance(text), luminance(paper)), reverse=True)
    assert (light + 0.05) / (dark + 0.05) >= 4.5


def test_spec_without_arrays_is_small():
    spec, _ = figure(CHAPTER)
    text = json.dumps(spec, default=lambda array: array.tolist())
    assert len(text) < 20_000
