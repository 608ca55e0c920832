"""A sweep's journal: a line for each finished experiment, so that a stopped sweep goes on."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from types import TracebackType
from typing import IO, Any, Self

from s11.sweep_outcomes import Outcome, figure_kinds

FORMAT = "s11 sweep journal"
VERSION = 1


class Journal:
    """A JSON Lines file: a head that names the sweep, then a line for each outcome.

    A line is written whole and flushed to the disk before the next experiment counts as done.
    A kill can leave a part of one line; that line is cut off again when the file is resumed.

    resume: go on with what is there; without, a file that is there is refused.
    """

    def __init__(self, path: Path, *, resume: bool, version: str) -> None:
        self.path, self.resume, self.version = path, resume, version
        self._file: IO[bytes] | None = None

    def begin(self, digests: Sequence[str]) -> dict[int, Outcome]:
        """Return the outcomes that are there, by number, and open the file for more.

        Raises:
            ValueError: a file that must not be written over, that another sweep or version
                wrote, or that is no journal; a folder that cannot be written.
        """
        head = {
            "format": FORMAT,
            "version": VERSION,
            "s11": self.version,
            "experiments": len(digests),
            "digest": hashlib.sha256("".join(digests).encode()).hexdigest(),
            "figures": sorted(figure_kinds()),
        }
        name = self.path.name
        try:
            lines = self.path.read_bytes().split(b"\n") if self.path.exists() else []
            whole = lines[:-1]  # what follows the last line end was cut
            if whole and not self.resume and _is_head(whole[0]):
                raise ValueError(
                    f"output: {name} has {len(whole) - 1:,} finished experiments of a stopped "
                    "sweep (allowed: --resume, or remove it)"
                )
            if whole and self.resume:
                _check_head(name, whole[0], head)
            elif whole or not _is_cut_head(b"".join(lines)):
                raise ValueError(
                    f"output: {name} is there and no sweep's journal, and would be lost "
                    "(allowed: remove it, or another output)"
                )
            outcomes = _outcomes(name, whole[1:], len(digests))
            self._file = self.path.open("r+b" if lines else "wb")
            self._file.truncate(sum(len(line) + 1 for line in whole))
            self._file.seek(0, os.SEEK_END)
            if not whole:
                self._write(head)
        except OSError as error:
            raise ValueError(f"output: {name} cannot be written ({error.strerror})") from error
        return outcomes

    def add(self, number: int, outcome: Outcome) -> None:
        """Write down one outcome."""
        self._write({"experiment": number, **outcome.to_dict()})

    def remove(self) -> None:
        """Take the file away: the results are kept elsewhere."""
        self.close()
        self.path.unlink(missing_ok=True)

    def close(self) -> None:
        """Close the file; it stays."""
        if self._file:
            self._file.close()
            self._file = None

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def _write(self, row: dict[str, Any]) -> None:
        assert self._file is not None
        self._file.write(json.dumps(row).encode() + b"\n")
        self._file.flush()
        os.fsync(self._file.fileno())


def _is_cut_head(part: bytes) -> bool:
    """Return whether a line without an end may be what a kill left of a head, or nothing is."""
    begin = json.dumps({"format": FORMAT}).removesuffix("}").encode()
    return begin.startswith(part[: len(begin)])


def _is_head(line: bytes) -> bool:
    try:
        return bool(_row("", 1, line).get("format") == FORMAT)
    except ValueError:
        return False


def _check_head(name: str, line: bytes, expected: dict[str, Any]) -> None:
    found = _row(name, 1, line)
    if found.get("format") != FORMAT:
        raise ValueError(f"resume: {name} is not a sweep's journal")
    for key in ("version", "s11", "figures"):
        if found.get(key) != expected[key]:
            raise ValueError(
                f"resume: {name} is of s11 {str(found.get('s11'))[:20]}, not of this "
                f"s11 {expected['s11']}, and their figures may differ (allowed: remove it)"
            )
    if found != expected:
        raise ValueError(
            f"resume: {name} is of other experiments (allowed: the very options that it was "
            "begun with, or remove it)"
        )


def _outcomes(name: str, lines: Sequence[bytes], count: int) -> dict[int, Outcome]:
    outcomes = {}
    for number, line in enumerate(lines, start=2):
        row = _row(name, number, line)
        experiment = row.get("experiment")
        if not isinstance(experiment, int) or not 0 <= experiment < count:
            raise ValueError(f"resume: {name} line {number:,} names no experiment of this sweep")
        try:
            outcomes[experiment] = Outcome.from_dict(row)
        except (KeyError, TypeError) as error:
            raise ValueError(f"resume: {name} line {number:,} has other figures") from error
    return outcomes


def _row(name: str, number: int, line: bytes) -> dict[str, Any]:
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"resume: {name} line {number:,} is not JSON") from error
    if not isinstance(row, dict):
        raise ValueError(f"resume: {name} line {number:,} is not an object")
    return row
