"""A run over time in few buckets, none of whose extremes is lost."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TIME_MS, require_int, require_ms
from s11.results import Result, StepTable

MOST_BUCKETS = 10_000

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Band:
    """What one quantity was in each bucket: its least, its mean over time, its most."""

    lowest: Floats  # (buckets,)
    mean: Floats  # (buckets,)
    highest: Floats  # (buckets,)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class OverTime:
    """A stretch of a run in buckets of equal length; where the engine is idle, all is 0.

    waiting: requests that have arrived and hold no seat, preempted ones included.
    running: requests that hold a seat, prefilling or decoding, streaming users included.
    kv_blocks: blocks that requests hold; 0 where they are not counted.
    step_ms: how long the step under way takes; of two workers, the one that decodes.
    prefill_tokens, decode_tokens: of the step under way, each on the worker that computes them.
    """

    edges_ms: Floats  # (buckets + 1,)
    waiting: Band
    running: Band
    kv_blocks: Band
    step_ms: Band
    prefill_tokens: Band
    decode_tokens: Band


class _Buckets:
    """Buckets laid over a quantity that jumps at some times: which of its pieces lie in which."""

    def __init__(self, times_ms: Floats, edges_ms: Floats) -> None:
        """Lay buckets (edges: (buckets + 1,)) over pieces that begin at `times_ms` (rising)."""
        pieces_ms = np.concatenate(([-np.inf], times_ms, [np.inf]))
        lefts, rights = edges_ms[:-1], edges_ms[1:]  # (buckets,) each
        first = np.searchsorted(pieces_ms, lefts, side="right") - 1  # (buckets,) pieces
        last = np.searchsorted(pieces_ms, rights, side="left") - 1  # (buckets,)
        self._from, self._to = int(first[0]), int(last[-1]) + 1
        inside = np.clip(pieces_ms[self._from : self._to + 1], edges_ms[0], edges_ms[-1])
        self._first, self._last = first - self._from, last - self._from
        self._lengths_ms = np.diff(inside)  # (pieces inside,)
        self._before_ms = lefts - inside[self._first]  # of the first piece, not in the bucket
        self._after_ms = inside[self._last + 1] - rights  # of the last piece
        self._widths_ms = rights - lefts
        # Every other part between these is a bucket's; the last one needs a piece to end at.
        self._parts = np.stack((self._first, self._last + 1), axis=1).ravel()

    def band(self, values: NDArray[np.generic]) -> Band:
        """Return the band of a quantity, which is `values[k]` from time k on; 0 before the first.

        values: (times,).
        """
        begin = max(self._from - 1, 0)
        inside = [np.zeros(int(not self._from), values.dtype), values[begin : self._to - 1]]
        held = np.concatenate((*inside, np.zeros(1, values.dtype)))  # (pieces inside + 1,)
        lowest = np.minimum.reduceat(held, self._parts)[::2].astype(np.float64)
        highest = np.maximum.reduceat(held, self._parts)[::2].astype(np.float64)
        area = np.append(held[:-1] * self._lengths_ms, 0.0)
        sums = np.add.reduceat(area, self._parts)[::2]
        sums -= held[self._first] * self._before_ms + held[self._last] * self._after_ms
        # Sums of many parts are off in the last bits; the mean never leaves the band.
        mean = np.clip(sums / self._widths_ms, lowest, highest)
        return Band(lowest=lowest, mean=mean, highest=highest)


def run_span_ms(result: Result) -> tuple[float, float]:
    """Return where a run begins and ends on its clock, in ms: from 0, and never of no length."""
    ends = [float(t.end_ms[-1]) for t in (result.steps, result.prefilling.steps) if len(t)]
    return 0.0, max(ends, default=0.0) or 1.0


def over_time(result: Result, *, begin_ms: float, end_ms: float, buckets: int) -> OverTime:
    """Return what a run did from `begin_ms` to `end_ms`, in `buckets` of equal length.

    A step that reaches over several buckets counts in each, and only what holds for a time is
    counted: of two changes at one moment, the last. Before the first step and after the last
    one all is 0.

    Raises:
        ValueError: a time or a count out of range, or an end that is not after the beginning.
    """
    begin_ms = require_ms("begin_ms", begin_ms, 0, MAX_TIME_MS)
    end_ms = require_ms("end_ms", end_ms, 0, MAX_TIME_MS)
    require_int("buckets", buckets, 1, MOST_BUCKETS)
    edges_ms = np.linspace(begin_ms, end_ms, buckets + 1)  # (buckets + 1,)
    if not (np.diff(edges_ms) > 0).all():
        raise ValueError(
            f"end_ms: {end_ms:g} leaves no room for {buckets:,} buckets after {begin_ms:g} "
            "(allowed: more than begin_ms)"
        )
    decoding = _steps_in_buckets(result.steps, edges_ms)
    prefiller = result.prefilling.steps
    prefilling = decoding if prefiller is result.steps else _steps_in_buckets(prefiller, edges_ms)
    return OverTime(
        edges_ms=edges_ms,
        waiting=_waiting(result, edges_ms),
        running=_running(result, edges_ms),
        kv_blocks=decoding(result.steps.kv_blocks),
        step_ms=decoding(result.steps.duration_ms),
        prefill_tokens=prefilling(prefiller.prefill_tokens),
        decode_tokens=decoding(result.steps.decode_tokens),
    )


def _steps_in_buckets(steps: StepTable, edges_ms: Floats) -> Callable[[NDArray[np.generic]], Band]:
    """Return what makes a band of a column of the steps: 0 between and after them."""
    first = int(np.searchsorted(steps.end_ms, edges_ms[0], side="right"))
    last = max(first, int(np.searchsorted(steps.start_ms, edges_ms[-1], side="left")))
    starts, ends = steps.start_ms[first:last], steps.end_ms[first:last]
    idle = np.flatnonzero(starts[1:] > ends[:-1])
    places = np.append(idle + 1, len(starts)) if len(starts) else np.zeros(0, dtype=np.int64)
    buckets = _Buckets(np.insert(starts, places, ends[places - 1]), edges_ms)

    def band(column: NDArray[np.generic]) -> Band:
        return buckets.band(np.insert(column[first:last], places, 0))

    return band


def _waiting(result: Result, edges_ms: Floats) -> Band:
    """Return the queue: in by arrival or preemption, out by admission."""
    arrival_ms = result.requests.arrival_ms
    if result.rejected:
        arrival_ms = arrival_ms[~np.isin(result.requests.request_id, result.rejected)]
    prefiller = result.prefilling
    comes = [arrival_ms, prefiller.preemptions.time_ms]
    goes = [prefiller.admissions.time_ms]
    if result.prefill_worker is not None:  # a second queue: for a seat on the worker that decodes
        handed = result.requests.output_tokens > 1
        comes.append(result.requests.first_token_ms[handed])
        goes.append(result.admissions.time_ms)
    times_ms, counts = _counted(comes, goes, end_ms=run_span_ms(result)[1])
    return _Buckets(times_ms, edges_ms).band(counts)


def _running(result: Result, edges_ms: Floats) -> Band:
    """Return who holds a seat: in by admission, out by preemption or with the last token."""
    seated = np.unique(result.admissions.request)
    comes = [result.admissions.time_ms]
    goes = [result.preemptions.time_ms, result.requests.last_token_ms[seated]]
    if result.prefill_worker is not None:
        comes.append(result.prefill_worker.admissions.time_ms)
        goes.append(result.prefill_worker.requests.last_token_ms)
    end_ms = run_span_ms(result)[1]
    if result.streaming_users and len(result.steps):
        users = np.full(result.streaming_users, result.steps.start_ms[0])
        comes.append(users)
    times_ms, counts = _counted(comes, goes, end_ms=end_ms)
    return _Buckets(times_ms, edges_ms).band(counts)


def _counted(
    comes: list[Floats], goes: list[Floats], *, end_ms: float
) -> tuple[Floats, NDArray[np.int64]]:  # (changes,), (changes,)
    """Return from when on how many are there: who came and has not gone; nobody from the end on."""
    came, went = (np.concatenate(times) for times in (comes, goes))
    came, went = came[came < end_ms], went[went < end_ms]  # those that never came are NaN
    times_ms, place = np.unique(np.concatenate((came, went)), return_inverse=True)
    change = np.zeros(len(times_ms), dtype=np.int64)
    np.add.at(change, place[: len(came)], 1)
    np.subtract.at(change, place[len(came) :], 1)
    return np.append(times_ms, end_ms), np.append(change.cumsum(), 0)
