"""A step in the making: who runs, who is admitted, who loses its blocks, one after another."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from s11.plan import BlockedBy
from tests.reference_blocks import Block, Tokens, output

if TYPE_CHECKING:
    from tests.reference_worker import Worker


@dataclass(eq=False)
class Call:
    """One request. A streaming user is a call without a prompt or an end."""

    row: int
    name: str
    prompt: Tokens
    output_tokens: float
    arrival_ms: float
    after: str | None = None  # the call at whose end a client sends this one
    delay_ms: float = 0.0
    seen_ms: float = math.nan  # by its worker, or later; handed over, where prompts run elsewhere
    computed: int = 0  # all prefill slices together, those lost to a preemption too
    in_cache: int = 0
    blocks: list[Block] = field(default_factory=list)
    decoding: bool = False  # its prefill, or the last resumption of it, has yielded a token
    rejected: bool = False
    fell_over_itself: int = 0  # in a row, without a token for anyone since
    fell_at: tuple[int, int] = (-1, -1)
    can_never_finish: bool = False
    first_scheduled_ms: float = math.nan
    token_times_ms: list[float] = field(default_factory=list)

    @property
    def prompt_tokens(self) -> int:
        return len(self.prompt)

    @property
    def known(self) -> Tokens:
        return self.prompt + tuple(output(self.name, k) for k in range(len(self.token_times_ms)))

    @property
    def wanted(self) -> int:
        return len(self.prompt) + len(self.token_times_ms) - self.in_cache

    @property
    def done(self) -> bool:
        return len(self.token_times_ms) >= self.output_tokens

    @property
    def gaps_ms(self) -> list[float]:
        times = self.token_times_ms
        return [after - before for before, after in pairwise(times)]


# Of a request that wants so many tokens, how many it gets; a newcomer or not.
Take = Callable[[Call, int, bool], int]


class Plan:
    """A step in the making."""

    def __init__(self, worker: Worker) -> None:
        self.worker = worker
        self.limits = worker.limits
        self.slices: list[tuple[Call, int, int]] = []  # call, tokens, wanted tokens
        self.decoded: list[Call] = []
        self.admitted: list[tuple[Call, int]] = []  # call, cached tokens
        self.victims: list[Call] = []
        self.decodes_run = True
        self.held = False
        self.stopped = False
        self.blocked: BlockedBy | None = None
        self.blocked_call: Call | None = None
        self.budget_left = self.limits.tokens_per_step()

    @property
    def moves(self) -> bool:
        """Whether anything happens to a request in it."""
        return bool(self.slices or self.decoded or self.victims)

    def running(self) -> int:
        return len(self.worker.users) + len(self.worker.running)

    def decodes_first(self) -> list[Call]:
        running = self.worker.running
        return [c for c in running if c.decoding] + [c for c in running if not c.decoding]

    def meet(self, reason: BlockedBy, call: Call) -> None:
        """A request gets nothing; the first one's reason is the step's."""
        if self.blocked is None:
            self.blocked, self.blocked_call = reason, call

    def stop(self, reason: BlockedBy, call: Call) -> int:
        self.meet(reason, call)
        self.stopped = True
        return 0

    def run(self, order: list[Call], decode: Take | None, prefill: Take | None) -> None:
        """Give the running requests their tokens and their blocks, in order.

        Who finds too few free preempts the last of the order, again and again.
        """
        at = 0
        while at < len(order):
            call = order[at]
            take = decode if call.decoding else prefill
            tokens = 0
            if take is not None and (call.decoding or not self.stopped):
                tokens = take(call, call.wanted, False)
            if tokens > 0 and self._hold(call, tokens, order):
                self.budget_left -= tokens
                if call.decoding:
                    self.decoded.append(call)
                else:
                    self.slices.append((call, tokens, call.wanted))
            at += 1

    def _hold(self, call: Call, tokens: int, order: list[Call]) -> bool:
        pool = self.worker.pool
        while not pool.grow(call.blocks, call.known, call.in_cache + tokens):
            victim = order.pop()
            alone = all(other is call or not other.blocks for other in self.worker.running)
            if victim is call and alone:
                now = (self.worker.tokens_given, len(self.worker.coming))
                again = now == call.fell_at
                call.fell_over_itself, call.fell_at = call.fell_over_itself * again + 1, now
                if call.fell_over_itself >= 3 and not self.worker.coming:
                    call.can_never_finish = True
            self.worker.preempt(victim)
            self.victims.append(victim)
            if victim is call:
                return False
        return True

    def admit(self, take: Take, seats: float) -> None:
        """Admit from the head of the queue until somebody gets nothing."""
        waiting, pool = self.worker.waiting, self.worker.pool
        while waiting and not self.stopped and not self.victims:
            call = waiting[0]
            if self.running() >= seats:
                self.stop(BlockedBy.SEATS, call)
                return
            hits = pool.hits(call.known)
            cached = len(hits) * self.limits.block_size
            wanted = len(call.known) - cached
            tokens = take(call, wanted, True)
            if tokens <= 0:
                return
            if call.can_never_finish or not pool.admit(call.blocks, call.known, hits, tokens):
                self.stop(BlockedBy.KV_BLOCKS, call)
                return
            self.worker.waiting.pop(0)
            self.worker.running.append(call)
            call.in_cache = cached
            self.admitted.append((call, cached))
            self.slices.append((call, tokens, wanted))
            self.budget_left -= tokens


def one(call: Call, wanted: int, newcomer: bool) -> int:
    assert wanted == 1
    return 1
