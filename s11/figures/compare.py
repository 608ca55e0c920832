"""Schedulers side by side: a band for each engine on one time axis, one figure."""

from __future__ import annotations

from html import escape

import numpy as np
from numpy.typing import NDArray

from s11.figures.compare_info import CompareInfo
from s11.figures.compare_labels import (
    LEFT_MARGIN,
    axis_label,
    notes,
    row_labels,
    titles,
    words,
)
from s11.figures.compare_places import BandPlaces, placed_rows, places, tick_names
from s11.figures.compare_rows import RequestRow
from s11.figures.compare_strip_traces import strip_traces
from s11.figures.compare_traces import (
    bar_traces,
    legend_traces,
    spread,
    star_trace,
    ticks,
)
from s11.figures.theme import (
    DECODE,
    GRID,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.figures.timeline_marks import segments

RIGHT_MARGIN = 14
AXIS_HEIGHT, LEGEND_ROW = 26, 19
MOST_LARGE_LETTERS, SMALLER_TITLE = 37, 16  # of a title at 390 px
MOST_TICKS_A_ROW, FEW_TICKS = 600, 120


def compare_figure(info: CompareInfo) -> Spec:
    """Return the Plotly spec of the comparison."""
    where = places(info)
    unit_ms = 1000.0 if info.in_seconds else 1.0
    end = max(info.end_ms / unit_ms, 1e-6)
    traces = [
        *bar_traces(info, where, unit_ms),
        *strip_traces(info, where, unit_ms),
        *words(info, where, unit_ms),
        *star_trace(info, where, unit_ms),
        *legend_traces(info),
    ]
    plot = where[-1].bottom if where else 60.0
    legend_rows = -(-sum(bool(trace.get("showlegend", True)) for trace in traces) // 2)
    spec = layout(
        title=escape(info.title, quote=False),
        caption=[escape(line, quote=False) for line in info.caption],
        meta={
            "figure": "compare",
            "engines": [band.label for band in info.bands],
            "longest_stall_ms": [band.longest_stall_ms for band in info.bands],
            "end_ms": info.end_ms,
        },
        height=0,
    )
    if len(info.title) > MOST_LARGE_LETTERS:
        spec["title"]["font"]["size"] = SMALLER_TITLE
    margin = {
        **spec["margin"],
        "l": LEFT_MARGIN,
        "r": RIGHT_MARGIN,
        "b": AXIS_HEIGHT + LEGEND_ROW * legend_rows + 12,
    }
    height = int(margin["t"] + plot + margin["b"])
    spec |= {
        "margin": margin,
        "height": height,
        "barmode": "overlay",
        "bargap": 0,
        "hovermode": "closest",
        "hoverdistance": 4,
        "showlegend": True,
        "legend": {
            **bottom_legend(),
            "y": (margin["b"] - AXIS_HEIGHT) / height,
            "yanchor": "top",
        },
        "xaxis": axis(range=[-0.018 * end, 1.012 * end], anchor="y", tickformat=",", nticks=9),
        "yaxis": axis(
            range=[plot, 0],
            showgrid=False,
            showline=False,
            fixedrange=True,
            **dict(zip(("tickvals", "ticktext"), tick_names(info, where), strict=True)),
        ),
        "shapes": [*_band_lines(where), *_token_lines(info, where, unit_ms)],
        "annotations": [
            *titles(info, where),
            *row_labels(info, where, unit_ms),
            *notes(info, where, unit_ms),
            axis_label(info),
        ],
    }
    return {"data": traces, "layout": spec}


def _token_lines(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Return the token ticks, one path; more than a row can show apart are thinned out."""
    least_ms = info.end_ms / MOST_TICKS_A_ROW
    rows = [
        (spread(_after_first(row), least_ms=least_ms) / unit_ms, y)
        for row, y in placed_rows(info, where)
    ]
    most = max([len(times) for times, _ in rows], default=0)
    width = 2.2 if most <= FEW_TICKS else 1.2
    path = segments(ticks(rows), yref="y", line={"color": DECODE, "width": width})
    return [shape | {"layer": "below"} for shape in path]  # stars and labels stand upon it


def _after_first(row: RequestRow) -> NDArray[np.float64]:
    """Return when a request's tokens appeared, the first aside: that is a star."""
    return row.tokens_ms if row.first_token_ms is None else row.tokens_ms[1:]


def _band_lines(where: list[BandPlaces]) -> list[Spec]:
    """Part the bands by a line from edge to edge."""
    return [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": place.top - 8,
            "y1": place.top - 8,
            "line": {"color": GRID, "width": 1.5},
        }
        for place in where[1:]
    ]
