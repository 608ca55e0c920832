"""Predicted against measured: the errors of a table, told by file, GPU and quantity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Comparison:
    """Measured values and the model's of one file, GPU and quantity.

    group: which rows these are, where a file's are told apart; "all" where they are not.
    calibrated: whether the GPU's constants were fitted on measurements of it.
    """

    file: str
    gpu: str
    quantity: str
    group: str
    measured: Floats  # (points,)
    predicted: Floats  # (points,)
    calibrated: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class ErrorRow:
    """How far off the model is: absolute percentage errors, and the bias with its sign.

    bias_pct: the mean of the signed errors; above 0 the model says too much.
    """

    file: str
    gpu: str
    quantity: str
    group: str
    calibrated: bool
    points: int
    median_abs_error_pct: float
    mean_abs_error_pct: float
    p90_abs_error_pct: float
    bias_pct: float

    def to_dict(self) -> dict[str, Any]:
        """Return the row as plain data."""
        return asdict(self)


def error_row(comparison: Comparison) -> ErrorRow:
    """Return the errors of a comparison; p90 is of the inverted CDF."""
    errors = 100.0 * (comparison.predicted / comparison.measured - 1.0)  # (points,)
    sizes = np.abs(errors)
    return ErrorRow(
        file=comparison.file,
        gpu=comparison.gpu,
        quantity=comparison.quantity,
        group=comparison.group,
        calibrated=comparison.calibrated,
        points=len(errors),
        median_abs_error_pct=float(np.percentile(sizes, 50, method="inverted_cdf")),
        mean_abs_error_pct=float(sizes.mean()),
        p90_abs_error_pct=float(np.percentile(sizes, 90, method="inverted_cdf")),
        bias_pct=float(errors.mean()),
    )
