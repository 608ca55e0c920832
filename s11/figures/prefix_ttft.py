"""Every request's TTFT in the four runs."""

from __future__ import annotations

from typing import Any

import numpy as np

from s11.figures.prefix_info import FourRuns, Measured, load_caption, short
from s11.figures.theme import IDLE, MUTED, Spec, axis, bottom_legend, layout
from s11.words import ms

HEIGHT, MOST_TICKS = 600, 12


def ttft_figure(four: FourRuns) -> Spec:
    """Return the Plotly spec of every request's TTFT in the four runs."""
    ids = four.both.result.requests.request_id
    every = -(-len(ids) // MOST_TICKS)
    top_ms = max([float(np.nanmax(run.ttft_ms, initial=0.0)) for run in four])
    last = [float(run.ttft_ms[-1]) for run in four]
    spec = layout(
        title=_ttft_title(four),
        caption=[_last_caption(four), *load_caption(four)[1:]],
        meta={"figure": "prefix-ttft", "last_ttft_ms": [None if v != v else v for v in last]},
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": 98},
        "hovermode": "x unified",
        "xaxis": axis(
            range=[-0.4, len(ids) - 0.6],
            tickvals=list(range(0, len(ids), every)),
            ticktext=[short(name) for name in ids[::every]],
            title={"text": ids[0].split()[0] if " " in ids[0] else "request"},
            showgrid=False,
            fixedrange=True,
        ),
        "yaxis": axis(range=[0, 1.1 * top_ms or 1.0], tickformat=",", title={"text": "TTFT (ms)"}),
    }
    spec["margin"] = {**spec["margin"], "b": 96}
    return {"data": [_ttft_trace(run, ids) for run in four], "layout": spec}


def _ttft_title(four: FourRuns) -> str:
    with_cache, without = float(four.both.ttft_ms[-1]), float(four.chunking.ttft_ms[-1])
    if np.isnan(with_cache) or np.isnan(without):
        return "TTFT by request"
    return f"TTFT {ms(without)} → {ms(with_cache)}"


def _last_caption(four: FourRuns) -> str:
    return f"{four.both.result.requests.request_id[-1]}, chunking on: cache off → on"


def _ttft_trace(run: Measured, ids: tuple[str, ...]) -> Spec:
    colour = IDLE if run.caching else MUTED
    marker: dict[str, Any] = {"symbol": "circle", "size": 9, "color": colour}
    if not run.chunking:
        marker |= {"symbol": "square-open", "size": 11, "line": {"color": colour, "width": 2}}
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": run.name,
        "x": np.arange(len(ids), dtype=np.int16),
        "y": run.ttft_ms.astype(np.float32),
        "line": {
            "color": colour,
            "width": 2.5 if run.chunking else 1.5,
            "dash": "solid" if run.chunking else "dash",
        },
        "marker": marker,
        "hovertemplate": "%{y:.1f} ms",
    }


def ttft_alt(four: FourRuns) -> str:
    """Return the TTFTs for those who cannot see them."""
    ids = four.both.result.requests.request_id
    told = []
    for run in four:
        values = [ms(None if np.isnan(value) else float(value)) for value in run.ttft_ms]
        told.append(f"{run.name}: {', '.join(values)}")
    return f"TTFT of {', '.join(ids)}. {'. '.join(told)}."
