"""The marks that the timeline's rows are made of: bars, broken lines, labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from s11.figures.theme import PAPER, Spec

MOST_CHUNK_BARS = 300
MOST_TICKS = 240
LABEL_ROOM = 0.4  # of the axis: "TTFT 189 ms" at 390 px
TICK_HALF = 0.34

Point = tuple[float, float]


def segments(lines: Iterable[tuple[Point, ...]], *, yref: str, line: Spec) -> list[Spec]:
    """Return one path of several broken lines in data coordinates, none where there are none."""
    path = "".join("M" + "L".join(f"{x:.8g},{y:.8g}" for x, y in points) for points in lines)
    if not path:
        return []
    return [{"type": "path", "path": path, "xref": "x", "yref": yref, "line": line}]


def bars(left: Any, width: Any, place: Any, look: Spec) -> Spec:
    """Return one trace of bars that lie on the rows of the lower part."""
    return {
        "type": "bar",
        "orientation": "h",
        "showlegend": False,
        "base": left,
        "x": width,
        "y": place,
        "hoverinfo": "skip",
        "xaxis": "x",
        "yaxis": "y2",
        **look,
    }


def merged(left: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the chunks' left edges and widths, all as one where they are very many."""
    if len(left) <= MOST_CHUNK_BARS:
        return left, width
    return left[:1], (left + width)[-1:] - left[:1]


def label(text: str, x: float, y: float, colour: str, *, seen_from: float) -> Spec:
    """Return a label; while the timeline plays, it is shown from `seen_from` on."""
    return {
        "name": f"from {seen_from:.8g}",
        "text": text,
        "x": x,
        "y": y,
        "xref": "x",
        "yref": "y2",
        "showarrow": False,
        "font": {"size": 13 if text.startswith("<b>") else 12, "color": colour},
        "bgcolor": PAPER,
        "borderpad": 1,
    }
