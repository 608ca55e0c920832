"""A fitted cost model against the steps that it was fitted on."""

from __future__ import annotations

import numpy as np

from s11.figures.fitted_info import KINDS, FitInfo
from s11.figures.log_axis import log_axis, nice_range
from s11.figures.theme import (
    DECODE,
    IDLE,
    INK,
    MUTED,
    PREFILL,
    STALL,
    Spec,
    bottom_legend,
    layout,
)
from s11.words import count, ms

HEIGHT = 660
TOLD = 3  # of the worst rows, in the alt text
NEAR_DECADES = 0.12
ROOM_BESIDE = 0.3  # of the axis, that a row's name needs at 390 px
FAR_PCT = 25.0
LOOKS = ((DECODE, "circle"), (PREFILL, "triangle-up"), (IDLE, "square"))  # as KINDS


def fit_figure(info: FitInfo) -> Spec:
    """Return the Plotly spec of predicted against measured durations, log–log."""
    spec = layout(
        title=_title(info),
        caption=fit_caption(info),
        meta={
            "figure": "fit",
            "rows": info.rows,
            "mean_abs_error_pct": info.mean_abs_error_pct,
            "leave_out_error_pct": info.leave_out_error_pct,
        },
        height=HEIGHT,
    )
    both = np.concatenate((info.measured_ms, info.predicted_ms))
    low, high = nice_range(float(both.min()), float(both.max()))
    ends = np.array([low, high], np.float32)
    data: list[Spec] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": "no error",
            "x": ends,
            "y": ends,
            "line": {"color": MUTED, "width": 1.5, "dash": "dash"},
            "hoverinfo": "skip",
        }
    ]
    data += [_points(info, kind) for kind in range(len(KINDS)) if (info.kind == kind).any()]
    data.append(_worst(info))
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": 82},
        "hovermode": "closest",
        "xaxis": log_axis(low, high, title="measured (ms, log scale)"),
        "yaxis": log_axis(low, high, title="predicted (ms, log scale)"),
        "annotations": _names(info, low=low, high=high),
    }
    spec["margin"] = {**spec["margin"], "b": 122}
    return {"data": data, "layout": spec}


def _title(info: FitInfo) -> str:
    return f"Error {info.mean_abs_error_pct:.1f}%; when left out, {info.leave_out_error_pct:.1f}%"


def fit_caption(info: FitInfo) -> list[str]:
    """Return what was fitted, for a picture that stands alone."""
    drawn = len(info.file_row)
    few = "" if drawn == info.rows else f", {drawn:,} of them drawn"
    return [info.source, f"s11, straight line through {count(info.rows, 'step')}{few}"]


def fit_alt(info: FitInfo) -> str:
    """Return the scatter's numbers for those who cannot see it."""
    worst = ", ".join(
        f"row {info.file_row[at]} {ms(float(info.predicted_ms[at]))} for "
        f"{ms(float(info.measured_ms[at]))}"
        for at in info.worst[:TOLD]
    )
    return (
        f"Predicted against measured durations of {count(info.rows, 'step')}, from "
        f"{ms(float(info.measured_ms.min()))} to {ms(float(info.measured_ms.max()))}. Mean error "
        f"{info.mean_abs_error_pct:.1f}%, on settings left out {info.leave_out_error_pct:.1f}%. "
        f"Worst: {worst}."
    )


def _points(info: FitInfo, kind: int) -> Spec:
    of_kind = info.kind == kind  # (points,)
    colour, symbol = LOOKS[kind]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": KINDS[kind],
        "x": info.measured_ms[of_kind].astype(np.float32),
        "y": info.predicted_ms[of_kind].astype(np.float32),
        "customdata": [
            f"row {row:,}: {error:+.1f}%"
            for row, error in zip(info.file_row[of_kind], info.error_pct[of_kind], strict=True)
        ],
        "marker": {"color": colour, "symbol": symbol, "size": 8, "opacity": 0.8},
        "hovertemplate": "%{customdata}<br>measured %{x:,.2f} ms, predicted %{y:,.2f} ms"
        f"<extra>{KINDS[kind]}</extra>",
    }


def _worst(info: FitInfo) -> Spec:
    worst = list(info.worst)
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "worst rows",
        "x": info.measured_ms[worst].astype(np.float32),
        "y": info.predicted_ms[worst].astype(np.float32),
        "marker": {
            "symbol": "circle-open",
            "size": 15,
            "color": STALL,
            "line": {"width": 2, "color": STALL},
        },
        "hoverinfo": "skip",
    }


def _names(info: FitInfo, *, low: float, high: float) -> list[Spec]:
    """Name the worst rows; those too near to each other share a name's place."""
    groups: list[list[int]] = []
    for at in info.worst:
        for group in groups:
            ratios = (
                info.measured_ms[at] / info.measured_ms[group[0]],
                info.predicted_ms[at] / info.predicted_ms[group[0]],
            )
            if all(abs(np.log10(ratio)) <= NEAR_DECADES for ratio in ratios):
                group.append(at)
                break
        else:
            groups.append([at])
    return [_name(info, group, low=low, high=high) for group in groups]


def _name(info: FitInfo, group: list[int], *, low: float, high: float) -> Spec:
    """Name rows where nothing else stands: under the line, over it at its end or if far above."""
    at = group[0]
    x, y = float(np.log10(info.measured_ms[at])), float(np.log10(info.predicted_ms[at]))
    place = (x - np.log10(low)) / np.log10(high / low)
    error_pct = info.error_pct[at]
    if error_pct > FAR_PCT:
        ax, ay = (-56, -8) if place > ROOM_BESIDE else (0, -44)
    elif place < 1 - ROOM_BESIDE:
        ax, ay = (56, 10)
    else:
        ax, ay = (0, 48) if error_pct < -FAR_PCT else (-60, -16)
    rows = ", ".join(f"{info.file_row[one]:,}" for one in group)
    return {
        "text": f"{'row' if len(group) == 1 else 'rows'} {rows}",
        "x": x,
        "y": y,
        "ax": ax,
        "ay": ay,
        "showarrow": True,
        "arrowhead": 0,
        "arrowwidth": 1,
        "arrowcolor": MUTED,
        "standoff": 8,
        "font": {"size": 12, "color": INK},
    }
