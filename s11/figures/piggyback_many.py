"""What one decode costs aboard and alone, by how many of them there are."""

from __future__ import annotations

import math

import numpy as np

from s11.catalog import Deployment
from s11.figures.piggyback_looks import LEGEND_ENTRY, foot, hovered, machine_line, nice_above
from s11.figures.piggyback_ride import HEIGHT, fine_ms
from s11.figures.theme import DECODE, PREFILL, STALL, Spec, axis, bottom_legend, layout
from s11.piggyback_rides import MOST_DECODES, RideByDecodes
from s11.words import count, times

TICKS = [1, 4, 16, 64, 256]
LEAST_MS = 0.001


def tick_below(value: float) -> float:
    """Return the last of 1, 2, 5, 10, … at or below a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value)


def many_title(many: RideByDecodes) -> str:
    """Return the finding: how many times less the first and the last decode of the axis cost."""
    factors = [
        times(float(alone / aboard)) if aboard > 0 else "all"
        for aboard, alone in zip(many.aboard_ms[[0, -1]], many.alone_ms[[0, -1]], strict=True)
    ]
    return f"Cheaper aboard: {factors[0]} for 1, {factors[1]} for {int(many.decodes[-1]):,}"


def many_figure(many: RideByDecodes, deployment: Deployment, *, decodes: int) -> Spec:
    """Return the Plotly spec of the two lines; the chosen number is marked."""
    paid = many.aboard_ms[many.aboard_ms > LEAST_MS]
    lowest = min([float(many.alone_ms.min()), *paid.tolist()])
    low_ms, top_ms = tick_below(lowest), nice_above(float(many.alone_ms.max()))
    spec = layout(
        title=many_title(many),
        caption=[
            machine_line(deployment),
            f"prefill: {count(many.prefill_tokens, 'token')} of one prompt",
            f"{many.context_tokens:,} tokens of context each",
        ],
        meta={"figure": "piggyback-many", "decodes": decodes},
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY},
        "hovermode": "x unified",
        "xaxis": axis(
            type="log",
            range=[0, math.log10(MOST_DECODES)],
            tickvals=TICKS,
            ticktext=[f"{tick:,}" for tick in TICKS],
            title={"text": "decodes in the step"},
            **hovered("decodes"),
        ),
        "yaxis": axis(
            type="log",
            range=[math.log10(low_ms), math.log10(top_ms)],
            dtick="D2",
            tickformat=",~r",
            title={"text": "time of one decode (ms)"},
        ),
        "shapes": [
            {
                "type": "line",
                "xref": "x",
                "x0": decodes,
                "x1": decodes,
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "layer": "below",
                "line": {"color": STALL, "width": 1.5, "dash": "longdash"},
            }
        ],
    }
    spec["margin"] = {**spec["margin"], "b": foot(legend_rows=2)}
    return {
        "data": [
            {
                "type": "scatter",
                "mode": "lines",
                "name": name,
                "x": many.decodes.astype(np.int32),
                "y": np.where(values > LEAST_MS, values, np.nan).astype(np.float32),
                "line": {"color": colour, "width": 2.5, "dash": dash},
                "hovertemplate": "%{y:.3~g} ms",
            }
            for name, colour, dash, values in (
                ("alone", DECODE, "dash", many.alone_ms),
                ("aboard", PREFILL, "solid", many.aboard_ms),
            )
        ],
        "layout": spec,
    }


def many_alt(many: RideByDecodes, deployment: Deployment) -> str:
    """Return the lines' numbers for those who cannot see them."""
    told = [
        f"{count(int(decodes), 'decode')}: {fine_ms(aboard)} aboard, {fine_ms(alone)} alone"
        for decodes, aboard, alone in zip(
            many.decodes.tolist(), many.aboard_ms.tolist(), many.alone_ms.tolist(), strict=True
        )
        if decodes in TICKS or decodes == MOST_DECODES
    ]
    return f"One decode's cost, {machine_line(deployment)}. {'. '.join(told)}."
