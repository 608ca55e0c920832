"""Predicted against measured as pictures: both on logarithmic axes, and how far off by size."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from s11.figures.theme import (
    DECODE,
    FIXED,
    HAND_OVER,
    IDLE,
    MUTED,
    PREEMPTED,
    PREFILL,
    STALL,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.figures.trust_info import BAND_PCT, Series, TrustInfo, log_ticks, pct

HEIGHT = 640
LONGEST_OF_TWO = 18  # characters of a name that two of a phone's legend row may have
MOST_PCT, LEAST_PCT = 100.0, 30.0  # of the error axis
LOOKS = {  # one colour and one form a GPU
    "a100-80": (DECODE, "circle"),
    "h100": (STALL, "diamond"),
    "l40s": (IDLE, "square"),
    "a40": (PREEMPTED, "triangle-up"),
    "h200": (PREFILL, "triangle-down"),
}
OTHER_GPU = (HAND_OVER, "star")
ENGINE_LOOKS = {"trtllm": (DECODE, "x-thin"), "sglang": (IDLE, "cross-thin")}


def scatter_figure(info: TrustInfo) -> Spec:
    """Return predicted against measured, the identity line and a band around it."""
    ends = np.array([info.lowest_ms, info.highest_ms])
    spec = _layout(info, title=_title(info), figure="trust-scatter")
    ticks = _time_axis(info)
    spec["xaxis"] = axis(**ticks, title={"text": "measured (ms)"}, constrain="domain")
    spec["yaxis"] = axis(
        **ticks,
        title={"text": "predicted (ms)"},
        scaleanchor="x",
        scaleratio=1,
        constrain="domain",
        constraintoward="top",
    )
    band = {
        "type": "scatter",
        "mode": "lines",
        "x": ends,
        "hoverinfo": "skip",
        "line": {"width": 0, "color": FIXED},
    }
    data: list[Spec] = [
        {**band, "y": ends * (1 - BAND_PCT / 100), "showlegend": False},
        {
            **band,
            "y": ends * (1 + BAND_PCT / 100),
            "fill": "tonexty",
            "fillcolor": "rgba(180,186,196,0.45)",
            "name": f"±{BAND_PCT:.0f}%",
        },
        {
            **band,
            "y": ends,
            "line": {"width": 1.5, "color": MUTED, "dash": "dash"},
            "name": "as measured",
        },
    ]
    data += [_points(series, series.predicted) for series in info.series]
    return {"data": data, "layout": spec}


def error_figure(info: TrustInfo) -> Spec:
    """Return each point's error over the time that was measured."""
    worst = max([float(np.abs(s.error_pct).max()) for s in info.series if len(s.measured)] + [0.0])
    top = min(MOST_PCT, max(LEAST_PCT, 1.08 * worst))
    beyond = sum(int((np.abs(series.error_pct) > top).sum()) for series in info.series)
    spec = _layout(
        info,
        title=f"{info.quantity.title}: how far off, by size",
        figure="trust-errors",
        beyond=beyond,
    )
    spec["xaxis"] = axis(**_time_axis(info), title={"text": "measured (ms)"})
    spec["yaxis"] = axis(
        range=[-top, top], ticksuffix="%", title={"text": "predicted − measured (% of measured)"}
    )
    spec["shapes"] = [
        {
            "type": "rect",
            "layer": "below",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": -BAND_PCT,
            "y1": BAND_PCT,
            "fillcolor": "rgba(180,186,196,0.45)",
            "line": {"width": 0},
        },
        {
            "type": "line",
            "xref": "paper",
            "x0": 0,
            "x1": 1,
            "y0": 0,
            "y1": 0,
            "line": {"width": 1.5, "color": MUTED, "dash": "dash"},
        },
    ]
    return {"data": [_points(series, series.error_pct) for series in info.series], "layout": spec}


def _layout(info: TrustInfo, *, title: str, figure: str, beyond: int = 0) -> Spec:
    drawn = f"{info.drawn:,} of {info.total:,} points drawn"
    if beyond:
        drawn += f", {beyond:,} beyond the frame"
    simulated = info.quantity.file == "end_to_end.csv"
    spec = layout(
        title=title,
        caption=[
            f"{drawn} · band ±{BAND_PCT:.0f}%",
            f"s11{' simulation' if simulated else ''}, roofline cost model, constants of "
            f"{info.constants_date}",
        ],
        meta={
            "figure": figure,
            "quantity": info.quantity.title,
            "points": info.drawn,
            "within_band": info.within_band,
        },
        height=HEIGHT,
    )
    entries = len(info.series) + 2  # with band and line; of both pictures, so that frames align
    long = any(len(series.name) > LONGEST_OF_TWO for series in info.series)
    rows = entries if long else -(-entries // 2)
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "closest",
    }
    margin = spec["margin"]
    # On a phone the buttons stand between caption and frame.
    spec["margin"] = {**margin, "l": 70, "t": margin["t"] + 22, "b": 58 + 19 * rows}
    return spec


def _time_axis(info: TrustInfo) -> Spec:
    values, texts = log_ticks(info.lowest_ms, info.highest_ms)
    return {
        "type": "log",
        "range": [math.log10(info.lowest_ms), math.log10(info.highest_ms)],
        "tickvals": values,
        "ticktext": texts,
    }


def _title(info: TrustInfo) -> str:
    means = [series.errors.mean_abs_error_pct for series in info.series]
    if not means:
        return f"{info.quantity.title}: nothing measured"
    low, high = pct(min(means)), pct(max(means))
    told = low if low == high else f"{low.removesuffix('%')} to {high}"
    return f"{info.quantity.title}: mean {told} off"


def _points(series: Series, values: Any) -> Spec:
    colour, symbol = LOOKS.get(series.gpu, OTHER_GPU)
    engine, _, short = series.group.partition(", ")
    colour, symbol = ENGINE_LOOKS.get(engine, (colour, symbol))
    line = {"width": 1.8 if "thin" in symbol or short else 0.5, "color": colour}
    labels = series.labels or ("",) * len(series.measured)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": series.name,
        "x": series.measured,
        "y": values,
        "marker": {
            "symbol": f"{symbol}-open" if short or "thin" in symbol else symbol,
            "size": 8,
            "color": colour,
            "opacity": 0.75,
            "line": line,
        },
        "customdata": [
            [f"<br>{label}" if label else "", predicted, error]
            for label, predicted, error in zip(
                labels, series.predicted.tolist(), series.error_pct.tolist(), strict=True
            )
        ],
        "hovertemplate": f"<b>{series.name}</b>%{{customdata[0]}}<br>measured %{{x:.4g}} ms"
        "<br>predicted %{customdata[1]:.4g} ms (%{customdata[2]:+.1f}%)<extra></extra>",
    }
