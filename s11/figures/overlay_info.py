"""What an overlay's picture shows: two curves, their percentiles, and where they part."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.log_axis import nice_range
from s11.overlay import PERCENTS, Distribution, Overlay, Parting

MOST_POINTS = 1_000
WIDEST_SPAN = 1e5  # of the axis; gaps of no time have no place on a log scale
MOST_NAMED = 3
SHOWN_PERCENTS = (1, 5, 10, 25, 50, 75, 90, 95, 99)

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Curve:
    """A distribution's CDF: `percent` of all are `value_ms` or less."""

    value_ms: Floats  # (points,)
    percent: Floats  # (points,)
    median_ms: float
    p99_ms: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverlayInfo:
    """Two CDFs on one axis.

    low_ms, high_ms: the axis; it hangs on the measured side alone where the other keeps inside.
    below_axis: a value of either side is below it, and drawn at its edge.
    outline_ms, outline_percent: round each parting, NaN between two.
    named: the widest partings in words, from the lowest percentile to the highest.
    caption: model, GPU and engine; how requests were sent.
    """

    name: str
    measured: Curve
    simulated: Curve
    low_ms: float
    high_ms: float
    below_axis: bool
    outline_ms: Floats
    outline_percent: Floats
    named: tuple[str, ...]
    more: int
    tolerance_pct: float
    sentence: str
    caption: tuple[str, ...]


def overlay_info(overlay: Overlay, *, caption: list[str]) -> OverlayInfo:
    """Return what the picture of an overlay shows."""
    low_ms, high_ms = _range(overlay)
    outlines = [_outline(overlay, parting) for parting in overlay.partings]
    points = np.concatenate([np.empty((0, 2)), *outlines])  # (points, 2)
    by_width = sorted(overlay.partings, key=lambda p: p.first_percent - p.last_percent)
    named = sorted(by_width[:MOST_NAMED], key=lambda p: p.first_percent)
    smallest = min(overlay.measured.value_ms[0], overlay.simulated.value_ms[0])
    return OverlayInfo(
        name=overlay.name,
        measured=_curve(overlay.measured, low_ms),
        simulated=_curve(overlay.simulated, low_ms),
        low_ms=low_ms,
        high_ms=high_ms,
        below_axis=bool(smallest < low_ms),
        outline_ms=np.maximum(points[:, 0], low_ms),
        outline_percent=points[:, 1],
        named=tuple(_named(parting) for parting in named),
        more=len(overlay.partings) - len(named),
        tolerance_pct=overlay.tolerance_pct,
        sentence=overlay.sentence,
        caption=tuple(caption),
    )


def percentile_columns(
    overlays: list[Overlay], percents: tuple[int, ...]
) -> dict[str, list[object]]:
    """Return the percentiles of each overlay's two sides as columns, a row for each percent."""
    columns: dict[str, list[object]] = {
        "latency": [],
        "percentile": [],
        "measured_ms": [],
        "simulated_ms": [],
        "simulated_by_measured": [],
    }
    for overlay in overlays:
        for percent in percents:
            place = PERCENTS.index(percent)
            real, model = float(overlay.measured_ms[place]), float(overlay.simulated_ms[place])
            ratio = round(model / real, 3) if real else None
            row = (overlay.name, percent, round(real, 4), round(model, 4), ratio)
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return columns


def _curve(distribution: Distribution, low_ms: float) -> Curve:
    """Return the CDF in few points: at even shares, and both ends."""
    share = distribution.share
    at = np.arange(len(share))
    if len(share) > MOST_POINTS:
        at = np.unique(np.searchsorted(share, np.linspace(share[0], 1.0, MOST_POINTS)))
    value_ms = np.maximum(distribution.value_ms[at], low_ms)
    return Curve(
        value_ms=np.concatenate((value_ms[:1], value_ms)),
        percent=100.0 * np.concatenate(([0.0], share[at])),
        median_ms=distribution.median_ms,
        p99_ms=distribution.p99_ms,
    )


def _range(overlay: Overlay) -> tuple[float, float]:
    """Return a round range with room to move, wider where the simulated side needs it."""
    real, model = overlay.measured, overlay.simulated
    high = max(2.0 * real.value_ms[-1], model.value_ms[-1], 1e-3)
    least = max(1e-3, high / WIDEST_SPAN)
    low = min(overlay.measured_ms[0] / 2.0, overlay.simulated_ms[0], high / 4.0)
    return nice_range(max(float(low), least), float(high))


def _outline(overlay: Overlay, parting: Parting) -> Floats:  # (points, 2)
    """Return the way up the measured curve and down the simulated one, and a gap."""
    places = slice(parting.first_percent - 1, parting.last_percent)
    percents = np.array(PERCENTS, dtype=np.float64)[places]
    real, model = overlay.measured_ms[places], overlay.simulated_ms[places]
    ends = np.array([percents[0] - 0.5, percents[-1] + 0.5])  # a parting at one percent is seen
    up = np.concatenate(([ends[0]], percents, [ends[1]]))
    way = np.concatenate((np.pad(real, 1, mode="edge"), np.pad(model, 1, mode="edge")[::-1]))
    return np.vstack((np.column_stack((way, np.concatenate((up, up[::-1])))), [[np.nan, np.nan]]))


def _named(parting: Parting) -> str:
    """Return a parting in words, with the largest factor in it."""
    first, last = parting.first_percent, parting.last_percent
    place = f"P{first}" if first == last else f"P{first}–P{last}"
    word = "longer" if parting.longer else "shorter"
    return " ".join(filter(None, (f"{place}: simulated", parting.factor_told, word)))
