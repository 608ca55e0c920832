"""A stretch of one or two runs over time, ready to be drawn: a row for each quantity."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.traffic_look import (
    TrafficRun,
    check_runs,
    run_names,
    time_unit_ms,
    traffic_caption,
)
from s11.over_time import Band, OverTime, over_time, run_span_ms
from s11.words import ms

BUCKETS = 300
"""About one a pixel on a phone, and one in four on a wide page."""

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverTimeRow:
    """One quantity: a band for each run; None where a run has no such thing.

    unit: of the values, as it stands behind a number.
    """

    title: str
    unit: str
    target: float | None
    bands: tuple[Band | None, ...]

    @property
    def highest(self) -> tuple[float | None, ...]:
        """The most that each run comes to."""
        return tuple([None if band is None else float(band.highest.max()) for band in self.bands])


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverTimeInfo:
    """Everything that the picture over time draws; times are in ms."""

    title: str
    caption: list[str]
    names: tuple[str, ...]
    edges_ms: Floats  # (buckets + 1,)
    rows: tuple[OverTimeRow, ...]

    @property
    def unit_ms(self) -> float:
        """The unit of the time axis, in ms."""
        return time_unit_ms(float(self.edges_ms[-1]))


def over_time_info(
    runs: Sequence[TrafficRun],
    *,
    itl_target_ms: float,
    begin_ms: float | None = None,
    end_ms: float | None = None,
    buckets: int = BUCKETS,
) -> OverTimeInfo:
    """Return what one run or two did from `begin_ms` to `end_ms`; None: from or to the end.

    Raises:
        ValueError: no run or more than two, a time or a count out of range.
    """
    check_runs(runs)
    begin_ms = 0.0 if begin_ms is None else begin_ms
    if end_ms is None:
        end_ms = max([run_span_ms(run.result)[1] for run in runs])
    each = [
        over_time(run.result, begin_ms=begin_ms, end_ms=end_ms, buckets=buckets) for run in runs
    ]

    def row(
        title: str, unit: str, band: Callable[[OverTime], Band], target: float | None = None
    ) -> OverTimeRow:
        bands = tuple([band(one) for one in each])
        return OverTimeRow(title=title, unit=unit, target=target, bands=bands)

    rows = [
        row("Waiting", "requests", lambda one: one.waiting),
        row("Running", "requests", lambda one: one.running),
        *_kv_rows(runs, each),
        row("Step duration", "ms", lambda one: one.step_ms, itl_target_ms),
        row("Prefill in a step", "tokens", lambda one: one.prefill_tokens),
        row("Decode in a step", "tokens", lambda one: one.decode_tokens),
    ]
    longest = next(row for row in rows if row.title == "Step duration").highest
    unit_ms = time_unit_ms(end_ms)
    unit = "s" if unit_ms > 1 else "ms"
    window = (
        f"{begin_ms / unit_ms:,.4g} to {end_ms / unit_ms:,.4g} {unit}, "
        f"each mark {ms((end_ms - begin_ms) / buckets)}: mean, min to max"
    )
    return OverTimeInfo(
        title=_title(longest),
        caption=[*traffic_caption(runs), window],
        names=tuple(run_names(runs)),
        edges_ms=each[0].edges_ms,
        rows=tuple(rows),
    )


def _kv_rows(runs: Sequence[TrafficRun], each: Sequence[OverTime]) -> list[OverTimeRow]:
    """Return the share of the KV pool that is held; no row where no run has a pool."""
    bands: list[Band | None] = []
    for run, one in zip(runs, each, strict=True):
        pool, held = run.experiment.limits.kv_blocks, one.kv_blocks
        bands.append(
            None
            if pool is None
            else Band(
                lowest=100 * held.lowest / pool,
                mean=100 * held.mean / pool,
                highest=100 * held.highest / pool,
            )
        )
    if not any(bands):
        return []
    return [OverTimeRow(title="KV blocks held", unit="%", target=None, bands=tuple(bands))]


def _title(longest_ms: Sequence[float | None]) -> str:
    """Return the finding, in 45 characters at most."""
    steps = [ms(value) for value in longest_ms if value]
    if not steps:
        return "No step in this stretch"
    if len(longest_ms) == 1:
        return f"Longest step {steps[0]}"
    if len(steps) < len(longest_ms):
        return f"Longest step {steps[0]}, in {'A' if longest_ms[0] else 'B'} alone"
    if steps[0] == steps[1]:
        return f"Longest step {steps[0]} in both"
    return f"Longest step: A {steps[0]}, B {steps[1]}"


def over_time_columns(info: OverTimeInfo) -> dict[str, NDArray[np.generic]]:
    """Return the picture's numbers as a table, a row for each bucket."""
    columns: dict[str, NDArray[np.generic]] = {
        "begin_ms": info.edges_ms[:-1],
        "end_ms": info.edges_ms[1:],
    }
    letters = ("a", "b") if len(info.names) > 1 else ("",)
    for row in info.rows:
        name = row.title.lower().replace(" ", "_") + "_" + row.unit.replace("%", "percent")
        for letter, band in zip(letters, row.bands, strict=True):
            if band is None:
                continue
            for which in ("lowest", "mean", "highest"):
                parts = [name, *([letter] if letter else []), which]
                columns["_".join(parts)] = getattr(band, which)
    return columns


def number_words(value: float | None, unit: str) -> str:
    """Return a row's value with its unit."""
    if value is None:
        return "not counted"
    if unit == "ms":
        return ms(value)
    if unit == "%":
        return f"{value:.3g}%"
    return f"{value:,.0f} {unit}"


def over_time_alt(info: OverTimeInfo) -> str:
    """Return the picture's numbers for those who cannot see it."""
    told = []
    for row in info.rows:
        most = ", ".join(
            [
                f"{name} {number_words(value, row.unit)}"
                for name, value in zip(info.names, row.highest, strict=True)
            ]
        )
        told.append(f"{row.title}, at most: {most}")
    return f"Over time. {info.title}. {'. '.join(info.caption)}. {'; '.join(told)}."
