"""`validate`: every measured table of a folder, and how far the cost model is off."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.validation import end_to_end
from s11.validation.errors import Comparison, ErrorRow, error_row
from s11.validation.kernels import COLUMNS, DTYPES, KERNELS, known_gpus
from s11.validation.tables import MeasuredTable, read_table
from s11.words import count

FILES = (*COLUMNS, end_to_end.FILE)


@dataclass(frozen=True, slots=True, eq=False)
class Validation:
    """What `validate` found.

    comparisons: measured and predicted values; rows: their errors, one for each.
    left_out: a sentence for each row, or kind of row, that is not modelled.
    served: the serving runs one by one.
    """

    comparisons: tuple[Comparison, ...]
    rows: tuple[ErrorRow, ...]
    left_out: tuple[str, ...]
    served: tuple[end_to_end.Served, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the errors as plain data."""
        return {"rows": [row.to_dict() for row in self.rows], "left_out": list(self.left_out)}


def validate(folder: Path, *, progress: Callable[[int, int], None] | None = None) -> Validation:
    """Hold the cost model against each of FILES that the folder has.

    Raises:
        ValueError: no such folder, none of the files in it, or a file that is not as it
            should be, by row, column and value.
    """
    if not folder.is_dir():
        raise ValueError(f"folder: {str(folder)!r} is not a folder")
    there = [name for name in FILES if (folder / name).exists()]
    for name in there:
        if not (folder / name).is_file():
            raise ValueError(f"{name}: not a file (allowed: a CSV file)")
    if not there:
        raise ValueError(f"folder: {folder.name} has none of {', '.join(FILES)}")
    comparisons: list[Comparison] = []
    left_out: list[str] = []
    served: list[end_to_end.Served] = []
    for name in there:
        if name == end_to_end.FILE:
            table = read_table(folder / name, end_to_end.COLUMNS)
            left_out += _no_rows(name, table)
            served, unserved = end_to_end.served_rows(table, progress)
            comparisons += end_to_end.comparisons(served)
            left_out += unserved
        else:
            found, skipped = _kernel_comparisons(folder, name)
            comparisons += found
            left_out += skipped
    return Validation(
        comparisons=tuple(comparisons),
        rows=tuple(error_row(comparison) for comparison in comparisons),
        left_out=tuple(left_out),
        served=tuple(served),
    )


def _kernel_comparisons(folder: Path, name: str) -> tuple[list[Comparison], list[str]]:
    table = read_table(folder / name, COLUMNS[name])
    gpus = table.texts("gpu")
    known = known_gpus(gpus)
    left_out = _no_rows(name, table)
    left_out += _unknown(name, gpus, known, "not in the catalog")
    if name == "gemm.csv":
        dtypes = np.array([dtype.lower() for dtype in table.texts("dtype")], dtype=object)
        left_out += _unknown(name, dtypes, DTYPES, "not modelled")
    if name == "allreduce.csv":
        alone = int((table.numbers("num_gpus") == 1).sum())
        if alone:
            left_out.append(f"{name}: {count(alone, 'row')} of one GPU, which reduces nothing")
    found: list[Comparison] = []
    for measured_name, gpu in known.items():
        part = table.where(np.asarray(gpus == measured_name))
        found += KERNELS[name](part, gpu, measured_name)
    return found, left_out


def _no_rows(name: str, table: MeasuredTable) -> list[str]:
    return [] if table.rows else [f"{name}: it has no rows"]


def _unknown(
    name: str, texts: NDArray[np.object_], known: Collection[str], reason: str
) -> list[str]:
    return [
        f"{name}: {count(int((texts == text).sum()), 'row')} of {text!r}, which is {reason}"
        for text in dict.fromkeys(texts.tolist())
        if text not in known
    ]
