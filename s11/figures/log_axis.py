"""Axes of milliseconds on a log scale: round ends, and ticks that people read."""

from __future__ import annotations

import math

from s11.figures.theme import Spec, axis

STEPS = (1.0, 2.0, 5.0)
MOST_TICKS = 8


def nice_range(low: float, high: float) -> tuple[float, float]:
    """Return the next 1, 2 or 5 times a power of ten below `low` and above `high`."""
    return _rounds(low, low)[0], _rounds(high, high)[-1]


def log_axis(low: float, high: float, *, title: str) -> Spec:
    """Return a log axis from `low` to `high`, both above 0."""
    ticks = [value for value in _rounds(low, high) if low * 0.999 <= value <= high * 1.001]
    if len(ticks) > MOST_TICKS:
        ticks = [value for value in ticks if f"{value:e}"[0] == "1"]
    return axis(
        type="log",
        range=[math.log10(low), math.log10(high)],
        tickvals=ticks,
        ticktext=[f"{value:,.9g}" for value in ticks],
        title={"text": title},
    )


def _rounds(low: float, high: float) -> list[float]:
    """Return 1, 2 and 5 times powers of ten, from the last up to `low` to the first from `high`."""
    powers = range(math.floor(math.log10(low)) - 1, math.ceil(math.log10(high)) + 2)
    values = [float(f"{step:g}e{power}") for power in powers for step in STEPS]
    first = max(value for value in values if value <= low)
    last = min(value for value in values if value >= high)
    return [value for value in values if first <= value <= last]
