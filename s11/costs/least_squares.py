"""Coefficients from measured steps: non-negative least squares, and how far to trust them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.costs.fitted import FittedCost
from s11.costs.measurements import MOST_TOKENS, Measurements
from s11.costs.well_posed import Design, one_stands_out, require_well_posed

FOLDS = 10
WORST_ROWS = 5

COEFFICIENT = {
    "fixed time": "fixed_ms",
    "prefill_tokens": "prefill_ms_per_token",
    "decode_tokens": "decode_ms_per_token",
    "context_tokens": "context_ms_per_token",
}

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstRow:
    """A measured step that the model misses; `error_pct` is above 0 where it says too much."""

    file_row: int
    duration_ms: float
    predicted_ms: float
    error_pct: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Fit:
    """A cost model, and how well it tells the steps that it was made from.

    Errors are |predicted − measured| / measured; percentiles are of the inverted CDF.
    leave_out_error_pct: mean error of steps at settings that were left out of the fit, each
        setting in turn, in `folds` groups. What to expect of steps that were not measured.
    rows, settings: steps measured, and different settings among them.
    worst: the rows with the largest errors, the largest first.
    warnings: a sentence each; what is not as it should be, and was not refused.
    """

    cost: FittedCost
    predicted_ms: Floats  # (rows,)
    residuals_ms: Floats  # (rows,) measured − predicted
    mean_abs_error_pct: float
    median_abs_error_pct: float
    p90_abs_error_pct: float
    leave_out_error_pct: float
    folds: int
    rows: int
    settings: int
    worst: tuple[WorstRow, ...]
    warnings: tuple[str, ...]


def fit(measurements: Measurements) -> Fit:
    """Return the non-negative coefficients with the least sum of squared *relative* errors.

    A column that is 0 throughout has no coefficient (0), with a warning.

    Source of the method: Lawson and Hanson, Solving Least Squares Problems (1974), ch. 23, as
    SciPy implements it.

    Raises:
        ValueError: too few rows or settings, a column with one value beside 0, columns that
            move together, durations that do not vary, a step of no time.
    """
    design = Design.of(measurements)
    warnings = require_well_posed(design)
    duration_ms = measurements.duration_ms
    coefficients = _solve(design.columns, duration_ms)  # (terms,)
    predicted_ms = design.columns @ coefficients  # (rows,)
    error_pct = 100.0 * (predicted_ms - duration_ms) / duration_ms  # (rows,)
    cost = _cost(dict(zip(design.names, coefficients.tolist(), strict=True)))
    for name, value in zip(design.names, coefficients.tolist(), strict=True):
        if value == 0:
            warnings.append(
                f"{COEFFICIENT[name]} came out at 0: the steps do not take longer for it."
            )
    worst = _worst(measurements, predicted_ms, error_pct)
    if one_stands_out(np.abs(error_pct)):
        far = worst[0]
        warnings.append(
            f"Row {far.file_row:,} took {far.duration_ms:,.4g} ms where the model says "
            f"{far.predicted_ms:,.4g} ms, far more than the other rows miss it by."
        )
    groups = _folds(measurements)  # (rows,)
    folds = int(groups.max()) + 1
    return Fit(
        cost=cost,
        predicted_ms=predicted_ms,
        residuals_ms=duration_ms - predicted_ms,
        mean_abs_error_pct=float(np.abs(error_pct).mean()),
        median_abs_error_pct=_percentile(np.abs(error_pct), 50),
        p90_abs_error_pct=_percentile(np.abs(error_pct), 90),
        leave_out_error_pct=_leave_out_error_pct(design.columns, duration_ms, groups),
        folds=folds,
        rows=len(measurements),
        settings=len(design.settings),
        worst=worst,
        warnings=tuple(warnings),
    )


def _solve(columns: Floats, duration_ms: Floats) -> Floats:  # (n, terms), (n,) -> (terms,)
    """Minimise the sum of (predicted / measured − 1)² over coefficients of 0 and more."""
    from scipy.optimize import nnls

    relative = columns / duration_ms[:, None]  # (n, terms)
    scale = np.sqrt((relative**2).sum(axis=0))  # (terms,)
    scale[scale == 0] = 1.0
    try:
        solution, _ = nnls(relative / scale, np.ones(len(duration_ms)), maxiter=1000)
    except RuntimeError as error:
        raise ValueError("measurements: the fit does not settle on coefficients") from error
    return np.asarray(solution / scale)


def _cost(found: dict[str, float]) -> FittedCost:
    """Return the cost model, 0 for each term that has no column."""
    try:
        return FittedCost(**{field: found.get(name, 0.0) for name, field in COEFFICIENT.items()})
    except ValueError as error:
        raise ValueError(
            f"measurements: no cost model fits them, for {error}; measure steps that hold both "
            "few and many of the tokens"
        ) from error


def _worst(
    measurements: Measurements, predicted_ms: Floats, error_pct: Floats
) -> tuple[WorstRow, ...]:
    order = np.argsort(-np.abs(error_pct), kind="stable")[:WORST_ROWS]
    return tuple(
        WorstRow(
            file_row=int(measurements.file_row[row]),
            duration_ms=float(measurements.duration_ms[row]),
            predicted_ms=float(predicted_ms[row]),
            error_pct=float(error_pct[row]),
        )
        for row in order
    )


def _folds(measurements: Measurements) -> Ints:  # (rows,)
    """Return each row's group; rows of one setting share it, whatever order they come in.

    Neighbouring settings are scattered, so that a grid loses no whole line to one group.
    """
    settings = np.column_stack([getattr(measurements, name) for name in MOST_TOKENS])
    _, setting = np.unique(settings, axis=0, return_inverse=True)  # (rows,)
    count = int(setting.max()) + 1
    # RandomState, for its numbers stay the same in every version of NumPy (NEP 19)
    scattered = np.random.RandomState(0).permutation(count)  # (settings,)
    group = np.empty(count, dtype=np.int64)
    group[scattered] = np.arange(count) % min(FOLDS, count)
    return np.asarray(group[setting])


def _leave_out_error_pct(columns: Floats, duration_ms: Floats, groups: Ints) -> float:
    error = np.empty(len(duration_ms))
    for group in range(int(groups.max()) + 1):
        out = groups == group  # (rows,)
        coefficients = _solve(columns[~out], duration_ms[~out])
        error[out] = np.abs(columns[out] @ coefficients / duration_ms[out] - 1.0)
    return 100.0 * float(error.mean())


def _percentile(values: Floats, percent: int) -> float:
    """Return the smallest value that so many percent of the values reach (inverted CDF)."""
    return float(np.sort(values)[-(-len(values) * percent // 100) - 1])
