"""The rows of a band: what became of each request, from its arrival to its last token."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.results import Result
from s11.unserved import unserved
from s11.words import count

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

MOST_ROWS = 8
MOST_CHUNKS = 150
MOST_SPANS = 120  # of each kind in a row: the longest are kept
FINEST = 400  # parts of a row's length: bars nearer to each other are one


class Span(NamedTuple):
    """A stretch of time, in ms."""

    start_ms: float
    end_ms: float


@dataclass(frozen=True, slots=True, eq=False)
class Pass:
    """The chunks of one admission: of a prompt, or of what a preemption lost.

    Where they are very many, one bar stands for all of them.
    """

    left_ms: Floats  # (bars,)
    width_ms: Floats  # (bars,)
    chunks: int
    tokens: int

    @property
    def merged(self) -> bool:
        """Whether a bar is more than a chunk."""
        return len(self.left_ms) < self.chunks


class CachedPrefix(NamedTuple):
    """Tokens that an admission found in the prefix cache, ahead of its first chunk."""

    at_ms: float
    chunk_ms: float  # how long that chunk's step takes
    tokens: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RequestRow:
    """One request, or all streaming users.

    note: why it never got its tokens; None where it did.
    """

    name: str
    queued: tuple[Span, ...] = ()
    preempted: tuple[Span, ...] = ()
    hand_over: tuple[Span, ...] = ()
    passes: tuple[Pass, ...] = ()
    cached: tuple[CachedPrefix, ...] = ()
    tokens_ms: Floats
    first_token_ms: float | None = None
    stalls: tuple[Span, ...] = ()
    note: str | None = None

    @property
    def note_below(self) -> bool:
        """Whether its note stands under its marks, so that it covers none."""
        return self.note is not None and bool(self.passes or len(self.tokens_ms))

    @property
    def last_ms(self) -> float:
        """When its last mark ends."""
        spans = (*self.queued, *self.preempted, *self.hand_over)
        ends = [span.end_ms for span in spans] + self.tokens_ms[-1:].tolist()
        ends += [float(part.left_ms[-1] + part.width_ms[-1]) for part in self.passes]
        return max(ends, default=0.0)


def request_rows(experiment: Experiment, result: Result) -> tuple[tuple[RequestRow, ...], int]:
    """Return the rows in order of arrival, and how many requests are folded away.

    The streaming users share the first row.
    """
    rows = []
    target_ms, users = experiment.itl_target_ms, result.streaming_users
    if users:
        times_ms = np.concatenate(([0.0], result.decode_ends_ms()))
        name = count(users, "stream")
        rows.append(
            RequestRow(name=name, tokens_ms=times_ms, stalls=_longest(_stalls(times_ms, target_ms)))
        )
    requests = len(result.requests)
    shown = requests if requests <= MOST_ROWS + 1 else MOST_ROWS
    notes = {one.request_id: one.note for one in unserved(experiment, result)}
    rows += [_row(experiment, result, row, notes) for row in range(shown)]
    return tuple(rows), requests - shown


def _row(experiment: Experiment, result: Result, row: int, notes: dict[str, str]) -> RequestRow:
    worker = result.prefilling
    requests = result.requests
    times_ms = result.token_times_ms(row)
    arrival_ms = float(requests.arrival_ms[row])
    end_ms = float(result.steps.end_ms[-1]) if len(result.steps) else arrival_ms
    end_ms = max(end_ms, float(worker.steps.end_ms[-1]) if len(worker.steps) else 0.0)
    name, began_ms = requests.request_id[row], float(requests.first_scheduled_ms[row])
    first_ms = float(requests.first_token_ms[row])
    until_ms = max(arrival_ms, end_ms) if np.isnan(began_ms) else began_ms
    queues = name not in result.rejected and until_ms > arrival_ms
    handed: tuple[Span, ...] = ()
    if result.prefill_worker and not np.isnan(first_ms):
        handed = (Span(float(worker.requests.first_token_ms[row]), first_ms),)
    return RequestRow(
        name=name,
        queued=(Span(arrival_ms, until_ms),) if queues else (),
        preempted=_longest(_preempted(worker, row, end_ms)),
        hand_over=handed,
        passes=_passes(worker, row),
        cached=_cached(worker, row)[:MOST_SPANS],
        tokens_ms=times_ms,
        first_token_ms=None if np.isnan(first_ms) else first_ms,
        stalls=_longest(_stalls(times_ms, experiment.itl_target_ms)),
        note=notes.get(name),
    )


def _stalls(times_ms: Floats, target_ms: float) -> tuple[Span, ...]:
    over = np.flatnonzero(np.diff(times_ms) > target_ms)
    return tuple([Span(float(times_ms[at]), float(times_ms[at + 1])) for at in over])


def _preempted(worker: Result, row: int, end_ms: float) -> tuple[Span, ...]:
    lost_ms = worker.preemptions.time_ms[worker.preemptions.request == row]
    got_ms = worker.admissions.time_ms[worker.admissions.request == row]
    got_step = worker.admissions.step[worker.admissions.request == row]
    lost_step = worker.preemptions.step[worker.preemptions.request == row]
    spans = []
    for at_ms, step in zip(lost_ms.tolist(), lost_step.tolist(), strict=True):
        again = np.searchsorted(got_step, step)  # the first admission to this step or a later one
        until_ms = float(got_ms[again]) if again < len(got_ms) else end_ms
        spans.append(Span(at_ms, until_ms))
    return tuple(spans)


def _passes(worker: Result, row: int) -> tuple[Pass, ...]:
    mine = np.flatnonzero(worker.slices.request == row)
    steps = worker.slices.step[mine]
    admitted = worker.admissions.step[worker.admissions.request == row]
    number = np.searchsorted(admitted, steps, side="right")  # (slices,) which admission
    found = []
    for one in np.unique(number):
        inside = number == one
        left = worker.steps.start_ms[steps[inside]]
        right = worker.steps.end_ms[steps[inside]]
        chunks = len(left)
        if chunks > MOST_CHUNKS:
            left, right = _joined(left, right)
        tokens = int(worker.slices.tokens[mine][inside].sum())
        found.append(Pass(left, right - left, chunks, tokens))
    if sum([len(part.left_ms) for part in found]) > 2 * MOST_CHUNKS:
        left = np.concatenate([part.left_ms for part in found])
        right = left + np.concatenate([part.width_ms for part in found])
        left, right = _joined(left, right, gap_ms=float(right[-1] - left[0]) / FINEST)
        chunks, tokens = sum([p.chunks for p in found]), sum([p.tokens for p in found])
        return (Pass(left, right - left, chunks, tokens),)
    return tuple(found)


def _longest(spans: tuple[Span, ...]) -> tuple[Span, ...]:
    """Return the longest spans in their order, so that a page draws no tens of thousands."""
    if len(spans) <= MOST_SPANS:
        return spans
    by_length = sorted(spans, key=lambda span: span.start_ms - span.end_ms)
    return tuple(sorted(by_length[:MOST_SPANS]))


def _joined(left: Floats, right: Floats, *, gap_ms: float = 0.0) -> tuple[Floats, Floats]:
    """Join bars that touch, or are no further apart than a gap."""
    apart = np.flatnonzero(left[1:] > right[:-1] + gap_ms)
    return left[np.concatenate(([0], apart + 1))], right[np.concatenate((apart, [len(right) - 1]))]


def _cached(worker: Result, row: int) -> tuple[CachedPrefix, ...]:
    table, steps = worker.admissions, worker.steps
    hits = np.flatnonzero((table.request == row) & (table.cached_tokens > 0))
    found = []
    for hit in hits[table.step[hits] < len(steps)]:
        chunk_ms = float(steps.duration_ms[table.step[hit]])
        found.append(
            CachedPrefix(float(table.time_ms[hit]), chunk_ms, int(table.cached_tokens[hit]))
        )
    return tuple(found)
