"""A sweep's table as a file: CSV or Parquet, by its name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from s11 import export_files, exports
from s11.sweep_journal import Journal

ENDINGS = (".csv", ".parquet")
PANDAS_KINDS = {int: "Int64", float: "Float64", bool: "boolean"}


def check_output(output: str) -> None:
    """Refuse an output that is no CSV or Parquet file in a folder that is there.

    Raises:
        ValueError: another ending, a folder, a folder that is not there.
    """
    if Path(output).suffix not in ENDINGS:
        raise ValueError(
            f"output: {Path(output).name[:60]!r} does not say its format "
            f"(allowed: a name that ends in {' or '.join(ENDINGS)})"
        )
    export_files.check_output(output)


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
