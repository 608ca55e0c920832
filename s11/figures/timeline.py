"""The step timeline and the users' streams, one figure with two rows on one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from s11.explain import ms
from s11.figures.theme import (
    DECODE,
    FIXED,
    GRID,
    INK,
    MUTED,
    PAPER,
    PREFILL,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.figures.timeline_info import SHOWN_USERS, Axis, PromptRow, TimelineInfo
from s11.metrics import Metrics

MOST_BARS = 300
NUMBER_ROOM = 0.045  # of the axis: two digits at 390 px
LABEL_ROOM = 0.4  # of the axis: "TTFT 189 ms" at 390 px
TTFT_DROP = 0.85
FEWEST_ROWS = 6
ON_PREFILL = "#1A1A1A"
MOST_TICKS, FEW_TICKS = 400, 120
TICK_HALF = 0.34
STEPS_DOMAIN = (0.48, 1.0)
STREAMS_DOMAIN = (0.0, 0.43)
HEIGHT = 590


def timeline_figure(info: TimelineInfo, *, metrics: Metrics) -> Spec:
    """Return the Plotly spec of the timeline.

    Up to 300 steps are bars; more are stepped areas, and more than 1,000 are drawn by the
    longest step of every few, so that no spike is lost.
    """
    rows = _Rows(info)
    draw_steps = _bars if len(info.steps.left) <= MOST_BARS else _areas
    traces = [
        *draw_steps(info),
        *_over_target(info),
        *_ghost(info),
        *_prompts(info, rows),
        *_streams(info, rows),
    ]
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "timeline",
            "longest_stall_ms": metrics.longest_stall_ms,
            "ttft_ms": metrics.ttft_ms,
            "step_count": metrics.step_count,
            "axis": str(info.axis),
        },
        height=HEIGHT,
    )
    spec |= {
        "barmode": "stack",
        "bargap": 0,
        "hovermode": "x unified",
        "showlegend": True,
        "legend": bottom_legend(),
        "xaxis": axis(
            range=[0, info.right_end],
            anchor="y2",
            unifiedhovertitle={
                "text": "at %{x:.1f} ms" if info.axis is Axis.TIME else "after %{x} steps"
            },
        ),
        "yaxis": axis(
            range=[0, info.top_ms],
            domain=STEPS_DOMAIN,
            title={"text": "step duration (ms)"},
            rangemode="tozero",
            nticks=6,
            tickformat=",",
        ),
        "yaxis2": axis(
            range=[rows.bottom, 1.0],
            domain=STREAMS_DOMAIN,
            tickvals=rows.places,
            ticktext=rows.labels,
            showgrid=False,
            fixedrange=True,
        ),
        "shapes": [_target_line(info)],
        "annotations": [
            _axis_label(info),
            _target_label(info),
            *_ghost_label(info),
            *_ttft_labels(info, rows),
            *_freeze_labels(info, rows),
        ],
    }
    spec["margin"] = {**spec["margin"], "l": 86, "b": 76}
    return {"data": traces, "layout": spec}


def timeline_alt(info: TimelineInfo, metrics: Metrics) -> str:
    """Return the timeline's numbers for those who cannot see it."""
    over = f"{metrics.steps_over_target:,} of {metrics.step_count:,} steps"
    return (
        f"Step timeline: {info.title}. {' '.join(info.caption)}. "
        f"Longest stall {ms(metrics.longest_stall_ms)}, TTFT {ms(metrics.ttft_ms)}, {over} over "
        f"the target of {ms(info.itl_target_ms)}."
    )


class _Rows:
    """Where each row of the lower picture stands, from the top down."""

    def __init__(self, info: TimelineInfo) -> None:
        self.places: list[float] = []
        self.labels: list[str] = []
        self.prompts: list[float] = []
        self.users: list[float] = []
        at = 0.0
        for number in range(len(info.prompts)):
            self.prompts.append(at)
            self._add(at, "long prompt" if len(info.prompts) == 1 else f"prompt {number + 1}")
            at -= 1.8
        if info.folded_prompts:
            self._add(at, f"+ {info.folded_prompts:,} more")
            at -= 1.0
        for number in range(min(info.users, SHOWN_USERS)):
            self.users.append(at)
            self._add(at, f"user {number + 1}")
            at -= 1.0
        if info.users > SHOWN_USERS:
            self._add(at, f"+ {info.users - SHOWN_USERS:,} alike")
            at -= 1.0
        self.bottom = min(at + 0.3, -FEWEST_ROWS)

    def _add(self, place: float, label: str) -> None:
        self.places.append(place)
        self.labels.append(label)


def _parts(info: TimelineInfo) -> list[tuple[str, Any, str, dict[str, Any], Any]]:
    steps = info.steps
    return [
        ("prefill work", steps.prefill_ms, PREFILL, {}, steps.prefill_tokens),
        ("decode work", steps.decode_ms, DECODE, _pattern("/", PAPER), steps.decode_tokens),
        ("fixed overhead", steps.fixed_ms, FIXED, _pattern(".", PAPER), None),
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
                "marker": {"color": colour, "line": {"color": PAPER, "width": 1}, **pattern},
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


def _ghost(info: TimelineInfo) -> list[Spec]:
    ghost = info.ghost
    if ghost is None:
        return []
    return [
        {
            "type": "scatter",
            "mode": "lines",
            "showlegend": False,
            "x": [ghost.left, ghost.left, ghost.right, ghost.right],
            "y": [0, ghost.height_ms, ghost.height_ms, 0],
            "line": {"color": MUTED, "width": 1.5, "dash": "dot"},
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y",
        }
    ]


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


def _prompts(info: TimelineInfo, rows: _Rows) -> list[Spec]:
    traces: list[Spec] = []
    for prompt, place in zip(info.prompts, rows.prompts, strict=True):
        chunks = len(prompt.chunk_left)
        left, width = prompt.chunk_left, prompt.chunk_width
        if chunks > MOST_BARS:
            left, width = left[:1], (left + width)[-1:] - left[:1]
        if chunks:
            traces.append(
                {
                    "type": "bar",
                    "orientation": "h",
                    "showlegend": False,
                    "base": left,
                    "x": width,
                    "y": np.full(len(left), place),
                    "width": 0.8,
                    "marker": {"color": PREFILL, "line": {"color": PAPER, "width": 1}},
                    "hoverinfo": "skip",
                    "xaxis": "x",
                    "yaxis": "y2",
                }
            )
            traces.append(_chunk_numbers(info, prompt, place))
        if prompt.first_token is None:
            traces.append(_waiting(info, prompt.arrival, place))
            continue
        traces.append(
            {
                "type": "scatter",
                "mode": "lines+markers",
                "showlegend": False,
                "x": [prompt.arrival, prompt.first_token],
                "y": [place - TTFT_DROP, place - TTFT_DROP],
                "line": {"color": INK, "width": 1.5},
                "marker": {"symbol": ["line-ns-open", "star"], "size": [10, 12], "color": INK},
                "cliponaxis": False,
                "hoverinfo": "skip",
                "xaxis": "x",
                "yaxis": "y2",
            }
        )
    return traces


def _chunk_numbers(info: TimelineInfo, prompt: PromptRow, place: float) -> Spec:
    """Number the chunks where each has room for its number; else say how many they are."""
    left, width, chunks = prompt.chunk_left, prompt.chunk_width, len(prompt.chunk_left)
    if chunks > 1 and float(width.max()) >= NUMBER_ROOM * info.right_end:
        numbers = [str(number + 1) for number in range(chunks)]
        return _text(left + width / 2, np.full(chunks, place), numbers, ON_PREFILL)
    largest = int(prompt.chunk_tokens.max())
    text = f"{chunks:,} chunks of {largest:,} tokens"
    if chunks == 1:
        text = "the whole prompt"
    elif int(prompt.chunk_tokens.min()) < largest:
        text = f"{chunks:,} chunks of up to {largest:,} tokens"
    middle = float(left[0] + left[-1] + width[-1]) / 2
    return _text([middle], [place], [f"<b>{text}</b>"], ON_PREFILL)


def _waiting(info: TimelineInfo, arrival: float, place: float) -> Spec:
    """Draw a prompt that never gets its first token, from its arrival to the edge."""
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "showlegend": False,
        "x": [arrival, info.right_end * 0.985],
        "y": [place, place],
        "line": {"color": STALL, "width": 2.5, "dash": "dot"},
        "marker": {"symbol": ["line-ns-open", "triangle-right"], "size": [14, 12], "color": STALL},
        "hoverinfo": "skip",
        "xaxis": "x",
        "yaxis": "y2",
    }


def _ttft_labels(info: TimelineInfo, rows: _Rows) -> list[Spec]:
    """Name each prompt's TTFT on its span, or beside it where the span is short."""
    labels = []
    for prompt, place in zip(info.prompts, rows.prompts, strict=True):
        if prompt.first_token is None:
            labels.append(
                {
                    "text": "<b>no first token: waits for ever</b>"
                    if info.never_scheduled
                    else "<b>no first token yet</b>",
                    "x": info.right_end / 2,
                    "y": place,
                    "xref": "x",
                    "yref": "y2",
                    "showarrow": False,
                    "font": {"size": 13, "color": STALL_TEXT},
                    "bgcolor": PAPER,
                    "borderpad": 2,
                }
            )
            continue
        span = prompt.first_token - prompt.arrival
        inside = span > LABEL_ROOM * info.right_end
        right = prompt.first_token < (1 - LABEL_ROOM) * info.right_end
        labels.append(
            {
                "text": f"TTFT {ms(prompt.ttft_ms)}",
                "x": prompt.arrival + span / 2
                if inside
                else (prompt.first_token if right else prompt.arrival),
                "xanchor": "center" if inside else ("left" if right else "right"),
                "xshift": 0 if inside else (10 if right else -8),
                "y": place - TTFT_DROP,
                "xref": "x",
                "yref": "y2",
                "showarrow": False,
                "font": {"size": 12, "color": INK},
                "bgcolor": PAPER,
                "borderpad": 1,
            }
        )
    return labels


def _text(x: Any, y: Any, text: list[str], colour: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "text",
        "showlegend": False,
        "x": x,
        "y": y,
        "text": text,
        "textfont": {"size": 12, "color": colour},
        "hoverinfo": "skip",
        "xaxis": "x",
        "yaxis": "y2",
    }


def _streams(info: TimelineInfo, rows: _Rows) -> list[Spec]:
    if not rows.users:
        return []
    frozen = info.freezes
    traces: list[Spec] = []
    if len(frozen.left):
        traces.append(
            {
                "type": "bar",
                "orientation": "h",
                "showlegend": False,
                "base": np.tile(frozen.left, len(rows.users)),
                "x": np.tile(frozen.width, len(rows.users)),
                "y": np.repeat(rows.users, len(frozen.left)),
                "width": 0.5,
                "marker": {
                    "color": "rgba(213,94,0,0.16)",
                    "line": {"width": 0},
                    "pattern": {"shape": "/", "fgcolor": STALL, "size": 8, "solidity": 0.12},
                },
                "hoverinfo": "skip",
                "xaxis": "x",
                "yaxis": "y2",
            }
        )
    if info.tokens_a_stream > MOST_TICKS:
        return [*_token_bands(info, rows), *traces]
    marks = info.token_marks
    heights = np.array([-TICK_HALF, TICK_HALF, np.nan])
    traces.append(
        {
            "type": "scatter",
            "mode": "lines",
            "showlegend": False,
            "x": np.tile(np.repeat(marks, 3), len(rows.users)),
            "y": np.concatenate([np.tile(place + heights, len(marks)) for place in rows.users]),
            "line": {"color": DECODE, "width": 2.5 if len(marks) <= FEW_TICKS else 1},
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y2",
        }
    )
    return traces


def _token_bands(info: TimelineInfo, rows: _Rows) -> list[Spec]:
    """Draw each stream as a band with its number of tokens: too many to tick each."""
    first, last = float(info.token_marks[0]), float(info.token_marks[-1])
    users = len(rows.users)
    return [
        {
            "type": "bar",
            "orientation": "h",
            "showlegend": False,
            "base": [first] * users,
            "x": [last - first] * users,
            "y": rows.users,
            "width": 2 * TICK_HALF,
            "marker": {
                "color": PAPER,
                "line": {"color": DECODE, "width": 1},
                "pattern": {
                    "shape": "|",
                    "fillmode": "overlay",
                    "fgcolor": DECODE,
                    "size": 5,
                    "solidity": 0.3,
                },
            },
            "hoverinfo": "skip",
            "xaxis": "x",
            "yaxis": "y2",
        }
    ]


def _freeze_labels(info: TimelineInfo, rows: _Rows) -> list[Spec]:
    frozen = info.freezes
    if not rows.users or not len(frozen.left):
        return []
    longest = f"{ms(float(frozen.gap_ms.max()))}"
    if len(frozen.left) == 1:
        left, right = float(frozen.left[0]), float((frozen.left + frozen.width)[0])
        who = "every stream " if info.users > 1 and right - left > 0.6 * info.right_end else ""
        text = f"{who}frozen {longest}"
    else:
        left, right = float(frozen.left[0]), float((frozen.left + frozen.width)[-1])
        text = f"{len(frozen.left):,} freezes, up to {longest}"
    return [
        {
            "text": f"<b>{text}</b>",
            "x": (left + right) / 2,
            "y": float(np.mean(rows.users)),
            "xref": "x",
            "yref": "y2",
            "showarrow": False,
            "font": {"size": 13, "color": STALL_TEXT},
            "bgcolor": PAPER,
            "bordercolor": GRID,
            "borderpad": 3,
        }
    ]
