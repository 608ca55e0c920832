"""A user's own measured steps: a CSV of tokens and milliseconds."""

from __future__ import annotations

import csv
import io
import re
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TOKENS, require_int, require_ms

MAX_CSV_CHARACTERS = 5_000_000
MAX_ROWS = 200_000
MAX_CONTEXT_TOKENS = 10**12
SHORTEST_MS, LONGEST_MS = 1e-3, 1e6

MOST_TOKENS = {
    "prefill_tokens": MAX_TOKENS,
    "decode_tokens": MAX_TOKENS,
    "context_tokens": MAX_CONTEXT_TOKENS,
}
COLUMNS = (*MOST_TOKENS, "duration_ms")
SEPARATORS = {";": "semicolons", "\t": "tabs", "|": "bars"}  # that stand where commas should
NUMBER = re.compile(r"[+-]?([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")
MAX_CELL_CHARACTERS = 40  # a float needs 24


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Measurements:
    """Measured steps, a row each.

    Raises:
        ValueError: columns of different lengths.
    """

    file_row: NDArray[np.int64]  # (rows,) line in the file; the header is the first
    prefill_tokens: NDArray[np.int64]  # (rows,)
    decode_tokens: NDArray[np.int64]  # (rows,)
    context_tokens: NDArray[np.int64]  # (rows,) cached tokens that the step's requests attend to
    duration_ms: NDArray[np.float64]  # (rows,)

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            column = getattr(self, name)
            if column.shape != self.file_row.shape:
                raise ValueError(
                    f"{name}: {len(column):,} rows beside {len(self.file_row):,} of file_row "
                    "(allowed: as many)"
                )
            column.flags.writeable = False

    def __len__(self) -> int:
        return len(self.file_row)


def read_measurements(text: str) -> Measurements:
    """Return the steps in the text of a CSV file.

    Its first row names the columns, in any order: prefill_tokens, decode_tokens,
    context_tokens (cached tokens that the step's requests attend to, summed) and duration_ms.
    Other columns are passed over; so are empty lines. Rows are counted as in a spreadsheet.

    Raises:
        ValueError: a text too long, a column that is missing or there twice, a row that is
            torn, a cell that is no number in its range, a step without tokens, no row.
    """
    if len(text) > MAX_CSV_CHARACTERS:
        raise ValueError(
            f"measurements: a text of {len(text):,} characters is too long "
            f"(allowed: up to {MAX_CSV_CHARACTERS:,})"
        )
    text = text.removeprefix("\ufeff")
    if "\0" in text:
        row = text.count("\n", 0, text.index("\0")) + 1
        raise ValueError(f"measurements: row {row:,} has a null byte (allowed: plain CSV text)")
    _require_commas(text)
    reader = csv.reader(io.StringIO(text, newline=""), strict=True)
    file_rows: list[int] = []
    columns: tuple[list[float], ...] = tuple([] for _ in COLUMNS)
    try:
        header = [name.strip() for name in next(filter(None, reader), [])]
        places = _places(header)
        for cells in reader:
            if not cells:
                continue
            if len(file_rows) == MAX_ROWS:
                raise ValueError(f"measurements: more than {MAX_ROWS:,} rows (allowed: up to that)")
            file_rows.append(reader.line_num)
            for column, value in zip(
                columns, _values(reader.line_num, cells, len(header), places), strict=True
            ):
                column.append(value)
    except csv.Error as error:
        raise ValueError(
            f"measurements: row {reader.line_num:,} is not CSV text ({error})"
        ) from error
    if not file_rows:
        raise ValueError("measurements: no row below the header (allowed: 1 or more)")
    *tokens, duration_ms = columns
    prefill, decode, context = (np.array(column, dtype=np.int64) for column in tokens)
    return Measurements(
        file_row=np.array(file_rows, dtype=np.int64),
        prefill_tokens=prefill,
        decode_tokens=decode,
        context_tokens=context,
        duration_ms=np.array(duration_ms, dtype=np.float64),
    )


def _require_commas(text: str) -> None:
    """Refuse a first row whose columns stand between other signs: a German Excel writes such."""
    first = next(filter(None, map(str.strip, io.StringIO(text))), "")
    names = {name.strip(' "') for name in first.split(",")}
    for sign, title in SEPARATORS.items():
        parts = {part.strip(' "') for part in re.split(f"[,{sign}]", first)}
        if (parts - names) & set(COLUMNS):
            raise ValueError(
                f"measurements: the first row has {title} between its columns (allowed: commas, "
                "and points in decimals)"
            )


def _places(header: list[str]) -> list[int]:
    """Return where each of COLUMNS stands in the header."""
    for name in COLUMNS:
        if header.count(name) != 1:
            shown = ", ".join(repr(other[:30]) for other in header[:8]) or "nothing"
            what = "there twice" if name in header else "missing"
            raise ValueError(
                f"measurements: the column {name} is {what}; the first row has {shown} "
                f"(allowed: {', '.join(COLUMNS)} once each, and others)"
            )
    return [header.index(name) for name in COLUMNS]


def _values(row: int, cells: list[str], width: int, places: list[int]) -> list[float]:
    """Return one row's figures in the order of COLUMNS."""
    if len(cells) != width:
        raise ValueError(
            f"measurements: row {row:,} has {len(cells):,} cells (allowed: {width:,}, as the first)"
        )
    values = [_value(row, name, cells[place]) for name, place in zip(COLUMNS, places, strict=True)]
    if values[0] + values[1] == 0:
        raise ValueError(
            f"row {row:,}, decode_tokens: 0 beside 0 prefill_tokens is no step "
            "(allowed: 1 or more of either)"
        )
    return values


def _value(row: int, name: str, cell: str) -> float:
    """Return a cell's number, whole where tokens are counted; 512.0 is whole."""
    cell = cell.strip()
    plain = len(cell) <= MAX_CELL_CHARACTERS and NUMBER.fullmatch(cell)
    number = float(cell) if plain else None
    if name in MOST_TOKENS:
        most = MOST_TOKENS[name]
        if number is not None and 0 <= number <= most and number.is_integer():
            return number
        return require_int(f"row {row:,}, {name}", cell, 0, most)
    if number is not None and SHORTEST_MS <= number <= LONGEST_MS:
        return number
    return require_ms(f"row {row:,}, {name}", cell, SHORTEST_MS, LONGEST_MS)
