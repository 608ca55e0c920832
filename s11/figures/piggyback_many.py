"""What one decode costs aboard and alone, by how many of them there are."""

from __future__ import annotations

import math

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
from s11.figures.piggyback_ride import HEIGHT, LEAST_MS, fine_ms
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
from s11.piggyback_rides import MOST_DECODES, RideByDecodes
from s11.words import count, times

TICKS = [1, 4, 16, 64, 256]
CHOSEN_PX = 18  # above the plot, for the chosen number
EDGE_TIMES = 8  # what one more decode adds on average: from there on it is called an edge


def tick_below(value: float) -> float:
    """Return the last of 1, 2, 5, 10, … at or below a value."""
    power = 10.0 ** math.floor(math.log10(value))
    return max(step * power for step in (1, 2, 5) if step * power <= value)


def many_title(many: RideByDecodes, *, decodes: int) -> str:
    """Return the finding: how many times less a decode costs aboard, among the chosen number."""
    aboard, alone = many.at(decodes)
    who = count(decodes, "decode")
    if aboard <= 0:
        return f"{who}: free aboard"
    if aboard > alone:
        return f"{who}: {times(aboard / alone)} dearer aboard"
    return f"{who}: {times(alone / aboard)} cheaper aboard"


def edge_words(many: RideByDecodes) -> str:
    """Return what the decode after a tile's edge adds; "" where none adds much."""
    if many.edge_ms < EDGE_TIMES * max(many.usual_ms, 0.0) or many.edge_ms < LEAST_MS:
        return ""
    rows = many.prefill_tokens + many.edge_decodes
    after = f"decode {many.edge_decodes + 1:,} adds {fine_ms(many.edge_ms)}"
    return f"tile edge at {rows:,} rows:<br>{after}"


def many_figure(many: RideByDecodes, deployment: Deployment, *, decodes: int) -> Spec:
    """Return the Plotly spec of the two lines; the chosen number is marked."""
    paid = many.aboard_ms[many.aboard_ms > LEAST_MS]
    lowest = min([float(many.alone_ms.min()), *paid.tolist()])
    highest = float(max(many.alone_ms.max(), many.aboard_ms.max()))
    low_ms, top_ms = tick_below(lowest), nice_above(highest)
    spec = layout(
        title=many_title(many, decodes=decodes),
        caption=[
            machine_line(deployment),
            SIMULATED,
            f"prefill: {count(many.prefill_tokens, 'token')} of one prompt",
            f"{many.context_tokens:,} tokens of context each",
        ],
        meta={
            "figure": "piggyback-many",
            "decodes": decodes,
            "edge_decodes": many.edge_decodes if edge_words(many) else None,
        },
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
    spec["annotations"] = _notes(many, decodes)
    top = spec["margin"]["t"] + CHOSEN_PX
    spec["margin"] = {**spec["margin"], "t": top, "b": foot(legend_rows=2)}
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


def _notes(many: RideByDecodes, decodes: int) -> list[Spec]:
    """Name the chosen number at its line, and the tile's edge at its jump."""
    late = decodes > math.sqrt(MOST_DECODES)
    notes: list[Spec] = [
        {
            "text": f"chosen: {count(decodes, 'decode')}",
            "x": math.log10(decodes),
            "xref": "x",
            "xanchor": "right" if late else "left",
            "xshift": -4 if late else 4,
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12, "color": STALL_TEXT},
        }
    ]
    after = many.edge_decodes + 1
    aboard_ms = many.at(after)[0]
    if edge_words(many) and aboard_ms > LEAST_MS:
        # Both lines fall: above and right of any point the plot is empty.
        right_px, up_px = (150, -10) if after < 8 else (50 if after < 64 else -50, 90)
        notes.append(
            {
                "text": edge_words(many),
                "x": math.log10(after),
                "xref": "x",
                "y": math.log10(aboard_ms),
                "yref": "y",
                "ax": right_px,
                "ay": -up_px,
                "xanchor": "center",
                "showarrow": True,
                "arrowcolor": INK,
                "arrowhead": 2,
                "bgcolor": PAPER,
                "font": {"size": 12, "color": INK},
            }
        )
    return notes


def many_alt(many: RideByDecodes, deployment: Deployment) -> str:
    """Return the lines' numbers for those who cannot see them."""
    told = [
        f"{count(int(decodes), 'decode')}: {fine_ms(aboard)} aboard, {fine_ms(alone)} alone"
        for decodes, aboard, alone in zip(
            many.decodes.tolist(), many.aboard_ms.tolist(), many.alone_ms.tolist(), strict=True
        )
        if decodes in TICKS or decodes == MOST_DECODES
    ]
    edge = edge_words(many).replace("<br>", " ")
    told += [edge.capitalize()] if edge else []
    return f"One decode's cost, {machine_line(deployment)}. {'. '.join(told)}."
