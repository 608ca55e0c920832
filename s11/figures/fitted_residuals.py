"""A fitted cost model's errors against each column: a shape means that the line does not hold."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s11.figures.fitted import LOOKS, fit_caption
from s11.figures.fitted_info import KINDS, ColumnErrors, FitInfo, span
from s11.figures.theme import INK, MUTED, STALL, STALL_TEXT, Spec, axis, bottom_legend, layout

HEIGHT = 660
GAP = 0.115  # of the plot, above each panel: its label and the tokens of the one above
SMALLEST_TOP_PCT, BEYOND_MOST = 3.0, 2.5
ROOM = 1.2  # of the panels beyond their top, for a mark that stands at it


def residuals_figure(info: FitInfo) -> Spec:
    """Return the Plotly spec of errors against each column that varies, a panel each."""
    bent = [column for column in info.columns if column.bend]
    top = top_pct(info.error_pct)
    spec = layout(
        title=_title(bent),
        caption=[*fit_caption(info), "above 0: the model says too much; line: medians of groups"],
        meta={"figure": "residuals", "bent": [column.name for column in bent], "top_pct": top},
        height=HEIGHT,
    )
    data: list[Spec] = []
    notes: list[Spec] = []
    share = 1 / len(info.columns)
    for place, column in enumerate(info.columns):
        number = "" if place == 0 else str(place + 1)
        bottom = 1 - (place + 1) * share
        most = float(column.tokens.max())
        spec[f"xaxis{number}"] = axis(
            range=[-0.03 * most, 1.03 * most], anchor=f"y{number}", tickformat=",", nticks=6
        )
        spec[f"yaxis{number}"] = axis(
            range=[-ROOM * top, ROOM * top],
            domain=[bottom, bottom + share - GAP],
            anchor=f"x{number}",
            nticks=5,
            ticksuffix="%",
            zeroline=True,
            zerolinecolor=MUTED,
        )
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        data += [
            {**trace, **axes, "showlegend": place == 0} for trace in _traces(info, column, top)
        ]
        notes.append(_note(column, f"y{number}"))
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": 82},
        "hovermode": "closest",
        "annotations": notes,
    }
    spec["margin"] = {**spec["margin"], "t": spec["margin"]["t"] - 24, "b": 104}
    return {"data": data, "layout": spec}


def top_pct(error_pct: NDArray[np.float64]) -> float:
    """Return where the panels end: a few rows far off must not flatten the rest."""
    errors = np.sort(np.abs(error_pct))
    p90 = float(errors[-(-9 * len(errors) // 10) - 1])
    return max(SMALLEST_TOP_PCT, min(float(errors[-1]), BEYOND_MOST * p90))


def residuals_alt(info: FitInfo) -> str:
    """Return the panels' numbers for those who cannot see them."""
    told = []
    for column in info.columns:
        groups = ", ".join(f"{span(g)}: {g.median_error_pct:+.1f}%" for g in column.groups)
        told.append(f"{column.title} {groups}")
    return f"Median error by groups of rows. {'. '.join(told)}."


def _title(bent: list[ColumnErrors]) -> str:
    if not bent:
        return "No shape in the errors"
    if len(bent) == 1:
        return f"Errors bend with {bent[0].title.removesuffix(' attended to')}"
    return f"Errors bend with {len(bent)} of the columns"


def _note(column: ColumnErrors, yaxis: str) -> Spec:
    bend = column.bend
    told = "no shape"
    if bend:
        off = f"{bend.median_error_pct:+.1f}% at {span(bend)}"
        told = f'<span style="color:{STALL_TEXT}">{off}</span>'
    return {
        "text": f"<b>{column.title}:</b> {told}",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": 1,
        "yref": f"{yaxis} domain",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
    }


def _traces(info: FitInfo, column: ColumnErrors, top: float) -> list[Spec]:
    traces: list[Spec] = []
    beyond = np.abs(info.error_pct) > top  # (points,)
    for kind, (colour, symbol) in enumerate(LOOKS):
        of_kind = (info.kind == kind) & ~beyond
        if of_kind.any():
            traces.append(
                _markers(info, column, of_kind)
                | {"name": KINDS[kind], "marker": {"color": colour, "symbol": symbol, "size": 6}}
            )
    if beyond.any():
        up = info.error_pct[beyond] > 0
        marker = {
            "color": STALL,
            "size": 11,
            "symbol": ["triangle-up-open" if high else "triangle-down-open" for high in up],
        }
        traces.append(
            _markers(info, column, beyond)
            | {
                "name": "beyond edge",
                "y": np.where(up, top, -top).astype(np.float32),
                "marker": marker,
                "cliponaxis": False,
            }
        )
    # From each group's fewest tokens to its most, so that the line goes as far as the rows do.
    ends = [(end, g) for g in column.groups for end in sorted({g.low, g.high})]
    traces.append(
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": "median",
            "x": np.array([end for end, _ in ends], np.float32),
            "y": np.array([g.median_error_pct for _, g in ends], np.float32),
            "line": {"color": INK, "width": 2},
            "marker": {"color": INK, "size": 6, "symbol": "diamond"},
            "customdata": [f"{span(g)} {column.title}" for _, g in ends],
            "hovertemplate": "%{customdata}: median %{y:+.1f}%<extra></extra>",
        }
    )
    return traces


def _markers(info: FitInfo, column: ColumnErrors, some: NDArray[np.bool_]) -> Spec:
    return {
        "type": "scatter",
        "mode": "markers",
        "x": column.tokens[some].astype(np.float32),
        "y": info.error_pct[some].astype(np.float32),
        "customdata": [
            f"row {row:,}: {error:+.1f}%"
            for row, error in zip(info.file_row[some], info.error_pct[some], strict=True)
        ],
        "hovertemplate": "%{customdata}, %{x:,} tokens<extra></extra>",
    }
