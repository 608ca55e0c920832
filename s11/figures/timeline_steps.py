"""The timeline's upper row: the steps, their target, and the ghost of the whole prompt."""

from __future__ import annotations

from typing import Any

import numpy as np

from s11.figures.theme import DECODE, FIXED, INK, MUTED, PAPER, PREFILL, STALL, STALL_TEXT, Spec
from s11.figures.timeline_info import Axis, TimelineInfo
from s11.figures.timeline_marks import LABEL_ROOM, segments
from s11.figures.timeline_pinned import pinned_label, pinned_line
from s11.words import ms

MOST_BARS = 300


def step_traces(info: TimelineInfo) -> list[Spec]:
    """Return the upper row's traces: bars, or stepped areas where the steps are many."""
    draw = _bars if len(info.steps.left) <= MOST_BARS else _areas
    return [*draw(info), *_over_target(info)]


def step_lines(info: TimelineInfo) -> list[Spec]:
    """Return the upper row's lines: the gaps between bars, the target, the ghost."""
    pinned = pinned_line(info.pinned) if info.pinned else []
    return [*_gaps(info), _target_line(info), *_ghost_outline(info), *pinned]


def step_labels(info: TimelineInfo) -> list[Spec]:
    """Return the upper row's labels, and the name of the axis that both rows share."""
    pinned = info.pinned
    told = (
        pinned_label(pinned, right_end=info.right_end, top_ms=info.top_ms)
        if pinned
        else _ghost_label(info)
    )
    return [_axis_label(info), _target_label(info), *told]


def _parts(info: TimelineInfo) -> list[tuple[str, Any, str, dict[str, Any], Any]]:
    steps = info.steps
    return [
        ("prefill work", steps.prefill_ms, PREFILL, {}, steps.prefill_tokens),
        ("decode work", steps.decode_ms, DECODE, _pattern("/", PAPER), steps.decode_tokens),
        (info.fixed_name, steps.fixed_ms, FIXED, _pattern(".", PAPER), None),
    ]


def _pattern(shape: str, colour: str) -> dict[str, Any]:
    pattern = {"shape": shape, "fgcolor": colour, "size": 5, "solidity": 0.25}
    return {"pattern": {**pattern, "fillmode": "overlay"}}


def _bars(info: TimelineInfo) -> list[Spec]:
    steps = info.steps
    traces = []
    for name, height, colour, pattern, tokens in _parts(info):
        hover = f"{name} %{{y:.3~f}} ms"
        if tokens is not None:
            hover += " (%{customdata:,} tokens)"
        traces.append(
            {
                "type": "bar",
                "name": name,
                "x": steps.left,
                "y": height,
                "width": steps.width,
                "offset": 0,
                "customdata": tokens,
                "marker": {"color": colour, "line": {"width": 0}, **pattern},
                "hovertemplate": hover + "<extra></extra>",
                "xaxis": "x",
                "yaxis": "y",
            }
        )
    return traces


def _areas(info: TimelineInfo) -> list[Spec]:
    steps = info.steps
    edges = np.append(steps.left, steps.left[-1] + steps.width[-1])
    note = ""
    if steps.steps_per_mark > 1:
        note = f", longest of every {steps.steps_per_mark:,} steps"
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": name,
            "x": edges,
            "y": np.append(height, height[-1]),
            "stackgroup": "steps",
            "line": {"shape": "hv", "width": 0, "color": colour},
            "fillcolor": colour,
            "hovertemplate": f"{name} %{{y:.3~f}} ms{note}<extra></extra>",
            "xaxis": "x",
            "yaxis": "y",
        }
        for name, height, colour, _, _ in _parts(info)
    ]


NEAR_TARGET = 0.1  # of the axis' height, on a phone less than a line of text


def _over_target(info: TimelineInfo) -> list[Spec]:
    """Outline the steps over the target and point at them: marked in form and in colour."""
    steps = info.steps
    over = np.flatnonzero(steps.over_target)
    if not len(over):
        return []
    left, right = steps.left[over], (steps.left + steps.width)[over]
    top = steps.duration_ms[over]
    gap, zero = np.full(len(over), np.nan), np.zeros(len(over))
    x = np.stack([left, left, right, right, left, gap], axis=1).ravel()
    y = np.stack([zero, top, top, zero, zero, gap], axis=1).ravel()
    longest = int(np.argmax(top))
    labels = [""] * len(over)
    labels[longest] = f"<b>▲ {ms(float(top[longest]))}</b>"
    near = float(top[longest]) - info.itl_target_ms < NEAR_TARGET * info.top_ms
    if near and left[longest] > info.right_end / 2:  # the target's own label stands there
        labels[longest] += "<br>\u200b"
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "step over target",
            "x": x,
            "y": y,
            "line": {"color": STALL, "width": 2.5},
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y",
        },
        {
            "type": "scatter",
            "mode": "markers+text",
            "showlegend": False,
            "x": (left + right) / 2,
            "y": np.minimum(top, info.top_ms * 0.93),
            "text": labels,
            "textposition": "top center",
            "textfont": {"size": 14, "color": STALL_TEXT},
            "marker": {
                "symbol": "triangle-up",
                "size": 9 if len(over) <= MOST_BARS else 4,
                "color": STALL,
                "opacity": [0.0 if label else 1.0 for label in labels],
            },
            "cliponaxis": False,
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y",
        },
    ]


def _gaps(info: TimelineInfo) -> list[Spec]:
    """Part the bars by thin white lines; a bar's own outline would hide its thin parts."""
    steps = info.steps
    if len(steps.left) > MOST_BARS:
        return []
    outlined = steps.over_target[1:] | steps.over_target[:-1]
    tops = np.maximum(steps.duration_ms[1:], steps.duration_ms[:-1])
    edges = zip(steps.left[1:][~outlined].tolist(), tops[~outlined].tolist(), strict=True)
    lines = [((at, 0.0), (at, top)) for at, top in edges]
    return segments(lines, yref="y", line={"color": PAPER, "width": 1})


def _ghost_outline(info: TimelineInfo) -> list[Spec]:
    ghost = info.ghost
    if ghost is None:
        return []
    corners = (
        (ghost.left, 0.0),
        (ghost.left, ghost.height_ms),
        (ghost.right, ghost.height_ms),
        (ghost.right, 0.0),
    )
    outline = segments([corners], yref="y", line={"color": MUTED, "width": 1.5, "dash": "dot"})
    return [shape | {"name": "stays"} for shape in outline]


def _target_line(info: TimelineInfo) -> Spec:
    return {
        "type": "line",
        "xref": "x domain",
        "yref": "y",
        "x0": 0,
        "x1": 1,
        "y0": info.itl_target_ms,
        "y1": info.itl_target_ms,
        "line": {"color": INK, "width": 1.5, "dash": "dash"},
    }


def _ghost_label(info: TimelineInfo) -> list[Spec]:
    ghost = info.ghost
    if ghost is None:
        return []
    beyond = ghost.height_ms > info.top_ms
    narrow = ghost.right - ghost.left < LABEL_ROOM * info.right_end
    return [
        {
            "text": f"chunking off: {ms(ghost.height_ms)}" + (" ↑" if beyond else ""),
            "x": ghost.right if narrow else ghost.left,
            "y": info.top_ms * 0.97 if beyond else ghost.height_ms,
            "xanchor": "left",
            "yanchor": "top",
            "xshift": 4,
            "yshift": -2,
            "showarrow": False,
            "font": {"size": 12, "color": MUTED},
            "xref": "x",
            "yref": "y",
        }
    ]


def _axis_label(info: TimelineInfo) -> Spec:
    """Name the horizontal axis in the column of the row names, level with its ticks."""
    return {
        "text": "time (ms)" if info.axis is Axis.TIME else "step",
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "right",
        "yanchor": "top",
        "xshift": -12,
        "showarrow": False,
        "font": {"size": 12, "color": MUTED},
    }


def _target_label(info: TimelineInfo) -> Spec:
    return {
        "text": f"ITL target {ms(info.itl_target_ms)}",
        "xref": "x domain",
        "yref": "y",
        "x": 1,
        "y": info.itl_target_ms,
        "xanchor": "right",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": INK},
        "bgcolor": PAPER,
        "borderpad": 1,
        "opacity": 0.9,
    }
