"""A run as text that other programs read: JSON, CSV and Parquet.

What can be long comes in pieces, so that a file of gigabytes needs no gigabytes of memory.
"""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from typing import Any

import numpy as np

from s11.experiment import Experiment, request_data
from s11.export_tables import Columns, steps_table
from s11.kv_pool import kv_pool
from s11.metrics import Metrics
from s11.results import Result, StepTable

DECIMALS = 9  # a millionth of a nanosecond in ms: hides nothing, drops binary dust
ROWS_A_PIECE = 4_096
JSON_STEP_COLUMNS = ("start_ms", "duration_ms", "prefill_tokens", "decode_tokens")
FORMULA_STARTS = ("=", "+", "-", "@", "\t", "\r")
"""What makes a spreadsheet run a cell as a formula (OWASP, "CSV Injection")."""


def rounded(value: Any) -> Any:
    """Return `value` with floats rounded to `DECIMALS` places, and None for those without end."""
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def to_json(experiment: Experiment, result: Result, metrics: Metrics) -> str:
    """Return a run as JSON: the experiment, its metrics, its steps, who never ran.

    Where its cost model names a machine, `kv_pool` is what that machine holds.
    """
    return "".join(json_pieces(experiment, result, metrics))


def json_pieces(
    experiment: Experiment,
    result: Result,
    metrics: Metrics,
    *,
    rows: bool = True,
    more: Mapping[str, Any] | None = None,
) -> Iterator[str]:
    """Yield the text of `to_json`.

    rows: whether the steps and the workload's requests are in it.
    more: what else to say of the run, by key, after the experiment.
    """
    pool = kv_pool(experiment)
    about = {} if pool is None else {"kv_pool": pool.to_dict()}
    yield "{\n"
    yield from _experiment_pieces(experiment, rows=rows)
    for key, value in {**about, **(more or {}), "metrics": rounded(metrics.to_dict())}.items():
        yield f",\n{_named(key, value)}"
    if rows:
        yield ',\n  "steps": ['
        yield from _listed(_json_steps(result.steps), indent=4)
        yield "\n  ]" if len(result.steps) else "]"
    ends = {
        "never_scheduled": result.never_scheduled,
        "never_scheduled_because": result.never_scheduled_because,
        "never_finished": result.never_finished,
        "rejected": result.rejected,
        "preempted": {str(step): ids for step, ids in result.preempted().items()},
        "cached": {str(step): hits for step, hits in result.cached().items()},
        "stopped_at_max_steps": result.stopped_at_max_steps,
    }
    for key, value in ends.items():
        yield f",\n{_named(key, value)}"
    yield "\n}"


def _experiment_pieces(experiment: Experiment, *, rows: bool) -> Iterator[str]:
    """Yield an experiment with a line for each of its requests."""
    requests = experiment.workload.requests
    bare = replace(experiment, workload=replace(experiment.workload, requests=())).to_dict()
    if not rows:
        del bare["workload"]["requests"]
        yield _named("experiment", bare)
        return
    before, _, after = _named("experiment", bare).partition('"requests": []')
    yield f'{before}"requests": ['
    yield from _listed((json.dumps(request_data(one)) for one in requests), indent=8)
    yield "\n      ]" if requests else "]"
    yield after


def _json_steps(steps: StepTable) -> Iterator[str]:
    template = "{" + ", ".join([f'"{name}": %r' for name in JSON_STEP_COLUMNS]) + "}"
    columns = {name: getattr(steps, name) for name in JSON_STEP_COLUMNS}
    return (template % row for part in _stretches(columns) for row in zip(*part, strict=True))


def _listed(rows: Iterator[str], *, indent: int) -> Iterator[str]:
    """Yield rows of JSON in pieces, each row on a line of its own."""
    begin = "\n" + " " * indent
    comma = ""
    while part := list(islice(rows, ROWS_A_PIECE)):
        yield comma + begin + f",{begin}".join(part)
        comma = ","


def _named(key: str, value: Any) -> str:
    """Return a key and its value as they stand in an object, without its braces."""
    return json.dumps({key: value}, indent=2)[2:-2]


def records_pieces(columns: Columns) -> Iterator[str]:
    """Yield columns of one length as a JSON list of objects, a line for each row."""
    rows = (
        json.dumps(dict(zip(columns, row, strict=True)))
        for part in _stretches(columns)
        for row in zip(*part, strict=True)
    )
    yield "["
    yield from _listed(rows, indent=2)
    yield "\n]\n"


def to_csv(columns: Columns) -> str:
    """Return columns of one length as CSV with a header line.

    A text that a spreadsheet would run as a formula has a ' before it.
    """
    return "".join(csv_pieces(columns))


def csv_pieces(columns: Columns) -> Iterator[str]:
    """Yield the text of `to_csv`."""
    yield _csv_rows([[_cell(name)] for name in columns])
    for part in _stretches(columns):
        yield _csv_rows(
            [
                column
                if isinstance(given, np.ndarray) and given.dtype.kind in "fiu"
                else [_cell(item) for item in column]
                for column, given in zip(part, columns.values(), strict=True)
            ]
        )


def _csv_rows(cells: list[list[Any]]) -> str:  # (columns, rows)
    """Return rows as CSV, quoted where a text needs it.

    The csv module leaves a lone carriage return bare, which its own reader takes for a line's
    end: rows beside one have all their texts quoted.
    """
    bare = any("\r" in cell for column in cells for cell in column if isinstance(cell, str))
    out = io.StringIO()
    plain = csv.writer(out, lineterminator="\n")
    quoted = csv.writer(out, lineterminator="\n", quoting=csv.QUOTE_NONNUMERIC)
    (quoted if bare else plain).writerows(zip(*cells, strict=True))
    return out.getvalue()


def steps_to_csv(result: Result) -> str:
    """Return the step table as CSV, a row per step, milliseconds and tokens."""
    return to_csv(steps_table(result))


def to_parquet(columns: Columns) -> bytes:
    """Return columns of one length as a Parquet file; numbers are not rounded.

    Raises:
        ValueError: no pyarrow on this machine.
    """
    import pandas as pd

    frame = pd.DataFrame({name: _parquet_column(column) for name, column in columns.items()})
    out = io.BytesIO()
    try:
        frame.to_parquet(out, engine="pyarrow", index=False)
    except ImportError as error:
        raise ValueError(
            "format: parquet needs the package pyarrow, which is not installed (allowed: csv, json)"
        ) from error
    return out.getvalue()


def _stretches(columns: Columns) -> Iterator[list[list[Any]]]:
    """Yield the columns a stretch of rows at a time, in plain Python values, rounded.

    Raises:
        ValueError: columns of several lengths.
    """
    lengths = {name: len(column) for name, column in columns.items()}
    longest = max(lengths.values(), default=0)
    for name, length in lengths.items():
        if length != longest:
            raise ValueError(f"{name}: {length:,} values are shorter than {longest:,} of others")
    for begin in range(0, longest, ROWS_A_PIECE):
        end = begin + ROWS_A_PIECE
        yield [_plain(column[begin:end]) for column in columns.values()]


def _plain(values: Sequence[Any] | np.ndarray) -> list[Any]:
    if not isinstance(values, np.ndarray):
        return [rounded(item) for item in values]
    listed: list[Any] = values.tolist()
    if values.dtype.kind != "f":
        return listed if values.dtype.kind in "iubU" else [rounded(item) for item in listed]
    if np.isfinite(values).all():
        return [round(item, DECIMALS) for item in listed]
    return [rounded(item) for item in listed]


def _cell(item: Any) -> Any:
    if item is None:
        return ""
    if isinstance(item, str):
        return sound_text(f"'{item}" if item.startswith(FORMULA_STARTS) else item)
    return item


def sound_text(text: str) -> str:
    """Return a text that UTF-8 can hold: half a character, as JSON may name it, in its code."""
    if text.isascii():
        return text
    return text.encode("utf-8", "backslashreplace").decode("utf-8")


def _parquet_column(column: Sequence[Any] | np.ndarray) -> Any:
    import pandas as pd

    texts = not isinstance(column, np.ndarray) and all(
        item is None or isinstance(item, str) for item in column
    )
    if not texts:
        return column
    return pd.Series([None if item is None else sound_text(item) for item in column], dtype="str")
