"""“Smaller chunks are always smoother”: longest gap and TTFT over every chunk size."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from s11.catalog import Deployment
from s11.figures.log_axis import log_axis, nice_range
from s11.figures.piggyback_looks import SIMULATED, machine_line
from s11.figures.theme import (
    IDLE,
    INK,
    PAPER,
    PREEMPTED,
    STALL,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.myths_smaller import LITTLE, SizesTried
from s11.words import count, ms, times

HEIGHT = 470
STREAMS_WORDS = "one prompt of {prompt} among {users} streams"


def smaller_title(tried: SizesTried) -> str:
    """Return the finding: from which size down nothing is gained."""
    enough = tried.enough
    if enough is tried.sizes[0]:
        return f"The gap shrinks down to {enough.chunk_tokens:,}"
    return f"Below {enough.chunk_tokens:,} only the TTFT grows"


def smaller_figure(tried: SizesTried, machine: Deployment, *, chunk_tokens: int) -> Spec:
    """Return the Plotly spec: two curves over the chunk size, the floor, and the chosen size."""
    sizes = np.array([size.chunk_tokens for size in tried.sizes], np.int32)
    stalls = [size.longest_stall_ms for size in tried.sizes]
    ttfts = [size.ttft_ms for size in tried.sizes]
    low, high = nice_range(min(tried.floor_ms, *stalls), max(*stalls, *ttfts))
    chosen, enough = tried.at(chunk_tokens), tried.enough
    spec = layout(
        title=smaller_title(tried),
        caption=[
            machine_line(machine),
            STREAMS_WORDS.format(
                prompt=count(tried.prompt_tokens, "token"), users=tried.streaming_users
            ),
            f"{SIMULATED} · log scales",
        ],
        meta={
            "figure": "myth-smaller",
            "chunk_tokens": chosen.chunk_tokens,
            "enough_tokens": enough.chunk_tokens,
            "floor_ms": tried.floor_ms,
        },
        height=HEIGHT,
    )
    marks = [int(size) for size in sizes]
    shown = marks if len(marks) <= 5 else marks[::2]
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "x unified",
        "xaxis": axis(
            type="log",
            range=[math.log10(marks[0] / 1.2), math.log10(marks[-1] * 1.2)],
            tickvals=shown,
            ticktext=[f"{mark:,}" for mark in shown],
            tickangle=0,
            title={"text": "chunk size (tokens)"},
            unifiedhovertitle={"text": "chunks of %{x:,}"},
        ),
        "yaxis": log_axis(low, high, title="ms"),
        "shapes": _shapes(tried, marks[0], low, high, chosen.chunk_tokens),
        "annotations": _notes(tried, low),
    }
    spec["margin"] = {**spec["margin"], "b": 104}
    return {
        "data": [
            _curve(sizes, stalls, "longest gap of the streams", STALL, "circle", "solid"),
            _curve(sizes, ttfts, "TTFT of the prompt", PREEMPTED, "triangle-up", "dash"),
            {
                "type": "scatter",
                "mode": "markers",
                "name": "chosen",
                "x": [chosen.chunk_tokens] * 2,
                "y": [chosen.longest_stall_ms, chosen.ttft_ms],
                "marker": {
                    "symbol": "circle-open",
                    "size": 16,
                    "color": INK,
                    "line": {"width": 2.5},
                },
                "hoverinfo": "skip",
            },
        ],
        "layout": spec,
    }


def smaller_words(tried: SizesTried, *, chunk_tokens: int) -> str:
    """Return what is true, with the figure's own numbers."""
    chosen, enough, least = tried.at(chunk_tokens), tried.enough, tried.sizes[0]
    told = (
        f"At {count(chosen.chunk_tokens, 'token')} the longest gap is "
        f"{ms(chosen.longest_stall_ms)} and the first token comes after {ms(chosen.ttft_ms)}, in "
        f"{count(chosen.prefill_steps, 'step')}. No chunk goes below the floor of "
        f"{ms(tried.floor_ms)}, a step of the {tried.streaming_users} decodes alone."
    )
    if enough is least:
        return f"{told} Here every halving still shortens the gap by more than {LITTLE:.0%}."
    gained = enough.longest_stall_ms - least.longest_stall_ms
    gap = (
        f"shortens it by {ms(gained)}"
        if gained > 0
        else f"even lengthens it by {ms(-gained)}"
        if gained < 0
        else "changes nothing"
    )
    return (
        f"{told} From {count(enough.chunk_tokens, 'token')} "
        f"({ms(enough.longest_stall_ms)}) down to {least.chunk_tokens:,}, a smaller chunk {gap}, "
        f"and the TTFT grows {times(least.ttft_ms / enough.ttft_ms)}, from {ms(enough.ttft_ms)} "
        f"to {ms(least.ttft_ms)}: every step reads all weights, fills whole tiles and costs the "
        "engine its own time, however few tokens it computes."
    )


def smaller_alt(tried: SizesTried, machine: Deployment) -> str:
    """Return the curves' numbers for those who cannot see them."""
    told = "; ".join(
        f"{size.chunk_tokens:,}: longest gap {ms(size.longest_stall_ms)}, TTFT {ms(size.ttft_ms)}"
        for size in tried.sizes
    )
    return (
        f"{smaller_title(tried)}. {machine_line(machine)}. By chunk size in tokens: {told}. "
        f"Floor: {ms(tried.floor_ms)}."
    )


def smaller_columns(tried: SizesTried) -> Mapping[str, Sequence[Any]]:
    """Return every size that was tried."""
    return {
        "chunk_tokens": [size.chunk_tokens for size in tried.sizes],
        "longest_gap_ms": [round(size.longest_stall_ms, 4) for size in tried.sizes],
        "ttft_ms": [round(size.ttft_ms, 4) for size in tried.sizes],
        "prefill_steps": [size.prefill_steps for size in tried.sizes],
        "floor_ms": [round(tried.floor_ms, 4)] * len(tried.sizes),
    }


def _curve(x: Any, y: list[float], name: str, colour: str, symbol: str, dash: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": x,
        "y": np.array(y, np.float32),
        "line": {"color": colour, "width": 2.5, "dash": dash},
        "marker": {"symbol": symbol, "size": 8, "color": colour},
        "hovertemplate": "%{y:,.1f} ms",
    }


def _shapes(tried: SizesTried, first: int, low: float, high: float, chosen: int) -> list[Spec]:
    """Shade where nothing is gained; draw the floor and the chosen size."""
    edge = tried.enough.chunk_tokens
    shapes: list[Spec] = []
    if edge > first:
        shapes.append(
            {"type": "rect", "layer": "below", "xref": "x", "yref": "y domain", "y0": 0, "y1": 1}
            | {"x0": first / 1.2, "x1": edge, "fillcolor": PREEMPTED, "opacity": 0.16}
            | {"line": {"width": 0}}
        )
    floor = {"color": IDLE, "width": 2, "dash": "dot"}
    shapes.append(
        {"type": "line", "xref": "x domain", "x0": 0, "x1": 1, "yref": "y"}
        | {"y0": tried.floor_ms, "y1": tried.floor_ms, "line": floor}
    )
    shapes.append(
        {"type": "line", "xref": "x", "x0": chosen, "x1": chosen, "yref": "y"}
        | {"y0": low, "y1": high, "line": {"color": INK, "width": 1, "dash": "dot"}}
    )
    return shapes


def _notes(tried: SizesTried, low: float) -> list[Spec]:
    font = {"size": 12, "color": INK}
    plain = {"showarrow": False, "bgcolor": PAPER, "borderpad": 1, "font": font}
    notes: list[Spec] = [
        {
            "text": f"floor: the decodes' step, {ms(tried.floor_ms)}",
            "x": 1,
            "xref": "x domain",
            "xanchor": "right",
            "y": math.log10(tried.floor_ms),
            "yref": "y",
            "yanchor": "top" if tried.floor_ms > 1.3 * low else "bottom",
            "yshift": -3 if tried.floor_ms > 1.3 * low else 3,
            **plain,
        }
    ]
    if tried.enough is not tried.sizes[0]:
        notes.append(
            {
                "text": "gap hardly shrinks",
                "x": math.log10(tried.sizes[0].chunk_tokens / 1.15),
                "xref": "x",
                "xanchor": "left",
                "y": 0.36,
                "yref": "y domain",
                "yanchor": "middle",
                **plain,
            }
        )
    return notes
