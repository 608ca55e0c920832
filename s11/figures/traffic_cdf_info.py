"""The distributions of TTFT, ITL and TPOT of one or two runs, ready to be drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from s11.figures.traffic_look import TrafficRun, check_runs, run_names, traffic_caption
from s11.metrics import inter_token_gaps
from s11.words import ms

CELLS = 190
"""Into how many parts each axis of a panel is cut; a thinned curve is off by one at most."""

MARKED = (Fraction(50, 100), Fraction(90, 100), Fraction(99, 100))
MARK_NAMES = ("p50", "p90", "p99")

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A stepped cumulative distribution: `share` of all is at most `value_ms`.

    marks_ms: the values at which it reaches each of `MARKED` (inverted CDF); None: no data.
    within: the share of all that meets the target; None where there is none, or no data.
    total: how many there are: tokens for ITL, else requests.
    """

    name: str
    value_ms: Floats  # (points,) rising
    share: Floats  # (points,)
    marks_ms: tuple[float, ...] | None
    within: float | None
    total: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CdfPanel:
    """One quantity of every run."""

    title: str
    of: str  # what there is one of for each value
    target_ms: float | None
    curves: tuple[Curve, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CdfInfo:
    """Everything that the picture of the distributions draws."""

    title: str
    caption: list[str]
    panels: tuple[CdfPanel, ...]


def cdf_info(
    runs: Sequence[TrafficRun], *, itl_target_ms: float, ttft_target_ms: float | None
) -> CdfInfo:
    """Return the distributions of one run or two, held against the targets.

    TTFT is of the requests that got a first token, TPOT of those that got all of two tokens or
    more, ITL of every token but the first ones.

    Raises:
        ValueError: no run, or more than two.
    """
    check_runs(runs)
    panels = (
        _panel(runs, "TTFT", "requests", ttft_target_ms),
        _panel(runs, "ITL", "tokens", itl_target_ms),
        _panel(runs, "TPOT", "requests", None),
    )
    return CdfInfo(title=_title(panels[1]), caption=traffic_caption(runs), panels=panels)


def _panel(runs: Sequence[TrafficRun], title: str, of: str, target_ms: float | None) -> CdfPanel:
    curves = []
    for name, run in zip(run_names(runs), runs, strict=True):
        if title == "ITL":
            values_ms, weights = inter_token_gaps(run.result)
        else:
            values_ms = run.per_request.ttft_ms if title == "TTFT" else run.per_request.tpot_ms
            values_ms = values_ms[~np.isnan(values_ms)]
            weights = np.ones(len(values_ms), dtype=np.int64)
        curves.append(curve(name, values_ms, weights, target_ms=target_ms))
    return CdfPanel(title=title, of=of, target_ms=target_ms, curves=tuple(curves))


def curve(
    name: str, values_ms: Floats, weights: NDArray[np.int64], *, target_ms: float | None
) -> Curve:
    """Return the stepped distribution of values with whole weights, in few points.

    Values that nothing weighs are left out.
    """
    order = np.argsort(values_ms)
    values_ms, weights = values_ms[order], weights[order]
    values_ms, weights = values_ms[weights > 0], weights[weights > 0]
    if not len(values_ms):
        none = np.zeros(0)
        return Curve(name=name, value_ms=none, share=none, marks_ms=None, within=None, total=0)
    last = np.append(np.flatnonzero(np.diff(values_ms)), len(values_ms) - 1)
    value, reached = values_ms[last], np.cumsum(weights)[last]  # (different values,)
    total = int(reached[-1])
    needed = [-(-total * share.numerator // share.denominator) for share in MARKED]
    marks = np.searchsorted(reached, needed)  # (marks,)
    kept = _thinned(value, reached / total, always=marks)
    within = None
    if target_ms is not None:
        place = int(np.searchsorted(value, target_ms, side="right"))
        within = float(reached[place - 1]) / total if place else 0.0
    return Curve(
        name=name,
        value_ms=value[kept],
        share=reached[kept] / total,
        marks_ms=tuple(value[marks].tolist()),
        within=within,
        total=total,
    )


def _thinned(value: Floats, share: Floats, *, always: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return which points of a stepped curve to keep: its corners as far as an eye can tell.

    Of each cell of the value axis (a log one) the last point, of each cell of shares the
    first: what is left out lies within one cell of the steps through what is kept.
    """
    ends = np.array([0, len(value) - 1], dtype=np.int64)
    above = value > 0
    if not above.any():
        return np.unique(np.concatenate((ends, always)))
    levels = np.geomspace(value[above][0], value[-1], CELLS + 1)
    across = np.maximum(np.searchsorted(value, levels, side="right") - 1, 0)
    up = np.searchsorted(share, np.linspace(0, 1, CELLS + 1)[1:-1])
    return np.unique(np.concatenate((ends, always, across, up)))


def _title(itl: CdfPanel) -> str:
    """Return the finding, in 45 characters at most."""
    marks = [curve.marks_ms[-1] if curve.marks_ms else None for curve in itl.curves]
    if all(mark is None for mark in marks):
        return "Nobody streams"
    if len(marks) == 1:
        return f"P99 ITL {ms(marks[0])}"
    before, after = (ms(mark) for mark in marks)
    if before == after:
        return f"P99 ITL {before} in both"
    return f"P99 ITL: A {before}, B {after}"


def cdf_columns(info: CdfInfo) -> dict[str, list[object]]:
    """Return the curves' percentiles as a table, a row for each quantity and run."""
    columns: dict[str, list[object]] = {
        name: [] for name in ("quantity", "run", "values", "p50_ms", "p90_ms", "p99_ms", "within")
    }
    for panel in info.panels:
        for one in panel.curves:
            marks = one.marks_ms or (None, None, None)
            row = (panel.title, one.name, one.total, *marks, one.within)
            for name, cell in zip(columns, row, strict=True):
                columns[name].append(cell)
    return columns


def cdf_alt(info: CdfInfo) -> str:
    """Return the distributions' numbers for those who cannot see them."""
    told = []
    for panel in info.panels:
        for one in panel.curves:
            if one.marks_ms is None:
                told.append(f"{panel.title}, {one.name}: no value")
                continue
            marks = ", ".join(
                [f"{name} {ms(v)}" for name, v in zip(MARK_NAMES, one.marks_ms, strict=True)]
            )
            within = "" if one.within is None else f", {share_words(one.within)} within target"
            told.append(f"{panel.title}, {one.name}: {marks}{within}, of {one.total:,} {panel.of}")
    return f"Cumulative distributions. {info.title}. {'. '.join(info.caption)}. {'; '.join(told)}."


def share_words(share: float) -> str:
    """Return a share as people read it; only all is 100%, and only nothing is 0%."""
    if share in (0.0, 1.0):
        return f"{share:.0%}"
    if share < 0.001:
        return "<0.1%"
    return ">99.9%" if share > 0.999 else f"{share:.1%}"
