"""One engine's event loop, the slow and plain way: no count is kept, no step jumped over."""

import math
from dataclasses import dataclass

from s11 import Experiment, LinearCost
from s11.costs import FittedCost, RooflineCost
from s11.plan import BlockedBy
from tests.reference_blocks import BlockPool
from tests.reference_plan import Call, Plan
from tests.reference_policies import POLICIES, held

ENDLESS_STEPS = 200_000


@dataclass
class Step:
    start_ms: float
    end_ms: float
    duration_ms: float
    slices: list[tuple[Call, int, int]]  # call, start token, tokens
    decoded: list[Call]
    blocked: BlockedBy | None
    blocked_call: Call | None
    wanted: list[int]  # of each slice
    held_decodes: int
    waiting: int
    kv_blocks: int
    decode_context_tokens: int


class CutError(Exception):
    """The most steps are taken."""


class Worker:
    """One engine: its streaming users, its queue, its batch, its blocks, its clock."""

    def __init__(
        self, experiment: Experiment, policy: str, users: list[Call], max_steps: float
    ) -> None:
        self.limits, self.cost = experiment.limits, experiment.cost
        self.itl_target_ms = experiment.itl_target_ms
        self.policy, self.users, self.max_steps = policy, users, max_steps
        self.now_ms = 0.0
        self.steps: list[Step] = []
        self.coming: list[Call] = []
        self.unsent: list[Call] = []
        self.tokens_given = 0  # the users' left out
        self.waiting: list[Call] = []
        self.running: list[Call] = []  # in admission order, the users not among them
        self.pool = BlockPool(experiment.limits)
        self.admissions: list[tuple[int, str, int]] = []  # step, request, cached tokens
        self.preemptions: list[tuple[int, str]] = []  # step, request
        self.since_prefill: float = math.inf  # steps

    def step_ms(self, plan: Plan, decoded: list[Call]) -> float:
        """What a step takes; a roofline, tested elsewhere, is asked with what is in the step."""
        prefill_tokens = sum(tokens for _, tokens, _ in plan.slices)
        context = sum(call.in_cache for call in decoded)
        if isinstance(self.cost, RooflineCost):
            return self.cost.step_ms(
                prefill_tokens=prefill_tokens,
                decode_tokens=len(decoded),
                slices=[(call.in_cache, tokens) for call, tokens, _ in plan.slices],
                decode_context_tokens=context,
            )
        prefixes = sum(call.in_cache for call, _, _ in plan.slices)
        return self.duration_ms(prefill_tokens, len(decoded), context + prefixes)

    def duration_ms(self, prefill_tokens: int, decode_tokens: int, context_tokens: int) -> float:
        cost = self.cost
        assert isinstance(cost, LinearCost | FittedCost)
        duration_ms = (
            cost.fixed_ms
            + cost.prefill_ms_per_token * prefill_tokens
            + cost.decode_ms_per_token * decode_tokens
        )
        if isinstance(cost, FittedCost):
            duration_ms += cost.context_ms_per_token * context_tokens
        return duration_ms

    def serve(self, calls: list[Call]) -> None:
        """Run until nobody can ever get any further."""
        self.unsent = [call for call in calls if call.after is not None]
        self.coming = sorted(
            [call for call in calls if call.after is None], key=lambda call: call.seen_ms
        )
        while True:
            self._take_arrivals()
            plan = self.plan()
            if plan.moves or (self.users and self.coming) or (plan.held and plan.blocked):
                self._step(plan)
            elif self.coming:
                self.now_ms = self.coming[0].seen_ms
            else:
                return

    def idle_steps(self, count: int) -> None:
        """Steps in which the users alone decode."""
        for _ in range(count if self.users else 0):
            self._step(Plan(self))

    def plan(self) -> Plan:
        plan = Plan(self)
        if self._holds_prefill():
            held(plan, self.policy)
        else:
            POLICIES[self.policy](plan)
        if plan.victims:
            plan.blocked, plan.blocked_call = BlockedBy.PREEMPTION, self.waiting[0]
        return plan

    def schedule(self) -> list[dict[str, int]]:
        """Each step's batch: tokens by request."""
        return [
            {call.name: 1 for call in step.decoded}
            | {call.name: tokens for call, _, tokens in step.slices}
            for step in self.steps
        ]

    def preempt(self, call: Call) -> None:
        self.pool.release(call.blocks)
        call.in_cache, call.decoding = 0, False
        self.running.remove(call)
        self.waiting.insert(0, call)

    def _holds_prefill(self) -> bool:
        decoding = self.users or any(call.decoding for call in self.running)
        return (
            bool(decoding)
            and self.policy not in ("handed_over", "request_level")
            and self.since_prefill < self.limits.prefill_interval - 1
        )

    def _take_arrivals(self) -> None:
        longest = math.inf if self.limits.max_model_len is None else self.limits.max_model_len
        while self.coming and self.coming[0].seen_ms <= self.now_ms:
            call = self.coming.pop(0)
            if call.prompt_tokens > longest:
                call.rejected = True
                self._send_next([call])
            elif not call.done:
                self.waiting.append(call)

    def _step(self, plan: Plan) -> None:
        number = len(self.steps)
        if number >= self.max_steps:
            raise CutError
        assert number < ENDLESS_STEPS
        for call, cached in plan.admitted:
            self.admissions.append((number, call.name, cached))
        for call in plan.victims:
            self.preemptions.append((number, call.name))
        decoded = [*self.users, *plan.decoded] if plan.decodes_run else []
        duration_ms = self.step_ms(plan, decoded)
        start_ms, self.now_ms = self.now_ms, self.now_ms + duration_ms
        decoding = len(self.users) + sum(call.decoding for call in self.running)
        step = Step(
            start_ms=start_ms,
            end_ms=self.now_ms,
            duration_ms=duration_ms,
            slices=[(call, call.in_cache, tokens) for call, tokens, _ in plan.slices],
            decoded=decoded,
            blocked=plan.blocked,
            blocked_call=plan.blocked_call,
            wanted=[wanted for _, _, wanted in plan.slices],
            held_decodes=decoding - len(decoded),
            waiting=len(self.waiting),
            decode_context_tokens=sum(call.in_cache for call in decoded),
            kv_blocks=len({id(block) for call in self.running for block in call.blocks}),
        )
        self.steps.append(step)
        self.since_prefill = 0 if plan.slices else self.since_prefill + 1
        for call in decoded:
            call.in_cache += 1
            call.token_times_ms.append(self.now_ms)
            self.tokens_given += call not in self.users
        for call, tokens, _ in plan.slices:
            if math.isnan(call.first_scheduled_ms):
                call.first_scheduled_ms = start_ms
            call.computed += tokens
            call.in_cache += tokens
            if call.wanted == 0:
                call.token_times_ms.append(self.now_ms)
                self.tokens_given += call not in self.users
                call.decoding = True
        done = [call for call in self.running if call.done]
        for call in done:
            self.running.remove(call)
            self.pool.release(call.blocks)
        self._send_next(done)

    def _send_next(self, ended: list[Call]) -> None:
        """Let clients whose requests ended send their next."""
        for call in ended:
            for follower in [c for c in self.unsent if c.after == call.name]:
                self.unsent.remove(follower)
                follower.arrival_ms = follower.seen_ms = self.now_ms + follower.delay_ms
                self.coming.append(follower)
        self.coming.sort(key=lambda call: call.seen_ms)
