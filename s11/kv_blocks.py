"""The pool of KV blocks: who holds how many, and who has to go where they run short.

A decode takes a new block once in `block_size` steps. The steps in which that happens are
known when its prompt is complete, so they are counted by the step's number modulo the block
size: a step of many decodes costs no more than one of few.

Source of the rules: vLLM V1, vllm/v1/core/kv_cache_manager.py and sched/scheduler.py, as
restated by the scheduler cases that the tests read.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from itertools import accumulate, chain, cycle, islice

from s11.plan import EngineLimits, PrefillSlice, VictimOrder


class BlockPool:
    """Blocks as counts, without a prefix cache.

    known_tokens: by request, the tokens of its prompt and outputs so far, as long as it
        waits; the engine's own list, which it keeps up to date.
    """

    def __init__(self, limits: EngineLimits, known_tokens: Sequence[int]) -> None:
        self.block_size = limits.block_size
        self.reserve_full_prompt = limits.reserve_full_prompt
        self.known_tokens = known_tokens
        self.free_blocks: float = math.inf if limits.kv_blocks is None else limits.kv_blocks
        self.held_blocks = 0
        self.decode_steps = 0
        # In admission order: the tokens whose KV a request held when it began to decode, or
        # holds now; and the number of the decode step with which it began.
        self.tokens: dict[int, int] = {}
        self.decodes_since: dict[int, int] = {}
        self.boundaries = [0] * self.block_size
        self.served: set[int] = set()  # who decodes in a step that is being told out one by one

    def blocks(self, tokens: int) -> int:
        """Return how many blocks so many tokens fill or begin."""
        return -(-tokens // self.block_size)

    def cached_tokens(self, request: int) -> int:
        """Return 0: nothing is shared."""
        return 0

    def admit(self, request: int, cached_tokens: int, tokens: int) -> bool:
        """Take the blocks for a newcomer's first slice; False where too few are free."""
        needed = self.blocks(self.known_tokens[request] if self.reserve_full_prompt else tokens)
        if needed > self.free_blocks:
            return False
        self.tokens[request] = 0
        self._grow(request, tokens)
        return True

    def hold(
        self, slices: Sequence[PrefillSlice], order: VictimOrder, *, decodes: bool = True
    ) -> Sequence[int]:
        """Take the blocks for running requests' slices and decodes; return those who lost theirs.

        The requests of `order` take theirs one after the other. Where too few are free, the
        last of the order is preempted, and again, until it fits or has met itself.
        """
        size, tokens = self.block_size, self.tokens
        needed = self.boundaries[self.decode_steps % size] if decodes else 0
        for request, more, _, _ in slices:
            held = tokens[request]
            needed += (-held // size) - (-(held + more) // size)
        if needed > self.free_blocks:
            victims = self._hold_in_order(slices, order, decodes=decodes)
            self.served.clear()
            self.decode_steps += decodes
            return victims
        self._take(needed)
        self.decode_steps += decodes
        for request, more, _, _ in slices:
            tokens[request] += more
            self._filled(request)
        return ()

    def _hold_in_order(
        self, slices: Sequence[PrefillSlice], order: VictimOrder, *, decodes: bool
    ) -> list[int]:
        tokens = {part.request: part.tokens for part in slices}
        line = list(self.tokens)
        if order is VictimOrder.DECODES_FIRST:
            line.sort(key=lambda request: request not in self.decodes_since)  # stable
        victims: list[int] = []
        place = 0
        while place < len(line):
            request = line[place]
            decoding = request in self.decodes_since
            if decoding:
                at_boundary = self._phase(request) == self.decode_steps % self.block_size
                needed = int(decodes and at_boundary)
            else:
                needed = self._new_blocks(request, tokens.get(request, 0))
            while needed > self.free_blocks and len(line) > place:
                victims.append(line.pop())
                self.release(victims[-1])
            if len(line) == place:
                break
            if decoding:
                self._take(needed)
                if decodes:
                    self.served.add(request)
            elif request in tokens:
                self._grow(request, tokens[request])
            place += 1
        return victims

    def surely_fit(self, slices: Sequence[PrefillSlice] = (), *, decodes: bool = True) -> float:
        """Return for how many steps like that, at least, the free blocks surely last.

        In a block size of steps each decode begins one block, and a slice of n tokens n.
        """
        in_a_period = len(self.decodes_since) if decodes else 0
        left = self.free_blocks
        if not slices and left >= in_a_period * 64:  # most often, and soon said
            return 64 * self.block_size if in_a_period else math.inf
        for part in slices:
            in_a_period += part.tokens
            left -= 1  # for where in a block it begins
        if not in_a_period or left == math.inf:
            return math.inf
        steps = int(left // in_a_period) * self.block_size
        if steps <= 0 and not slices:
            for step in range(self.block_size):
                left -= self.boundaries[(self.decode_steps + step) % self.block_size]
                if left < 0:
                    return step
        return max(0, steps)

    def take_decode_steps(self, steps: int) -> list[int]:
        """Take the blocks for decode steps that surely fit; return the blocks held in each."""
        at = self.decode_steps % self.block_size
        needs: Iterable[int] = self.boundaries[at : at + steps]
        if at + steps > self.block_size:
            needs = chain(needs, cycle(self.boundaries))
        held = list(accumulate(islice(needs, steps), initial=self.held_blocks))
        needed = held[-1] - self.held_blocks
        if needed:
            self._take(needed)
        self.decode_steps += steps
        del held[0]
        return held

    def take_steps(
        self, slices: Sequence[PrefillSlice], steps: int, *, decodes: bool = True
    ) -> list[int]:
        """Take the blocks for steps that surely fit, each with these slices; as above."""
        held = []
        for _ in range(steps):
            if decodes:
                self._take(self.boundaries[self.decode_steps % self.block_size])
                self.decode_steps += 1
            for part in slices:
                self._grow(part.request, part.tokens)
            held.append(self.held_blocks)
        return held

    def begin_decoding(self, request: int) -> None:
        """Note that all that is known of a request is computed: it decodes from the next step."""
        self.decodes_since[request] = self.decode_steps
        self.boundaries[self._phase(request)] += 1

    def release(self, request: int) -> None:
        """Give back the blocks of a request that has finished or is preempted."""
        self._give_back(self.blocks(self.tokens_held(request)))
        self._forget(request)

    def tokens_held(self, request: int) -> int:
        """Return the tokens of a running request whose KV the pool holds, this step's included."""
        since = self.decodes_since.get(request, self.decode_steps)
        return self.tokens[request] + self.decode_steps - since + (request in self.served)

    def _forget(self, request: int) -> None:
        if request in self.decodes_since:
            self.boundaries[self._phase(request)] -= 1
            del self.decodes_since[request]
        del self.tokens[request]

    def _phase(self, request: int) -> int:
        """Return the decode steps, modulo the block size, in which it begins a new block."""
        return (self.decodes_since[request] - self.tokens[request]) % self.block_size

    def _new_blocks(self, request: int, tokens: int) -> int:
        held = self.tokens[request]
        return self.blocks(held + tokens) - self.blocks(held)

    def _grow(self, request: int, tokens: int) -> None:
        self._take(self._new_blocks(request, tokens))
        self.tokens[request] += tokens
        self._filled(request)

    def _filled(self, request: int) -> None:
        """Take note that a request's slice has filled blocks; nothing here."""

    def _take(self, blocks: int) -> None:
        self.free_blocks -= blocks
        self.held_blocks += blocks

    def _give_back(self, blocks: int) -> None:
        self.free_blocks += blocks
        self.held_blocks -= blocks
