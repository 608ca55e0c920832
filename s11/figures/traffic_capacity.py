"""How much traffic a setting carries: goodput against request rate."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from s11.figures.chunk_size_info import short_caption
from s11.figures.theme import INK, MUTED, PAPER, Spec, axis
from s11.figures.traffic_look import LINE_LOOKS, Look, foot, head, legend_name
from s11.words import ms

PLOT, AXIS_ROOM = 300, 48  # px
ROOM = 1.1  # of the axes beyond the last point


class Rate(Protocol):
    """What the picture needs of a tried rate."""

    @property
    def rate_per_s(self) -> float:
        """Requests per second that were asked."""
        ...

    @property
    def goodput_per_s(self) -> float | None:
        """Requests per second that met both targets."""
        ...

    @property
    def itl_p99_ms(self) -> float | None:
        """The P99 ITL."""
        ...

    @property
    def scheduling_delay_p50_ms(self) -> float | None:
        """The median time from arrival to the first slice."""
        ...

    @property
    def holds(self) -> bool:
        """Whether the targets hold at this rate."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class CapacityCurve:
    """One setting's tried rates."""

    label: str
    points: tuple[Rate, ...]

    @property
    def in_order(self) -> list[Rate]:
        """The tried rates, rising."""
        return sorted(self.points, key=lambda point: point.rate_per_s)

    @property
    def highest(self) -> Rate | None:
        """The highest tried rate that holds the targets; None: none does."""
        held = [point for point in self.points if point.holds]
        return max(held, key=lambda point: point.rate_per_s, default=None)


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityInfo:
    """Goodput against rate for some settings; targets: what holding means, in words."""

    title: str
    caption: list[str]
    curves: tuple[CapacityCurve, ...]


def capacity_info(
    curves: Sequence[CapacityCurve], *, targets: str, caption: Sequence[str]
) -> CapacityInfo:
    """Return what to draw of some settings' tried rates.

    Args:
        curves: one a setting.
        targets: what a rate must hold, such as "P99 ITL 50 ms, median delay 2,000 ms".
        caption: lines with the parameters.
    """
    return CapacityInfo(
        title=_title(curves),
        caption=[short_caption(line) for line in (*caption, f"holds: {targets}")],
        curves=tuple(curves),
    )


def _title(curves: Sequence[CapacityCurve]) -> str:
    """Return the finding, in 45 characters at most."""
    held = [(c.highest.rate_per_s, c.label) for c in curves if c.highest]
    if not any(curve.points for curve in curves):
        return "Nothing was tried yet"
    if not held:
        return "No tried rate holds the targets"
    rate = max(held)[0]
    best = [label for each, label in held if rate_words(each) == rate_words(rate)]
    title = f"Holds up to {rate_words(rate)} requests/s"
    named = f"{title} ({best[0]})"
    if len(curves) > 1 and len(best) == 1 and len(named) <= 45:
        return named
    return title


def rate_words(rate: float) -> str:
    """Return a rate as people read it: 0.85, 6.4, 12, 120."""
    return f"{rate:.2f}" if rate < 1 else f"{rate:.1f}" if rate < 10 else f"{rate:,.0f}"


def capacity_figure(info: CapacityInfo) -> Spec:
    """Return the Plotly spec: where a line leaves the diagonal, requests miss the targets.

    Filled marks hold the targets, crosses do not, a ring is the highest that does.
    """
    points = [point for curve in info.curves for point in curve.points]
    fastest = ROOM * max([point.rate_per_s for point in points], default=1.0)
    best = ROOM * max([point.goodput_per_s or 0.0 for point in points], default=0.0) or fastest
    names = [curve.label for curve in info.curves]
    extra = ["all meet targets", "highest that holds"]
    spec = framed(
        info.title,
        info.caption,
        names=[*names, *extra],
        meta={
            "figure": "traffic-capacity",
            "highest_per_s": {
                c.label: c.highest.rate_per_s if c.highest else None for c in info.curves
            },
        },
    )
    spec |= {
        "xaxis": axis(range=[0, fastest], title={"text": "request rate (per s)"}, tickformat=","),
        "yaxis": axis(
            range=[0, best],
            title={"text": "goodput: requests per s that meet the targets"},
            tickformat=",",
        ),
        "annotations": [] if points else [nothing_tried()],
    }
    end = min(fastest, best)
    data: list[Spec] = [
        {
            "type": "scatter",
            "mode": "lines",
            "name": extra[0],
            "legendrank": 2001,
            "x": np.array([0.0, end]),
            "y": np.array([0.0, end]),
            "line": {"color": MUTED, "width": 1.2, "dash": "dot"},
            "hoverinfo": "skip",
        }
    ]
    for place, curve in enumerate(info.curves):
        data += _line(curve, LINE_LOOKS[place % len(LINE_LOOKS)])
    if any(curve.highest for curve in info.curves):
        data.append(_rings(info))
    return {"data": data, "layout": spec}


def _line(curve: CapacityCurve, look: Look) -> list[Spec]:
    points = curve.in_order
    told = [
        f"{legend_name(curve.label)}: {rate_words(point.rate_per_s)}/s<br>"
        f"P99 ITL {ms(point.itl_p99_ms)}, median delay {ms(point.scheduling_delay_p50_ms)}<br>"
        f"{'holds' if point.holds else 'does not hold'}"
        for point in points
    ]
    return [
        {
            "type": "scatter",
            "mode": "lines+markers",
            "name": legend_name(curve.label),
            "x": np.array([point.rate_per_s for point in points]),
            "y": np.array(
                [math.nan if p.goodput_per_s is None else p.goodput_per_s for p in points]
            ),
            "line": look.line(),
            "marker": {
                "color": look.colour,
                "size": 8,
                "symbol": [look.symbol if point.holds else "x-thin" for point in points],
                "line": {
                    "color": [PAPER if point.holds else look.colour for point in points],
                    "width": [0.5 if point.holds else 2 for point in points],
                },
            },
            "hovertext": told,
            "hovertemplate": "%{hovertext}, goodput %{y:,.2f}/s<extra></extra>",
        }
    ]


def _rings(info: CapacityInfo) -> Spec:
    held = [curve.highest for curve in info.curves if curve.highest]
    return {
        "type": "scatter",
        "mode": "markers",
        "name": "highest that holds",
        "legendrank": 2000,
        "x": np.array([point.rate_per_s for point in held]),
        "y": np.array([math.nan if p.goodput_per_s is None else p.goodput_per_s for p in held]),
        "marker": {"symbol": "circle-open", "size": 16, "color": INK, "line": {"width": 2}},
        "cliponaxis": False,
        "hoverinfo": "skip",
    }


def framed(title: str, caption: list[str], *, names: Sequence[str], meta: Spec) -> Spec:
    """Return the layout of one plot with a legend of these names."""
    spec = head(title=title, caption=caption, meta=meta)
    names = [legend_name(name) for name in names]
    below = foot(names, top=spec["margin"]["t"], plot=PLOT, axis_room=AXIS_ROOM)
    return spec | below | {"hovermode": "closest"}


def nothing_tried() -> Spec:
    """Return what an empty plot says."""
    return {
        "text": "nothing was tried yet",
        "x": 0.5,
        "xref": "paper",
        "y": 0.5,
        "yref": "paper",
        "showarrow": False,
        "font": {"size": 14, "color": MUTED},
    }
