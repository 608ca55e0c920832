"""Columnar tables of a run: steps, prefill slices, requests."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from s11.plan import BlockedBy

if TYPE_CHECKING:
    import pandas as pd

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


class _Table:
    """Columns of one length, by name."""

    __slots__: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        """Make the columns read-only: results are shared."""
        for name in self.__slots__:
            column = getattr(self, name)
            if isinstance(column, np.ndarray):
                column.flags.writeable = False

    def columns(self) -> dict[str, Any]:
        """Return the columns by name, in order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}  # type: ignore[arg-type]

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame, a column for each field."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __len__(self) -> int:
        return len(getattr(self, fields(self)[0].name))  # type: ignore[arg-type]


class _LaterTable(_Table):
    """Columns that are worked out when they are first asked for.

    A column that has no value yet is an empty slot: reading it ends in `__getattr__`.
    """

    __slots__ = ("_makers", "_rows")
    _makers: Mapping[str, Callable[[], Mapping[str, Any]]]
    _rows: int | None

    @classmethod
    def later(
        cls,
        makers: Mapping[str, Callable[[], Mapping[str, Any]]],
        *,
        rows: int | None = None,
    ) -> Self:
        """Return a table whose columns the makers give, by column name.

        rows: how many, where that is known without making a column.
        """
        table = object.__new__(cls)
        object.__setattr__(table, "_makers", makers)
        object.__setattr__(table, "_rows", rows)
        return table

    def __getattr__(self, name: str) -> Any:
        if name not in type(self).__slots__:
            raise AttributeError(name)
        for made, column in self._makers[name]().items():
            if isinstance(column, np.ndarray):
                column.flags.writeable = False
            object.__setattr__(self, made, column)
        return object.__getattribute__(self, name)

    def __len__(self) -> int:
        try:
            rows = self._rows
        except AttributeError:  # made with its columns
            rows = None
        return super().__len__() if rows is None else rows


@dataclass(frozen=True, slots=True, eq=False)
class StepTable(_LaterTable):
    """One row per step, in order; a step's tokens all appear at its end.

    The three costs add up to `duration_ms`. `start_ms` is the end of the step before,
    or later where the engine had nothing to do. What got nothing: `held_decodes` running
    decodes that this step left out, and `waiting` requests without a seat, the first of
    which, `blocked_request`, met `blocked_by`.
    """

    start_ms: Floats  # (steps,)
    end_ms: Floats  # (steps,)
    duration_ms: Floats  # (steps,)
    prefill_tokens: Ints  # (steps,)
    decode_tokens: Ints  # (steps,)
    fixed_ms: Floats  # (steps,)
    prefill_ms: Floats  # (steps,)
    decode_ms: Floats  # (steps,)
    held_decodes: Ints  # (steps,)
    waiting: Ints  # (steps,)
    blocked_request: Ints  # (steps,) row of the request table; -1: nobody is blocked
    blocked_by: Ints  # (steps,) index into REASONS; 0: nobody is blocked
    kv_blocks: Ints  # (steps,) blocks that requests hold in it; 0 where they are not counted
    decode_context_tokens: Ints  # (steps,) cached tokens of all its decodes, summed


@dataclass(frozen=True, slots=True, eq=False)
class SliceTable(_LaterTable):
    """One row per prefill slice: `tokens` of a prompt, from position `start_token`.

    After a preemption the request's own outputs are prefilled with its prompt.
    """

    step: Ints  # (slices,)
    request: Ints  # (slices,) row of the request table
    start_token: Ints  # (slices,)
    tokens: Ints  # (slices,)
    wanted_tokens: Ints  # (slices,) all that was known and not computed
    limited_by: Ints  # (slices,) index into REASONS; 0: it got all that it wanted


@dataclass(frozen=True, slots=True, eq=False)
class RequestTable(_LaterTable):
    """One row per request in arrival order; a time that never came is NaN.

    Streaming users have no row: every step's decode tokens hold one of each of them.
    """

    request_id: tuple[str, ...]  # (requests,)
    arrival_ms: Floats  # (requests,) on the run's clock, lead-in included; NaN: never sent
    prompt_tokens: Ints  # (requests,)
    output_tokens: Ints  # (requests,)
    first_scheduled_ms: Floats  # (requests,) start of the first step with a slice of it
    first_token_ms: Floats  # (requests,)
    last_token_ms: Floats  # (requests,)


@dataclass(frozen=True, slots=True, eq=False)
class AdmissionTable(_LaterTable):
    """One row each time a request got a seat: again after every preemption."""

    request: Ints  # (admissions,)
    time_ms: Floats  # (admissions,)
    step: Ints  # (admissions,) that it was admitted to
    cached_tokens: Ints  # (admissions,) whose KV the prefix cache held


@dataclass(frozen=True, slots=True, eq=False)
class PreemptionTable(_Table):
    """One row each time a request lost its KV blocks."""

    request: Ints  # (preemptions,)
    time_ms: Floats  # (preemptions,)
    step: Ints  # (preemptions,) that it was missing from first


@dataclass(frozen=True, slots=True, eq=False)
class SpanTable(_LaterTable):
    """One row per unbroken run of one request's tokens, by request and time.

    A span's first token comes from a prefill (or a hand-over); `decodes` more follow, one at
    the end of each decode step, from decode step number `first_decode` on. Decode steps are
    the steps with decode tokens.
    """

    request: Ints  # (spans,)
    token_ms: Floats  # (spans,) when the first of its tokens appeared
    first_decode: Ints  # (spans,)
    decodes: Ints  # (spans,)


REASONS = (None, *BlockedBy)
"""What the codes of the columns `blocked_by` and `limited_by` stand for."""


@dataclass(frozen=True, slots=True, eq=False)
class Result:
    """What one run gave.

    never_scheduled: ids of the requests that no later step could ever have begun.
    never_scheduled_because: what the first of them met; None where there is none.
    never_finished: ids of requests that began and can never end: too large for the KV pool,
        or stuck for ever behind one that is.
    rejected: ids of the requests that were refused on arrival.
    stopped_at_max_steps: the run was cut, so the tables end early.
    prefill_worker: of a disaggregated deployment, the run of the worker that only prefills;
        this result is then the decode worker's, and its request table is of both.
    """

    steps: StepTable
    slices: SliceTable
    requests: RequestTable
    admissions: AdmissionTable
    preemptions: PreemptionTable
    spans: SpanTable
    streaming_users: int
    never_scheduled: tuple[str, ...]
    never_scheduled_because: str | None
    never_finished: tuple[str, ...]
    rejected: tuple[str, ...]
    stopped_at_max_steps: bool
    prefill_worker: Result | None = None

    @property
    def prefilling(self) -> Result:
        """The run of the worker that prefills: this one, where it does both."""
        return self.prefill_worker or self

    def decode_ends_ms(self) -> Floats:  # (decode steps,)
        """Return when each decode step ended."""
        return self.steps.end_ms[self.steps.decode_tokens > 0]

    def token_times_ms(self, request: int) -> Floats:  # (tokens so far,)
        """Return when each output token of row `request` appeared."""
        ends, spans = self.decode_ends_ms(), self.spans
        times = [np.empty(0)]
        for row in np.flatnonzero(spans.request == request):
            begin = int(spans.first_decode[row])
            times += [spans.token_ms[row : row + 1], ends[begin : begin + int(spans.decodes[row])]]
        return np.concatenate(times)

    def schedule(self) -> Iterator[dict[str, int]]:
        """Yield each step's batch: tokens by request id, decodes first.

        Streaming users are named `user-1`, `user-2`, ... Of a disaggregated deployment, these
        are the decode worker's steps.
        """
        ids, slices, spans = self.requests.request_id, self.slices, self.spans
        users = {f"user-{n}": 1 for n in range(1, self.streaming_users + 1)}
        begins: dict[int, list[int]] = {}
        for span in np.flatnonzero(spans.decodes):
            begins.setdefault(int(spans.first_decode[span]), []).append(int(span))
        decoding: list[int] = []
        ended = spans.first_decode + spans.decodes  # (spans,)
        at = decode_step = 0
        for step, decodes in enumerate(self.steps.decode_tokens.tolist()):
            batch: dict[str, int] = {}
            if decodes:
                decoding = [span for span in decoding if ended[span] > decode_step]
                decoding += begins.get(decode_step, [])
                batch = users | {ids[spans.request[span]]: 1 for span in decoding}
                decode_step += 1
            while at < len(slices) and slices.step[at] == step:
                batch[ids[slices.request[at]]] = int(slices.tokens[at])
                at += 1
            yield batch

    def preempted(self) -> dict[int, list[str]]:
        """Return the ids that lost their KV just before a step, by the step's number."""
        ids, table = self.requests.request_id, self.preemptions
        found: dict[int, list[str]] = {}
        for step, row in zip(table.step.tolist(), table.request.tolist(), strict=True):
            found.setdefault(step, []).append(ids[row])
        return found

    def cached(self) -> dict[int, dict[str, int]]:
        """Return the tokens that newcomers found in the prefix cache, by step and id."""
        ids, table = self.requests.request_id, self.admissions
        found: dict[int, dict[str, int]] = {}
        for row in np.flatnonzero(table.cached_tokens):
            hits = found.setdefault(int(table.step[row]), {})
            hits[ids[table.request[row]]] = int(table.cached_tokens[row])
        return found
