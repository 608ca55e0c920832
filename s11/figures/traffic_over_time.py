"""One or two runs over time: rows on one time axis, each a band from least to most, and a mean."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from s11.figures.theme import INK, Spec, axis
from s11.figures.traffic_look import RUN_LOOKS, Look, foot, head, legend_name
from s11.figures.traffic_over_time_info import OverTimeInfo, OverTimeRow, number_words
from s11.over_time import Band

ROW, HEAD, AXIS_ROOM = 84, 28, 50  # px
HEADROOM = 1.08  # of a row's highest value


def over_time_figure(info: OverTimeInfo) -> Spec:
    """Return the Plotly spec; `layout.meta.unit_ms` is the time axis' unit in ms."""
    plot = len(info.rows) * (ROW + HEAD) - HEAD
    unit_ms = info.unit_ms
    begin, end = info.edges_ms[0] / unit_ms, info.edges_ms[-1] / unit_ms
    spec = head(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "traffic-over-time",
            "unit_ms": unit_ms,
            "begin_ms": float(info.edges_ms[0]),
            "end_ms": float(info.edges_ms[-1]),
            "highest": {row.title: list(row.highest) for row in info.rows},
        },
    )
    top = spec["margin"]["t"] + HEAD
    spec |= {
        **foot([legend_name(name) for name in info.names], top=top, plot=plot, axis_room=AXIS_ROOM),
        "hovermode": "x unified",
        "hoversubplots": "axis",
        "xaxis": axis(
            range=[begin, end],
            anchor=f"y{len(info.rows)}" if len(info.rows) > 1 else "y",
            tickformat=",",
            nticks=8,
            title={"text": f"time ({'s' if unit_ms > 1 else 'ms'})"},
        ),
        "annotations": [],
        "shapes": [],
    }
    data: list[Spec] = []
    for place, row in enumerate(info.rows):
        number = str(place + 1) if place else ""
        upper = 1 - place * (ROW + HEAD) / plot
        highest = max([value for value in row.highest if value is not None], default=0.0)
        if row.target is not None and row.target <= 2 * highest:
            highest = max(highest, row.target)
        spec[f"yaxis{number}"] = axis(
            domain=[max(0.0, upper - ROW / plot), upper],
            anchor="x",
            range=[0, HEADROOM * highest or 1.0],
            nticks=4,
            tickformat="~s" if highest >= 10_000 else ",",
            fixedrange=True,
        )
        data += _traces(info, row, number)
        spec["annotations"].append(_head(row, number))
        if row.target is not None:
            spec["shapes"].append(_target(row.target, number))
    return {"data": data, "layout": spec}


def _traces(info: OverTimeInfo, row: OverTimeRow, number: str) -> list[Spec]:
    """Return each run's band and mean, the later run first."""
    begin, end = info.edges_ms[[0, -1]] / info.unit_ms
    common: Spec = {
        "type": "scatter",
        "mode": "lines",
        "showlegend": False,
        "x0": float(begin),  # the buckets are alike: no array of times for each line
        "dx": float(end - begin) / (len(info.edges_ms) - 1),
        "yaxis": f"y{number}",
        "hoverinfo": "skip",
    }
    looks = RUN_LOOKS if len(info.names) > 1 else RUN_LOOKS[1:]
    traces: list[Spec] = []
    drawn = list(zip(info.names, row.bands, looks, strict=False))
    for rank, (name, band, look) in reversed(list(enumerate(drawn))):
        if band is not None:
            named: Spec = common | {"name": legend_name(name), "legendgroup": name}
            traces += _band(named, band, look, row, rank=rank)
    return traces


def _band(common: Spec, band: Band, look: Look, row: OverTimeRow, *, rank: int) -> list[Spec]:
    def stepped(values: NDArray[np.float64]) -> NDArray[np.float32]:
        return np.append(values, values[-1:]).astype(np.float32)  # (buckets + 1,)

    thin = {"color": look.colour, "width": 0.6, "shape": "hv"}
    unit = f" {row.unit}" if row.unit != "%" else "%"
    return [
        common | {"y": stepped(band.lowest), "line": {**thin, "width": 0}},
        common
        | {
            "y": stepped(band.highest),
            "line": thin,
            "fill": "tonexty",
            "fillcolor": look.fill,
        },
        common
        | {
            "y": stepped(band.mean),
            "line": {**look.line(1.6), "shape": "hv"},
            "showlegend": common["yaxis"] == "y",
            "legendrank": 1 + rank,
            "customdata": stepped(band.highest),
            "hoverinfo": "all",
            "hovertemplate": f"{row.title}: mean %{{y:,.3~f}}{unit}, max "
            f"%{{customdata:,.1~f}}{unit}<extra>{common['name'].partition(':')[0]}</extra>",
        },
    ]


def _head(row: OverTimeRow, number: str) -> Spec:
    """Return the row's name and the most that each run comes to in it."""
    looks = RUN_LOOKS if len(row.bands) > 1 else RUN_LOOKS[1:]
    letters = "AB" if len(row.bands) > 1 else " "
    parts = []
    for letter, value, look in zip(letters, row.highest, looks, strict=False):
        name = f'<span style="color:{look.colour}"><b>{letter}</b></span> '.replace("<b> </b>", "")
        parts.append(name + number_words(value, row.unit).removesuffix(f" {row.unit}"))
    target = "" if row.target is None else f"; target {row.target:,g}"
    return {
        "text": f"<b>{row.title}</b> ({row.unit}), most: {', '.join(parts)}{target}",
        "x": 0,
        "xref": "x domain",
        "xanchor": "left",
        "y": 1,
        "yref": f"y{number} domain",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 12, "color": INK},
    }


def _target(target: float, number: str) -> Spec:
    return {
        "type": "line",
        "xref": "x domain",
        "yref": f"y{number}",
        "x0": 0,
        "x1": 1,
        "y0": target,
        "y1": target,
        "line": {"color": INK, "width": 1.3, "dash": "dot"},
    }
