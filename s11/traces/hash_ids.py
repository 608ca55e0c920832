"""Hash ids of many requests, kept as runs of consecutive numbers.

New blocks get consecutive ids, so that a request's list is a few runs: 2.3 on average in the
Mooncake conversation trace, whose lists are 28 ids long.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class HashIds:
    """One list of ids per request.

    The runs of request i are those from `run_offset[i]` to `run_offset[i + 1]`; a run is
    `run_length` consecutive ids from `run_start` on.
    """

    run_start: Ints  # (runs,)
    run_length: NDArray[np.int32]  # (runs,)
    run_offset: Ints  # (requests + 1,)

    def __len__(self) -> int:
        return len(self.run_offset) - 1

    @property
    def nbytes(self) -> int:
        """What the runs take in memory, in bytes."""
        return self.run_start.nbytes + self.run_length.nbytes + self.run_offset.nbytes

    def __getitem__(self, request: int) -> tuple[int, ...]:
        begin, end = self.run_offset[request : request + 2].tolist()
        return _ids(self.run_start[begin:end].tolist(), self.run_length[begin:end].tolist())

    def __iter__(self) -> Iterator[tuple[int, ...]]:
        begin = 0
        for end in self.run_offset[1:].tolist():
            yield _ids(self.run_start[begin:end].tolist(), self.run_length[begin:end].tolist())
            begin = end

    def take(self, rows: Ints) -> HashIds:
        """Return the lists of some requests, in that order."""
        begins = self.run_offset[rows]  # (rows,)
        counts = self.run_offset[rows + 1] - begins
        run_offset = np.concatenate(([0], np.cumsum(counts))).astype(np.int64)
        runs = np.repeat(begins - run_offset[:-1], counts)
        runs += np.arange(run_offset[-1])
        return HashIds(
            run_start=self.run_start[runs],
            run_length=self.run_length[runs],
            run_offset=run_offset,
        )


def runs_of(ids: Sequence[int]) -> list[tuple[int, int]]:
    """Return a list of ids as runs of consecutive ones: where each begins, how long it is."""
    runs = []
    begin = at = 0
    for at in range(1, len(ids) + 1):
        if at == len(ids) or ids[at] != ids[at - 1] + 1:
            runs.append((ids[begin], at - begin))
            begin = at
    return runs


def _ids(starts: list[int], lengths: list[int]) -> tuple[int, ...]:
    return tuple(
        [
            one
            for start, length in zip(starts, lengths, strict=True)
            for one in range(start, start + length)
        ]
    )
