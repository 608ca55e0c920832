"""The same sweep on many machines at once: small multiples on one scale."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from s11.figures.chunk_size_info import log_axis, octaves
from s11.figures.theme import IDLE, INK, MUTED, STALL, STALL_TEXT, Spec, axis, layout
from s11.sweeps import SweepPoint
from s11.tuning import balanced_knee
from s11.words import ms

COLUMNS, ROW_HEIGHT, HEAD_ROOM, FOOT_ROOM = 3, 150, 158, 60
GAP_ACROSS, HEAD_PX = 0.03, 40


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineCurve:
    """One machine's panel.

    waiting: its decodes stand still for the whole prompt: there is no knee.
    refused: why nothing runs on it; "" where something does.
    dropped: of which sizes, and why, where some do not run; "" where all or none do.
    """

    label: str
    calibrated: bool
    points: tuple[SweepPoint, ...]
    largest: int | None
    waiting: bool = False
    refused: str = ""
    dropped: str = ""

    @property
    def verdict(self) -> str:
        """Return the panel's second line: its largest chunk within the target, or why none."""
        if self.refused:
            return "does not fit" if "does not fit" in self.refused else "cannot run"
        return "none meets it" if self.largest is None else f"up to {self.largest:,}"


def many_figure(
    machines: tuple[MachineCurve, ...],
    *,
    target_ms: float,
    title: str,
    caption: list[str],
    planned: int,
) -> Spec:
    """Return the Plotly spec of the panels, in the machines' own order, on one scale.

    planned: how many there were to run.
    """
    rows = max(1, -(-len(machines) // COLUMNS))
    if len(machines) < planned:
        caption = [*caption, f"stopped after {len(machines)} of {planned}"]
    spec = layout(
        title=title,
        caption=caption,
        meta={
            "figure": "chunk-size-many",
            "target_ms": target_ms,
            "largest": {machine.label: machine.largest for machine in machines},
            "refused": [machine.label for machine in machines if machine.refused],
        },
        height=HEAD_ROOM + FOOT_ROOM + rows * ROW_HEIGHT,
    )
    stalls = [p.longest_stall_ms for m in machines for p in m.points if p.longest_stall_ms]
    sizes = sorted({p.chunk_tokens for m in machines for p in m.points}) or [64, 128]
    marks, words = octaves(sizes[0], sizes[-1], most=4)
    x_range = [math.log10(sizes[0] / 1.3), math.log10(sizes[-1] * 1.3)]
    waits = log_axis([*stalls, target_ms])
    data: list[Spec] = []
    shapes: list[Spec] = []
    notes: list[Spec] = []
    width = (1 - GAP_ACROSS * (COLUMNS - 1)) / COLUMNS
    head = HEAD_PX / (rows * ROW_HEIGHT)
    for place, machine in enumerate(machines):
        row, column = divmod(place, COLUMNS)
        name = str(place + 1) if place else ""
        left, top = column * (width + GAP_ACROSS), 1 - row / rows
        lowest = place + COLUMNS >= len(machines)
        spec[f"xaxis{name}"] = axis(
            type="log",
            domain=[left, left + width],
            anchor=f"y{name}",
            range=x_range,
            tickvals=marks,
            ticktext=words,
            showticklabels=lowest,
            hoverformat=",d",
            fixedrange=True,
            tickfont={"size": 11},
        )
        spec[f"yaxis{name}"] = axis(
            domain=[top - 1 / rows + 0.12 / rows, top - head],
            anchor=f"x{name}",
            showticklabels=column == 0,
            fixedrange=True,
            **waits,
        )
        data += _traces(machine, name, target_ms)
        shapes.append(
            {
                "type": "line",
                "xref": f"x{name} domain",
                "yref": f"y{name}",
                "x0": 0,
                "x1": 1,
                "y0": target_ms,
                "y1": target_ms,
                "line": {"color": STALL_TEXT, "width": 1.5, "dash": "dash"},
            }
        )
        notes.append(_head(machine, left, top - head))
    notes.append(_foot())
    spec |= {"showlegend": False, "hovermode": "closest", "shapes": shapes, "annotations": notes}
    spec["margin"] = {**spec["margin"], "b": FOOT_ROOM, "l": 52}
    return {"data": data, "layout": spec}


def _traces(machine: MachineCurve, name: str, target_ms: float) -> list[Spec]:
    points = machine.points
    within = np.array([(p.longest_stall_ms or 0.0) <= target_ms for p in points], bool)
    best = balanced_knee(points, waiting=machine.waiting)
    traces: list[Spec] = [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": machine.label,
            "x": np.array([p.chunk_tokens for p in points], np.int32),
            "y": np.array([p.longest_stall_ms or math.nan for p in points], np.float32),
            "xaxis": f"x{name}",
            "yaxis": f"y{name}",
            "line": {"color": MUTED, "width": 1.5},
            "marker": {
                "size": 7,
                "color": [IDLE if ok else STALL for ok in within],
                "symbol": ["circle" if ok else "x" for ok in within],
            },
            "hovertemplate": f"{machine.label}, %{{x}} tokens: %{{y:,.1f}} ms<extra></extra>",
        }
    ]
    if best and best.longest_stall_ms:
        traces.append(
            {
                "type": "scatter",
                "mode": "markers",
                "x": np.array([best.chunk_tokens], np.int32),
                "y": np.array([best.longest_stall_ms], np.float32),
                "xaxis": f"x{name}",
                "yaxis": f"y{name}",
                "marker": {
                    "size": 14,
                    "symbol": "circle-open",
                    "color": INK,
                    "line": {"width": 2, "color": INK},
                },
                "hovertemplate": f"{machine.label}, knee<extra></extra>",
            }
        )
    return traces


def _head(machine: MachineCurve, left: float, y: float) -> Spec:
    colour = INK if machine.largest else STALL_TEXT
    star = "" if machine.calibrated else " *"
    return {
        "text": f"<b>{machine.label}{star}</b><br>"
        f'<span style="color:{colour}">{machine.verdict}</span>',
        "x": left,
        "xref": "paper",
        "xanchor": "left",
        "y": y,
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "align": "left",
        "font": {"size": 12, "color": INK},
    }


def _foot() -> Spec:
    return {
        "text": "longest stall (ms) against chunk size (tokens)",
        "x": 0.5,
        "xref": "paper",
        "xanchor": "center",
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -26,
        "showarrow": False,
        "font": {"size": 12, "color": MUTED},
    }


def many_alt(machines: tuple[MachineCurve, ...], *, target_ms: float) -> str:
    """Return every panel's finding for those who cannot see it."""
    told = []
    for machine in machines:
        note = "" if machine.calibrated else " (not calibrated)"
        least = min([p.longest_stall_ms or math.inf for p in machine.points], default=None)
        range_of = f", shortest stall {ms(least)}" if least is not None else ""
        told.append(f"{machine.label}{note}: {machine.verdict}{range_of}")
    return f"Largest chunk within {target_ms:g} ms. {'; '.join(told)}."


def many_columns(machines: tuple[MachineCurve, ...]) -> dict[str, list[object]]:
    """Return the panels as a table, a row for each machine and chunk size."""
    columns: dict[str, list[object]] = {
        name: []
        for name in (
            "machine", "calibrated", "largest_chunk_tokens", "chunk_tokens",
            "longest_stall_ms", "ttft_ms", "prefill_tokens_per_s", "why_not",
        )
    }  # fmt: skip
    for machine in machines:
        for point in machine.points or (None,):
            row = (
                machine.label,
                machine.calibrated,
                machine.largest,
                *(
                    (None, None, None, None)
                    if point is None
                    else (
                        point.chunk_tokens,
                        point.longest_stall_ms,
                        point.ttft_ms,
                        point.prefill_tokens_per_s,
                    )
                ),
                machine.refused or None,
            )
            for name, value in zip(columns, row, strict=True):
                columns[name].append(value)
    return columns
