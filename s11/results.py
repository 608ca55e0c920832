"""Columnar tables of a run: steps, prefill slices, requests."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Table:
    """Columns of one length, by name."""

    __slots__ = ()

    def __post_init__(self) -> None:
        """Make the columns read-only: results are shared."""
        for column in self.columns().values():
            if isinstance(column, np.ndarray):
                column.setflags(write=False)

    def columns(self) -> dict[str, Any]:
        """Return the columns by name, in order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame, a column for each field."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]


@dataclass(frozen=True, slots=True, eq=False)
class StepTable(_Table):
    """One row per step, in order; a step's tokens all appear at its end.

    The three costs add up to `duration_ms`. `start_ms` is the end of the step before,
    or later where the engine had nothing to do.
    """

    start_ms: Floats  # (steps,)
    end_ms: Floats  # (steps,)
    duration_ms: Floats  # (steps,)
    prefill_tokens: Ints  # (steps,)
    decode_tokens: Ints  # (steps,)
    fixed_ms: Floats  # (steps,)
    prefill_ms: Floats  # (steps,)
    decode_ms: Floats  # (steps,)


@dataclass(frozen=True, slots=True, eq=False)
class SliceTable(_Table):
    """One row per prefill slice: `tokens` of a prompt, from position `start_token`."""

    step: Ints  # (slices,)
    request: Ints  # (slices,) row of the request table
    start_token: Ints  # (slices,)
    tokens: Ints  # (slices,)


@dataclass(frozen=True, slots=True, eq=False)
class RequestTable(_Table):
    """One row per request in arrival order; a time that never came is NaN.

    Streaming users have no row: every step's decode tokens hold one of each of them.
    """

    request_id: tuple[str, ...]  # (requests,)
    arrival_ms: Floats  # (requests,) on the run's clock, lead-in included
    prompt_tokens: Ints  # (requests,)
    output_tokens: Ints  # (requests,)
    first_scheduled_ms: Floats  # (requests,) start of the first step with a slice of it
    first_token_ms: Floats  # (requests,)
    last_token_ms: Floats  # (requests,)


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What one run gave.

    never_scheduled: ids of the requests that no later step could ever have begun.
    never_scheduled_because: what the first of them met; None where there is none.
    stopped_at_max_steps: the run was cut, so the tables end early.
    """

    steps: StepTable
    slices: SliceTable
    requests: RequestTable
    streaming_users: int
    never_scheduled: tuple[str, ...]
    never_scheduled_because: str | None
    stopped_at_max_steps: bool

    def token_times_ms(self, request: int) -> Floats:  # (tokens so far,)
        """Return when each output token of row `request` appeared."""
        first, last = self.requests.first_token_ms, self.requests.last_token_ms
        if np.isnan(first[request]):
            return np.empty(0)
        ends = self.steps.end_ms
        begin = int(np.searchsorted(ends, first[request]))
        if np.isnan(last[request]):
            return ends[begin:]
        return ends[begin : int(np.searchsorted(ends, last[request])) + 1]

    def schedule(self) -> Iterator[dict[str, int]]:
        """Yield each step's batch: tokens by request id, decodes first.

        Streaming users are named `user-1`, `user-2`, ...
        """
        ids, first, last = (
            self.requests.request_id,
            self.requests.first_token_ms,
            self.requests.last_token_ms,
        )
        users = {f"user-{n}": 1 for n in range(1, self.streaming_users + 1)}
        decoding: list[int] = []
        at = 0
        for step in range(len(self.steps)):
            decoding = [r for r in decoding if not last[r] < self.steps.end_ms[step]]
            batch = users | dict.fromkeys((ids[r] for r in decoding), 1)
            while at < len(self.slices) and self.slices.step[at] == step:
                row = int(self.slices.request[at])
                batch[ids[row]] = int(self.slices.tokens[at])
                if first[row] == self.steps.end_ms[step]:
                    decoding.append(row)
                at += 1
            yield batch
