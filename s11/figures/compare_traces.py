"""The comparison's marks: few traces, each of one kind for all rows of all engines."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from s11.figures.compare_info import CompareInfo
from s11.figures.compare_places import ROW, BandPlaces
from s11.figures.compare_rows import CachedPrefix, RequestRow
from s11.figures.theme import (
    DECODE,
    FIXED,
    HAND_OVER,
    IDLE,
    INK,
    PAPER,
    PREEMPTED,
    PREFILL,
    STALL,
    Spec,
)

CACHED_WIDTH = 0.012  # of the axis
EDGE_ROOM, THIN_EDGE_ROOM = 0.012, 0.005  # of the axis: what is narrower would be all edge


class Mark(NamedTuple):
    """A horizontal bar: where it begins and how long it is on the axis, where it stands."""

    left: float
    width: float
    y: float


def bar_traces(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Return the rows' bars, the lowest first; kinds without a mark are left out."""
    rows = [
        (row, y)
        for band, place in zip(info.bands, where, strict=True)
        for row, y in zip(band.rows, place.rows, strict=True)
    ]

    def spans(kind: str) -> list[Mark]:
        return [
            Mark(span.start_ms / unit_ms, (span.end_ms - span.start_ms) / unit_ms, y)
            for row, y in rows
            for span in getattr(row, kind)
        ]

    cached = [
        Mark(hit.at_ms / unit_ms, cached_width_ms(hit, info.end_ms) / unit_ms, y)
        for row, y in rows
        for hit in row.cached
    ]
    chunks = _chunks(rows, unit_ms)
    kinds = [
        ("stall over target", spans("stalls"), ROW - 3, _STALL),
        ("queued", spans("queued"), 4.0, _QUEUED),
        ("preempted", spans("preempted"), 9.0, _PREEMPTED),
        ("KV hand-over", spans("hand_over"), 9.0, _HAND_OVER),
        ("prompt chunk", chunks, ROW - 7, _chunk_look(chunks, info.end_ms / unit_ms)),
        ("cached prefix", cached, ROW - 3, _CACHED),
    ]
    return [_bars(name, marks, thick, look) for name, marks, thick, look in kinds if marks]


def cached_width_ms(hit: CachedPrefix, axis_ms: float) -> float:
    """Return how much of a first chunk's bar the mark of its cached prefix covers."""
    return min(CACHED_WIDTH * axis_ms, hit.chunk_ms / 2)


def legend_traces(info: CompareInfo) -> list[Spec]:
    """Return what the legend says of lines and letters, and of the kinds of steps there are."""
    tick = {"symbol": "line-ns", "size": 12, "line": {"color": DECODE, "width": 3}}
    star = {"symbol": "star", "size": 11, "color": INK}
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [None],
            "y": [None],
            "marker": marker,
            "hoverinfo": "skip",
        }
        for name, marker in (("token", tick), ("first token", star))
    ] + [
        cells([None], [None], [None], None, look)
        | {"name": name, "showlegend": True, "hoverinfo": "skip"}
        for name, look in _step_kinds(info)
    ]


def _step_kinds(info: CompareInfo) -> list[tuple[str, Spec]]:
    """Return how the strips show each kind of step that they hold."""
    strips = [strip for band in info.bands for strip in band.strips]
    kinds = [
        ("prefill step", {"color": PREFILL}, [(s.prefill & ~s.decode).any() for s in strips]),
        ("decode step", STEP_DECODE, [(s.decode & ~s.prefill).any() for s in strips]),
        ("mixed step", _STEP_MIXED, [(s.prefill & s.decode).any() for s in strips]),
    ]
    return [(name, look) for name, look, there in kinds if any(there)]


def star_trace(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Return the first tokens' stars."""
    stars = [
        (row.first_token_ms / unit_ms, y)
        for band, place in zip(info.bands, where, strict=True)
        for row, y in zip(band.rows, place.rows, strict=True)
        if row.first_token_ms is not None
    ]
    if not stars:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "showlegend": False,
            "x": [x for x, _ in stars],
            "y": [y for _, y in stars],
            "marker": {"symbol": "star", "size": 13, "color": INK, "line": _EDGE},
            "cliponaxis": False,
            "hoverinfo": "skip",
        }
    ]


def _chunks(rows: Iterable[tuple[RequestRow, float]], unit_ms: float) -> list[Mark]:
    return [
        Mark(left / unit_ms, width / unit_ms, y)
        for row, y in rows
        for part in row.passes
        for left, width in zip(part.left_ms.tolist(), part.width_ms.tolist(), strict=True)
    ]


def _chunk_look(chunks: list[Mark], end: float) -> Spec:
    """Return orange with a white edge, thin where a bar is narrow."""
    widths = np.array([chunk.width for chunk in chunks])
    return {"color": PREFILL, "line": {"color": PAPER, "width": edges(widths, end)}}


def edges(widths: NDArray[np.float64], end: float) -> NDArray[np.float64]:
    """Return how wide a white edge each bar bears, in px."""
    thin = np.where(widths >= THIN_EDGE_ROOM * end, 0.5, 0.0)
    return np.where(widths >= EDGE_ROOM * end, 1.0, thin)


def _bars(name: str, marks: list[Mark], thick: float, look: Spec) -> Spec:
    left, width, y = (np.array(column) for column in zip(*marks, strict=True))
    return cells(left, width, y, thick, look) | {
        "name": name,
        "showlegend": True,
        "hoverinfo": "skip",
    }


def cells(left: Any, width: Any, y: Any, thick: Any, marker: Spec) -> Spec:
    """Return one trace of horizontal bars, each with its own thickness."""
    return {
        "type": "bar",
        "orientation": "h",
        "base": left,
        "x": width,
        "y": y,
        "width": thick,
        "marker": marker,
        "showlegend": False,
    }


def ticks(rows: Iterable[tuple[Any, float]]) -> list[tuple[tuple[float, float], ...]]:
    """Return a short upright line for each token; of very close ones, the first."""
    half = (ROW - 8) / 2
    return [((at, y - half), (at, y + half)) for times, y in rows for at in times.tolist()]


def spread(times_ms: Any, *, least_ms: float) -> Any:
    """Return times without those that follow the last by less than `least_ms`."""
    if len(times_ms) < 2 or least_ms <= 0:
        return times_ms
    bucket = np.floor(times_ms / least_ms)
    return times_ms[np.concatenate(([True], bucket[1:] != bucket[:-1]))]


STEP_DECODE: Spec = {
    "color": DECODE,
    "pattern": {
        "shape": "/",
        "fillmode": "overlay",
        "fgcolor": PAPER,
        "size": 5,
        "solidity": 0.25,
    },
}
_STEP_MIXED: Spec = {
    "color": DECODE,
    "pattern": {
        "shape": "-",
        "fillmode": "overlay",
        "fgcolor": PREFILL,
        "fgopacity": 1,
        "size": 14,
        "solidity": 0.5,
    },
}
_EDGE: Spec = {"color": PAPER, "width": 1}
_CACHED: Spec = {
    "color": PAPER,
    "line": {"color": IDLE, "width": 1.5},
    "pattern": {"shape": "x", "fgcolor": IDLE, "bgcolor": PAPER, "size": 5, "solidity": 0.4},
}
_QUEUED: Spec = {"color": FIXED, "line": {"width": 0}}
_PREEMPTED: Spec = {
    "color": PREEMPTED,
    "line": {"width": 0},
    "pattern": {
        "shape": "\\",
        "fillmode": "overlay",
        "fgcolor": PAPER,
        "size": 6,
        "solidity": 0.3,
    },
}
_HAND_OVER: Spec = {
    "color": HAND_OVER,
    "line": {"width": 0},
    "pattern": {"shape": ".", "fillmode": "overlay", "fgcolor": PAPER, "size": 5, "solidity": 0.35},
}
_STALL: Spec = {
    "color": "rgba(213,94,0,0.16)",
    "line": {"width": 0},
    "pattern": {"shape": "/", "fgcolor": STALL, "size": 8, "solidity": 0.12},
}
