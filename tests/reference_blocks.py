"""KV blocks as objects: the pool and its prefix cache, where identity is real comparison.

A token is a text, a beginning is the tuple of all its tokens, and two blocks hold the same
content where their whole beginnings are equal.
"""

import math
from collections import deque
from dataclasses import dataclass

from s11 import EngineLimits, Request, Workload
from s11.workload import HASH_BLOCK_TOKENS

Tokens = tuple[str, ...]


def prompts(workload: Workload) -> dict[str, Tokens]:
    """Every request's prompt, token by token."""
    by_id = {request.request_id: request for request in workload.requests}

    def prompt(request: Request) -> Tokens:
        name = request.request_id
        tokens: list[str] = []
        if request.shared_group is not None:
            tokens += [f"group {request.shared_group} {i}" for i in range(request.shared_tokens)]
        for number in range(len(request.hash_ids)):
            beginning = request.hash_ids[: number + 1]
            tokens += [f"hash {beginning} {i}" for i in range(HASH_BLOCK_TOKENS)]
        del tokens[request.prompt_tokens :]
        if request.continues is not None:
            before = by_id[request.continues]
            tokens += prompt(before)
            tokens += [output(before.request_id, k) for k in range(before.output_tokens)]
        tokens += [f"own {name} {i}" for i in range(len(tokens), request.prompt_tokens)]
        return tuple(tokens)

    return {name: prompt(request) for name, request in by_id.items()}


def output(name: str, number: int) -> str:
    """A request's output token."""
    return f"out {name} {number}"


@dataclass(eq=False)
class Block:
    holders: int = 0
    beginning: Tokens | None = None  # of a cached block, all tokens up to its end


class BlockPool:
    """A free queue of blocks, the least recently released in front; without end where asked."""

    def __init__(self, limits: EngineLimits) -> None:
        self.limits = limits
        self.endless = limits.kv_blocks is None
        self.queue = deque(Block() for _ in range(limits.kv_blocks or 0))
        self.cached: dict[Tokens, list[Block]] = {}  # the oldest-registered first

    @property
    def free(self) -> float:
        return math.inf if self.endless else len(self.queue)

    def blocks_of(self, tokens: int) -> int:
        return math.ceil(tokens / self.limits.block_size)

    def hits(self, known: Tokens) -> list[Block]:
        """The cached blocks that a sequence begins with; one token at least is left out."""
        size = self.limits.block_size
        found: list[Block] = []
        for number in range((len(known) - 1) // size):
            same = self.cached.get(known[: (number + 1) * size])
            if not same:
                break
            found.append(same[0])
        return found

    def admit(self, held: list[Block], known: Tokens, hits: list[Block], tokens: int) -> bool:
        """Take a newcomer's hit blocks and those of its first `tokens`, or nothing at all."""
        assert held == []
        hit = len(hits) * self.limits.block_size
        idle = [block for block in hits if block.holders == 0]
        if self.blocks_of(hit + tokens) - len(hits) + len(idle) > self.free:
            return False
        if (
            self.limits.reserve_full_prompt
            and self.blocks_of(len(known)) - len(hits) + len(idle) > self.free
        ):
            return False
        for block in hits:
            if block.holders == 0:
                self.queue.remove(block)
            block.holders += 1
            held.append(block)
        assert self.grow(held, known, hit + tokens)
        return True

    def grow(self, held: list[Block], known: Tokens, tokens: int) -> bool:
        """Let a sequence hold the blocks of its first `tokens`; False where too few are free."""
        if self.blocks_of(tokens) - len(held) > self.free:
            return False
        while len(held) < self.blocks_of(tokens):
            held.append(self._take())
        if self.limits.prefix_caching:
            size = self.limits.block_size
            for number in range(tokens // size):
                if held[number].beginning is None:
                    beginning = known[: (number + 1) * size]
                    held[number].beginning = beginning
                    self.cached.setdefault(beginning, []).append(held[number])
        return True

    def release(self, held: list[Block]) -> None:
        """Give all blocks back, the last first."""
        while held:
            block = held.pop()
            block.holders -= 1
            if block.holders == 0:
                self.queue.append(block)

    def _take(self) -> Block:
        block = Block() if self.endless else self.queue.popleft()
        assert block.holders == 0
        if block.beginning is not None:
            self.cached[block.beginning].remove(block)
            block.beginning = None
        block.holders = 1
        return block
