"""The highest rate that holds, by chunk size: the best chunk is a property of the targets."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s11.figures.chunk_size_info import octaves, short_caption
from s11.figures.theme import INK, STALL_TEXT, Spec, axis
from s11.figures.traffic_capacity import ROOM, framed, nothing_tried
from s11.figures.traffic_look import LINE_LOOKS, Look, legend_name
from s11.words import count

WHOLE = "whole prompts"
WHOLE_AFTER = 2  # of the largest chunk size: where whole prompts stand on the axis
WHOLE_DASH = "1px,4px"


@dataclass(frozen=True, slots=True, kw_only=True)
class WholePrompts:
    """The highest rate that holds without chunking; None: none does."""

    highest_per_s: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCurve:
    """For one set of targets, the highest rate that holds at each chunk size; None: none does.

    whole_prompts: the same without chunking; None where that was not tried.
    """

    label: str
    chunk_tokens: tuple[int, ...]
    highest_per_s: tuple[float | None, ...]
    whole_prompts: WholePrompts | None = None

    @property
    def best(self) -> int | None:
        """The place of the chunk size with the highest rate, the first of several."""
        rates = [-1.0 if rate is None else rate for rate in self.highest_per_s]
        return None if max(rates, default=-1.0) < 0 else rates.index(max(rates))


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCapacityInfo:
    """The highest rate against the chunk size, a line for each set of targets."""

    title: str
    caption: list[str]
    curves: tuple[TargetCurve, ...]


def chunk_capacity_info(
    curves: Sequence[TargetCurve], *, caption: Sequence[str]
) -> ChunkCapacityInfo:
    """Return what to draw of the highest rates by chunk size."""
    best = [c.chunk_tokens[c.best] for c in curves if c.best is not None]
    if not any(curve.chunk_tokens for curve in curves):
        title = "Nothing was tried yet"
    elif not best:
        title = "No tried rate holds the targets"
    elif len(set(best)) == 1:
        title = f"Best chunk size: {count(best[0], 'token')}"
    else:
        title = f"Best chunk: {min(best):,} to {max(best):,}, by target"
    return ChunkCapacityInfo(
        title=title, caption=[short_caption(line) for line in caption], curves=tuple(curves)
    )


def chunk_capacity_figure(info: ChunkCapacityInfo) -> Spec:
    """Return the Plotly spec; a ring is the best chunk size for its targets, a cross is none."""
    sizes = sorted({size for curve in info.curves for size in curve.chunk_tokens}) or [64, 128]
    rates = [rate for curve in info.curves for rate in curve.highest_per_s if rate is not None]
    rates += [rate for _, rate in _whole(info) if rate is not None]
    marks, words = octaves(sizes[0], sizes[-1], most=8)
    whole_at = WHOLE_AFTER * sizes[-1]
    last = sizes[-1]
    if _whole(info):
        last, marks, words = whole_at, [*marks, whole_at], [*words, WHOLE.split()[0]]
    extra = ["best chunk size", "no rate holds"]
    names = [curve.label for curve in info.curves]
    spec = framed(
        info.title,
        info.caption,
        names=[*names, *extra],
        meta={
            "figure": "traffic-chunk-capacity",
            "best_tokens": {
                c.label: None if c.best is None else c.chunk_tokens[c.best] for c in info.curves
            },
            "whole_per_s": {curve.label: rate for curve, rate in _whole(info)},
        },
    )
    spec |= {
        "xaxis": axis(
            type="log",
            range=[math.log10(sizes[0] / 1.2), math.log10(last * 1.2)],
            tickvals=marks,
            ticktext=words,
            title={"text": "chunk size (tokens)"},
        ),
        "yaxis": axis(
            range=[-0.04 * max(rates, default=1.0), ROOM * max(rates, default=1.0)],
            title={"text": "highest rate that holds (requests per s)"},
            tickformat=",",
        ),
        "annotations": [*_whole_label(info, whole_at)]
        if any(curve.chunk_tokens for curve in info.curves)
        else [nothing_tried()],
    }
    data = [
        _target_line(curve, LINE_LOOKS[place % len(LINE_LOOKS)])
        for place, curve in enumerate(info.curves)
    ]
    data += [
        _whole_line(rate, sizes[0], whole_at, curve, LINE_LOOKS[place % len(LINE_LOOKS)])
        for place, curve in enumerate(info.curves)
        for rate in [curve.whole_prompts.highest_per_s if curve.whole_prompts else None]
        if rate is not None
    ]
    return {"data": [*data, *_best_and_none(info, whole_at)], "layout": spec}


def _whole(info: ChunkCapacityInfo) -> list[tuple[TargetCurve, float | None]]:
    """Return the curves where whole prompts were tried, with their highest rate."""
    return [(c, c.whole_prompts.highest_per_s) for c in info.curves if c.whole_prompts]


def _whole_line(
    rate_per_s: float, smallest: int, whole_at: int, curve: TargetCurve, look: Look
) -> Spec:
    """Return a dotted line at a rate of whole prompts, from its open mark over all chunk sizes."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": f"{legend_name(curve.label)}, {WHOLE}",
        "showlegend": False,
        "x": np.array([smallest, whole_at]),
        "y": np.array([rate_per_s, rate_per_s]),
        "line": {"color": look.colour, "width": 1.8, "dash": WHOLE_DASH},
        "marker": {
            "color": look.colour,
            "size": [0, 11],
            "symbol": f"{look.symbol}-open",
            "line": {"width": 2},
        },
        "hovertemplate": f"{legend_name(curve.label)}<br>{WHOLE}: "
        "up to %{y:,.2f}/s<extra></extra>",
    }


def _whole_label(info: ChunkCapacityInfo, whole_at: int) -> list[Spec]:
    """Return what stands over the marks of whole prompts, if there are any."""
    if not _whole(info):
        return []
    return [
        {
            "text": WHOLE,
            "x": math.log10(whole_at * 1.17),
            "xref": "x",
            "xanchor": "right",
            "y": 1,
            "yref": "paper",
            "yanchor": "top",
            "showarrow": False,
            "font": {"size": 13, "color": INK},
        }
    ]


def _target_line(curve: TargetCurve, look: Look) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": legend_name(curve.label),
        "x": np.array(curve.chunk_tokens, np.int32),
        "y": np.array([math.nan if rate is None else rate for rate in curve.highest_per_s]),
        "line": look.line(),
        "marker": {"color": look.colour, "size": 8, "symbol": look.symbol},
        "hovertemplate": f"{legend_name(curve.label)}<br>"
        "%{x:,} tokens: up to %{y:,.2f}/s<extra></extra>",
    }


def _best_and_none(info: ChunkCapacityInfo, whole_at: int) -> list[Spec]:
    """Return the rings around the best sizes, and crosses on the axis where no rate holds."""
    best = [
        (curve.chunk_tokens[curve.best], curve.highest_per_s[curve.best])
        for curve in info.curves
        if curve.best is not None
    ]
    none: list[tuple[float, float]] = [
        (size, 0.0)
        for curve in info.curves
        for size, rate in zip(curve.chunk_tokens, curve.highest_per_s, strict=True)
        if rate is None
    ]
    none += [(whole_at, 0.0) for _, rate in _whole(info) if rate is None]
    ring = {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2}}
    cross = {"symbol": "x-thin", "size": 8, "line": {"width": 2, "color": STALL_TEXT}}
    traces: list[Spec] = []
    for name, points, marker in (("best chunk size", best, ring), ("no rate holds", none, cross)):
        if points:
            traces.append(
                {
                    "type": "scatter",
                    "mode": "markers",
                    "name": name,
                    "x": np.array([size for size, _ in points], np.float64),
                    "y": np.array([rate for _, rate in points], np.float64),
                    "marker": marker,
                    "cliponaxis": False,
                    "hoverinfo": "skip",
                }
            )
    return traces
