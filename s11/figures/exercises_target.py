"""Chunk size against longest stall and TTFT, with the answer and the prediction marked."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from s11.costs import LinearCost
from s11.exercises_target import TargetNumbers, TargetSolution
from s11.figures.chunk_size_info import octaves
from s11.figures.theme import (
    IDLE,
    INK,
    PREEMPTED,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.sweeps import SweepPoint
from s11.words import count, ms

HEIGHT, BELOW_PLOT = 380, 104
ROOM = 1.6  # of the highest value, above it


@dataclass(frozen=True, slots=True, kw_only=True)
class TargetCurve:
    """What the picture shows.

    yours: the predicted chunk size, in tokens; None where none was given.
    """

    numbers: TargetNumbers
    best_tokens: int
    points: tuple[SweepPoint, ...]
    yours: int | None

    @property
    def title(self) -> str:
        """The finding, in about 45 characters."""
        target = f"{self.numbers.target_ms:g} ms"
        return f"{count(self.best_tokens, 'token')} keep {target}"

    @property
    def caption(self) -> list[str]:
        """The parameters, lines of about 60 characters."""
        asked = self.numbers
        return [
            f"prompt {count(asked.prompt_tokens, 'token')}, {count(asked.users, 'stream')}, "
            f"target {asked.target_ms:g} ms",
            f"{LinearCost().formula()}, s11",
        ]

    @property
    def yours_ms(self) -> float | None:
        """What a full step of the predicted size takes; None outside the picture."""
        if self.yours is None or not 1 <= self.yours <= self.numbers.prompt_tokens:
            return None
        return self.numbers.experiment().first_step_ms(self.yours)


def target_curve(
    solution: TargetSolution, points: Sequence[SweepPoint], yours: int | None
) -> TargetCurve:
    """Put a sweep beside its answer and a prediction."""
    return TargetCurve(
        numbers=solution.numbers,
        best_tokens=solution.chunk_tokens,
        points=tuple(points),
        yours=yours,
    )


def target_figure(curve: TargetCurve) -> Spec:
    """Return the Plotly spec of the two curves."""
    spec = layout(
        title=curve.title,
        caption=curve.caption,
        meta={
            "figure": "exercise-target",
            "best_tokens": curve.best_tokens,
            "yours": curve.yours if curve.yours_ms is not None else None,
        },
        height=HEIGHT,
    )
    sizes = [point.chunk_tokens for point in curve.points]
    marked = [curve.yours] if curve.yours and curve.yours_ms is not None else []
    first, last = min(sizes + marked), max(sizes)
    marks, words = octaves(first, last, most=6)
    values = [value for p in curve.points for value in (p.longest_stall_ms, p.ttft_ms) if value]
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "x unified",
        "xaxis": axis(
            type="log",
            range=[math.log10(first / 1.15), math.log10(last * 1.15)],
            tickvals=marks,
            ticktext=words,
            title={"text": "chunk size (tokens)"},
            hoverformat=",d",
        ),
        "yaxis": axis(
            type="log",
            range=[math.log10(min(values) / 1.3), math.log10(max(values) * ROOM)],
            dtick=1,
            tickformat=",~r",
            title={"text": "time (ms)"},
        ),
        "shapes": _lines(curve),
        "annotations": _labels(curve, first, last),
    }
    spec["margin"] = {**spec["margin"], "b": BELOW_PLOT}
    return {"data": [*_curves(curve), *_prediction(curve)], "layout": spec}


def target_alt(curve: TargetCurve) -> str:
    """Return the picture's numbers for those who cannot see it."""
    first, last = curve.points[0], curve.points[-1]
    ends = " and ".join(
        f"{count(p.chunk_tokens, 'token')}: stall {ms(p.longest_stall_ms)}, TTFT {ms(p.ttft_ms)}"
        for p in (first, last)
    )
    yours = ""
    if curve.yours is not None and curve.yours_ms is not None:
        yours = f" Your {count(curve.yours, 'token')}: a full step of {ms(curve.yours_ms)}."
    return (
        f"Longest stall and TTFT by chunk size: {curve.title}. {'; '.join(curve.caption)}. {ends}."
        f"{yours}"
    )


def target_columns(curve: TargetCurve) -> dict[str, list[Any]]:
    """Return the picture's data, a row for each chunk size."""
    return {
        "chunk_tokens": [p.chunk_tokens for p in curve.points],
        "longest_stall_ms": [p.longest_stall_ms for p in curve.points],
        "ttft_ms": [p.ttft_ms for p in curve.points],
        "steps_over_target": [p.steps_over_target for p in curve.points],
    }


def _curves(curve: TargetCurve) -> list[Spec]:
    looks = (
        ("longest stall", "longest_stall_ms", STALL, "circle", "solid"),
        ("TTFT of the prompt", "ttft_ms", PREEMPTED, "triangle-up", "dash"),
    )
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": np.array([p.chunk_tokens for p in curve.points], np.int32),
            "y": np.array([getattr(p, column) for p in curve.points], np.float32),
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "marker": {"symbol": symbol, "size": 7, "color": colour},
            "hovertemplate": "%{y:,.1f} ms",
        }
        for name, column, colour, symbol, dash in looks
    ]


def _prediction(curve: TargetCurve) -> list[Spec]:
    if curve.yours_ms is None:
        return []
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "your chunk",
            "x": [curve.yours],
            "y": [curve.yours_ms],
            "marker": {
                "symbol": "star",
                "size": 17,
                "color": INK,
            },
            "hovertemplate": "a full step: %{y:,.1f} ms",
        }
    ]


def _lines(curve: TargetCurve) -> list[Spec]:
    target, best = curve.numbers.target_ms, curve.best_tokens
    return [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": target,
            "y1": target,
            "line": {"color": STALL_TEXT, "width": 2, "dash": "dash"},
        },
        {
            "type": "line",
            "layer": "below",
            "xref": "x",
            "yref": "paper",
            "x0": best,
            "x1": best,
            "y0": 0,
            "y1": 1,
            "line": {"color": IDLE, "width": 2},
        },
    ]


def _labels(curve: TargetCurve, first: int, last: int) -> list[Spec]:
    best = curve.best_tokens
    right_half = math.log(best / first) > math.log(last / first) / 2
    shared = {"showarrow": False, "font": {"size": 12, "color": INK}}
    return [
        {
            **shared,
            "text": f"target {curve.numbers.target_ms:g} ms",
            "x": 0.01,
            "xref": "paper",
            "xanchor": "left",
            "y": math.log10(curve.numbers.target_ms),
            "yref": "y",
            "yanchor": "bottom",
            "font": {"size": 12, "color": STALL_TEXT},
        },
        {
            **shared,
            "text": f"{best:,}",
            "x": math.log10(best),
            "xref": "x",
            "xanchor": "right" if right_half else "left",
            "xshift": -5 if right_half else 5,
            "y": 0,
            "yref": "paper",
            "yanchor": "bottom",
        },
    ]
