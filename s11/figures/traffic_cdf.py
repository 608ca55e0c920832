"""Cumulative distributions of TTFT, ITL and TPOT on log axes: three panels, one or two runs."""

from __future__ import annotations

import math

import numpy as np

from s11.figures.log_axis import log_axis, nice_range
from s11.figures.theme import INK, PAPER, Spec, axis
from s11.figures.traffic_cdf_info import MARK_NAMES, MARKED, CdfInfo, CdfPanel, Curve, share_words
from s11.figures.traffic_look import RUN_LOOKS, Look, foot, head, legend_name
from s11.words import ms

PANEL, TICKS_ROOM, HEAD_ROW = 132, 40, 16  # px
WIDE_PANEL, GAP_ACROSS = 250, 0.05
MARK_SYMBOLS = ("circle", "diamond", "square")
MARK_SIGNS = ("●", "◆", "■")
NARROWEST_HEAD_SIZE = 12
ROOM_BESIDE = 1.05  # a factor: no curve lies on its panel's edge


def cdf_figure(info: CdfInfo, *, side_by_side: bool = False) -> Spec:
    """Return the Plotly spec: the panels below each other, as a phone needs it, or in a row.

    `layout.meta.wide` holds what to change in the layout of the one to have the other.
    """
    spec = head(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "traffic-cdf",
            "p99_ms": {
                panel.title: [one.marks_ms[-1] if one.marks_ms else None for one in panel.curves]
                for panel in info.panels
            },
        },
    )
    spec |= {"hovermode": "closest", "annotations": [], "shapes": []}
    data: list[Spec] = []
    for place, panel in enumerate(info.panels):
        number = str(place + 1) if place else ""
        low, high = _ends(panel)
        spec[f"xaxis{number}"] = log_axis(low, high, title="") | {
            "anchor": f"y{number}",
            "hoverformat": ",.4g",
        }
        spec[f"yaxis{number}"] = axis(
            anchor=f"x{number}",
            range=[0, 1.04],
            tickvals=[0, 0.5, 0.9, 1],
            ticktext=["0", "50%", "90%", ""],
            fixedrange=True,
        )
        data += _traces(panel, number)
        spec["annotations"] += _head(panel, number)
        if panel.target_ms is not None:
            spec["shapes"].append(_target(panel.target_ms, number))
    wide = _places(info, spec, side_by_side=True)
    spec |= wide if side_by_side else _places(info, spec, side_by_side=False)
    spec["meta"]["wide"] = wide
    return {"data": data, "layout": spec}


def _places(info: CdfInfo, spec: Spec, *, side_by_side: bool) -> Spec:
    """Return the axes' places, the margins and the height, with the panels in a row or a pile."""
    above = HEAD_ROW * (1 + len(info.panels[0].curves)) + 6
    names = [one.name for one in info.panels[0].curves]
    panels = len(info.panels)
    top = spec["margin"]["t"] + above
    between = TICKS_ROOM + above
    plot = WIDE_PANEL if side_by_side else panels * PANEL + (panels - 1) * between
    places: Spec = {
        **foot(names, top=top, plot=plot, axis_room=TICKS_ROOM),
    }
    places["margin"] |= {"l": 44, "r": 18}
    width = (1 - GAP_ACROSS * (panels - 1)) / panels
    for place in range(panels):
        number = str(place + 1) if place else ""
        left = place * (width + GAP_ACROSS)
        upper = 1 - place * (PANEL + between) / plot
        across, up = ([left, left + width], [0, 1]) if side_by_side else ([0, 1], [
            max(0.0, upper - PANEL / plot), upper])  # fmt: skip
        places[f"xaxis{number}"] = {**spec[f"xaxis{number}"], "domain": across}
        places[f"yaxis{number}"] = {**spec[f"yaxis{number}"], "domain": up}
    return places


def _ends(panel: CdfPanel) -> tuple[float, float]:
    """Return the ends of a panel's axis: round, around all values and the target."""
    values = [v for one in panel.curves for v in one.value_ms[one.value_ms > 0].tolist()]
    if panel.target_ms is not None:
        values.append(panel.target_ms)
    values = values or [1.0, 1000.0]
    return nice_range(min(values) / ROOM_BESIDE, max(values) * ROOM_BESIDE)


def _traces(panel: CdfPanel, number: str) -> list[Spec]:
    """Return the curves, the later run first: the dashed line lies upon the solid one."""
    traces: list[Spec] = []
    looks = RUN_LOOKS if len(panel.curves) > 1 else RUN_LOOKS[1:]
    drawn = list(zip(panel.curves, looks, strict=False))
    for one, look in reversed(drawn):
        shown = one.value_ms > 0
        axes = {"xaxis": f"x{number}", "yaxis": f"y{number}"}
        value, share = one.value_ms[shown], one.share[shown]
        below = float(one.share[~shown][-1]) if (~shown).any() else 0.0
        traces.append(
            {
                "type": "scatter",
                "mode": "lines",
                "name": legend_name(one.name),
                "legendgroup": one.name,
                "legendrank": 1 + [curve.name for curve in panel.curves].index(one.name),
                "showlegend": not number,
                "x": np.append(value[:1], value).astype(np.float32),
                "y": np.append(np.full(len(value[:1]), below), share).astype(np.float32),
                "line": {**look.line(2.2), "shape": "hv"},
                "hovertemplate": f"{legend_name(one.name)}<br>"
                f"%{{y:.1%}} of {panel.of} within %{{x}} ms<extra></extra>",
                **axes,
            }
        )
        if one.marks_ms:
            traces.append(_marks(one, look) | axes)
    return traces


def _marks(one: Curve, look: Look) -> Spec:
    marks = [(v, float(p)) for v, p in zip(one.marks_ms or (), MARKED, strict=True)]
    return {
        "type": "scatter",
        "mode": "markers",
        "legendgroup": one.name,
        "showlegend": False,
        "x": np.array([value if value > 0 else math.nan for value, _ in marks]),
        "y": np.array([share for _, share in marks]),
        "marker": {
            "symbol": list(MARK_SYMBOLS),
            "size": 8,
            "color": look.colour,
            "line": {"color": PAPER, "width": 1},
        },
        "hovertemplate": f"{legend_name(one.name)}<br>%{{customdata}}: %{{x}} ms<extra></extra>",
        "customdata": list(MARK_NAMES),
    }


def _head(panel: CdfPanel, number: str) -> list[Spec]:
    """Return the panel's name, and under it each run's percentiles."""
    looks = RUN_LOOKS if len(panel.curves) > 1 else RUN_LOOKS[1:]
    target = "" if panel.target_ms is None else f"; dotted: target {panel.target_ms:,g}"
    lines = [f"<b>{panel.title} (ms)</b>, share of {panel.of}{target}"]
    for letter, one, look in zip("AB", panel.curves, looks, strict=False):
        name = f"{letter}  " if len(panel.curves) > 1 else ""
        lines.append(f'<span style="color:{look.colour}"><b>{name}</b></span>{_numbers(one)}')
    return [
        {
            "text": "<br>".join(lines),
            "x": 0,
            "xref": f"x{number} domain",
            "xanchor": "left",
            "y": 1,
            "yref": f"y{number} domain",
            "yanchor": "bottom",
            "yshift": 2,
            "align": "left",
            "showarrow": False,
            "font": {"size": NARROWEST_HEAD_SIZE, "color": INK},
        }
    ]


def _numbers(one: Curve) -> str:
    if one.marks_ms is None:
        return "no value"
    told = [
        f"{sign} {name} {ms(value).removesuffix(' ms')}"
        for sign, name, value in zip(MARK_SIGNS, MARK_NAMES, one.marks_ms, strict=True)
    ]
    within = "" if one.within is None else f"  {share_words(one.within)} in target"
    return "  ".join(told) + within


def _target(target_ms: float, number: str) -> Spec:
    return {
        "type": "line",
        "xref": f"x{number}",
        "yref": f"y{number} domain",
        "x0": target_ms,
        "x1": target_ms,
        "y0": 0,
        "y1": 1,
        "line": {"color": INK, "width": 1.5, "dash": "dot"},
    }
