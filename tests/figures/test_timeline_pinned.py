"""The pinned state A on the timeline: its outline, its rows, and the axes that hold both."""

from typing import Any

import numpy as np
import plotly.graph_objects as go
import pytest

from s11 import Experiment, measure
from s11.explain import explain
from s11.figures.timeline import timeline_figure
from s11.figures.timeline_info import Axis, Pinned, TimelineInfo, timeline_info
from s11.figures.timeline_pinned import PinnedMarks, skyline
from s11.simulator import simulate

CHAPTER = Experiment()


def info(experiment: Experiment, pinned: Experiment, **view: Any) -> TimelineInfo:
    result, whole, its = map(simulate, (experiment, experiment.chunking_off(), pinned))
    metrics, other, held = (measure(r, itl_target_ms=50.0) for r in (result, whole, its))
    told = explain(experiment, result, metrics, whole=other)
    against = Pinned(pinned, its, held)
    return timeline_info(experiment, result, told, whole=whole, pinned=against, **view)


def figure(shown: TimelineInfo) -> dict[str, Any]:
    return timeline_figure(shown, metrics=measure(simulate(CHAPTER), itl_target_ms=50.0))


def marks(steps: int) -> PinnedMarks:
    none = np.zeros(0)
    left = np.arange(float(steps))
    return PinnedMarks(
        left=left,
        right=left + 1,
        duration_ms=left + 2,
        chunk_left=none,
        chunk_width=none,
        first_token=None,
        ttft_ms=None,
        token_marks=none,
        caption=(),
    )


def test_each_step_is_outlined():
    assert skyline(marks(2)) == "M0,0L0,2L1,2L1,0M1,0L1,3L2,3L2,0"
    assert skyline(marks(0)) == ""


def test_many_steps_are_one_skyline():
    path = skyline(marks(301))
    assert path.startswith("M0,0L0,2L1,2L1,3L2,3L")
    assert path.endswith("L301,302L301,0")
    assert path.count("M") == 1


def test_a_is_drawn_in_place_of_chunking_off():
    """Chunking off: a step of 152.656 ms after two of 5.2; then three of 5.2."""
    shown = info(CHAPTER, CHAPTER.chunking_off())
    assert shown.ghost is None
    assert shown.pinned is not None
    assert shown.pinned.duration_ms.tolist() == pytest.approx([5.2, 5.2, 152.656, 5.2, 5.2, 5.2])
    assert shown.pinned.first_token == pytest.approx(163.056)
    assert shown.pinned.token_marks.tolist() == pytest.approx(
        [0, 5.2, 10.4, 163.056, 168.256, 173.456, 178.656]
    )
    texts = [note["text"] for note in figure(shown)["layout"]["annotations"]]
    assert "A: 153 ms" in texts
    assert "chunking off: 153 ms" not in texts


@pytest.mark.parametrize("axis", Axis)
def test_axes_hold_both_and_do_not_depend_on_the_chunk(axis: Axis):
    slow = CHAPTER.with_chunk_tokens(64)  # 128 steps of 6.352 ms
    shown = [info(CHAPTER.with_chunk_tokens(n), slow, axis=axis) for n in (512, 1024, 8192)]
    assert len({one.right_end for one in shown}) == 1
    assert len({one.top_ms for one in shown}) == 1
    for one in shown:
        assert one.pinned is not None
        assert one.right_end >= one.pinned.end == one.ends
        go.Figure(figure(one))  # raises on any unknown name or impossible value


def test_rows_of_a_stand_below_the_streams():
    labels = figure(info(CHAPTER, CHAPTER))["layout"]["yaxis2"]["ticktext"]
    assert labels[-3:] == ["+ 20 alike", "A: prompt", "A: user"]


def test_labels_say_from_when_on_they_are_shown_while_it_plays():
    """The first token of 1,024-token chunks comes at 10.4 + 8 x 23.632 = 199.456 ms."""
    layout = figure(info(CHAPTER, CHAPTER))["layout"]
    names = {note["text"]: note.get("name") for note in layout["annotations"]}
    assert names["TTFT 189 ms"] == "from 199.456"
    assert names["ITL target 50 ms"] is None
    assert layout["meta"]["plays_until"] == pytest.approx(215.056)
