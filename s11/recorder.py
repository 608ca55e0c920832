"""What the engine notes while it runs, and the tables that come of it.

Notes are plain tuples in lists, one per event: a run of equal steps, a slice, an admission, a
preemption, an unbroken span of tokens. NumPy sees them once, at the end.
"""

from __future__ import annotations

import math
from array import array
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import fields
from itertools import chain
from threading import Lock
from typing import Any

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


Admission = tuple[int, float, int, int]
"""A request, when it got a seat, for which step, and its tokens in the prefix cache."""

Span = tuple[int, float, int, int]
"""A request, when its first token in a row appeared, its first decode step, and its decodes."""

COUNTS_OF_RUNS = (
    "prefill_tokens",
    "decode_tokens",
    "held_decodes",
    "waiting",
    "blocked_request",
    "blocked_by",
)
WHOLE_NUMBERS = ("runs", "slices")
WITH_TIMES = ("admissions", "preemptions", "spans")


class Recorder:
    """The notes of one run."""

    def __init__(self, requests: Sequence[Request]) -> None:
        self.requests = requests
        self.ends_ms = array("d")
        self.runs: list[EqualSteps] = []
        self.durations_ms = array("d")  # of each step, where the cost model is no line
        self.kv_blocks = array("q")
        self.idle_until: list[tuple[int, float]] = []
        self.slices: list[SliceRun] = []
        self.admissions: list[Admission] = []
        self.admission_count = 0
        self.preemptions: list[tuple[int, float, int]] = []
        self.spans: list[Span] = []
        self._packed: dict[str, list[np.ndarray | Callable[[], np.ndarray]]] = defaultdict(list)
        self._packing = Lock()

    def admitted(self, request: int, now_ms: float, cached_tokens: int) -> None:
        """Note that a request got a seat in the step that comes."""
        self.admission_count += 1
        self.admissions.append((request, now_ms, len(self.ends_ms), cached_tokens))

    def pack(self) -> None:
        """Put the notes so far into arrays: a tenth of their size in Python's objects."""
        for name in (*WHOLE_NUMBERS, *WITH_TIMES):
            self._pack(name)

    def append_later(self, name: str, rows: Callable[[], np.ndarray]) -> None:
        """Note what is worked out when it is asked for: rows like those of `name`, packed."""
        self._pack(name)
        self._packed[name].append(rows)

    def _pack(self, name: str) -> None:
        notes = getattr(self, name)
        if not notes:
            return
        # In a table with times a row or a step, below 2^53, is exact as a float.
        kind, columns = (np.int64 if name in WHOLE_NUMBERS else np.float64), len(notes[0])
        flat = np.fromiter(chain.from_iterable(notes), kind, len(notes) * columns)
        self._packed[name].append(flat.reshape(-1, columns))
        notes.clear()

    def _noted(self, name: str, columns: int) -> np.ndarray:  # (notes, columns)
        """Return all notes of a kind, packed; whoever reads a run at the same time waits."""
        with self._packing:
            return self._noted_alone(name, columns)

    def _noted_alone(self, name: str, columns: int) -> np.ndarray:  # (notes, columns)
        self._pack(name)
        parts = [part() if callable(part) else part for part in self._packed[name]]
        if len(parts) != 1:
            kind = np.int64 if name in WHOLE_NUMBERS else np.float64
            parts = [np.concatenate(parts) if parts else np.empty((0, columns), kind)]
        self._packed[name] = [*parts]
        return parts[0]

    def decodes_in_step(self) -> np.ndarray:  # (steps,)
        """Return the decode tokens of each step."""
        runs = self._noted("runs", 8)
        return runs[:, 2].repeat(runs[:, 0])

    def step_table(
        self, cost: CostModel, slices: SliceTable, held_blocks: Callable[[], np.ndarray]
    ) -> StepTable:
        """Return the steps; what few ask for is worked out when it is asked for."""

        def times() -> dict[str, np.ndarray]:
            ends_ms = np.array(self.ends_ms)
            starts_ms = np.concatenate(([0.0], ends_ms[:-1])) if len(ends_ms) else ends_ms
            for step, start_ms in self.idle_until:
                if step < len(starts_ms):
                    starts_ms[step] = start_ms
            return {"start_ms": starts_ms, "end_ms": ends_ms}

        def durations() -> dict[str, np.ndarray]:
            if cost.line is not None:
                return {"duration_ms": cost.line.durations_ms(work())}
            return {"duration_ms": np.array(self.durations_ms)}

        def counts(name: str, column: int) -> Callable[[], dict[str, np.ndarray]]:
            def count() -> dict[str, np.ndarray]:
                runs = self._noted("runs", 8)
                return {name: runs[:, column].repeat(runs[:, 0])}

            return count

        def contexts() -> dict[str, np.ndarray]:
            runs = self._noted("runs", 8)
            steps = runs[:, 0]
            nth = np.arange(steps.sum()) - (steps.cumsum() - steps).repeat(steps)  # in its run
            context = runs[:, 7].repeat(steps) + nth * runs[:, 2].repeat(steps)
            return {"decode_context_tokens": context}

        def work() -> StepWork:
            return StepWork(
                prefill_tokens=table.prefill_tokens,
                decode_tokens=table.decode_tokens,
                decode_context_tokens=table.decode_context_tokens,
                slice_step=slices.step,
                slice_start_token=slices.start_token,
                slice_tokens=slices.tokens,
            )

        def costs() -> dict[str, np.ndarray]:
            parts = cost.breakdown(work())
            names = ("fixed_ms", "prefill_ms", "decode_ms")
            return {name: getattr(parts, name) for name in names}

        makers: dict[str, Callable[[], dict[str, np.ndarray]]] = {
            "start_ms": times,
            "end_ms": times,
            "duration_ms": durations,
            "decode_context_tokens": contexts,
            "kv_blocks": lambda: {"kv_blocks": held_blocks()},
            **dict.fromkeys(("fixed_ms", "prefill_ms", "decode_ms"), costs),
        }
        for column, name in enumerate(COUNTS_OF_RUNS, start=1):
            makers[name] = counts(name, column)
        table = StepTable.later(makers, rows=len(self.ends_ms))
        return table

    def slice_table(self) -> SliceTable:
        """Return the slices in the order of the steps, when they are asked for."""
        names = [field.name for field in fields(SliceTable)]
        return SliceTable.later(dict.fromkeys(names, self._slice_columns))

    def _slice_columns(self) -> dict[str, np.ndarray]:
        runs = self._noted("slices", 7)
        repeats = runs[:, 1]
        if len(runs) and (repeats > 1).any():
            step, _, request, start, tokens, wanted, why = runs.repeat(repeats, axis=0).T
            nth = np.arange(len(step)) - (repeats.cumsum() - repeats).repeat(repeats)  # in its run
            step, start = step + nth, start + nth * tokens
            wanted = wanted - nth * tokens
        else:
            step, _, request, start, tokens, wanted, why = runs.T
        columns = [step, request, start, tokens, wanted, why * (tokens < wanted)]
        if (np.diff(step) < 0).any():
            order = step.argsort(kind="stable")
            columns = [column[order] for column in columns]
        names = [field.name for field in fields(SliceTable)]
        contiguous = [np.ascontiguousarray(column) for column in columns]
        return dict(zip(names, contiguous, strict=True))

    def admission_table(self) -> AdmissionTable:
        """Return the admissions in order, when they are asked for."""
        names = [field.name for field in fields(AdmissionTable)]
        return AdmissionTable.later(
            dict.fromkeys(names, self._admission_columns), rows=self.admission_count
        )

    def _admission_columns(self) -> dict[str, np.ndarray]:
        notes = self._noted("admissions", 4)
        return {
            "request": _ints(notes, 0),
            "time_ms": notes[:, 1].copy(),
            "step": _ints(notes, 2),
            "cached_tokens": _ints(notes, 3),
        }

    def preemption_table(self) -> PreemptionTable:
        """Return the preemptions in order."""
        notes = self._noted("preemptions", 3)
        return PreemptionTable(
            request=_ints(notes, 0), time_ms=notes[:, 1].copy(), step=_ints(notes, 2)
        )

    def span_table(self) -> SpanTable:
        """Return the spans by request, and in time, when they are asked for."""
        names = [field.name for field in fields(SpanTable)]
        return SpanTable.later(dict.fromkeys(names, self._span_columns))

    def _span_columns(self) -> dict[str, np.ndarray]:
        notes = self._noted("spans", 4)
        notes = notes[np.lexsort((notes[:, 2], notes[:, 1], notes[:, 0]))]
        return {
            "request": _ints(notes, 0),
            "token_ms": notes[:, 1].copy(),
            "first_decode": _ints(notes, 2),
            "decodes": _ints(notes, 3),
        }

    def request_table(
        self,
        arrivals_ms: Sequence[float],
        prompt_tokens: Sequence[int],
        output_tokens: Sequence[int],
        *,
        admissions: AdmissionTable,
        spans: SpanTable,
    ) -> RequestTable:
        """Return the requests in the order of their arrival; their times, when asked for.

        Who was admitted when, and the spans of tokens, tell them.
        """
        rows = len(self.requests)

        def asked() -> dict[str, Any]:
            return {
                "request_id": tuple([request.request_id for request in self.requests]),
                "arrival_ms": np.array(arrivals_ms, dtype=np.float64),
                "prompt_tokens": np.array(prompt_tokens, dtype=np.int64),
                "output_tokens": np.array(output_tokens, dtype=np.int64),
            }

        def firsts() -> dict[str, Any]:
            scheduled_ms, token_ms = np.full(rows, math.nan), np.full(rows, math.nan)
            # Backwards: the first of a request's rows is written last.
            scheduled_ms[admissions.request[::-1]] = admissions.time_ms[::-1]
            token_ms[spans.request[::-1]] = spans.token_ms[::-1]
            return {"first_scheduled_ms": scheduled_ms, "first_token_ms": token_ms}

        def lasts() -> dict[str, Any]:
            decode_end_ms = np.array(self.ends_ms)[np.flatnonzero(self.decodes_in_step())]
            last_ms, span_end_ms = np.full(rows, math.nan), spans.token_ms.copy()
            decoded = np.flatnonzero(spans.decodes)
            last_decode = spans.first_decode[decoded] + spans.decodes[decoded] - 1
            span_end_ms[decoded] = decode_end_ms[last_decode]
            last_ms[spans.request] = span_end_ms  # forwards: a request's last row stays
            got = np.bincount(spans.request, spans.decodes + 1, minlength=rows)
            last_ms[got < np.array(output_tokens)] = math.nan
            return {"last_token_ms": last_ms}

        makers: dict[str, Callable[[], dict[str, Any]]] = {
            **dict.fromkeys(("request_id", "arrival_ms", "prompt_tokens", "output_tokens"), asked),
            **dict.fromkeys(("first_scheduled_ms", "first_token_ms"), firsts),
            "last_token_ms": lasts,
        }
        return RequestTable.later(makers, rows=rows)


def _ints(notes: np.ndarray, column: int) -> np.ndarray:
    return notes[:, column].astype(np.int64)
