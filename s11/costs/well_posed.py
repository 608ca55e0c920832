"""Whether measured steps can tell what each term of a cost model costs."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from s11.costs.measurements import MOST_TOKENS, Measurements
from s11.words import count

ROWS_PER_TERM = 3
SETTINGS_PER_TERM = 2
# Belsley, Kuh and Welsch, Regression Diagnostics (1980), ch. 3: of columns scaled to equal
# length, a condition index of 30 goes with strong dependence; ten times it is past use here.
DOUBTFUL_CONDITION, HOPELESS_CONDITION = 30.0, 300.0
NARROW = 1.5
FIXED = "fixed time"

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Design:
    """The terms that the steps can speak of: the fixed time, and each column that is not 0."""

    names: tuple[str, ...]  # (terms,)
    columns: Floats  # (rows, terms) of ones, then tokens
    settings: Floats  # (settings, terms) different rows of `columns`
    duration_ms: Floats  # (rows,)

    @classmethod
    def of(cls, measurements: Measurements) -> Design:
        """Return the design of a table."""
        tokens = {name: getattr(measurements, name).astype(np.float64) for name in MOST_TOKENS}
        used = {name: column for name, column in tokens.items() if column.any()}
        columns = np.column_stack([np.ones(len(measurements)), *used.values()])
        return cls(
            names=(FIXED, *used),
            columns=columns,
            settings=np.unique(columns, axis=0),
            duration_ms=measurements.duration_ms,
        )


def require_well_posed(design: Design) -> list[str]:
    """Return warnings, a sentence each, when the steps can tell the terms apart.

    Raises:
        ValueError: with the reason why they cannot.
    """
    terms, rows, settings = len(design.names), len(design.columns), len(design.settings)
    if rows < ROWS_PER_TERM * terms:
        raise ValueError(
            f"measurements: {count(rows, 'row')} cannot settle {terms} terms "
            f"(allowed: {ROWS_PER_TERM * terms} or more, {ROWS_PER_TERM} a term)"
        )
    for name, column in zip(design.names[1:], design.columns[:, 1:].T, strict=True):
        values = np.unique(column[column > 0])
        if len(values) < 2:
            raise ValueError(
                f"{name}: {values[0]:,.0f} is the only value beside 0, so what one more token "
                "costs cannot be seen (allowed: 2 or more different sizes)"
            )
    if settings < SETTINGS_PER_TERM * terms:
        raise ValueError(
            f"measurements: {count(settings, 'different setting')} cannot settle {terms} terms "
            f"(allowed: {SETTINGS_PER_TERM * terms} or more, {SETTINGS_PER_TERM} a term)"
        )
    if np.ptp(design.duration_ms) == 0:
        raise ValueError(
            f"duration_ms: {design.duration_ms[0]:g} in every row, so nothing can be told of "
            "what tokens cost (allowed: steps of different length)"
        )
    warnings = [
        f"{name} is 0 in every row, so in this model it costs nothing."
        for name in MOST_TOKENS
        if name not in design.names
    ]
    for name, column in zip(design.names[1:], design.columns[:, 1:].T, strict=True):
        few, many = column[column > 0].min(), column.max()
        if many < NARROW * few:
            warnings.append(
                f"{name} is 0 or from {few:,.0f} to {many:,.0f} in every row; what other sizes "
                "cost is a guess."
            )
    condition, together = _dependence(design)
    if condition > HOPELESS_CONDITION:
        raise ValueError(
            f"{_told(together)}, so what each costs cannot be told apart (condition number "
            f"{_shown(condition)}, allowed: up to {HOPELESS_CONDITION:g}); measure steps in which "
            "one is few and the other many"
        )
    if condition > DOUBTFUL_CONDITION:
        warnings.append(
            f"{_told(together, 'nearly ')} (condition number {_shown(condition)}), so how the "
            "cost is split between them is uncertain."
        )
    return warnings


def one_stands_out(abs_error_pct: Floats) -> bool:
    """Return whether the largest error is beyond 25% and ten times the median."""
    largest = float(abs_error_pct.max())
    return largest > 25.0 and largest > 10.0 * float(np.median(abs_error_pct))


def _dependence(design: Design) -> tuple[float, list[str]]:
    """Return the condition number of the relative columns, and the fewest that explain it."""
    relative = design.columns / design.duration_ms[:, None]  # (rows, terms)
    relative /= np.sqrt((relative**2).sum(axis=0))
    _, small = np.linalg.qr(relative)  # (terms, terms) as dependent as the columns are
    condition = _condition(small)
    most_of_it = min(condition, HOPELESS_CONDITION) / 2
    terms = range(len(design.names))
    for size in range(2, len(terms) + 1):
        worst = max(combinations(terms, size), key=lambda some: _condition(small[:, some]))
        if _condition(small[:, worst]) > most_of_it:
            return condition, [design.names[term] for term in worst]
    return condition, []


def _condition(columns: Floats) -> float:
    """Return the largest singular value in units of the smallest."""
    singular = np.linalg.svd(columns, compute_uv=False)
    return float(singular[0] / singular[-1]) if singular[-1] > 0 else np.inf


def _told(together: list[str], nearly: str = "") -> str:
    """Return who moves together; the fixed time does with what does not move at all."""
    *others, last = [name for name in together if name != FIXED]
    names = f"{', '.join(others)} and {last}" if others else last
    if FIXED not in together:
        return f"{names}: they {nearly}move together in these rows"
    if others:
        return f"{names}: together they {nearly}stay the same in these rows, as the fixed time does"
    return f"{names}: it {nearly}stays the same in these rows, as the fixed time does"


def _shown(condition: float) -> str:
    return f"{condition:,.0f}" if condition < 1e9 else "beyond 1e9"
