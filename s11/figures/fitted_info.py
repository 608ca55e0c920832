"""What a fit's pictures show: each row's error, and where the straight line does not hold."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.costs.least_squares import Fit
from s11.costs.measurements import MOST_TOKENS, Measurements
from s11.words import count

MOST_POINTS = 3_000
MOST_GROUPS, ROWS_PER_GROUP = 6, 5
SMALLEST_BEND_PCT, STANDARD_ERRORS = 2.0, 3.0
MEDIAN_TO_SIGMA = 1.4826  # of absolute deviations, where errors are normal
SIGMA_OF_MEDIAN = 1.253  # in standard errors of the mean
KINDS = ("decode only", "prefill only", "both")
TITLES = {
    "prefill_tokens": "prefill tokens",
    "decode_tokens": "decode tokens",
    "context_tokens": "cached tokens attended to",
}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """Neighbouring rows of one column: from `low` to `high` tokens, and their median error."""

    low: int
    high: int
    rows: int
    median_error_pct: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ColumnErrors:
    """Errors against one column. `bend`: the group that is farthest off, if beyond chance."""

    name: str
    title: str
    tokens: Ints  # (points,)
    groups: tuple[Group, ...]
    bend: Group | None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class FitInfo:
    """The rows that are drawn: at most MOST_POINTS, the worst among them.

    error_pct: (predicted − measured) / measured; above 0 the model says too much.
    kind: index into KINDS.
    worst: places among the points, the worst first.
    """

    rows: int
    file_row: Ints  # (points,)
    measured_ms: Floats  # (points,)
    predicted_ms: Floats  # (points,)
    error_pct: Floats  # (points,)
    kind: Ints  # (points,)
    worst: tuple[int, ...]
    columns: tuple[ColumnErrors, ...]
    mean_abs_error_pct: float
    leave_out_error_pct: float
    source: str


def fit_info(measurements: Measurements, fit: Fit, *, source: str) -> FitInfo:
    """Return what the pictures of a fit show.

    source: the file's name, or that the rows are made up.
    """
    error_pct = -100.0 * fit.residuals_ms / measurements.duration_ms  # (rows,)
    drawn = _drawn(measurements, fit)  # (points,)
    places = {int(row): place for place, row in enumerate(measurements.file_row[drawn])}
    prefill, decode = measurements.prefill_tokens > 0, measurements.decode_tokens > 0  # (rows,)
    columns = []
    for name in MOST_TOKENS:
        tokens = getattr(measurements, name)
        if len(np.unique(tokens)) > 1:
            groups = _groups(tokens, error_pct)
            columns.append(
                ColumnErrors(
                    name=name,
                    title=TITLES[name],
                    tokens=tokens[drawn],
                    groups=groups,
                    bend=_bend(groups, error_pct),
                )
            )
    return FitInfo(
        rows=len(measurements),
        file_row=measurements.file_row[drawn],
        measured_ms=measurements.duration_ms[drawn],
        predicted_ms=fit.predicted_ms[drawn],
        error_pct=error_pct[drawn],
        kind=np.where(prefill & decode, 2, np.where(prefill, 1, 0))[drawn],
        worst=tuple([places[row.file_row] for row in fit.worst]),
        columns=tuple(columns),
        mean_abs_error_pct=fit.mean_abs_error_pct,
        leave_out_error_pct=fit.leave_out_error_pct,
        source=source,
    )


def shape_sentence(info: FitInfo) -> str:
    """Say where the errors have a shape, so that a straight line does not hold."""
    bends = [(column, column.bend) for column in info.columns if column.bend]
    if not bends:
        return (
            "The errors show no shape against any column beyond chance: over these sizes the "
            "straight line holds."
        )
    parts = []
    for column, bend in bends:
        much = "much" if bend.median_error_pct > 0 else "little"
        parts.append(
            f"at {span(bend)} {column.title} it says {abs(bend.median_error_pct):.1f}% too {much} "
            f"(median of {count(bend.rows, 'row')})"
        )
    return f"**The straight line does not hold everywhere:** {'; '.join(parts)}."


def span(group: Group) -> str:
    """Return a group's tokens in words."""
    return f"{group.low:,}" if group.low == group.high else f"{group.low:,} to {group.high:,}"


def _drawn(measurements: Measurements, fit: Fit) -> Ints:  # (points,)
    rows = len(measurements)
    if rows <= MOST_POINTS:
        return np.arange(rows)
    evenly = np.linspace(0, rows - 1, MOST_POINTS - len(fit.worst)).astype(np.int64)
    worst = np.flatnonzero(np.isin(measurements.file_row, [row.file_row for row in fit.worst]))
    return np.union1d(evenly, worst)


def _groups(tokens: Ints, error_pct: Floats) -> tuple[Group, ...]:
    """Return up to MOST_GROUPS groups of neighbouring rows; rows with as many stay together."""
    order = np.argsort(tokens, kind="stable")
    by_tokens, errors = tokens[order], error_pct[order]
    begins = np.flatnonzero(np.diff(by_tokens, prepend=by_tokens[0] - 1))  # of each value
    ends = np.append(begins[1:], len(tokens))
    least = max(ROWS_PER_GROUP, -(-len(tokens) // MOST_GROUPS))
    found: list[tuple[int, int]] = []
    begin = 0
    for end in ends.tolist():
        if end - begin >= least:
            found.append((begin, end))
            begin = end
    if begin < len(tokens):  # too few are left for a group of their own
        begin = found.pop()[0] if found and len(tokens) - begin < ROWS_PER_GROUP else begin
        found.append((begin, len(tokens)))
    return tuple(
        Group(
            low=int(by_tokens[begin]),
            high=int(by_tokens[end - 1]),
            rows=end - begin,
            median_error_pct=float(np.median(errors[begin:end])),
        )
        for begin, end in found
    )


def _bend(groups: tuple[Group, ...], error_pct: Floats) -> Group | None:
    """Return the group whose median is off by more than chance and by more than a little."""
    if len(groups) < 2:
        return None
    sigma = MEDIAN_TO_SIGMA * float(np.median(np.abs(error_pct - np.median(error_pct))))
    far = [
        group
        for group in groups
        if abs(group.median_error_pct)
        > max(SMALLEST_BEND_PCT, STANDARD_ERRORS * SIGMA_OF_MEDIAN * sigma / np.sqrt(group.rows))
    ]
    return max(far, key=lambda group: abs(group.median_error_pct), default=None)
