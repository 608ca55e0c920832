"""Tile steps: the linear operators' time for every single token count around an edge."""

from __future__ import annotations

import numpy as np

from s11.catalog import Deployment
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
    INK,
    PAPER,
    PREFILL,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.piggyback import LinearTimes
from s11.words import ms

HEIGHT = 580
SAME_MS = 0.0005
HEADROOM = 1.1  # for the arrow's words


def jump_words(steps: LinearTimes, after: int) -> str:
    """Return what the token after `after` adds, in a few words."""
    jump_ms = steps.jump_ms(after)
    if abs(jump_ms) < SAME_MS:
        return f"{after:,} → {after + 1:,} tokens: no step"
    more = f"{'+' if jump_ms > 0 else '−'}{ms(round_ms(abs(jump_ms)))}"
    return f"{after:,} → {after + 1:,} tokens: {more}"


def round_ms(value: float) -> float:
    """Return milliseconds to two significant digits where they are few."""
    return float(f"{value:.2g}") if value < 1 else value


def tiles_figure(steps: LinearTimes, deployment: Deployment, *, edge_tokens: int) -> Spec:
    """Return the Plotly spec of the window around an edge."""
    at = int(np.searchsorted(steps.tokens, edge_tokens))
    jump_ms = steps.jump_ms(edge_tokens)
    highest = float(max(steps.linear_ms.max(), steps.compute_ms.max(), steps.memory_ms.max()))
    share = 100 * jump_ms / float(steps.linear_ms[at])
    spec = layout(
        title=jump_words(steps, edge_tokens),
        caption=[
            machine_line(deployment),
            SIMULATED,
            f"linear operators, every single token count; {share:+.1f}% here".replace("-", "−"),
        ],
        meta={
            "figure": "piggyback-tiles",
            "edge_tokens": edge_tokens,
            "jump_ms": jump_ms,
            "largest_jump": steps.largest_jump(),
        },
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "x unified",
        "xaxis": axis(
            range=[int(steps.tokens[0]), int(steps.tokens[-1])],
            tickvals=_ticks(edge_tokens),
            tickformat=",",
            title={"text": "tokens in the step"},
            **hovered("tokens"),
        ),
        "yaxis": axis(
            range=[0, nice_above(HEADROOM * highest)], title={"text": "time (ms)"}, tickformat=",~r"
        ),
        "annotations": [
            {
                "x": edge_tokens + 1,
                "xref": "x",
                "y": float(steps.linear_ms[at + 1]),
                "yref": "y",
                "ax": -56,
                "ay": -38,
                "text": f"{edge_tokens + 1:,}: {ms(steps.linear_ms[at + 1])}",
                "showarrow": True,
                "arrowcolor": STALL,
                "arrowhead": 2,
                "bgcolor": PAPER,
                "font": {"size": 12, "color": STALL_TEXT},
            }
        ],
    }
    spec["margin"] = {**spec["margin"], "b": foot(legend_rows=2)}
    looks = (
        ("linear operators", INK, "solid", 2.5, steps.linear_ms),
        ("memory time", DECODE, "dash", 2, steps.memory_ms),
        ("compute time", PREFILL, "dashdot", 2, steps.compute_ms),
    )
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": steps.tokens.astype(np.int32),
                "y": values.astype(np.float32),
                "line": {"color": colour, "dash": dash, "width": width, "shape": "hvh"},
                "hovertemplate": "%{y:.4~g} ms",
            }
            for name, colour, dash, width, values in looks
        ],
        "layout": spec,
    }


def tiles_alt(steps: LinearTimes, deployment: Deployment, *, edge_tokens: int) -> str:
    """Return the step's numbers for those who cannot see it."""
    at = int(np.searchsorted(steps.tokens, edge_tokens))
    return (
        f"Linear operators for every token count from {steps.tokens[0]:,} to "
        f"{steps.tokens[-1]:,}, {machine_line(deployment)}. {jump_words(steps, edge_tokens)}, "
        f"from {ms(steps.linear_ms[at])} to {ms(steps.linear_ms[at + 1])}."
    )


def _ticks(edge_tokens: int) -> list[int]:
    return [edge_tokens * quarter // 4 for quarter in range(2, 7)]
