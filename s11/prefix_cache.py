"""The pool of KV blocks with vLLM V1's prefix cache: whole blocks shared by content.

Source: vLLM V1, vllm/v1/core/block_pool.py and kv_cache_manager.py (`get_computed_blocks`,
`touch`, `free_blocks`), as restated by the scheduler cases that the tests read.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

from s11.cached_blocks import CachedBlocks, Stretch
from s11.kv_blocks import BlockPool
from s11.plan import EngineLimits, PrefillSlice, VictimOrder
from s11.prefix_texts import PrefixTexts
from s11.workload import Request

Hits = Sequence[tuple[Stretch, int]]


class PrefixCachingPool(BlockPool):
    """Blocks that stay findable by content until they are needed for something else.

    A block is known by its whole beginning: by its number, and whose text it ends in. Only
    blocks that someone else may look for are objects while they are held; the rest of a request
    is a count until it is given back.

    Blocks that decodes fill become objects only when their content can matter: when they are
    given back, or when a request that continues theirs looks for them.
    """

    def __init__(
        self, limits: EngineLimits, known_tokens: Sequence[int], requests: Sequence[Request]
    ) -> None:
        super().__init__(limits, known_tokens)
        self.requests = requests
        self.texts = PrefixTexts(requests, limits.block_size)
        self.row, self.shared_blocks = self.texts.row, self.texts.shared_blocks
        self.untouched: float = self.free_blocks
        self.endless = limits.kv_blocks is None
        self.cached = CachedBlocks()
        # Of who runs, in admission order: what it holds that can be found, and up to which block.
        self.own: dict[int, list[Stretch]] = {}
        self.settled: dict[int, int] = {}
        self.continued = math.inf in self.shared_blocks
        self.found: tuple[int, int, int, Hits] | None = None
        self.order: VictimOrder | None = None

    def cached_tokens(self, request: int) -> int:
        """Return how many leading tokens of a waiting request are cached, in whole blocks.

        At least one token is left to compute, since the next output comes from it.
        """
        hits = self._hits(request)
        return hits[-1][1] * self.block_size if hits else 0

    def hold(
        self, slices: Sequence[PrefillSlice], order: VictimOrder, *, decodes: bool = True
    ) -> Sequence[int]:
        """Take the blocks for running requests, as `BlockPool.hold`; what they fill is findable.

        Equal blocks are found by who filled one first; within a step that goes by the order.
        """
        if self.continued and slices:
            for row in self.own:
                if self.shared_blocks[row] == math.inf:
                    self._settle(row)  # what earlier steps filled
        self.order = order
        victims = super().hold(slices, order, decodes=decodes)
        self.order = None
        return victims

    def admit(self, request: int, cached_tokens: int, tokens: int) -> bool:
        """Take hits and new blocks for a newcomer's first slice; False where too few are free.

        A hit that nobody holds is free as long as it is idle: it counts as taken.
        """
        hits = self._hits(request)
        idle = sum([end - stretch.low for stretch, end in hits if not stretch.holders])
        known = self.known_tokens[request] if self.reserve_full_prompt else cached_tokens + tokens
        hit_blocks = hits[-1][1] if hits else 0
        if self.blocks(known) - hit_blocks + idle > self.free_blocks:
            return False
        self.own[request] = self.cached.hold(hits)
        self.settled[request] = hit_blocks
        super()._take(idle)
        self.tokens[request] = cached_tokens
        self._grow(request, tokens)
        return True

    def release(self, request: int) -> None:
        """Give a request's blocks back, the tail first, so that the tail is evicted first."""
        self._settle(request)
        tokens = self.tokens_held(request)
        full = tokens // self.block_size
        uncached = 0
        if self.endless:  # who is never preempted never looks for its own text
            uncached = full - self.settled[request]
        else:
            self._settle_up_to(request, full)
        freed = self.cached.release(
            self.own.pop(request),
            self.settled.pop(request),
            part=tokens % self.block_size > 0,
            queue=not self.endless,
        )
        self._give_back(freed + uncached)
        self._forget(request)

    def _hits(self, request: int) -> Hits:
        """Return what a waiting request finds: each stretch, and up to which block."""
        if self.requests[request].continues is not None:
            self._settle_continued(request)
        known = self.known_tokens[request]
        if self.found and self.found[:3] == (request, known, self.cached.version):
            return self.found[3]
        most = (known - 1) // self.block_size
        hits = self.cached.find(self.texts.parts(request), most)
        self.found = (request, known, self.cached.version, hits)
        return hits

    def _filled(self, request: int) -> None:
        if self.shared_blocks[request]:
            self._settle_continued(request)
            self._settle(request)

    def _take(self, blocks: int) -> None:
        super()._take(blocks)
        if blocks <= self.untouched:
            self.untouched -= blocks
            return
        needed = blocks - int(self.untouched)
        self.untouched = 0
        self.cached.evict(needed)

    def _settle(self, request: int) -> None:
        """Let the full blocks of a request be found that others may look for."""
        full = self.tokens_held(request) // self.block_size
        self._settle_up_to(request, int(min(full, self.shared_blocks[request])))

    def _settle_up_to(self, request: int, until: int) -> None:
        block = self.settled[request]
        if until <= block:
            return
        self.settled[request] = until
        for end, owner in self.texts.parts(request, block):
            high = int(min(end, until))
            self.cached.add(owner, block, high, self.own[request])
            block = high
            if block == until:
                return

    def _settle_continued(self, request: int) -> None:
        """Settle whoever runs of those that a request continues."""
        before = self.requests[request].continues
        if before is None:
            return
        if self.order is VictimOrder.ADMISSION:  # who was admitted later fills its block later
            for row in self.own:
                if row == request:
                    return
                if self.shared_blocks[row] == math.inf:
                    self._settle(row)
        if len(self.own) < self.texts.lineage(request).length:  # a long one, few that run
            for row in self.own:
                if row != request and self.shared_blocks[row] == math.inf:
                    self._settle(row)
            return
        while before is not None:
            row = self.row[before]
            if row in self.own:
                self._settle(row)
            before = self.requests[row].continues
