"""Errors on shapes that a fit has not seen, as they ship: leave_out.json.

It is written by `scripts/validation_snapshot.py --leave-out`; nobody edits it by hand. Constants
are fitted on half of a table's shapes and held against the other half, then the other way round.
"""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from functools import cache
from importlib import resources
from typing import Any

from s11.catalog import gpu_of_measured
from s11.validation.errors import ErrorRow

SCHEMA_VERSION = 1
SIGNIFICANT_DIGITS = 4


@dataclass(frozen=True, slots=True, kw_only=True)
class LeftOut:
    """The mean absolute error on what a fit has not seen.

    gpu: of the catalog. file, quantity, group: as an ErrorRow's.
    what: what was left out, such as "every second model".
    """

    file: str
    gpu: str
    quantity: str
    group: str
    what: str
    points: int
    mean_abs_error_pct: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaveOut:
    """What was found on a day."""

    date: str
    rows: tuple[LeftOut, ...]

    def of(self, row: ErrorRow) -> tuple[LeftOut, ...]:
        """Return what was left out of the fit that an error is of; nothing where it was not."""
        place = (row.file, gpu_of_measured(row.gpu), row.quantity, row.group)
        return tuple(
            one for one in self.rows if (one.file, one.gpu, one.quantity, one.group) == place
        )

    def error_pct(self, row: ErrorRow) -> float | None:
        """Return the mean absolute error beside an error of the fit, over all that was left out."""
        return mean_pct(self.of(row))


def mean_pct(rows: Iterable[LeftOut]) -> float | None:
    """Return the mean over all points of several; None of nothing."""
    weighted = [(row.points, row.points * row.mean_abs_error_pct) for row in rows]
    if not weighted:
        return None
    return sum(error for _, error in weighted) / sum(points for points, _ in weighted)


@cache
def leave_out() -> LeaveOut:
    """Return what ships with the package.

    Raises:
        ValueError: of another schema version.
    """
    text = resources.files("s11.validation").joinpath("leave_out.json").read_text(encoding="utf-8")
    return leave_out_of(json.loads(text))


def leave_out_of(document: dict[str, Any]) -> LeaveOut:
    """Return the errors from their document.

    Raises:
        ValueError: of another schema version.
    """
    if document.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"schema_version: {document.get('schema_version')!r} (allowed: {SCHEMA_VERSION})"
        )
    return LeaveOut(date=document["date"], rows=tuple(LeftOut(**row) for row in document["rows"]))


def document_of(rows: Iterable[LeftOut], *, date: str) -> dict[str, Any]:
    """Return the errors as the plain data that leave_out.json holds."""
    return {
        "schema_version": SCHEMA_VERSION,
        "date": date,
        "rows": [
            asdict(row)
            | {"mean_abs_error_pct": float(f"{row.mean_abs_error_pct:.{SIGNIFICANT_DIGITS}g}")}
            for row in rows
        ],
    }
