"""Measured and simulated latencies as two CDFs on one axis."""

from __future__ import annotations

from typing import Any

import numpy as np

from s11.figures.log_axis import log_axis
from s11.figures.overlay_info import Curve, OverlayInfo
from s11.figures.theme import (
    DECODE,
    INK,
    PAPER,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.words import ms, times

HEIGHT = 580
MEASURED, SIMULATED = "measured", "simulated"
AREA = "rgba(213, 94, 0, 0.16)"  # STALL


def overlay_figure(info: OverlayInfo) -> Spec:
    """Return the Plotly spec of the two CDFs, log x."""
    spec = layout(
        title=_title(info),
        caption=[_percentiles(info), *info.caption],
        meta={
            "figure": f"overlay-{info.name.lower()}",
            "measured_p50_p99_ms": [info.measured.median_ms, info.measured.p99_ms],
            "simulated_p50_p99_ms": [info.simulated.median_ms, info.simulated.p99_ms],
            "partings": len(info.named) + info.more,
        },
        height=HEIGHT,
    )
    data: list[Spec] = []
    if len(info.outline_ms):
        data.append(_area(info))
    for curve, name, colour, dash in (
        (info.measured, MEASURED, INK, "solid"),
        (info.simulated, SIMULATED, DECODE, "dash"),
    ):
        data += [_line(curve, name, colour, dash), _marks(curve, name, colour, info)]
    edge = f" ≤ {info.low_ms:g} at the edge;" if info.below_axis else ""
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": 98},
        "hovermode": "closest",
        "xaxis": log_axis(info.low_ms, info.high_ms, title=f"{info.name} (ms;{edge} log scale)"),
        "yaxis": axis(
            range=[0, 103],
            tickvals=[0, 25, 50, 75, 90, 99],
            title={"text": f"share of {info.name}s at or below (%)"},
            fixedrange=True,
        ),
        "annotations": [_names(info)],
    }
    spec["margin"] = {**spec["margin"], "b": 172, "l": 70}
    return {"data": data, "layout": spec}


def overlay_alt(info: OverlayInfo) -> str:
    """Return the curves' numbers for those who cannot see them."""
    return f"Share of {info.name}s by length, measured and simulated. {info.sentence}"


def _title(info: OverlayInfo) -> str:
    real, model = info.measured, info.simulated
    if not info.named:
        return f"{info.name}: within {info.tolerance_pct:g}% from P1 to P99"
    if real.median_ms <= 0 or real.p99_ms <= 0:
        return f"{info.name}, measured and simulated"
    return (
        f"{info.name}: P50 {_factor(model.median_ms / real.median_ms)}, "
        f"P99 {_factor(model.p99_ms / real.p99_ms)} measured"
    )


def _factor(ratio: float) -> str:
    return f"{ratio:.2f}×" if ratio < 10 else times(ratio)


def _percentiles(info: OverlayInfo) -> str:
    real, model = info.measured, info.simulated
    return (
        f"● P50 {_number(real.median_ms)} → {ms(model.median_ms)}, "
        f"◆ P99 {_number(real.p99_ms)} → {ms(model.p99_ms)} (→ simulated)"
    )


def _number(value_ms: float) -> str:
    return ms(value_ms).removesuffix(" ms")


def _line(curve: Curve, name: str, colour: str, dash: str) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": curve.value_ms.astype(np.float32),
        "y": curve.percent.astype(np.float32),
        "line": {"shape": "hv", "color": colour, "width": 2.5, "dash": dash},
        "hovertemplate": f"{name}: %{{y:.1f}}% within %{{x:,.1f}} ms<extra></extra>",
    }


def _marks(curve: Curve, name: str, colour: str, info: OverlayInfo) -> Spec:
    """Mark P50 and P99: filled where measured, open where simulated."""
    open_form = "" if name == MEASURED else "-open"
    marker: dict[str, Any] = {
        "symbol": [f"circle{open_form}", f"diamond{open_form}"],
        "size": 12,
        "color": colour,
        "line": {"width": 2.5 if open_form else 1, "color": colour if open_form else PAPER},
    }
    return {
        "type": "scatter",
        "mode": "markers",
        "showlegend": False,
        "x": np.maximum([curve.median_ms, curve.p99_ms], info.low_ms).astype(np.float32),
        "y": np.array([50, 99], np.float32),
        "marker": marker,
        "customdata": [ms(curve.median_ms), ms(curve.p99_ms)],
        "hovertemplate": f"{name}: P%{{y}} %{{customdata}}<extra></extra>",
    }


def _area(info: OverlayInfo) -> Spec:
    return {
        "type": "scatter",
        "mode": "lines",
        "name": f"over {info.tolerance_pct:g}% apart",
        "x": info.outline_ms.astype(np.float32),
        "y": info.outline_percent.astype(np.float32),
        "line": {"width": 0.5, "color": STALL},
        "fill": "toself",
        "fillcolor": AREA,
        "fillpattern": {
            "shape": "/",
            "fgcolor": STALL,
            "bgcolor": AREA,
            "size": 7,
            "solidity": 0.2,
        },
        "hoverinfo": "skip",
    }


def _names(info: OverlayInfo) -> Spec:
    """Name the partings below the axis, where no curve can run."""
    told = f"never more than {info.tolerance_pct:g}% apart"
    if info.named:
        more = f" (and {info.more} more)" if info.more else ""
        told = "<br>".join(info.named) + more
    return {
        "text": told,
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 0,
        "yref": "paper",
        "yanchor": "top",
        "yshift": -46,
        "align": "left",
        "showarrow": False,
        "font": {"size": 12, "color": STALL_TEXT if info.named else INK},
    }
