"""The clock: runs of equal steps, until something happens.

Nothing is done for each decode. A request's end is filed under the number of the decode step
that gives its last token, and equal steps run at once until an arrival, a last token, or as
many as were asked for.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from collections.abc import Iterator
from heapq import heappop, heappush
from itertools import accumulate, islice, repeat
from typing import NoReturn

from s11.experiment import Experiment
from s11.plan import Batch, BlockedBy, StepPlan
from s11.recorder import Recorder

SHORT_RUN = 4  # steps: below that a loop is faster than what C does at once
DECODE_ONLY = StepPlan((), None)


class StepRunner:
    """A worker's clock, its batch, and the ends that are filed.

    arrivals_ms, arrived: when requests arrive, in order, and how many have.
    stopped: the most steps were run before all was done.
    """

    def __init__(
        self,
        experiment: Experiment,
        batch: Batch,
        notes: Recorder,
        *,
        max_steps: int,
        now_ms: float,
    ) -> None:
        self.batch, self.notes, self.cost = batch, notes, experiment.cost
        self.counts_only, self.line = experiment.cost.counts_only, experiment.cost.line
        self.budget = experiment.limits.tokens_per_step()
        self.max_steps = max_steps
        self.stopped = False
        self.now_ms = now_ms
        if now_ms:
            notes.idle_until.append((0, now_ms))
        self.arrivals_ms: list[float] = []
        self.arrived = 0
        self.decode_steps = 0
        self.ends_with_decode: defaultdict[int, list[int]] = defaultdict(list)
        self.end_steps: list[int] = []  # a heap of that table's keys, and of some gone by

    def file_end(self, request: int, decodes: int) -> None:
        """File that a request has its last token so many decode steps from now."""
        last = self.decode_steps + decodes - 1
        if last not in self.ends_with_decode:
            heappush(self.end_steps, last)
        self.ends_with_decode[last].append(request)

    def strike_end(self, request: int, decode_step: int) -> None:
        """Take a request's end out of the file, where it is preempted."""
        self.ends_with_decode[decode_step].remove(request)
        if not self.ends_with_decode[decode_step]:
            del self.ends_with_decode[decode_step]

    def advance(self, steps: int, plan: StepPlan = DECODE_ONLY) -> int:
        """Run up to `steps` equal steps; stop early at a last token or an arrival.

        Returns how many were run.
        """
        batch, notes = self.batch, self.notes
        slices, blocked_by = plan.slices, plan.blocked_by
        decoding = batch.decoding if plan.decodes else 0
        prefill_tokens = 0
        for part in slices:
            prefill_tokens += part.tokens
        assert prefill_tokens + decoding <= self.budget, "the budget is kept"
        context = batch.decode_context_tokens if decoding else 0
        until_ms = math.inf
        if self.arrived < len(self.arrivals_ms):
            until_ms = self.arrivals_ms[self.arrived]
        ends_ms = notes.ends_ms
        before = len(ends_ms)
        most: float = min(steps, self.max_steps - before)
        to_an_end = self._decodes_until_an_end() if decoding else math.inf
        if to_an_end < most:
            most = to_an_end
        duration_ms = 0.0
        if self.counts_only:
            duration_ms = self.cost.step_ms(prefill_tokens=prefill_tokens, decode_tokens=decoding)
            now_ms = self._equal_steps(duration_ms, most, until_ms)
            if self.line is None:
                notes.durations_ms.extend(repeat(duration_ms, len(ends_ms) - before))
        else:
            known, remaining = batch.known_tokens, batch.remaining_tokens
            durations_ms = self.cost.successive_ms(
                slices=[(known[part[0]] - remaining[part[0]], part[1]) for part in slices],
                decode_tokens=decoding,
                decode_context_tokens=context,
            )
            now_ms = self._varied_steps(islice(durations_ms, int(most)), until_ms)
        ran = len(ends_ms) - before
        if ran < steps and len(ends_ms) == self.max_steps:
            self.stopped = self.stopped or not (now_ms >= until_ms or ran == to_an_end)
        if now_ms == self.now_ms and ran:
            self.refuse_still_clock(duration_ms, now_ms)
        self.now_ms = now_ms
        notes.runs.append(
            (
                ran,
                prefill_tokens,
                decoding,
                batch.decoding - decoding,
                len(batch.waiting),
                self._blocked_request(plan) if blocked_by else -1,
                blocked_by.code if blocked_by else 0,
                context,
            )
        )
        if decoding:
            self.decode_steps += ran
            batch.decode_context_tokens += ran * decoding
        return ran

    def refuse_still_clock(self, duration_ms: float, now_ms: float) -> NoReturn:
        """Refuse steps so short that adding them changes nothing.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"cost: a step of {duration_ms:g} ms is too short to move a clock that stands at "
            f"{now_ms:g} ms"
        )

    def _equal_steps(self, duration_ms: float, most: float, until_ms: float) -> float:
        """Run steps of one duration up to `most`, or past `until_ms`; return the time then."""
        ends_ms, now_ms, ran = self.notes.ends_ms, self.now_ms, 0
        if most <= SHORT_RUN or now_ms + SHORT_RUN * duration_ms >= until_ms:
            while ran < most:
                now_ms += duration_ms
                ends_ms.append(now_ms)
                ran += 1
                if now_ms >= until_ms:
                    break
            return now_ms
        if until_ms < math.inf:
            most = min(most, int((until_ms - now_ms) / duration_ms) + 2)
        run_ms = list(accumulate(repeat(duration_ms, int(most)), initial=now_ms))
        ran = min(int(most), bisect_left(run_ms, until_ms, lo=1))
        ends_ms.extend(run_ms[1 : ran + 1])
        return run_ms[ran]

    def _varied_steps(self, durations_ms: Iterator[float], until_ms: float) -> float:
        """Run steps of these durations, or past `until_ms`; return the time then."""
        notes, now_ms = self.notes, self.now_ms
        for duration_ms in durations_ms:
            now_ms += duration_ms
            notes.ends_ms.append(now_ms)
            if self.line is None:
                notes.durations_ms.append(duration_ms)
            if now_ms >= until_ms:
                break
        return now_ms

    def _decodes_until_an_end(self) -> float:
        """Return after how many decode steps the next request has its last token."""
        steps, ending, now = self.end_steps, self.ends_with_decode, self.decode_steps
        while steps:
            if steps[0] >= now and steps[0] in ending:
                return steps[0] - now + 1
            heappop(steps)
        return math.inf

    def _blocked_request(self, plan: StepPlan) -> int:
        """Return the first request that wants prefill and gets none, -1 where there is none."""
        if plan.blocked_by is BlockedBy.PREEMPTION:  # the queue is closed
            return self.batch.waiting[0]
        served = {part.request for part in plan.slices}
        for request in self.batch.prefilling:
            if request not in served:
                return request
        return self.batch.waiting[0] if self.batch.waiting else -1
