"""N decodes inside a prefill step against a step of their own, operator by operator."""

from __future__ import annotations

import numpy as np

from s11.catalog import Deployment
from s11.figures.piggyback_looks import (
    LEGEND_ENTRY,
    SIMULATED,
    foot,
    machine_line,
    nice_above,
    operators,
)
from s11.figures.theme import INK, PAPER, Spec, axis, bottom_legend, layout
from s11.piggyback_rides import Ride
from s11.words import count, ms, times

HEIGHT = 450
ROWS = ("prefill<br>alone", "prefill<br>+ decodes", "decodes<br>alone")
LEAST_MS = 0.001
TEXT_ROOM = 1.16  # of the longest bar: its duration stands behind it


def fine_ms(value: float) -> str:
    """Return milliseconds of one decode: two digits more than a step's."""
    if 0 < abs(value) < LEAST_MS:
        return f"under {LEAST_MS:g} ms"
    return f"{value:.3g} ms" if abs(value) < 10 else ms(value)


def ride_title(ride: Ride) -> str:
    """Return the finding: one decode's cost aboard and alone."""
    if ride.factor is None:
        return f"Decode: free aboard, {fine_ms(ride.alone_ms)} alone"
    aboard, alone = (fine_ms(each).removesuffix(" ms") for each in (ride.aboard_ms, ride.alone_ms))
    return f"Decode: {aboard} ms aboard, {alone} alone"


def ride_figure(ride: Ride, deployment: Deployment) -> Spec:
    """Return the Plotly spec of the three steps, one above the other."""
    drawn = operators(ride.parts)
    end_ms = nice_above(TEXT_ROOM * max(ride.step_ms))
    spec = layout(
        title=ride_title(ride),
        caption=[machine_line(deployment), SIMULATED, *_work_lines(ride)],
        meta={
            "figure": "piggyback-ride",
            "step_ms": list(ride.step_ms),
            "aboard_ms": ride.aboard_ms,
            "alone_ms": ride.alone_ms,
        },
        height=HEIGHT,
    )
    spec |= {
        "barmode": "stack",
        "bargap": 0.35,
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "closest",
        "xaxis": axis(range=[0, end_ms], tickformat=",~r", title={"text": "step's time (ms)"}),
        "yaxis": axis(range=[2.5, -0.5], tickvals=[0, 1, 2], ticktext=list(ROWS), showgrid=False),
        "annotations": [
            {
                "x": duration_ms,
                "xref": "x",
                "xanchor": "left",
                "xshift": 4,
                "y": row,
                "yref": "y",
                "text": ms(duration_ms),
                "showarrow": False,
                "font": {"size": 13, "color": INK},
            }
            for row, duration_ms in enumerate(ride.step_ms)
        ],
    }
    spec["margin"] = {**spec["margin"], "l": 76, "b": foot(legend_rows=3)}
    return {
        "data": [
            {
                "type": "bar",
                "orientation": "h",
                "name": each.name,
                "x": each.duration_ms.astype(np.float32),
                "y": np.arange(3, dtype=np.int16),
                "marker": {
                    "color": each.colour,
                    "line": {"color": PAPER, "width": 1},
                    **({"pattern": each.pattern} if each.pattern else {}),
                },
                "hovertemplate": f"{each.name}: %{{x:.3~g}} ms<extra></extra>",
            }
            for each in drawn
        ],
        "layout": spec,
    }


def ride_alt(ride: Ride, deployment: Deployment) -> str:
    """Return the three steps' numbers for those who cannot see them."""
    told = []
    for row, name in enumerate(ROWS):
        each = ", ".join(
            f"{part.name} {ms(part.duration_ms[row])}"
            for part in operators(ride.parts)
            if part.duration_ms[row]
        )
        told.append(f"{name.replace('<br>', ' ')} {ms(ride.step_ms[row])} ({each})")
    cheaper = "" if ride.factor is None else f", {times(ride.factor)} less"
    return (
        f"Three steps, {machine_line(deployment)}: {'; '.join(told)}. {ride_title(ride)}{cheaper}."
    )


def _work_lines(ride: Ride) -> list[str]:
    before = f", {ride.start_token:,} before it" if ride.start_token else ""
    return [
        f"prefill: {count(ride.prefill_tokens, 'token')} of one prompt{before}",
        f"{count(ride.decodes, 'decode')} with {ride.context_tokens:,} tokens of context each",
    ]
