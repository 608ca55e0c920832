"""The pool of KV blocks with vLLM V1's prefix cache: whole blocks shared by content.

Source: vLLM V1, vllm/v1/core/block_pool.py and kv_cache_manager.py (`get_computed_blocks`,
`touch`, `free_blocks`), as restated by the scheduler cases that the tests read.
"""

from __future__ import annotations

import math
from collections import OrderedDict
from collections.abc import Hashable, Sequence

from s11.kv_blocks import BlockPool
from s11.plan import EngineLimits
from s11.workload import Request

Key = tuple[Hashable, int]


class _Block:
    """One block: how many requests hold it, and the content that it can be found by."""

    __slots__ = ("holders", "key")

    def __init__(self) -> None:
        self.holders = 1
        self.key: Key | None = None


class PrefixCachingPool(BlockPool):
    """Blocks that stay findable by content until they are needed for something else.

    A block is known by its whole beginning. So its key is its number and whose text it ends
    in: the group's, the continued request's, or the request's own.

    Blocks that decodes fill are counted as in `BlockPool` and become objects only when
    their content can matter: when they are given back, or when a request that continues
    theirs looks for them.
    """

    def __init__(
        self, limits: EngineLimits, known_tokens: Sequence[int], requests: Sequence[Request]
    ) -> None:
        super().__init__(limits, known_tokens)
        self.requests = requests
        self.row = {request.request_id: row for row, request in enumerate(requests)}
        self.untouched: float = self.free_blocks
        self.idle: OrderedDict[_Block, None] = OrderedDict()  # next to be taken first
        self.cached: dict[Key, dict[_Block, None]] = {}
        self.own: dict[int, list[_Block]] = {}
        self.lineages: dict[int, list[tuple[float, Hashable]]] = {}

    def cached_tokens(self, request: int) -> int:
        """Return how many leading tokens of a waiting request are cached, in whole blocks.

        At least one token is left to compute, since the next output comes from it.
        """
        return len(self._hits(request)) * self.block_size

    def admit(self, request: int, cached_tokens: int, tokens: int) -> bool:
        """Take hits and new blocks for a newcomer's first slice; False where too few are free.

        A hit that nobody holds is free as long as it is idle: it counts as taken.
        """
        hits = self._hits(request)
        idle = sum([not block.holders for block in hits])
        known = self.known_tokens[request] if self.reserve_full_prompt else cached_tokens + tokens
        if self.blocks(known) - len(hits) + idle > self.free_blocks:
            return False
        for block in hits:
            if not block.holders:
                del self.idle[block]
                super()._take(1)
            block.holders += 1
        self.own[request] = hits
        self.tokens[request] = cached_tokens
        self._grow(request, tokens)
        return True

    def release(self, request: int) -> None:
        """Give a request's blocks back, the tail first, so that the tail is evicted first."""
        self._settle(request)
        for block in reversed(self.own.pop(request)):
            block.holders -= 1
            if not block.holders:
                self.idle[block] = None
                self._give_back(1)
        self._forget(request)

    def _hits(self, request: int) -> list[_Block]:
        self._settle_continued(request)
        hits: list[_Block] = []
        for index in range((self.known_tokens[request] - 1) // self.block_size):
            found = self.cached.get(self._key(request, index))
            if not found:
                break
            hits.append(next(iter(found)))
        return hits

    def _grow(self, request: int, tokens: int) -> None:
        super()._grow(request, tokens)
        self._settle_continued(request)
        self._settle(request)

    def _take(self, blocks: int) -> None:
        super()._take(blocks)
        untouched = min(self.untouched, blocks)
        self.untouched -= untouched
        for _ in range(blocks - int(untouched)):
            block, _ = self.idle.popitem(last=False)
            if block.key is not None:
                same = self.cached[block.key]
                del same[block]
                if not same:
                    del self.cached[block.key]

    def _settle(self, request: int) -> None:
        """Make objects of all the blocks that a request holds, the full ones findable."""
        own, tokens = self.own[request], self.tokens_held(request)
        while len(own) < self.blocks(tokens):
            own.append(_Block())
        for index in range(tokens // self.block_size - 1, -1, -1):
            block = own[index]
            if block.key is not None:
                break
            block.key = self._key(request, index)
            self.cached.setdefault(block.key, {})[block] = None

    def _settle_continued(self, request: int) -> None:
        before = self.requests[request].continues
        while before is not None:
            row = self.row[before]
            if row in self.own:
                self._settle(row)
            before = self.requests[row].continues

    def _key(self, request: int, index: int) -> Key:
        end = (index + 1) * self.block_size
        for text_end, owner in self._lineage(request):
            if end <= text_end:
                return owner, index
        raise AssertionError("the last text is the request's own and never ends")

    def _lineage(self, request: int) -> list[tuple[float, Hashable]]:
        """Return whose text a request's tokens are: up to which token, and whose."""
        if request not in self.lineages:
            asked = self.requests[request]
            texts: list[tuple[float, Hashable]] = []
            if asked.shared_group is not None:
                texts = [(asked.shared_tokens, asked.shared_group)]
            elif asked.continues is not None:
                row = self.row[asked.continues]
                before = self.requests[row]
                length = before.prompt_tokens + before.output_tokens
                texts = [(min(end, length), owner) for end, owner in self._lineage(row)]
            self.lineages[request] = [*texts, (math.inf, request)]
        return self.lineages[request]
