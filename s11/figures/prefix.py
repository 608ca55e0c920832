"""The four runs' prefill steps side by side, on one scale."""

from __future__ import annotations

import numpy as np

from s11.figures.mask import NO_COLOUR
from s11.figures.prefix_info import FourRuns, Strip, load_caption, strips
from s11.figures.theme import (
    IDLE,
    INK,
    PAPER,
    PREFILL,
    Spec,
    axis,
    layout,
)
from s11.words import count, ms

HEIGHT = 600
PREFILL_LIGHT = "#F3C969"  # every other request's, so that one is told from the next
ROOM_INSIDE = 0.35  # of a strip: a number fits into a bar
MOST_BARS = 250
GAP = 0.085  # of the plot, above each strip: its label's room
LETTER_ROOM, WORDS_ROOM = 0.024, 0.4  # of the axis, on a phone
ON_PREFILL = "#1A1A1A"
SAVED_HEIGHT = 0.32  # of a strip


def steps_figure(four: FourRuns) -> Spec:
    """Return the Plotly spec of the four strips, on one scale."""
    drawn = strips(four)
    longest_ms = max(strip.total_ms for strip in drawn)
    right_end = 1.02 * longest_ms or 1.0
    top_ms = 1.08 * max([float(s.duration_ms.max()) for s in drawn if len(s.left)], default=1.0)
    spec = layout(
        title=_steps_title(four),
        caption=[*load_caption(four), "stall: longest ITL; decode-only steps left out; vLLM V1"],
        meta={
            "figure": "prefix-steps",
            "skipped_chunks": four.skipped_chunks,
            "computed_tokens": four.both.metrics.computed_prefill_tokens,
            "longest_stall_ms": [run.metrics.longest_stall_ms for run in four],
        },
        height=HEIGHT,
    )
    data: list[Spec] = []
    notes: list[Spec] = []
    share = 1 / len(drawn)
    for place, strip in enumerate(drawn):
        name = "" if place == 0 else str(place + 1)
        bottom = 1 - (place + 1) * share
        spec[f"yaxis{name}"] = axis(
            range=[0, top_ms],
            domain=[bottom, bottom + share - GAP],
            nticks=4,
            tickformat=",",
            ticksuffix=" ms",
            fixedrange=True,
        )
        data += _strip_traces(strip, f"y{name}", top_ms)
        notes += _strip_notes(strip, f"y{name}", top_ms=top_ms, right_end=right_end)
    spec |= {
        "barmode": "overlay",
        "showlegend": False,
        "hovermode": "closest",
        "xaxis": axis(
            range=[0, right_end],
            anchor=f"y{len(drawn)}",
            tickformat=",",
            title={"text": "prefill time (ms)"},
        ),
        "annotations": notes,
    }
    spec["margin"] = {**spec["margin"], "t": spec["margin"]["t"] - 14, "b": 52, "l": 66}
    return {"data": data, "layout": spec}


def _steps_title(four: FourRuns) -> str:
    stall, neither = four.both.metrics.longest_stall_ms, four.neither.metrics.longest_stall_ms
    less = f"{100 * four.hit_share:.0f}% hits"
    if stall is None or neither is None:
        return f"{less}: {count(four.skipped_chunks, 'chunk')} skipped"
    return f"{less}; longest stall {ms(neither).removesuffix(' ms')} → {ms(stall)}"


def _strip_traces(strip: Strip, yaxis: str, top_ms: float) -> list[Spec]:
    traces: list[Spec] = []
    if strip.run.caching and strip.saved_ms:
        traces.append(
            {
                "type": "bar",
                "x": np.array([strip.total_ms + strip.saved_ms / 2], np.float32),
                "y": np.array([SAVED_HEIGHT * top_ms], np.float32),
                "width": strip.saved_ms,
                "marker": {
                    "color": NO_COLOUR,
                    "line": {"color": IDLE, "width": 1.5},
                    "pattern": hatched(),
                },
                "hovertemplate": f"{count(strip.run.metrics.cached_tokens, 'token')} hit: "
                f"{ms(strip.saved_ms)} less than without the cache<extra></extra>",
                "yaxis": yaxis,
            }
        )
    if len(strip.left) <= MOST_BARS:
        traces.append(
            {
                "type": "bar",
                "x": (strip.left + strip.duration_ms / 2).astype(np.float32),
                "y": strip.duration_ms.astype(np.float32),
                "width": strip.duration_ms.astype(np.float32),
                "customdata": strip.words,
                "marker": {
                    "color": [PREFILL_LIGHT if place % 2 else PREFILL for place in strip.group],
                    "line": {"color": PAPER, "width": 1},
                },
                "hovertemplate": "step of %{y:.1f} ms: %{customdata}<extra></extra>",
                "yaxis": yaxis,
            }
        )
    elif len(strip.left):
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "x": np.append(strip.left, strip.total_ms).astype(np.float32),
                "y": np.append(strip.duration_ms, strip.duration_ms[-1]).astype(np.float32),
                "line": {"shape": "hv", "color": PREFILL, "width": 1},
                "fill": "tozeroy",
                "fillcolor": PREFILL,
                "hovertemplate": "step of %{y:.1f} ms<extra></extra>",
                "yaxis": yaxis,
            }
        )
    return traces


def _strip_notes(strip: Strip, yaxis: str, *, top_ms: float, right_end: float) -> list[Spec]:
    notes: list[Spec] = [
        {
            "text": f"<b>{strip.run.name}:</b> {strip.label}",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "xshift": -2,
            "y": 1,
            "yref": f"{yaxis} domain",
            "yanchor": "bottom",
            "yshift": 1,
            "showarrow": False,
            "font": {"size": 13, "color": INK},
        }
    ]
    here: Spec = {"xref": "x", "yref": yaxis, "showarrow": False}
    for group in strip.groups:
        inside = group.top_ms >= ROOM_INSIDE * top_ms
        if (group.right - group.left) / right_end >= LETTER_ROOM * (len(group.label) + 0.5):
            notes.append(
                {
                    **here,
                    "text": group.label,
                    "x": group.left if inside else (group.left + group.right) / 2,
                    "xanchor": "left" if inside else "center",
                    "y": 0 if inside else group.top_ms,
                    "yanchor": "bottom",
                    "font": {"size": 12, "color": ON_PREFILL if inside else INK},
                }
            )
    if strip.run.caching and strip.saved_ms / right_end >= WORDS_ROOM:
        notes.append(
            {
                **here,
                "text": f"hits: {ms(strip.saved_ms)} less",
                "x": strip.total_ms + strip.saved_ms / 2,
                "y": SAVED_HEIGHT * top_ms / 2,
                "font": {"size": 12, "color": INK},
                "bgcolor": PAPER,
                "borderpad": 2,
            }
        )
    return notes


def hatched() -> Spec:
    """Return the pattern of what the cache holds."""
    return {
        "shape": "/",
        "fgcolor": IDLE,
        "size": 7,
        "solidity": 0.3,
        "fgopacity": 1,
        "fillmode": "overlay",
    }


def steps_alt(four: FourRuns) -> str:
    """Return the strips' numbers for those who cannot see them."""
    told = ". ".join(f"{strip.run.name}: {strip.label}" for strip in strips(four))
    return f"Prefill steps of four runs: {_steps_title(four)}. {told}."
