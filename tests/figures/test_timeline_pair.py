"""Two timelines in one picture, against the chapter's own figures.

Decode-only step: 4 + 24 x 0.05 = 5.2 ms. 1,024-token chunk: 5.2 + 18.432 = 23.632 ms. Whole
prompt: 5.2 + 8,192 x 0.018 = 152.656 ms. Two lead-in steps, three in the tail: with chunking the
run ends after 5 x 5.2 + 8 x 23.632 = 215.056 ms, without it after 5 x 5.2 + 152.656 = 178.656 ms.
"""

from dataclasses import replace
from typing import Any

import plotly.graph_objects as go
import pytest

from s11 import Experiment, measure
from s11.explain import explain
from s11.figures.timeline_info import Axis, timeline_info
from s11.figures.timeline_pair import (
    PairInfo,
    PairSide,
    pair_alt,
    pair_columns,
    pair_figure,
    pair_info,
)
from s11.simulator import simulate

CHAPTER = Experiment()


def side(name: str, experiment: Experiment, axis: Axis = Axis.TIME) -> PairSide:
    result, whole = simulate(experiment), simulate(experiment.chunking_off())
    target_ms = experiment.itl_target_ms
    metrics = measure(result, itl_target_ms=target_ms)
    told = explain(experiment, result, metrics, whole=measure(whole, itl_target_ms=target_ms))
    info = timeline_info(experiment, result, told, whole=whole, axis=axis)
    return PairSide(name=name, info=info, metrics=metrics)


def chapter_pair() -> PairInfo:
    return pair_info(side("On", CHAPTER), side("Off", CHAPTER.chunking_off()))


def test_both_states_have_one_length_and_one_height():
    pair = chapter_pair()
    for info in (pair.upper.info, pair.lower.info):
        assert info.right_end == pytest.approx(1.04 * 215.056)
        assert info.top_ms == pytest.approx(1.18 * 152.656)
        assert info.ghost is None  # the other state stands there itself


def test_words_tell_what_is_shared_once_and_each_states_own_beside_it():
    pair = chapter_pair()
    assert pair.title == "Longest stall 23.6 ms above, 153 ms below: 6.5×"
    assert pair.caption == ["step = 4 + 0.018·prefill + 0.05·decode ms, target 50 ms, s11"]
    assert pair.upper_words == (
        "8,192-token prompt, 1,024-token chunks, 24 streaming users",
        "longest stall 23.6 ms · TTFT 189 ms · 0 of 13 steps over target · 1,451 tok/s",
    )
    assert pair.lower_words == (
        "8,192-token prompt, whole, 24 streaming users",
        "longest stall 153 ms · TTFT 153 ms · 1 of 6 steps over target · 806 tok/s",
    )
    assert "On: 8,192-token prompt" in pair_alt(pair)
    assert "Off: 8,192-token prompt, whole" in pair_alt(pair)


def test_numbers_as_columns():
    columns = pair_columns(chapter_pair())
    assert columns["figure"][:3] == ["longest stall (ms)", "TTFT (ms)", "steps over target"]
    assert columns["On"] == pytest.approx([23.632, 189.056, 0, 13, 1450.784, 215.056])
    # 5 decode steps and the prompt's own, 24 tokens each, in 178.656 ms.
    assert columns["Off"] == pytest.approx([152.656, 152.656, 1, 6, 806.018, 178.656])


def test_alike_states_boast_of_nothing():
    equal = pair_info(side("On", CHAPTER.with_chunk_tokens(8192)), side("Off", CHAPTER))
    assert equal.title == "Longest stall 153 ms above, 23.6 ms below: 6.5×"
    same = pair_info(side("A", CHAPTER), side("Now", CHAPTER))
    assert same.title == "Longest stall 23.6 ms above, 23.6 ms below"
    alone = replace(CHAPTER, workload=replace(CHAPTER.workload, streaming_users=0))
    nobody = pair_info(side("A", alone), side("Now", alone.chunking_off()))
    assert nobody.title == "A above, now below"


def test_axes_must_be_the_same():
    with pytest.raises(ValueError, match="axis: by time above, by step below"):
        pair_info(side("A", CHAPTER), side("B", CHAPTER, Axis.STEP))


def axis_of(mark: dict[str, Any], key: str) -> str:
    return str(mark[key]).removesuffix(" domain")


@pytest.mark.parametrize(
    "lower",
    [
        CHAPTER.chunking_off(),
        # Longer than its budget: it never runs.
        replace(CHAPTER, limits=replace(CHAPTER.limits, token_budget=4096)).chunking_off(),
    ],
    ids=["whole", "never"],
)
def test_figure_is_valid_and_its_rows_do_not_overlap(lower: Experiment):
    spec = pair_figure(pair_info(side("A", CHAPTER), side("B", lower)))
    go.Figure(spec)
    layout = spec["layout"]
    rows = [layout[name]["domain"] for name in ("yaxis4", "yaxis3", "yaxis2", "yaxis")]
    edges = [edge for row in rows for edge in row]
    assert edges == sorted(edges)
    assert edges[0] >= 0
    assert edges[-1] <= 1
    assert layout["yaxis"]["range"] == layout["yaxis3"]["range"]
    drawn = {trace["yaxis"] for trace in spec["data"]}
    assert {"y", "y2", "y3"} <= drawn <= {"y", "y2", "y3", "y4"}
    names = [t["name"] for t in spec["data"] if "name" in t and t.get("showlegend", True)]
    assert len(names) == len(set(names))
    # Every label has its axis, and the axis that both share is named once.
    places = [axis_of(label, "yref") for label in layout["annotations"]]
    assert set(places) <= {"y", "y2", "y3", "y4", "paper"}
    assert places.count("paper") == 1
    wide = layout["meta"]["wide"]["annotations"]
    assert "1,024-token chunks" in wide[0]["text"]
    # A phone has room for less.
    assert "1,024-token chunks" not in layout["annotations"][0]["text"]
    assert layout["title"]["text"].startswith("<b>A, b</b>")
