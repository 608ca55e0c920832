"""Which part of a run a Chrome trace tells: a stretch of time, and the first requests."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TIME_MS, require_int, require_ms
from s11.experiment import Experiment
from s11.export_tables import workers
from s11.results import Result
from s11.step_tables import running_requests
from s11.words import count
from s11.workload import MAX_REQUESTS

LEAST_EVENTS = 1_000
EVENTS_OF_REQUEST = 7  # two names, the request, its wait, its arrival, first token, hand-over
COUNTERS = 3  # requests, tokens, KV blocks
NAMES_OF_WORKER = 6  # of the process and its two first threads

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceWindow:
    """From when to when, in ms on the run's clock, and the threads of how many requests.

    left_out: what of the run is not in it, in a sentence; None where all is.
    """

    begin_ms: float
    end_ms: float
    requests: int
    left_out: str | None

    def clipped_us(self, time_ms: float) -> int:
        """Return a time within the window, in whole microseconds."""
        return round(1000.0 * min(max(time_ms, self.begin_ms), self.end_ms))


def run_end_ms(result: Result) -> float:
    """Return when the last thing of a run happened."""
    requests = result.requests
    times = [worker.steps.end_ms[-1:] for _, worker in workers(result)]
    times += [requests.arrival_ms, requests.first_token_ms, requests.last_token_ms]
    return float(np.nanmax(np.concatenate((*times, [0.0]))))


def trace_window(
    experiment: Experiment,
    result: Result,
    *,
    first_requests: int | None = None,
    begin_ms: float | None = None,
    end_ms: float | None = None,
    most_events: int | None = None,
) -> TraceWindow:
    """Return the window that is asked for, smaller where it would hold too many events.

    first_requests: threads of so many, in the order of their arrival; steps are of all.
    most_events: half of them are for the requests' threads, which end with those that fit, the
        others for the steps, which end with the time that fits.

    Raises:
        ValueError: a count or a time out of range, or an end that is not after the beginning.
    """
    last_ms = run_end_ms(result)
    begin = require_ms("begin_ms", 0.0 if begin_ms is None else begin_ms, 0, MAX_TIME_MS)
    end = last_ms
    if end_ms is not None:
        end = min(require_ms("end_ms", end_ms, 0, MAX_TIME_MS), last_ms)
        if end_ms <= begin:
            raise ValueError(f"end_ms: {end_ms:g} is not after begin_ms {begin:g}")
    if begin >= last_ms > 0:
        raise ValueError(f"begin_ms: {begin:g} is after the run's end at {last_ms:g} ms")
    total = len(result.requests)
    requests = total
    if first_requests is not None:
        requests = min(total, require_int("first_requests", first_requests, 1, MAX_REQUESTS))
    most = math.inf
    if most_events is not None:
        most = require_int("most_events", most_events, LEAST_EVENTS, 10**9)
        requests = min(requests, _requests_within(result, begin, most // 2))
        end = min(end, _end_within(result, begin, most - most // 2))
    return TraceWindow(
        begin_ms=begin,
        end_ms=end,
        requests=requests,
        left_out=_left_out(result, begin, end, last_ms, requests),
    )


def _requests_within(result: Result, begin_ms: float, most: int) -> int:
    """Return how many of the first requests make at most so many events from `begin_ms` on."""
    count_ = len(result.requests)
    events = np.zeros(count_, dtype=np.int64)
    for _, worker in workers(result):
        events += EVENTS_OF_REQUEST
        for table, each in (
            (worker.slices, 1),
            (worker.admissions, 1),
            (worker.spans, 2),
            (worker.preemptions, 2),
        ):
            events += each * np.bincount(table.request, minlength=count_)
    events[result.requests.last_token_ms <= begin_ms] = 0
    return int(np.searchsorted(np.cumsum(events), most, side="right"))


def _end_within(result: Result, begin_ms: float, most: int) -> float:
    """Return until when the steps of all workers make at most so many events."""
    times: list[Floats] = []
    for _, worker in workers(result):
        most -= NAMES_OF_WORKER + COUNTERS  # as they are when the window opens
        steps = worker.steps
        each = 1 + bool(worker.streaming_users) + _counter_events(worker)  # (steps,)
        each[steps.end_ms <= begin_ms] = 0
        times.append(np.repeat(steps.start_ms, each))
    in_order = np.sort(np.concatenate(times))
    return math.inf if len(in_order) <= most else float(in_order[most])


def _counter_events(worker: Result) -> Ints:  # (steps,)
    """Return at most how many counters change with each step and its end."""
    steps = worker.steps
    paused = np.append(steps.start_ms[1:] > steps.end_ms[:-1], True)[: len(steps)]
    events = COUNTERS * paused.astype(np.int64)
    for columns in (
        (running_requests(worker), steps.waiting),
        (steps.prefill_tokens, steps.decode_tokens),
        (steps.kv_blocks,),
    ):
        changed = np.ones(len(steps), dtype=bool)
        changed[1:] = paused[:-1]
        for column in columns:
            changed[1:] |= np.diff(column) != 0
        events += changed
    return events


def _left_out(
    result: Result, begin_ms: float, end_ms: float, last_ms: float, requests: int
) -> str | None:
    told = []
    if begin_ms > 0:
        told.append(f"all before {begin_ms / 1000:,.3f} s")
    if end_ms < last_ms:
        told.append(f"all after {end_ms / 1000:,.3f} s of {last_ms / 1000:,.3f} s")
    total = len(result.requests)
    if requests < total:
        kept = count(requests, "request")
        told.append(f"the threads of all but the first {kept} of {total:,}")
    if not told:
        return None
    return f"Left out: {', '.join(told)}."
