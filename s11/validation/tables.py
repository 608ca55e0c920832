"""Reading measured tables: columns by name, every number in its range."""

from __future__ import annotations

import csv
import math
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TOKENS

MAX_FILE_BYTES = 50_000_000
MAX_ROWS = 500_000
SHORTEST_MS, LONGEST_MS = 1e-6, 1e9  # a ratio to less than a nanosecond says nothing


@dataclass(frozen=True, slots=True)
class Column:
    """What a column holds: text, whole numbers from 1 to `most`, milliseconds, or yes and no."""

    kind: str  # "text", "count", "ms", "bool"
    most: float = MAX_TOKENS


TEXT, COUNT, MILLISECONDS, YES_NO = (Column(k) for k in ("text", "count", "ms", "bool"))
BYTES = Column("count", 2**50)
BOOLEANS = {"true": True, "1": True, "false": False, "0": False}


@dataclass(frozen=True, slots=True, eq=False)
class MeasuredTable:
    """A file's columns, all of one length; numbers are float64, the rest objects."""

    columns: Mapping[str, NDArray[np.generic]]
    rows: int

    def numbers(self, name: str) -> NDArray[np.float64]:  # (rows,)
        """Return a column of numbers."""
        return self.columns[name].astype(np.float64)

    def texts(self, name: str) -> NDArray[np.object_]:  # (rows,)
        """Return a column of texts."""
        return self.columns[name].astype(object)

    def where(self, chosen: NDArray[np.bool_]) -> MeasuredTable:
        """Return the rows that are chosen."""
        return MeasuredTable(
            {name: column[chosen] for name, column in self.columns.items()}, int(chosen.sum())
        )


def read_table(path: Path, columns: Mapping[str, Column]) -> MeasuredTable:
    """Return the named columns of a CSV file; others are left aside.

    Raises:
        ValueError: a file that cannot be read, too large or not in UTF-8, a column that is not
            there once, or the first cell that is not what its column holds, by row, column and
            value.
    """
    found: dict[str, list[object]] = {column: [] for column in columns}
    with _refusing(path):
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(
                f"{path.name}: {path.stat().st_size:,} bytes is too large "
                f"(allowed: up to {MAX_FILE_BYTES:,} bytes)"
            )
        with path.open(newline="", encoding="utf-8-sig") as file:
            reader = csv.DictReader(file)
            _require_header(path.name, reader.fieldnames or (), columns)
            for row in reader:
                if len(found[next(iter(columns))]) == MAX_ROWS:
                    raise ValueError(
                        f"{path.name}: more than {MAX_ROWS:,} rows (allowed: up to that)"
                    )
                for column, what in columns.items():
                    place = f"{path.name} row {reader.line_num:,}, {column}"
                    found[column].append(_value(place, row[column], what))
    rows = len(next(iter(found.values())))
    return MeasuredTable(
        {
            column: np.array(values, dtype=object if columns[column].kind == "text" else float)
            for column, values in found.items()
        },
        rows,
    )


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Turn what reading a file may raise into a ValueError that names the file."""
    try:
        yield
    except UnicodeDecodeError:
        raise ValueError(f"{path.name}: not a text in UTF-8 (allowed: CSV in UTF-8)") from None
    except csv.Error as error:
        raise ValueError(f"{path.name}: not a CSV file, {error} (allowed: CSV in UTF-8)") from None
    except OSError as error:
        raise ValueError(f"{path.name}: cannot be read ({error.strerror})") from None


def _require_header(
    name: str, names: Collection[str | None], columns: Mapping[str, Column]
) -> None:
    for column in columns:
        times = list(names).count(column)
        if times != 1:
            wrong = f"there {times} times" if times else "missing"
            raise ValueError(
                f"{name} row 1: the column {column} is {wrong} (needed: {', '.join(columns)})"
            )


def _value(place: str, text: object, column: Column) -> object:
    text = text.strip() if isinstance(text, str) else ""
    if column.kind == "text" and text:
        return text
    if column.kind == "bool" and text.lower() in BOOLEANS:
        return BOOLEANS[text.lower()]
    if column.kind in ("ms", "count"):
        try:
            number = float(text)
        except ValueError:
            number = math.nan
        lowest, highest = (SHORTEST_MS, LONGEST_MS) if column.kind == "ms" else (1, column.most)
        whole = column.kind == "ms" or number.is_integer()
        # Of the world's programs, Python alone reads 1_000 as a number.
        if whole and lowest <= number <= highest and "_" not in text:
            return number
    shown = repr(text if len(text) <= 40 else text[:37] + "...") if text else "an empty cell"
    raise ValueError(f"{place}: {shown} is not {_allowed(column)}")


def _allowed(column: Column) -> str:
    if column.kind == "ms":
        return f"a number from {SHORTEST_MS:g} to {LONGEST_MS:g}"
    if column.kind == "count":
        return f"a whole number from 1 to {int(column.most):,}"
    return "true or false" if column.kind == "bool" else "a text (allowed: any but an empty one)"
