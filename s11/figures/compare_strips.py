"""The step strips of a band: a cell for each step, with its story to hover over."""

from __future__ import annotations

import textwrap
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.results import Result
from s11.step_story import StepStory, step_stories

Floats = NDArray[np.float64]

MOST_CELLS = 300
HOVER_LETTERS, MOST_HOVER_LINES = 52, 15


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """The steps of one worker; where they are many, a cell stands for a few.

    A cell's story is that of its longest step.
    """

    name: str
    left_ms: Floats  # (cells,)
    width_ms: Floats  # (cells,)
    prefill: NDArray[np.bool_]  # (cells,) whether any of its steps carries prompt tokens
    decode: NDArray[np.bool_]  # (cells,) whether any of its steps carries decodes
    stories: tuple[str, ...]  # (cells,) lines parted by <br>
    steps_per_cell: int


def strips(experiment: Experiment, result: Result) -> tuple[Strip, ...]:
    """Return a run's strip, or the two of a disaggregated deployment."""
    if result.prefill_worker is None:
        return (_strip("steps", experiment, result),)
    return (
        _strip("prefill steps", experiment, result.prefill_worker),
        _strip("decode steps", experiment, result),
    )


def _strip(name: str, experiment: Experiment, result: Result) -> Strip:
    steps = result.steps
    per_cell = max(1, -(-len(steps) // MOST_CELLS))
    starts = np.arange(0, len(steps), per_cell)
    ends = np.minimum(starts + per_cell, len(steps)) - 1
    padded = np.full(len(starts) * per_cell, -1.0)
    padded[: len(steps)] = steps.duration_ms
    chosen = starts + padded.reshape(-1, per_cell).argmax(axis=1)
    told = step_stories(experiment, result, chosen.tolist())
    bounds = zip(starts.tolist(), ends.tolist(), told, strict=True)
    return Strip(
        name=name,
        left_ms=steps.start_ms[starts],
        width_ms=steps.end_ms[ends] - steps.start_ms[starts],
        prefill=_any(steps.prefill_tokens > 0, starts),
        decode=_any(steps.decode_tokens > 0, starts),
        stories=tuple([hover_text(story, first, last) for first, last, story in bounds]),
        steps_per_cell=per_cell,
    )


def _any(marked: NDArray[np.bool_], starts: NDArray[np.int64]) -> NDArray[np.bool_]:
    if not len(starts):
        return np.zeros(0, dtype=bool)
    return np.logical_or.reduceat(marked, starts)


def hover_text(story: StepStory, first: int, last: int) -> str:
    """Return a story as lines that fit 390 px; `first` to `last` are the steps of its cell."""
    lines = [f"<b>{_plain(story.head)}</b>"]
    if first < last:
        lines.insert(0, f"The longest of steps {first + 1:,} to {last + 1:,}:")
    for sentence in story.lines:
        lines += textwrap.wrap(_plain(sentence), HOVER_LETTERS, subsequent_indent="   ")
    if len(lines) > MOST_HOVER_LINES:
        lines = [*lines[: MOST_HOVER_LINES - 1], "… the table below has the rest"]
    return "<br>".join(line.replace("   ", "&nbsp;&nbsp;") for line in lines)


def _plain(text: str) -> str:
    """Return text that Plotly shows as it is: names come from links."""
    return text.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;")
