"""What the engine notes while it runs, and the tables that come of it.

Notes are plain tuples in lists, one per event: a run of equal steps, a slice, an admission, a
preemption, an unbroken span of tokens. NumPy sees them once, at the end.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from s11.costs import CostModel, StepWork
from s11.results import (
    AdmissionTable,
    PreemptionTable,
    RequestTable,
    SliceTable,
    SpanTable,
    StepTable,
)
from s11.workload import Request

EqualSteps = tuple[int, int, int, int, int, int, int, int]
"""A run of equal steps: how many, prefill tokens, decode tokens, decodes held, waiting,
who is blocked, by what, and the cached tokens of all that decodes in the first of them."""


SliceRun = tuple[int, int, int, int, int, int, int]
"""A slice that equal steps repeat: first step, how many, request, start token, tokens of each,
wanted before the first, why it was not all."""


class Recorder:
    """The notes of one run."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.ends_ms: list[float] = []
        self.runs: list[EqualSteps] = []
        self.durations_ms: list[float] = []  # one for each of the runs, or for each step
        self.kv_blocks: list[int] = []
        self.idle_until: list[tuple[int, float]] = []
        self.slices: list[SliceRun] = []
        self.admissions: list[tuple[int, float, int, int]] = []
        self.preemptions: list[tuple[int, float, int]] = []
        self.spans: list[tuple[int, float, int, int]] = []
        self.first_scheduled_ms = [math.nan] * len(requests)
        self.first_token_ms = self.first_scheduled_ms.copy()
        self.last_token_ms = self.first_scheduled_ms.copy()

    def admitted(self, request: int, now_ms: float, cached_tokens: int) -> None:
        """Note that a request got a seat in the step that comes."""
        if math.isnan(self.first_scheduled_ms[request]):
            self.first_scheduled_ms[request] = now_ms
        self.admissions.append((request, now_ms, len(self.ends_ms), cached_tokens))

    def step_table(self, cost: CostModel, slices: SliceTable) -> StepTable:
        """Return the steps, their costs told apart by the cost model."""
        ends_ms = np.array(self.ends_ms)
        starts_ms = np.concatenate(([0.0], ends_ms[:-1])) if len(ends_ms) else ends_ms
        for step, start_ms in self.idle_until:
            if step < len(starts_ms):
                starts_ms[step] = start_ms
        runs = np.array(self.runs, dtype=np.int64).reshape(-1, 8).T
        steps = runs[0]
        prefill_tokens, decode_tokens, held, waiting, blocked_request, blocked_by, context = (
            np.repeat(runs[1:], steps, axis=1)
        )
        nth = np.arange(len(ends_ms)) - (steps.cumsum() - steps).repeat(steps)  # in its run
        context = context + nth * decode_tokens
        costs = cost.breakdown(
            StepWork(
                prefill_tokens=prefill_tokens,
                decode_tokens=decode_tokens,
                decode_context_tokens=context,
                slice_step=slices.step,
                slice_start_token=slices.start_token,
                slice_tokens=slices.tokens,
            )
        )
        durations_ms = np.array(self.durations_ms)
        kv_blocks = np.array(self.kv_blocks, dtype=np.int64)
        return StepTable(
            start_ms=starts_ms,
            end_ms=ends_ms,
            duration_ms=durations_ms.repeat(steps) if cost.counts_only else durations_ms,
            prefill_tokens=prefill_tokens,
            decode_tokens=decode_tokens,
            fixed_ms=costs.fixed_ms,
            prefill_ms=costs.prefill_ms,
            decode_ms=costs.decode_ms,
            held_decodes=held,
            waiting=waiting,
            blocked_request=blocked_request,
            blocked_by=blocked_by,
            kv_blocks=kv_blocks if len(kv_blocks) else np.zeros(len(ends_ms), dtype=np.int64),
            decode_context_tokens=context,
        )

    def slice_table(self) -> SliceTable:
        """Return the slices in the order of the steps."""
        runs = np.array(self.slices, dtype=np.int64).reshape(-1, 7)  # (runs, 7)
        repeats = runs[:, 1]
        step, _, request, start, tokens, wanted, why = runs.repeat(repeats, axis=0).T
        nth = np.arange(len(step)) - (repeats.cumsum() - repeats).repeat(repeats)  # in its run
        step = step + nth
        wanted = wanted - nth * tokens
        columns = [step, request, start + nth * tokens, tokens, wanted, why * (tokens < wanted)]
        if len(runs) > 1:
            order = step.argsort(kind="stable")
            columns = [column[order] for column in columns]
        return SliceTable(*columns)

    def admission_table(self) -> AdmissionTable:
        """Return the admissions in order."""
        return AdmissionTable(
            request=_ints(self.admissions, 0),
            time_ms=np.array([note[1] for note in self.admissions], dtype=np.float64),
            step=_ints(self.admissions, 2),
            cached_tokens=_ints(self.admissions, 3),
        )

    def preemption_table(self) -> PreemptionTable:
        """Return the preemptions in order."""
        return PreemptionTable(
            request=_ints(self.preemptions, 0),
            time_ms=np.array([note[1] for note in self.preemptions], dtype=np.float64),
            step=_ints(self.preemptions, 2),
        )

    def span_table(self) -> SpanTable:
        """Return the spans by request, and in time."""
        spans = sorted(self.spans)
        return SpanTable(
            request=_ints(spans, 0),
            token_ms=np.array([note[1] for note in spans], dtype=np.float64),
            first_decode=_ints(spans, 2),
            decodes=_ints(spans, 3),
        )

    def request_table(self, arrivals_ms: Sequence[float]) -> RequestTable:
        """Return the requests in the order of their arrival."""
        sizes = np.array(
            [(request.prompt_tokens, request.output_tokens) for request in self.requests],
            dtype=np.int64,
        ).reshape(-1, 2)
        return RequestTable(
            request_id=tuple([request.request_id for request in self.requests]),
            arrival_ms=np.array(arrivals_ms, dtype=np.float64),
            prompt_tokens=sizes[:, 0],
            output_tokens=sizes[:, 1],
            first_scheduled_ms=np.array(self.first_scheduled_ms),
            first_token_ms=np.array(self.first_token_ms),
            last_token_ms=np.array(self.last_token_ms),
        )


def _ints(notes: Sequence[tuple[float, ...]], column: int) -> np.ndarray:
    return np.array([note[column] for note in notes], dtype=np.int64)
