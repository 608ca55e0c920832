"""The mask of one chunk as a picture."""

from __future__ import annotations

import numpy as np

from s11.figures.mask_info import Cell, MaskInfo, span
from s11.figures.theme import INK, MUTED, PAPER, PREFILL, STALL, Spec, axis, bottom_legend, layout

# The cells are pixels, which the dark twin leaves alone. Neighbours of the theme's colours, so
# that the legend's squares are left alone as well and always match them.
CACHED_CELL, CHUNK_CELL, WRONG_CELL = "#0073B3", PREFILL, "#D65F00"
NO_COLOUR = "rgba(0,0,0,0)"

HEIGHT = 440
FEWEST_ROWS = 8
WIDE = 48  # columns
NARROWEST_PLOT, LOWEST_PLOT = 285, 250  # px, on a phone
TITLE_BASELINE, STRIP = 24, 5  # px
LEGEND_ENTRY = 98  # px: two in a row on a phone


def mask_figure(info: MaskInfo) -> Spec:
    """Return the Plotly spec of the mask."""
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "mask",
            "chunk_tokens": info.chunk_tokens,
            "cached_tokens": info.cached_tokens,
            "bug": str(info.fault or "none"),
            "wrong_pairs": info.wrong_pairs,
        },
        height=HEIGHT,
    )
    rows = max(info.chunk_tokens, FEWEST_ROWS)
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "closest",
        "xaxis": axis(
            range=[-0.5, info.end - 0.5],
            tickvals=_ticks(0, info.end),
            showgrid=False,
            fixedrange=True,
            title={"text": "key: absolute position (tokens)"},
            **_frame(),
        ),
        "yaxis": axis(
            range=[info.cached_tokens + rows - 0.5, info.cached_tokens - 0.5],
            tickvals=_ticks(info.cached_tokens, info.end),
            showgrid=False,
            fixedrange=True,
            title={"text": "query: absolute position (tokens)"},
            **_frame(),
        ),
        "shapes": _boundary(info),
        "annotations": _block_labels(info),
    }
    spec |= head_room(spec, above_plot=28, below_plot=104)
    return {"data": [*_cells(info), *_legend(), *_marks(info)], "layout": spec}


def head_room(spec: Spec, *, above_plot: int, below_plot: int) -> Spec:
    """Return title and margins with room, in px, above and below the plot.

    Plotly sets a title of several lines with its first baseline at the padding, so a padding
    of less than the letters' height cuts them off.
    """
    padding = {**spec["title"]["pad"], "t": TITLE_BASELINE}
    margin = {**spec["margin"], "t": spec["margin"]["t"] + 8 + above_plot, "b": below_plot}
    return {"title": {**spec["title"], "pad": padding}, "margin": margin}


def _cells(info: MaskInfo) -> list[Spec]:
    shift = info.cached_tokens
    looks = {
        Cell.HIDDEN: (NO_COLOUR, "does not see key at position %{x} (it comes later)"),
        Cell.CACHED: (CACHED_CELL, "sees key at position %{x} (cached)"),
        Cell.CHUNK: (CHUNK_CELL, "sees key at position %{x} (this chunk)"),
        Cell.WRONGLY_HIDDEN: (NO_COLOUR, "should see key at position %{x} (cached) but does not"),
        Cell.WRONGLY_VISIBLE: (WRONG_CELL, "sees key at position %{x}, which comes later: wrong"),
        Cell.WRONG_DISTANCE: (
            CACHED_CELL,
            f"sees key at position %{{x}} (cached) {shift} tokens too near: wrong",
        ),
    }
    gap = 1 if info.end <= WIDE else 0.5
    traces = []
    for cell, (colour, words) in looks.items():
        rows, columns = np.nonzero(info.cells == cell)
        if not len(rows):
            continue
        top, left = int(rows.min()), int(columns.min())
        here = info.cells[top : rows.max() + 1, left : columns.max() + 1] == cell
        traces.append(
            {
                "type": "heatmap",
                "z": here.astype(np.uint8)
                if here.all()
                else np.where(here, np.float32(1), np.float32(np.nan)),
                "x0": left,
                "dx": 1,
                "y0": top + info.cached_tokens,
                "dy": 1,
                "zmin": 0,
                "zmax": 1,
                "colorscale": [[0, colour], [1, colour]],
                "showscale": False,
                "hoverongaps": False,
                "xgap": gap,
                "ygap": gap,
                "hovertemplate": f"query at position %{{y}} {words}<extra></extra>",
            }
        )
    return traces


def _legend() -> list[Spec]:
    def square(name: str, symbol: str, colour: str) -> Spec:
        return {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [None],
            "y": [None],
            "marker": {"symbol": symbol, "color": colour, "size": 12},
            "hoverinfo": "skip",
        }

    return [
        square("sees a cached key", "square", CACHED_CELL),
        square("sees a chunk key", "square", CHUNK_CELL),
        square("hidden: later", "square-open", MUTED),
    ]


def _marks(info: MaskInfo) -> list[Spec]:
    rows = max(info.chunk_tokens, FEWEST_ROWS)
    size = min(0.62 * min(NARROWEST_PLOT / info.end, LOWEST_PLOT / rows), 11)
    looks = {
        Cell.WRONGLY_HIDDEN: ("should be seen", "x", STALL),
        Cell.WRONGLY_VISIBLE: ("should be hidden", "diamond", PAPER),
        Cell.WRONG_DISTANCE: ("wrong distance", "triangle-left", PAPER),
    }
    traces = []
    for cell, (name, symbol, colour) in looks.items():
        at_row, at_column = np.nonzero(info.cells == cell)
        if not len(at_row):
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "name": name,
                "x": at_column.astype(np.uint8),
                "y": (at_row + info.cached_tokens).astype(np.uint8),
                "marker": {
                    "symbol": symbol,
                    "color": colour,
                    "size": size,
                    "line": {"color": STALL, "width": 1 if colour == PAPER else 0},
                },
                "hoverinfo": "skip",
            }
        )
    return traces


def _boundary(info: MaskInfo) -> list[Spec]:
    edge = info.cached_tokens - 0.5
    strip = {"y0": STRIP, "y1": STRIP}
    shapes = [above_line(edge, info.end - 0.5, **strip, colour=CHUNK_CELL, width=5)]
    if info.cached_tokens:
        upright = {"type": "line", "xref": "x", "x0": edge, "x1": edge, "yref": "paper"}
        shapes += [
            above_line(-0.5, edge, **strip, colour=CACHED_CELL, width=5),
            above_line(edge, edge, y0=0, y1=2 * STRIP, colour=INK, width=2),
            {**upright, "y0": 0, "y1": 1, "line": {"color": INK, "width": 2}},
        ]
    return shapes


def above_line(x0: float, x1: float, *, y0: int, y1: int, colour: str, width: int) -> Spec:
    """Return a line at `y0` and `y1` px above the plot, in a picture of any height."""
    return {
        "type": "line",
        "xref": "x",
        "yref": "paper",
        "ysizemode": "pixel",
        "yanchor": 1,
        "x0": x0,
        "x1": x1,
        "y0": y0,
        "y1": y1,
        "line": {"color": colour, "width": width},
    }


def _block_labels(info: MaskInfo) -> list[Spec]:
    def label(text: str, x: float, anchor: str) -> Spec:
        return {
            "text": text,
            "x": x,
            "xref": "paper",
            "xanchor": anchor,
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "yshift": 2 * STRIP,
            "showarrow": False,
            "font": {"size": 12, "color": INK},
        }

    labels = [label(f"this chunk: {span(info.cached_tokens, info.end)}", 1, "right")]
    if info.cached_tokens:
        labels.append(label(f"in the cache: {span(0, info.cached_tokens)}", 0, "left"))
    return labels


def _ticks(start: int, end: int) -> list[int]:
    step = 1
    while (end - start) / step > FEWEST_ROWS + 2:
        step *= 2
    return list(range(start, end, step))


def _frame() -> Spec:
    return {"showline": True, "mirror": True, "linewidth": 1}
