"""The semantics of DESIGN.md, the slow and plain way: an object per request, a loop per step.

Nothing is counted, jumped over or filed by step number. Each request, streaming users too,
keeps the time of each of its own tokens.
"""

import math
from dataclasses import dataclass, field
from itertools import pairwise

from s11 import Experiment


@dataclass
class Call:
    """One request. A streaming user is a call without a prompt or an end."""

    row: int
    arrival_ms: float
    prompt_tokens: int
    output_tokens: float
    computed: int = 0
    first_scheduled_ms: float = math.nan
    token_times_ms: list[float] = field(default_factory=list)

    @property
    def done(self) -> bool:
        return len(self.token_times_ms) >= self.output_tokens

    @property
    def decoding(self) -> bool:
        return self.computed >= self.prompt_tokens and not self.done

    @property
    def prefilling(self) -> bool:
        return 0 < self.computed < self.prompt_tokens

    @property
    def waiting(self) -> bool:
        return self.computed == 0 and self.prompt_tokens > 0

    @property
    def gaps_ms(self) -> list[float]:
        times = self.token_times_ms
        return [after - before for before, after in pairwise(times)]


@dataclass
class Step:
    start_ms: float
    end_ms: float
    duration_ms: float
    slices: list[tuple[Call, int, int]]  # call, start token, tokens
    decoded: list[Call]


class _CutError(Exception):
    """The most steps are taken."""


class ReferenceRun:
    """A run of an experiment."""

    def __init__(self, experiment: Experiment, max_steps: float = math.inf) -> None:
        self.experiment = experiment
        self.max_steps = max_steps
        self.now_ms = 0.0
        self.steps: list[Step] = []
        self.calls: list[Call] = []
        self.stopped = False
        workload = experiment.workload
        # Every user's last token came at t = 0.
        self.users = [
            Call(-1, 0.0, 0, math.inf, token_times_ms=[0.0])
            for _ in range(workload.streaming_users)
        ]
        try:
            self._run()
        except _CutError:
            self.stopped = True

    def _run(self) -> None:
        workload = self.experiment.workload
        if self.users:
            for _ in range(workload.lead_in_steps):
                self._step([])
        self._place_calls()
        while True:
            slices = self._plan()
            coming = [call.arrival_ms for call in self.calls if call.arrival_ms > self.now_ms]
            if slices or any(call.decoding for call in self.calls) or (self.users and coming):
                self._step(slices)
            elif coming:
                self.now_ms = min(coming)
            else:
                break
        if self.users:
            for _ in range(workload.tail_steps):
                self._step([])

    def _place_calls(self) -> None:
        begin_ms = self.now_ms
        self.calls = [
            Call(row, begin_ms + r.arrival_ms, r.prompt_tokens, r.output_tokens)
            for row, r in enumerate(self.experiment.workload.requests)
        ]

    def _plan(self) -> list[tuple[Call, int]]:
        limits, whole = self.experiment.limits, self.experiment.policy == "whole_prompt"
        here = [call for call in self.calls if call.arrival_ms <= self.now_ms]
        running = [call for call in here + self.users if call.decoding or call.prefilling]
        budget_left = math.inf if limits.token_budget is None else limits.token_budget
        for call in running:
            if call.decoding:
                budget_left -= 1
        seats_left = (math.inf if limits.max_seqs is None else limits.max_seqs) - len(running)
        slices = []
        in_order = [call for call in here if call.prefilling]
        in_order += [call for call in here if call.waiting]
        for call in in_order:
            left = call.prompt_tokens - call.computed
            cap = math.inf if whole or limits.chunk_tokens is None else limits.chunk_tokens
            take = min(left, budget_left, cap)
            if whole and take < left:
                take = 0
            if take <= 0 or (call.waiting and seats_left <= 0):
                break
            slices.append((call, int(take)))
            budget_left -= take
            if call.waiting:
                seats_left -= 1
        return slices

    def _step(self, slices: list[tuple[Call, int]]) -> None:
        if len(self.steps) >= self.max_steps:
            raise _CutError
        decoded = [call for call in self.users + self.calls if call.decoding]
        cost, start_ms = self.experiment.cost, self.now_ms
        prefill_tokens = sum(tokens for _, tokens in slices)
        duration_ms = (
            cost.fixed_ms
            + cost.prefill_ms_per_token * prefill_tokens
            + cost.decode_ms_per_token * len(decoded)
        )
        self.now_ms = start_ms + duration_ms
        for call in decoded:
            call.token_times_ms.append(self.now_ms)
        step = Step(start_ms, self.now_ms, duration_ms, [], decoded)
        for call, tokens in slices:
            if call.computed == 0:
                call.first_scheduled_ms = start_ms
            step.slices.append((call, call.computed, tokens))
            call.computed += tokens
            if call.computed == call.prompt_tokens:
                call.token_times_ms.append(self.now_ms)
        self.steps.append(step)

    def never_scheduled(self) -> list[Call]:
        return [] if self.stopped else [call for call in self.calls if call.waiting]


def naive_percentile(values: list[float], percent: int) -> float | None:
    """The smallest value such that `percent` of all values or more are not above it."""
    for not_above, value in enumerate(sorted(values), start=1):
        if 100 * not_above >= percent * len(values):
            return value
    return None
