"""The only event loop.

A step costs the same however many requests decode in it: decodes are counted, and a
request's end is filed under the number of the step that gives its last token. Equal steps
run in an inner loop until something happens: an arrival, a last token, a prompt complete.
"""

from __future__ import annotations

import math
from collections import defaultdict
from typing import NamedTuple

import numpy as np

from s11.checks import require_int
from s11.experiment import Experiment
from s11.plan import Batch, BlockedBy, PrefillSlice
from s11.policies import POLICIES
from s11.results import RequestTable, Result, SliceTable, StepTable

DEFAULT_MAX_STEPS = 50_000_000
UNTIL_SOMETHING_HAPPENS = 2**62


def simulate(experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS) -> Result:
    """Run an experiment to its end, or to `max_steps` steps.

    A request that arrives at time t is seen by the first step that starts at or after t. The
    run ends when every request is done or can never be scheduled, and the tail has passed.

    Raises:
        ValueError: `max_steps` out of range, or steps so short that the clock stands still.
    """
    max_steps = require_int("max_steps", max_steps, 1, DEFAULT_MAX_STEPS)
    run = _Run(experiment, max_steps)
    workload = experiment.workload
    if workload.streaming_users:
        run.advance(0, workload.lead_in_steps)
    run.start_clock()
    run.serve()
    if workload.streaming_users and not run.stopped:
        run.advance(0, workload.tail_steps)
    return run.result()


class _EqualSteps(NamedTuple):
    """A run of `steps` steps with the same load."""

    steps: int
    duration_ms: float
    prefill_tokens: int
    decode_tokens: int


class _Run:
    """The mutable state of one run."""

    def __init__(self, experiment: Experiment, max_steps: int) -> None:
        workload = experiment.workload
        self.workload = workload
        self.requests = workload.requests
        self.limits = experiment.limits
        self.budget = experiment.limits.tokens_per_step()
        self.plan = POLICIES[experiment.policy]
        self.cost = experiment.cost
        self.max_steps = max_steps
        self.stopped = False

        self.now_ms = 0.0
        self.batch = Batch(
            decoding=workload.streaming_users,
            remaining_tokens=[request.prompt_tokens for request in self.requests],
        )
        self.arrivals_ms: list[float] = []
        self.arrived = 0
        self.last_token_in_step: defaultdict[int, list[int]] = defaultdict(list)
        self.blocked_by: BlockedBy | None = None

        self.ends_ms: list[float] = []
        self.runs: list[_EqualSteps] = []
        self.idle_until: list[tuple[int, float]] = []
        self.slice_steps: list[int] = []
        self.slice_requests: list[int] = []
        self.slice_starts: list[int] = []
        self.slice_tokens: list[int] = []
        self.first_scheduled_ms = [math.nan] * len(self.requests)
        self.first_token_ms = self.first_scheduled_ms.copy()
        self.last_token_ms = self.first_scheduled_ms.copy()

    def start_clock(self) -> None:
        """Place the arrivals on the run's clock: they count from the end of the lead-in."""
        self.arrivals_ms = [self.now_ms + request.arrival_ms for request in self.requests]

    def serve(self) -> None:
        """Run until every request is done or nothing can change any more."""
        batch, arrivals_ms = self.batch, self.arrivals_ms
        users = self.workload.streaming_users
        while not self.stopped:
            while self.arrived < len(arrivals_ms) and arrivals_ms[self.arrived] <= self.now_ms:
                batch.waiting.append(self.arrived)
                self.arrived += 1
            if batch.prefilling or batch.waiting:
                slices, self.blocked_by, steps = self.plan(batch, self.limits)
                if slices:
                    self.prefill(slices, steps)
                    continue
            if batch.decoding > users or (users and self.arrived < len(arrivals_ms)):
                self.advance(0, UNTIL_SOMETHING_HAPPENS)
            elif self.arrived < len(arrivals_ms):
                self.now_ms = arrivals_ms[self.arrived]
                self.idle_until.append((len(self.ends_ms), self.now_ms))
            else:
                return

    def prefill(self, slices: list[PrefillSlice], steps: int) -> None:
        """Run up to `steps` steps that each carry `slices` beside every decode."""
        batch, remaining_tokens, start_ms = self.batch, self.batch.remaining_tokens, self.now_ms
        if len(self.ends_ms) == self.max_steps:
            self.stopped = True
            return
        for request, _ in slices:
            if math.isnan(self.first_scheduled_ms[request]):
                admitted = batch.waiting.popleft()
                assert admitted == request, "first come, first served"
                batch.prefilling.append(request)
                self.first_scheduled_ms[request] = start_ms

        first = len(self.ends_ms)
        self.advance(sum([tokens for _, tokens in slices]), steps)
        last = len(self.ends_ms) - 1

        for step in range(first, last + 1):
            for request, tokens in slices:
                self.slice_steps.append(step)
                self.slice_requests.append(request)
                self.slice_starts.append(
                    self.requests[request].prompt_tokens - remaining_tokens[request]
                )
                self.slice_tokens.append(tokens)
                remaining_tokens[request] -= tokens
        for request, _ in slices:
            assert remaining_tokens[request] >= 0, "a slice lies within its prompt"
            if remaining_tokens[request]:
                continue
            batch.prefilling.remove(request)
            self.first_token_ms[request] = self.now_ms
            decodes = self.requests[request].output_tokens - 1
            if decodes:
                batch.decoding += 1
                self.last_token_in_step[last + decodes].append(request)
            else:
                self.last_token_ms[request] = self.now_ms

    def advance(self, prefill_tokens: int, steps: int) -> None:
        """Run up to `steps` equal steps; stop early at a last token or an arrival."""
        decoding = self.batch.decoding
        assert prefill_tokens + decoding <= self.budget, "the budget is kept"
        duration_ms = self.cost.step_ms(prefill_tokens=prefill_tokens, decode_tokens=decoding)
        until_ms = math.inf
        if self.arrived < len(self.arrivals_ms):
            until_ms = self.arrivals_ms[self.arrived]
        now_ms, ends_ms, last_tokens = self.now_ms, self.ends_ms, self.last_token_in_step
        first = step = len(ends_ms)
        end = min(first + steps, self.max_steps)
        while step < end:
            now_ms += duration_ms
            ends_ms.append(now_ms)
            step += 1
            if now_ms >= until_ms or step - 1 in last_tokens:
                break
        else:
            self.stopped = self.stopped or end < first + steps
        if now_ms == self.now_ms and step > first:
            raise ValueError(
                f"cost: a step of {duration_ms:g} ms is too short to move a clock that "
                f"stands at {now_ms:g} ms"
            )
        self.now_ms = now_ms
        self.runs.append(_EqualSteps(step - first, duration_ms, prefill_tokens, decoding))
        for request in last_tokens.pop(step - 1, ()):
            self.last_token_ms[request] = now_ms
            self.batch.decoding -= 1

    def result(self) -> Result:
        """Return the run's tables."""
        ends_ms = np.array(self.ends_ms)
        starts_ms = np.concatenate(([0.0], ends_ms[:-1])) if len(ends_ms) else ends_ms
        for step, start_ms in self.idle_until:
            if step < len(starts_ms):
                starts_ms[step] = start_ms
        runs = np.array(self.runs, dtype=np.float64).reshape(-1, 4).T
        steps, (durations_ms, *tokens) = runs[0].astype(np.int64), runs[1:]
        prefill_tokens, decode_tokens = np.repeat(np.array(tokens, dtype=np.int64), steps, axis=1)
        costs = self.cost.breakdown(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens)
        slices = np.array(
            [self.slice_steps, self.slice_requests, self.slice_starts, self.slice_tokens],
            dtype=np.int64,
        )
        times_ms = np.array(
            [self.arrivals_ms, self.first_scheduled_ms, self.first_token_ms, self.last_token_ms]
        )
        sizes = np.array(
            [(request.prompt_tokens, request.output_tokens) for request in self.requests],
            dtype=np.int64,
        ).reshape(-1, 2)
        never = () if self.stopped else tuple(self.batch.waiting)
        return Result(
            steps=StepTable(
                start_ms=starts_ms,
                end_ms=ends_ms,
                duration_ms=np.repeat(durations_ms, steps),
                prefill_tokens=prefill_tokens,
                decode_tokens=decode_tokens,
                fixed_ms=costs.fixed_ms,
                prefill_ms=costs.prefill_ms,
                decode_ms=costs.decode_ms,
            ),
            slices=SliceTable(
                step=slices[0], request=slices[1], start_token=slices[2], tokens=slices[3]
            ),
            requests=RequestTable(
                request_id=tuple([request.request_id for request in self.requests]),
                arrival_ms=times_ms[0],
                prompt_tokens=sizes[:, 0],
                output_tokens=sizes[:, 1],
                first_scheduled_ms=times_ms[1],
                first_token_ms=times_ms[2],
                last_token_ms=times_ms[3],
            ),
            streaming_users=self.workload.streaming_users,
            never_scheduled=tuple([self.requests[row].request_id for row in never]),
            never_scheduled_because=str(self.blocked_by) if never and self.blocked_by else None,
            stopped_at_max_steps=self.stopped,
        )
