"""A sweep's table as a file: CSV or Parquet, by its name."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from s11 import export_files, exports
from s11.sweep_grid import KNOBS
from s11.sweep_journal import Journal
from s11.sweep_outcomes import figure_kinds

ENDINGS = (".csv", ".parquet")
OWN_COLUMNS = {"longest_stall_ms", "ttft_ms", "makespan_ms", "refused"}
"""What every sweep's table has among its columns, of other versions too."""
MOST_BYTES = 10_000_000
PANDAS_KINDS = {int: "Int64", float: "Float64", bool: "boolean"}


def check_output(output: str) -> None:
    """Refuse an output that is no CSV or Parquet file in a folder that is there.

    An earlier sweep's result may be written over, no other file.

    Raises:
        ValueError: another ending, a folder, a folder that is not there, a file that is there
            and no sweep's result, or that cannot be read.
    """
    path = Path(output)
    if path.suffix not in ENDINGS:
        raise ValueError(
            f"output: {path.name[:60]!r} does not say its format "
            f"(allowed: a name that ends in {' or '.join(ENDINGS)})"
        )
    export_files.check_output(output)
    try:
        lost = path.is_file() and path.stat().st_size > 0 and not _is_a_sweeps(path)
    except OSError as error:
        raise ValueError(f"output: {path.name} cannot be read ({error.strerror})") from error
    if lost:
        raise ValueError(
            f"output: {path.name!r} is there and no sweep's result, and would be lost "
            "(allowed: a new name, or an earlier sweep's)"
        )


def _is_a_sweeps(path: Path) -> bool:
    """Return whether a file has the columns of a sweep's table, and nothing of anybody else's."""
    columns = _parquet_columns(path) if path.suffix == ".parquet" else _csv_columns(path)
    return OWN_COLUMNS <= set(columns) <= {*KNOBS, *figure_kinds(), "refused"}


def _csv_columns(path: Path) -> list[str]:
    """Return a CSV file's columns; none where a row has more or fewer cells than they are."""
    with path.open("rb") as file:
        text = file.read(MOST_BYTES).decode("utf-8", "replace")
    try:
        rows = list(csv.reader(io.StringIO(text)))
    except csv.Error:
        return []
    whole = rows[:-1] if len(text) >= MOST_BYTES else rows
    return rows[0] if rows and all(len(row) == len(rows[0]) for row in whole) else []


def _parquet_columns(path: Path) -> list[str]:
    import pandas as pd

    with path.open("rb") as file:
        try:
            read = pd.read_parquet(file, engine="pyarrow")
        except ImportError:
            return sorted(OWN_COLUMNS)  # nothing is lost: without pyarrow nothing is written
        except Exception:  # pyarrow has many for a file that is none or has other columns
            return []
    return list(read.columns)


def journal_of(output: str, *, resume: bool, version: str) -> Journal:
    """Return the journal that stands beside an output until that is written."""
    return Journal(Path(f"{output}.partial.jsonl"), resume=resume, version=version)


def write(output: str, columns: Mapping[str, Sequence[Any]], kinds: Mapping[str, type]) -> None:
    """Write a table, all of it or nothing; a column without any value keeps its kind in Parquet.

    Raises:
        ValueError: an output that cannot be a file, or Parquet without the package pyarrow.
        OSError: a file that cannot be written.
    """
    if Path(output).suffix == ".csv":
        pieces = (text.encode() for text in exports.csv_pieces(columns))
        export_files.write(output, pieces)
        return
    import pandas as pd

    typed: dict[str, Any] = {
        name: pd.array(column, dtype=PANDAS_KINDS[kinds[name]])  # type: ignore[call-overload]
        if kinds[name] in PANDAS_KINDS
        else column
        for name, column in columns.items()
    }
    export_files.write(output, [exports.to_parquet(typed)])
