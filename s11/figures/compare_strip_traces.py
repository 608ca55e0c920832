"""The comparison's step strips: prefill above, decodes below, and the stories to hover over."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from s11.figures.compare_info import CompareInfo
from s11.figures.compare_places import ROW, STRIP, STRIP_BAR, BandPlaces
from s11.figures.compare_strips import Strip
from s11.figures.compare_traces import STEP_DECODE, cells, edges
from s11.figures.theme import MUTED, PAPER, PREFILL, Spec

Floats = NDArray[np.float64]

BARE = "rgba(0,0,0,0)"


class Cells(NamedTuple):
    """Bars along an axis: where each begins, how long and how thick it is, where it stands."""

    left: Floats
    width: Floats
    y: Floats
    thick: Floats


def strip_traces(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Return the strips; a step that carries both is orange above and blue below.

    The cells to hover over are a trace of their own, without colour: where an engine has one
    strip, they reach over its whole band.
    """
    found: dict[str, list[Cells]] = {"prefill": [], "decode": [], "empty": [], "hover": []}
    stories: list[str] = []
    for band, place in zip(info.bands, where, strict=True):
        for strip, y in zip(band.strips, place.strips, strict=True):
            for kind, part in _parts(strip, y, unit_ms).items():
                found[kind].append(part)
            alone = len(band.strips) == 1 and place.rows
            found["hover"].append(_hover(strip, y, place.rows[0] if alone else None, unit_ms))
            stories += strip.stories
    end = info.end_ms / unit_ms
    traces = []
    for kind, look in _LOOKS.items():
        bars = _joined(found[kind])
        if len(bars.left):
            marker = {**look, "line": {"color": PAPER, "width": edges(bars.width, end)}}
            traces.append(cells(*bars, marker) | {"hoverinfo": "skip"})
    if stories:
        traces.append(
            cells(*_joined(found["hover"]), {"color": BARE, "line": {"width": 0}})
            | {
                "name": "step stories",
                "hovertext": stories,
                "hovertemplate": "%{hovertext}<extra></extra>",
                "hoverlabel": {"align": "left", "font": {"size": 12}},
            }
        )
    return traces


def _parts(strip: Strip, y: float, unit_ms: float) -> dict[str, Cells]:
    both, none = strip.prefill & strip.decode, ~(strip.prefill | strip.decode)
    parts = {}
    for kind, mine, shift in (
        ("prefill", strip.prefill, -STRIP_BAR / 4),
        ("decode", strip.decode, STRIP_BAR / 4),
        ("empty", none, 0.0),
    ):
        parts[kind] = Cells(
            strip.left_ms[mine] / unit_ms,
            strip.width_ms[mine] / unit_ms,
            np.where(both, y + shift, y)[mine],
            np.where(both, STRIP_BAR / 2, STRIP_BAR)[mine],
        )
    return parts


def _hover(strip: Strip, y: float, first_row: float | None, unit_ms: float) -> Cells:
    top = y - STRIP / 2 if first_row is None else first_row - ROW / 2
    bottom, full = y + STRIP / 2, np.ones(len(strip.left_ms))
    return Cells(
        strip.left_ms / unit_ms,
        strip.width_ms / unit_ms,
        full * (top + bottom) / 2,
        full * (bottom - top),
    )


def _joined(parts: list[Cells]) -> Cells:
    if not parts:
        return Cells(*(np.zeros(0) for _ in range(4)))
    return Cells(*(np.concatenate(column) for column in zip(*parts, strict=True)))


_LOOKS: dict[str, Spec] = {
    "prefill": {"color": PREFILL},
    "decode": STEP_DECODE,
    "empty": {
        "color": PAPER,
        "pattern": {"shape": "x", "fgcolor": MUTED, "bgcolor": PAPER, "size": 5, "solidity": 0.2},
    },
}
