"""A run's tables laid out by step: who decodes, who holds a seat, whose tokens come."""

from __future__ import annotations

import heapq
from bisect import bisect_left

import numpy as np
from numpy.typing import NDArray

from s11.results import Result

Ints = NDArray[np.int64]


class Decoding:
    """Who is decoding, step after step: a sweep over the spans' beginnings and ends."""

    def __init__(self, result: Result) -> None:
        spans = result.spans
        mine = np.flatnonzero(spans.decodes)
        self.begins = mine[np.argsort(spans.first_decode[mine], kind="stable")]
        self.first, self.request = spans.first_decode, spans.request
        self.until = spans.first_decode + spans.decodes
        self.begun = 0
        self.active: dict[int, None] = {}  # requests, in the order in which they began
        self.ends: list[tuple[int, int]] = []  # (first decode step without it, request)

    def at(self, decode_step: int) -> dict[int, None]:
        """Return who decodes in a decode step; to be asked in rising order."""
        while self.begun < len(self.begins) and self.first[self.begins[self.begun]] <= decode_step:
            span = int(self.begins[self.begun])
            self.begun += 1
            while self.ends and self.ends[0][0] <= self.first[span]:
                self._end()
            self.active[int(self.request[span])] = None
            heapq.heappush(self.ends, (int(self.until[span]), int(self.request[span])))
        while self.ends and self.ends[0][0] <= decode_step:
            self._end()
        return self.active

    def _end(self) -> None:
        del self.active[heapq.heappop(self.ends)[1]]


class Standing:
    """Who could decode in a step: whose span has begun by its start, and goes on.

    The spans of who stands still hold no decode of that step, so they are told by steps.
    """

    def __init__(self, result: Result) -> None:
        spans, start_ms = result.spans, result.steps.start_ms
        last_ms = result.requests.last_token_ms[spans.request]
        self.request = spans.request
        self.begins = np.searchsorted(start_ms, spans.token_ms)  # (spans,) first step after it
        done = np.searchsorted(start_ms, last_ms)  # the last place where it never came
        losses = grouped(result.preemptions.request, result.preemptions.step)
        ends = []
        for row, begin, end in zip(
            spans.request.tolist(), self.begins.tolist(), done.tolist(), strict=True
        ):
            lost = losses.get(row, [])
            at = bisect_left(lost, begin)
            ends.append(min(end, lost[at]) if at < len(lost) else end)
        self.ends = np.array(ends, dtype=np.int64)
        self.order = np.argsort(self.begins, kind="stable")

    def at(self, step: int) -> dict[int, None]:
        """Return who could decode in a step, in the order in which they began."""
        here = self.order[(self.begins[self.order] <= step) & (step < self.ends[self.order])]
        return dict.fromkeys(self.request[here].tolist())


def ending(result: Result, times_ms: NDArray[np.float64]) -> tuple[Ints, Ints]:
    """Return the steps at whose very end a time lies, and the requests whose time it is."""
    ends_ms = result.steps.end_ms
    came = np.flatnonzero(~np.isnan(times_ms))
    steps = np.searchsorted(ends_ms, times_ms[came])
    inside = steps < len(ends_ms)
    came, steps = came[inside], steps[inside]
    exact = ends_ms[steps] == times_ms[came]
    return steps[exact], came[exact]


def running_requests(result: Result) -> Ints:  # (steps,)
    """Return how many requests hold a seat in each step."""
    steps = np.arange(len(result.steps))
    admitted = np.searchsorted(np.sort(result.admissions.step), steps, side="right")
    lost = np.searchsorted(np.sort(result.preemptions.step), steps, side="right")
    seated = np.unique(result.admissions.request)
    last_ms = result.requests.last_token_ms[seated]
    last_ms = np.sort(last_ms[~np.isnan(last_ms)])
    done = np.searchsorted(last_ms, result.steps.start_ms, side="right")
    running: Ints = result.streaming_users + admitted - lost - done
    return running


def grouped(keys: Ints, values: Ints) -> dict[int, list[int]]:
    """Return the values of each key, in order."""
    found: dict[int, list[int]] = {}
    for key, value in zip(keys.tolist(), values.tolist(), strict=True):
        found.setdefault(key, []).append(value)
    return found
