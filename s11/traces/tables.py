"""Traces that are CSV files with a header: Azure's and BurstGPT's."""

from __future__ import annotations

import csv
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from s11.traces.collected import Collected
from s11.traces.values import seconds_ns, stamp_ns, tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class TableFormat:
    """A format that is known by the names of three columns; others are let be.

    time, prompt, output: the columns' names; case does not matter.
    time_ns: reads a time in nanoseconds from its text, its row's number and its column.
    """

    name: str
    title: str
    time: str
    prompt: str
    output: str
    time_ns: Callable[[str, int, str], int]

    @property
    def columns(self) -> tuple[str, str, str]:
        """The columns that are read."""
        return self.time, self.prompt, self.output


TABLE_FORMATS = (
    # Source: Azure/AzurePublicDataset, AzureLLMInferenceDataset2023.md and 2024; LLM and LMM.
    TableFormat(
        name="azure",
        title="Azure LLM trace",
        time="TIMESTAMP",
        prompt="ContextTokens",
        output="GeneratedTokens",
        time_ns=stamp_ns,
    ),
    # Source: HPMLL/BurstGPT, README.md: seconds; a failed call has 0 response tokens.
    TableFormat(
        name="burstgpt",
        title="BurstGPT trace",
        time="Timestamp",
        prompt="Request tokens",
        output="Response tokens",
        time_ns=seconds_ns,
    ),
)


def table_format(header: str) -> TableFormat | None:
    """Return the format whose columns a header line names, None where it is none of them."""
    try:
        names = {name.casefold() for name in _names(header)}
    except csv.Error:
        return None
    for made in TABLE_FORMATS:
        if names.issuperset(column.casefold() for column in made.columns):
            return made
    return None


def read_table(
    made: TableFormat, lines: Iterator[tuple[int, str]], header: str, collected: Collected
) -> bool:
    """Read rows until the file ends or enough are collected; return whether it ended.

    Raises:
        ValueError: a row of another number of values, a value out of range.
    """
    names = [name.casefold() for name in _names(header)]
    places = []
    for column in made.columns:
        if names.count(column.casefold()) > 1:
            raise ValueError(f"trace: row 1 names the column {column} twice (allowed: once)")
        places.append(names.index(column.casefold()))
    time_at, prompt_at, output_at = places
    time_ns, width = made.time_ns, len(names)
    for row, line in lines:
        cells = line.split(",") if '"' not in line else _quoted(line, row)
        if len(cells) != width:
            raise ValueError(
                f"trace: row {row:,} holds {len(cells):,} values for the header's {width:,} "
                "columns (allowed: as many; the file may have been cut off)"
            )
        if not collected.add(
            time_ns(cells[time_at], row, made.time),
            tokens(cells[prompt_at], row, made.prompt),
            tokens(cells[output_at], row, made.output),
        ):
            return False
    return True


def _names(header: str) -> list[str]:
    return [name.strip() for name in next(csv.reader([header], strict=True))]


def _quoted(line: str, row: int) -> list[str]:
    try:
        return next(csv.reader([line], strict=True))
    except csv.Error as error:
        raise ValueError(
            f"trace: row {row:,} has quotes that do not close ({error}) "
            "(allowed: CSV, a line for each row)"
        ) from None
