"""|ΔK| by position and layer as a picture."""

from __future__ import annotations

from itertools import pairwise

import numpy as np

from s11.figures.key_difference_info import SUPERSCRIPTS, KeyDifferenceInfo
from s11.figures.mask import NO_COLOUR, above_line, head_room
from s11.figures.mask_info import span
from s11.figures.theme import FIXED, IDLE, INK, PAPER, Spec, axis, layout

# Dark is large; every colour is darker in grey print than the one before it.
SCALE = [[0, "#F6CF7A"], [0.4, "#EE9A3A"], [0.7, "#C9480F"], [1, "#5A1606"]]
LOWEST_LOG, HIGHEST_LOG = -8, 1
HEIGHT = 440
BELOW_PLOT, COLOUR_BAR_ROOM = 140, 76  # px, at the lower edge
MOST_BOUNDARIES, MOST_LABELS = 40, 6
NARROWEST_PLOT, LABEL_WIDTH = 285, 52  # px, on a phone


def key_difference_figure(info: KeyDifferenceInfo) -> Spec:
    """Return the Plotly spec of |ΔK| by position and layer."""
    layers, positions = info.abs_diff.shape
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "key-difference",
            "bug": str(info.fault or "none"),
            "chunk_tokens": info.chunk_tokens,
            "path": str(info.path),
            "wrong_positions": int(info.wrong.any(axis=0).sum()),
            "largest": float(info.abs_diff.max()),
        },
        height=HEIGHT,
    )
    spec |= {
        "showlegend": False,
        "hovermode": "closest",
        "barmode": "overlay",
        "bargap": 0,
        "xaxis": axis(
            range=[-0.5, positions - 0.5],
            dtick=max(1, positions // 8),
            showgrid=False,
            fixedrange=True,
            title={"text": "absolute position (tokens)"},
        ),
        "yaxis": axis(
            range=[layers - 0.5, -0.5],
            tickvals=list(range(layers)),
            ticktext=[f"layer {layer + 1}" for layer in range(layers)],
            showgrid=False,
            fixedrange=True,
        ),
        "shapes": _boundaries(info),
        "annotations": [*_chunk_labels(info), _key(info)],
    }
    spec |= head_room(spec, above_plot=26, below_plot=BELOW_PLOT)
    return {"data": [*_zeros(info), _differences(info)], "layout": spec}


def _differences(info: KeyDifferenceInfo) -> Spec:
    differs = info.abs_diff > 0
    logs = np.full(info.abs_diff.shape, np.nan, np.float32)
    logs[differs] = np.log10(info.abs_diff[differs])
    decades = [*range(LOWEST_LOG, HIGHEST_LOG, 2), HIGHEST_LOG]
    return {
        "type": "heatmap",
        "z": logs,
        "customdata": info.abs_diff,
        "zmin": LOWEST_LOG,
        "zmax": HIGHEST_LOG,
        "colorscale": SCALE,
        "hoverongaps": False,
        "hovertemplate": "position %{x}, %{y}: |ΔK| = %{customdata:.2~g}<extra></extra>",
        "colorbar": {
            "orientation": "h",
            "x": 0.5,
            "xanchor": "center",
            "len": 1,
            "lenmode": "fraction",
            "thickness": 12,
            "xpad": 0,
            "y": 0.012,  # less would cut the foot of its labels
            "ypad": 0,
            "yref": "container",
            "yanchor": "bottom",
            "outlinewidth": 0,
            "tickvals": decades,
            "ticktext": [f"10{str(n).translate(SUPERSCRIPTS)}" for n in decades[:-2]] + ["1", "10"],
            "tickfont": {"size": 12, "color": INK},
        },
    }


def _zeros(info: KeyDifferenceInfo) -> list[Spec]:
    runs = info.zero_runs
    if not runs:
        return []
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": "0",
            "base": np.array([run.start - 0.5 for run in runs], np.float32),
            "x": np.array([run.end - run.start for run in runs], np.int16),
            "y": np.array([run.layer for run in runs], np.uint8),
            "width": 1,
            "customdata": [span(run.start, run.end) for run in runs],
            "marker": {
                "color": NO_COLOUR,
                "line": {"color": FIXED, "width": 0.5},
                "pattern": {
                    "shape": "/",
                    "fgcolor": IDLE,
                    "size": 8,
                    "solidity": 0.2,
                    "fgopacity": 1,
                    "fillmode": "overlay",
                },
            },
            "hovertemplate": "position %{customdata}, %{y}: |ΔK| = 0<extra></extra>",
        }
    ]


def _edges(info: KeyDifferenceInfo) -> list[int]:
    return [0, *np.cumsum(info.chunk_lengths).tolist()]


def _boundaries(info: KeyDifferenceInfo) -> list[Spec]:
    edges = _edges(info)[1:-1]
    if len(edges) > MOST_BOUNDARIES:
        return []

    through = {"type": "line", "xref": "x", "yref": "paper", "y0": 0, "y1": 1}
    cuts: list[Spec] = [
        {**through, "x0": edge - 0.5, "x1": edge - 0.5, "line": {"color": PAPER, "width": 2}}
        for edge in edges
    ]
    top = 22 if len(info.chunk_lengths) <= MOST_LABELS else 5
    return cuts + [
        above_line(edge - 0.5, edge - 0.5, y0=0, y1=top, colour=INK, width=2) for edge in edges
    ]


def _chunk_labels(info: KeyDifferenceInfo) -> list[Spec]:
    edges = _edges(info)
    if len(info.chunk_lengths) > MOST_LABELS:
        close = "" if len(edges) - 2 <= MOST_BOUNDARIES else ": boundaries too close to draw"
        return [_label(f"{len(info.chunk_lengths)} chunks{close}", (edges[-1] - 1) / 2)]
    return [
        _label(f"chunk {place}", (start + end - 1) / 2)
        for place, (start, end) in enumerate(pairwise(edges), start=1)
        if (end - start) / edges[-1] * NARROWEST_PLOT >= LABEL_WIDTH
    ]


def _label(text: str, position: float) -> Spec:
    return {
        "text": text,
        "x": position,
        "xref": "x",
        "y": 1,
        "yref": "paper",
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "font": {"size": 12, "color": INK},
    }


def _key(info: KeyDifferenceInfo) -> Spec:
    text = "largest |ΔK|<br>at a position (K: pure numbers of order 1)"
    if not info.abs_diff.any():
        text = "hatched: |ΔK| = 0, the same bits"
    elif info.zero_runs:
        text = f"hatched: 0, the same bits. Coloured: {text}"
    return {
        "text": text,
        "align": "left",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": COLOUR_BAR_ROOM - BELOW_PLOT,
        "showarrow": False,
        "font": {"size": 12, "color": INK},
    }
