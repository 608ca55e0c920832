"""The only event loop: who arrives, what the policy plans, who is done.

A step costs the same however many requests decode in it: decodes are counted, and a
request's end is filed under the number of the decode step that gives its last token
(`s11.stepping`).
"""

from __future__ import annotations

import math
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from s11.experiment import Experiment
from s11.express import is_plain
from s11.head_of_queue import HeadRunner
from s11.held_blocks import held_blocks
from s11.kv_blocks import BlockPool
from s11.plan import AmpleMemory, Batch, BlockedBy, StepPlan
from s11.policies import POLICIES
from s11.prefix_cache import PrefixCachingPool
from s11.recorder import Recorder
from s11.results import AdmissionTable, Ints, PreemptionTable, Result, SliceTable, SpanTable
from s11.stepping import DECODE_ONLY
from s11.workload import Request

UNTIL_SOMETHING_HAPPENS = 2**62
MOST_ROUNDS_ALONE = 3  # in a row and without a token for anyone: then it goes on for ever
SEATS_TAKEN = StepPlan((), BlockedBy.SEATS)
NO_BLOCKS_EVER = StepPlan((), BlockedBy.KV_BLOCKS)


class Engine(HeadRunner):
    """One worker: its clock, its requests, and what it notes.

    requests: in arrival order; their arrivals are placed on the clock by `start_clock`.
    handed_over: they come from a prefill worker with their first token: they only decode.
    now_ms: when the clock starts.
    express: run what is plain in the loop of `s11.express`; the tables are the same without.
    """

    def __init__(
        self,
        experiment: Experiment,
        max_steps: int,
        *,
        requests: Sequence[Request],
        streaming_users: int,
        handed_over: bool = False,
        now_ms: float = 0.0,
        express: bool = True,
    ) -> None:
        limits = experiment.limits
        self.known_tokens = [request.prompt_tokens for request in requests]
        self.pool: BlockPool | None = None
        if limits.prefix_caching:
            self.pool = PrefixCachingPool(limits, self.known_tokens, requests)
        elif limits.kv_blocks is not None:
            self.pool = BlockPool(limits, self.known_tokens)
        batch = Batch(
            decoding=streaming_users,
            remaining_tokens=self.known_tokens.copy(),
            known_tokens=self.known_tokens,
            decode_context_tokens=streaming_users * experiment.workload.user_context_tokens,
            memory=self.pool or AmpleMemory(),
            step_ms=experiment.cost.step_ms,
            itl_target_ms=experiment.itl_target_ms,
        )
        super().__init__(experiment, batch, Recorder(requests), max_steps=max_steps, now_ms=now_ms)
        self.requests, self.users, self.limits = requests, streaming_users, limits
        self.handed_over = handed_over
        self.most_running = min(limits.seats(), limits.tokens_per_step())
        self.policy, self.policy_name = POLICIES[experiment.policy], experiment.policy
        self.plain = express and not handed_over and is_plain(experiment)
        self.prompt_tokens = self.known_tokens.copy()
        self.output_tokens = [request.output_tokens for request in requests]
        self.final_tokens = [
            prompt + output - 1
            for prompt, output in zip(self.prompt_tokens, self.output_tokens, strict=True)
        ]
        self.look_at_the_load(experiment)
        # What a newcomer would get can change though nobody comes or goes: with what the cache
        # holds, or with the predicted step where the decodes' contexts count.
        self.plans_anew = limits.prefix_caching or (
            experiment.policy == "slo_adaptive" and not experiment.cost.counts_only
        )
        self.stuck = False
        self.rejected: list[int] = []
        self.seats = [0] * len(requests)  # the number of its admission; 0 without a seat
        self.outputs = [0] * len(requests)
        self.rounds_alone: dict[int, tuple[int, tuple[int, int]]] = {}
        self.blocked_by: BlockedBy | None = None
        self.last_prefill_step: int | None = None

        self.arriving: list[int] = []  # rows of `arrivals_ms`
        self.arrival_of_ms = [math.nan] * len(requests)  # by row
        self.followers: defaultdict[int, list[int]] = defaultdict(list)
        self.span: dict[int, tuple[float, int]] = {}  # of who decodes: its token's time, decode

    def start_clock(self) -> None:
        """Place the arrivals on the clock: they count from now.

        Those that wait for another's end are placed when that comes.
        """
        self.place_arrivals([self.now_ms + r.arrival_ms for r in self.requests if r.after is None])
        if len(self.arrivals_ms) < len(self.requests):
            rows = {request.request_id: row for row, request in enumerate(self.requests)}
            for row in range(len(self.arrivals_ms), len(self.requests)):
                self.followers[rows[self.requests[row].after or ""]].append(row)

    def place_arrivals(self, arrivals_ms: Sequence[float]) -> None:
        """Place the first requests' arrivals, in order, on the clock."""
        self.arrivals_ms = list(arrivals_ms)
        self.arriving = list(range(len(arrivals_ms)))
        self.arrival_of_ms[: len(arrivals_ms)] = arrivals_ms

    def serve(self) -> None:
        """Run until every request is done or nothing can change any more."""
        batch, pool, limits, arrivals_ms = self.batch, self.pool, self.limits, self.arrivals_ms
        while not self.stopped:
            if self.plain and not self.stuck:
                if self.head_alone and self.can_run_head_of_queue():
                    self.run_head_of_queue()
                else:
                    self.run_plain_steps()
            if self.arrived < len(arrivals_ms) and arrivals_ms[self.arrived] <= self.now_ms:
                self._take_arrivals()
            plan, surely_fit = DECODE_ONLY, math.inf
            if self.handed_over:
                plan = self._seat_handed_over()
            elif self.stuck:
                plan = NO_BLOCKS_EVER
            else:
                to_plan = bool(batch.prefilling or batch.waiting)
                if pool is not None and not to_plan:
                    surely_fit = pool.surely_fit()
                    to_plan = surely_fit < 1  # someone may have to go
                if to_plan:
                    if limits.prefill_interval > 1:
                        batch.prefill_held = self._prefill_held_steps() > 0
                    plan, surely_fit = self.policy(batch, limits), 0
                    self.blocked_by = plan.blocked_by
                    if plan.preempted:
                        self._preempt(plan.preempted)
                    if plan.slices:
                        self._prefill(plan)
                        continue
            more_to_come = self.arrived < len(arrivals_ms)
            passing = plan.preempted or plan.blocked_by is BlockedBy.PREFILL_INTERVAL
            if batch.decoding > self.users or (self.users and (more_to_come or passing)):
                self._decode(plan, surely_fit)
            elif plan.preempted:
                self._pass_an_empty_step(plan)
            elif more_to_come:
                self.now_ms = arrivals_ms[self.arrived]
                self.notes.idle_until.append((len(self.notes.ends_ms), self.now_ms))
            else:
                return

    def stream(self, steps: int) -> None:
        """Run decode-only steps for the streaming users, before or after the requests."""
        ran = self.advance(steps)
        if self.pool is not None:
            self._note_blocks(self.pool.take_decode_steps(ran))

    def result(self) -> Result:
        """Return the run's tables."""
        notes, undone = self.notes, () if self.stopped else self._undone()
        for request in list(self.span):
            self._close_span(request)
        admissions, spans = notes.admission_table(), notes.span_table()
        preemptions, slices = notes.preemption_table(), notes.slice_table()
        never: list[str] = []
        endless: list[str] = []
        began = set(admissions.request.tolist()) if undone else ()
        for row in undone:
            (endless if row in began else never).append(self.requests[row].request_id)

        def blocks() -> Ints:
            return self._held_blocks(slices, admissions, preemptions, spans)

        return Result(
            steps=notes.step_table(self.cost, slices, blocks),
            slices=slices,
            requests=notes.request_table(
                self.arrival_of_ms,
                self.prompt_tokens,
                self.output_tokens,
                admissions=admissions,
                spans=spans,
            ),
            admissions=admissions,
            preemptions=preemptions,
            spans=spans,
            streaming_users=self.users,
            never_scheduled=tuple(never),
            never_scheduled_because=str(self.blocked_by) if never and self.blocked_by else None,
            never_finished=tuple(endless),
            rejected=tuple([self.requests[row].request_id for row in sorted(self.rejected)]),
            stopped_at_max_steps=self.stopped,
        )

    def _undone(self) -> list[int]:
        """Return the requests, refused ones aside, that have not got all their output."""
        batch = self.batch
        undone = [*self.span, *batch.prefilling, *batch.waiting, *self.arriving[self.arrived :]]
        for followers in self.followers.values():
            undone += followers
        return sorted(undone)

    def _held_blocks(
        self,
        slices: SliceTable,
        admissions: AdmissionTable,
        preemptions: PreemptionTable,
        spans: SpanTable,
    ) -> Ints:  # (steps,)
        """Find out the blocks held in each step."""
        notes, limits, steps = self.notes, self.limits, len(self.notes.ends_ms)
        if limits.prefix_caching:
            return np.array(notes.kv_blocks, dtype=np.int64)
        if self.pool is None or not steps:
            return np.zeros(steps, dtype=np.int64)
        return held_blocks(
            limits.block_size,
            decodes_in_step=notes.decodes_in_step(),
            slices=slices,
            admissions=admissions,
            preemptions=preemptions,
            spans=spans,
        )

    def _take_arrivals(self) -> None:
        batch, arrivals_ms = self.batch, self.arrivals_ms
        longest = self.limits.max_model_len
        while self.arrived < len(arrivals_ms) and arrivals_ms[self.arrived] <= self.now_ms:
            request = self.arriving[self.arrived]
            self.arrived += 1
            if longest is not None and self.known_tokens[request] > longest:
                self.rejected.append(request)
                self.let_follow(request)
            elif self.handed_over and self.requests[request].output_tokens == 1:
                self._next_output(request, self.arrival_of_ms[request])
            else:
                batch.waiting.append(request)

    def let_follow(self, request: int) -> None:
        """Place the requests on the clock that their clients send when this one has ended."""
        for follower in self.followers.pop(request, ()):
            arrival_ms = self.now_ms + self.requests[follower].arrival_ms
            place = bisect_right(self.arrivals_ms, arrival_ms, lo=self.arrived)
            self.arrivals_ms.insert(place, arrival_ms)
            self.arriving.insert(place, follower)
            self.arrival_of_ms[follower] = arrival_ms

    def _seat_handed_over(self) -> StepPlan:
        """Let those that came from the prefill worker decode as far as there are seats."""
        waiting = self.batch.waiting
        while waiting and self.batch.decoding < self.most_running:
            request = waiting.popleft()
            self.notes.admitted(request, self.now_ms, 0)
            self._next_output(request, self.arrival_of_ms[request])
        return SEATS_TAKEN if waiting else DECODE_ONLY

    def _prefill_held_steps(self) -> int:
        """Return for how many steps more the interval holds prefill back; 0: not at all."""
        if not self.batch.decoding or self.last_prefill_step is None:
            return 0
        since = len(self.notes.ends_ms) - 1 - self.last_prefill_step
        return self.limits.prefill_interval - 1 - since

    def _decode(self, plan: StepPlan, surely_fit: float) -> None:
        """Run decode-only steps until something happens that a plan could look different for.

        surely_fit: for how many steps there are blocks; 0 where a policy planned the first
            step and has taken its blocks.
        """
        steps: float = UNTIL_SOMETHING_HAPPENS
        if plan.blocked_by is BlockedBy.PREFILL_INTERVAL:
            steps = self._prefill_held_steps()
        if plan.preempted or (self.batch.waiting and self.plans_anew):
            steps = 1
        pool, planned = self.pool, not surely_fit
        if pool is not None:
            fit = 1 + pool.surely_fit() if planned else surely_fit
            steps = min(steps, fit)
        ran = self.advance(int(steps), plan)
        if pool is not None and ran:
            if planned:
                self._note_blocks([pool.held_blocks])
            self._note_blocks(pool.take_decode_steps(ran - planned))
        if self.decode_steps - 1 in self.ends_with_decode:
            self._retire(())

    def _pass_an_empty_step(self, plan: StepPlan) -> None:
        """Let a step pass in which all that ran was preempted."""
        if self.cost.step_ms(prefill_tokens=0, decode_tokens=0) > 0 and self.advance(1, plan):
            self._note_blocks([self.pool.held_blocks] if self.pool else [])

    def _note_blocks(self, held_blocks: Sequence[int]) -> None:
        """Note the blocks held in the next steps, where the tables alone would not tell."""
        if self.limits.prefix_caching:
            self.notes.kv_blocks.extend(held_blocks)

    def _prefill(self, plan: StepPlan) -> None:
        """Run the plan, up to as many steps as it says; retire what is done."""
        batch, notes = self.batch, self.notes
        remaining_tokens, known_tokens = batch.remaining_tokens, self.known_tokens
        first = len(notes.ends_ms)
        if first == self.max_steps:
            self.stopped = True
            return
        for request, _, _, cached_tokens in plan.slices:
            if not self.seats[request]:
                admitted = batch.waiting.popleft()
                assert admitted == request, "first come, first served"
                batch.prefilling.append(request)
                remaining_tokens[request] -= cached_tokens
                notes.admitted(request, self.now_ms, cached_tokens)
                self.seats[request] = notes.admission_count

        pool, steps = self.pool, plan.steps
        if self.limits.prefill_interval > 1:
            steps = 1
        if self.limits.prefix_caching and plan.blocked_by:
            steps = 1  # what the head of the queue finds in the cache can grow with every step
        if pool is not None and steps > 1:
            surely = pool.surely_fit(plan.slices, decodes=plan.decodes)
            steps = int(min(steps, 1 + surely))
        ran = self.advance(steps, plan)
        if pool is not None:
            self._note_blocks([pool.held_blocks])
            if ran > 1:
                self._note_blocks(pool.take_steps(plan.slices, ran - 1, decodes=plan.decodes))
        self.last_prefill_step = first + ran - 1

        complete = []
        for request, tokens, limited_by, _ in plan.slices:
            known, wanted = known_tokens[request], remaining_tokens[request]
            code = limited_by.code if limited_by else 0
            notes.slices.append((first, ran, request, known - wanted, tokens, wanted, code))
            wanted -= tokens * ran
            assert wanted >= 0, "a slice lies within what is known"
            remaining_tokens[request] = wanted
            if not wanted:
                batch.prefilling.remove(request)
                complete.append(request)
        if complete or self.decode_steps - 1 in self.ends_with_decode:
            self._retire(complete)

    def _retire(self, complete: Sequence[int]) -> None:
        """Give their next output to the prompts just complete, and let go who has its last."""
        done = self.ends_with_decode.pop(self.decode_steps - 1, [])
        for request in done:
            self._leave_decoding(request)
        for request in complete:
            if self._next_output(request, self.now_ms):
                done.append(request)
        if done and (self.pool is not None or self.followers):
            done.sort(key=self.seats.__getitem__)
            for request in done:
                if self.pool is not None:
                    self.pool.release(request)
                self.let_follow(request)

    def _next_output(self, request: int, token_ms: float) -> bool:
        """Give a request the output of its prefill; return whether that was its last."""
        self.outputs[request] += 1
        decodes = self.requests[request].output_tokens - self.outputs[request]
        self.span[request] = (token_ms, self.decode_steps)
        if not decodes:
            self._close_span(request)
            return True
        self.batch.decoding += 1
        self.batch.decode_context_tokens += self.known_tokens[request]
        self.file_end(request, decodes)
        if self.pool is not None:
            self.pool.begin_decoding(request)
        return False

    def _leave_decoding(self, request: int) -> None:
        """Take a request out of the decodes: its last token is there, or its blocks are lost."""
        self._close_span(request)
        cached_tokens = self.requests[request].prompt_tokens + self.outputs[request] - 1
        self.batch.decoding -= 1
        self.batch.decode_context_tokens -= cached_tokens

    def _close_span(self, request: int) -> None:
        token_ms, first_decode = self.span.pop(request)
        decodes = self.decode_steps - first_decode
        self.outputs[request] += decodes
        self.notes.spans.append((request, token_ms, first_decode, decodes))

    def _preempt(self, victims: Sequence[int]) -> None:
        """Send requests that lost their blocks to the front of the queue, outputs kept."""
        batch = self.batch
        for request in victims:
            self.notes.preemptions.append((request, self.now_ms, len(self.notes.ends_ms)))
            if request in self.span:
                left = self.requests[request].output_tokens - self.outputs[request]
                self.strike_end(request, self.span[request][1] + left - 1)
                self._leave_decoding(request)
            else:
                batch.prefilling.remove(request)
            known = self.requests[request].prompt_tokens + self.outputs[request]
            self.known_tokens[request] = batch.remaining_tokens[request] = known
            self.seats[request] = 0
            batch.waiting.appendleft(request)
        if self.pool is not None and not self.pool.tokens:
            self._count_round_alone(victims[-1])

    def _count_round_alone(self, request: int) -> None:
        """Find out whether a request that even the whole pool cannot hold is all that is left.

        An engine preempts it and begins it again for ever. Others may still get tokens beside
        it; rounds in which nobody does, and nobody is to come, are all alike.
        """
        now = (sum(self.outputs), self.arrived)
        rounds, then = self.rounds_alone.get(request, (0, now))
        rounds = rounds + 1 if then == now else 1
        self.rounds_alone[request] = rounds, now
        if rounds >= MOST_ROUNDS_ALONE and self.arrived == len(self.arrivals_ms):
            self.stuck = True
            self.blocked_by = BlockedBy.KV_BLOCKS
