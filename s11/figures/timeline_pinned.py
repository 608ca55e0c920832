"""The pinned state A on the timeline: outlined steps above, outlined rows below the streams."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.theme import INK, PAPER, Spec
from s11.figures.timeline_marks import (
    LABEL_ROOM,
    MOST_TICKS,
    TICK_HALF,
    Point,
    bars,
    label,
    merged,
    segments,
)
from s11.words import ms

Floats = NDArray[np.float64]

MOST_OUTLINED = 300  # steps; of more, the skyline
TICK_WIDTH = 0.004  # of the axis
LOW = 0.15  # of the axis: the label stands above the step, clear of the axis
LINE: Spec = {"color": INK, "width": 1.2}
OUTLINED: Spec = {"width": 0.6, "marker": {"color": PAPER, "line": LINE}}


@dataclass(frozen=True, slots=True, eq=False)
class PinnedMarks:
    """What is drawn of A, on the axis of the run that is held against it."""

    left: Floats  # (marks,) of its steps
    right: Floats  # (marks,)
    duration_ms: Floats  # (marks,)
    chunk_left: Floats  # (chunks,) of its longest prompt
    chunk_width: Floats  # (chunks,)
    first_token: float | None
    ttft_ms: float | None
    token_marks: Floats  # (tokens of one stream,) none where nobody streams
    caption: tuple[str, ...]

    @property
    def end(self) -> float:
        """Where its last step ends."""
        return float(self.right[-1]) if len(self.right) else 0.0


def skyline(marks: PinnedMarks) -> str:
    """Return the path of A's steps: each outlined, or only their tops where they are many."""
    columns = (marks.left.tolist(), marks.right.tolist(), marks.duration_ms.tolist())
    tops = [
        f"{left:.8g},{top:.8g}L{right:.8g},{top:.8g}"
        for left, right, top in zip(*columns, strict=True)
    ]
    if not tops:
        return ""
    if len(tops) <= MOST_OUTLINED:
        edges = zip(columns[0], tops, columns[1], strict=True)
        return "".join(f"M{left:.8g},0L{top}L{right:.8g},0" for left, top, right in edges)
    return f"M{columns[0][0]:.8g},0L{'L'.join(tops)}L{columns[1][-1]:.8g},0"


def pinned_line(marks: PinnedMarks) -> list[Spec]:
    """Return the outline of A's steps, none where it has none."""
    path = skyline(marks)
    return [{"type": "path", "path": path, "xref": "x", "yref": "y", "line": LINE}] if path else []


def pinned_label(marks: PinnedMarks, *, right_end: float, top_ms: float) -> list[Spec]:
    """Name A at its longest step, at the picture's top where that lies above it."""
    if not len(marks.left):
        return []
    longest = int(np.argmax(marks.duration_ms))
    height_ms = float(marks.duration_ms[longest])
    beyond = height_ms > top_ms
    left, right = float(marks.left[longest]), float(marks.right[longest])
    low = height_ms < LOW * top_ms
    on_it = right - left > LABEL_ROOM * right_end
    return [
        {
            "text": f"A: {ms(height_ms)}" + (" ↑" if beyond else ""),
            "x": left if on_it else right,
            "y": top_ms * 0.97 if beyond else height_ms,
            "xanchor": "left",
            "yanchor": "bottom" if low else "top",
            "xshift": 4,
            "yshift": 2 if low else -2,
            "showarrow": False,
            "font": {"size": 12, "color": INK},
            "bgcolor": PAPER,
            "xref": "x",
            "yref": "y",
            "name": f"from {right:.8g}",
        }
    ]


def pinned_rows(marks: PinnedMarks, *, prompt: float | None, user: float | None) -> list[Spec]:
    """Return A's chunks, and its tokens where they are too many for ticks, on their rows."""
    traces = []
    if prompt is not None:
        left, width = merged(marks.chunk_left, marks.chunk_width)
        traces.append(bars(left, width, np.full(len(left), prompt), OUTLINED))
    if user is not None and len(marks.token_marks) > MOST_TICKS:
        first, last = float(marks.token_marks[0]), float(marks.token_marks[-1])
        traces.append(bars([first], [last - first], [user], OUTLINED))
    return traces


def pinned_ticks(marks: PinnedMarks, user: float | None, right_end: float) -> list[Spec]:
    """Return A's tokens: hollow, where the streams' own are filled."""
    if user is None or len(marks.token_marks) > MOST_TICKS:
        return []
    half, low, high = TICK_WIDTH * right_end / 2, user - TICK_HALF, user + TICK_HALF
    ticks: list[tuple[Point, ...]] = [
        ((at - half, low), (at - half, high), (at + half, high), (at + half, low), (at - half, low))
        for at in marks.token_marks.tolist()
    ]
    return segments(ticks, yref="y2", line=LINE)


def pinned_ttft(marks: PinnedMarks, prompt: float | None, right_end: float) -> list[Spec]:
    """Name A's TTFT beside its chunks, or on them where there is no room."""
    first = marks.first_token
    if prompt is None or first is None:
        return []
    x, side = first, {"xanchor": "left", "xshift": 8}
    if first > (1 - LABEL_ROOM) * right_end:
        x, side = (float(marks.chunk_left[0]) + first) / 2, {}
    return [label(f"TTFT {ms(marks.ttft_ms)}", x, prompt, INK, seen_from=first) | side]
