"""A step's time as its tokens grow: what the memory takes, what the arithmetic takes, the rest."""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from s11.catalog import Deployment
from s11.costs.breakdown import Floats
from s11.figures.piggyback_looks import (
    LEGEND_ENTRY,
    SIMULATED,
    foot,
    hovered,
    machine_line,
    nice_above,
)
from s11.figures.theme import (
    DECODE,
    IDLE,
    INK,
    MUTED,
    PAPER,
    PREEMPTED,
    PREFILL,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.piggyback import MOST_TOKENS, StepCurve
from s11.piggyback_rides import attention_ms, rest_ms
from s11.words import count, ms

HEIGHT = 580
LOG_TICKS = [1, 4, 16, 64, 256, 1024, 4096, 16384]
LINEAR_LEAST, LINEAR_TURNS = 1_024, 4  # tokens; the linear axis goes to so many turning points
LEAST_SHOWN_MS = 0.02
END_ROOM = 1.12  # of the last count: its label is not cut


class Line(NamedTuple):
    """One curve: its name and form, and its values."""

    name: str
    colour: str
    dash: str
    width: float
    duration_ms: Floats


def curve_lines(curve: StepCurve) -> list[Line]:
    """Return the curves, the whole step first; what takes no time is left out."""
    linear, parts = curve.linear, curve.parts
    lines = [
        Line("whole step", MUTED, "solid", 1.5, parts.total_ms()),
        Line("linear operators", INK, "solid", 3.5, linear.linear_ms),
        Line("memory time", DECODE, "dash", 2.5, linear.memory_ms),
        Line("compute time", PREFILL, "dashdot", 2.5, linear.compute_ms),
        Line("attention", PREEMPTED, "solid", 2, attention_ms(parts)),
        Line("all-reduce", IDLE, "dot", 2.5, parts.all_reduce_ms),
        Line("rest", MUTED, "dot", 2, rest_ms(parts)),
    ]
    return [line for line in lines if line.duration_ms.any()]


def linear_end(curve: StepCurve) -> int:
    """Return where the linear axis ends, in tokens: far enough to see the turn."""
    turn = curve.turning_tokens or MOST_TOKENS
    wanted = max(LINEAR_LEAST, LINEAR_TURNS * turn, 2 * curve.free_tokens)
    return min(MOST_TOKENS, 1 << (wanted - 1).bit_length())


def curve_title(curve: StepCurve) -> str:
    """Return the finding."""
    turn = curve.turning_tokens
    if turn is None:
        return f"Memory-bound up to {count(MOST_TOKENS, 'token')}"
    if turn == 1:
        return f"{count(curve.free_tokens, 'token')} for the price of one"
    return f"Below {turn:,} tokens, the read is the time"


def curve_figure(
    curve: StepCurve, deployment: Deployment, *, chunk_tokens: int, logarithmic: bool
) -> Spec:
    """Return the Plotly spec of the curves; the chunk's own step is marked."""
    lines, turn = curve_lines(curve), curve.turning_tokens
    end = MOST_TOKENS if logarithmic else linear_end(curve)
    shown = curve.linear.tokens <= end
    tokens = curve.linear.tokens[shown]
    top_ms = nice_above(max(float(line.duration_ms[shown].max()) for line in lines))
    low_ms = min(float(line.duration_ms[shown].min()) for line in lines)
    low_ms = max(LEAST_SHOWN_MS, low_ms / 1.3)
    spec = layout(
        title=curve_title(curve),
        caption=[machine_line(deployment), SIMULATED, _step_line(curve)],
        meta={
            "figure": "piggyback-curve",
            "turning_tokens": turn,
            "free_tokens": curve.free_tokens,
            "chunk_tokens": chunk_tokens,
            "logarithmic": logarithmic,
        },
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "x unified",
        "xaxis": axis(
            title={"text": "tokens in the step"},
            **hovered("tokens"),
            **(
                {
                    "type": "log",
                    "range": [0, math.log10(END_ROOM * MOST_TOKENS)],
                    "tickvals": LOG_TICKS,
                    "ticktext": [f"{tick:,}" for tick in LOG_TICKS],
                }
                if logarithmic
                else {"range": [0, end], "tickformat": ",", "nticks": 6}
            ),
        ),
        "yaxis": axis(
            title={"text": "time (ms)"},
            tickformat="~r" if top_ms < 1000 else ",~r",
            **(
                {
                    "type": "log",
                    "range": [math.log10(low_ms), math.log10(top_ms)],
                    "dtick": 1,
                    "exponentformat": "none",
                }
                if logarithmic
                else {"range": [0, top_ms]}
            ),
        ),
        "shapes": _marks(turn, chunk_tokens, end),
        "annotations": _notes(turn, chunk_tokens, end, logarithmic),
    }
    spec["margin"] = {
        **spec["margin"],
        "t": spec["margin"]["t"] + 24,
        "b": foot(legend_rows=4),
    }
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": line.name,
                "x": tokens.astype(np.int32),
                "y": line.duration_ms[shown].astype(np.float32),
                "line": {"color": line.colour, "dash": line.dash, "width": line.width},
                "hovertemplate": "%{y:.3~g} ms",
            }
            for line in lines
        ],
        "layout": spec,
    }


def curve_alt(curve: StepCurve, deployment: Deployment, *, chunk_tokens: int) -> str:
    """Return the curves' numbers for those who cannot see them."""
    told = []
    for tokens in sorted({1, 256, chunk_tokens, MOST_TOKENS}):
        at = int(np.searchsorted(curve.linear.tokens, tokens))
        at = min(at, len(curve.linear.tokens) - 1)
        each = ", ".join(f"{line.name} {ms(line.duration_ms[at])}" for line in curve_lines(curve))
        told.append(f"{count(int(curve.linear.tokens[at]), 'token')}: {each}")
    return (
        f"A step's time by its tokens, {machine_line(deployment)}. {curve_title(curve)}. "
        f"{'. '.join(told)}."
    )


def _step_line(curve: StepCurve) -> str:
    if curve.start_token:
        return f"a chunk after {curve.start_token:,} tokens; rest: host, head, elementwise"
    return "one prompt's first tokens; rest: host, head, elementwise"


def _marks(turn: int | None, chunk_tokens: int, end: int) -> list[Spec]:
    """Draw the turn and the chunk as lines through the plot."""
    marks = []
    if turn and 1 < turn <= end:
        marks.append((turn, {"color": INK, "width": 1.5, "dash": "dot"}))
    if chunk_tokens <= end:
        marks.append((chunk_tokens, {"color": STALL, "width": 1.5, "dash": "longdash"}))
    return [
        {
            "type": "line",
            "xref": "x",
            "x0": at,
            "x1": at,
            "yref": "paper",
            "y0": 0,
            "y1": 1,
            "layer": "below",
            "line": line,
        }
        for at, line in marks
    ]


def _notes(turn: int | None, chunk_tokens: int, end: int, logarithmic: bool) -> list[Spec]:
    """Name the two sides of the turn above the plot, and the chunk at its foot."""

    def place(tokens: int) -> float:
        return math.log10(tokens) if logarithmic else float(tokens)

    here: Spec = {"xref": "x", "yref": "paper", "showarrow": False, "font": {"size": 12}}
    notes: list[Spec] = []
    if turn and 1 < turn <= end:
        for text, anchor, shift in (
            ("◀ memory-bound", "right", -4),
            ("compute-bound ▶", "left", 4),
        ):
            notes.append(
                {
                    **here,
                    "text": text,
                    "x": place(turn),
                    "xanchor": anchor,
                    "xshift": shift,
                    "y": 1,
                    "yanchor": "bottom",
                    "yshift": 6,
                    "font": {"size": 12, "color": INK},
                }
            )
    if chunk_tokens <= end:
        left = place(chunk_tokens) > 0.5 * place(end)
        notes.append(
            {
                **here,
                "text": f"chunk {chunk_tokens:,}",
                "x": place(chunk_tokens),
                "xanchor": "right" if left else "left",
                "xshift": -4 if left else 4,
                "y": 0,
                "yanchor": "bottom",
                "yshift": 2,
                "bgcolor": PAPER,
                "font": {"size": 12, "color": STALL_TEXT},
            }
        )
    return notes
