"""The pool of KV blocks with vLLM V1's prefix cache: whole blocks shared by content.

Source: vLLM V1, vllm/v1/core/block_pool.py and kv_cache_manager.py (`get_computed_blocks`,
`touch`, `free_blocks`), as restated by the scheduler cases that the tests read.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import OrderedDict
from collections.abc import Hashable, Sequence
from typing import NamedTuple

from s11.kv_blocks import BlockPool
from s11.plan import EngineLimits, PrefillSlice, VictimOrder
from s11.workload import Request

Key = tuple[Hashable, int]


class _Block:
    """A block that others may look for: how many hold it, and what it can be found by."""

    __slots__ = ("holders", "key")

    def __init__(self) -> None:
        self.holders = 1
        self.key: Key | None = None


class _Tail:
    """The idle blocks of one request's own text, which nobody else can look for.

    The last one, if it is not full, is taken first; then the full ones from the last down.
    """

    __slots__ = ("full", "partial", "request")

    def __init__(self, request: int, full: int, partial: int) -> None:
        self.request, self.full, self.partial = request, full, partial

    def take(self, blocks: int) -> int:
        """Give up to so many blocks away; return how many."""
        partial = min(self.partial, blocks)
        full = min(self.full, blocks - partial)
        self.partial -= partial
        self.full -= full
        return partial + full


class _Texts(NamedTuple):
    """Whose texts begin a request: the first `length` of two lists that others may go on with."""

    ends: list[int]  # after which token each text ends, ascending
    owners: list[Hashable]
    length: int

    def and_then(self, end: int, owner: Hashable) -> _Texts:
        """Return these texts and one more."""
        ends, owners, length = self
        if length < len(ends):  # someone else went on with the list
            ends, owners = ends[:length], owners[:length]
        ends.append(end)
        owners.append(owner)
        return _Texts(ends, owners, length + 1)


class PrefixCachingPool(BlockPool):
    """Blocks that stay findable by content until they are needed for something else.

    A block is known by its whole beginning. So its key is its number and whose text it ends
    in: the group's, the continued request's, or the request's own. Only blocks that someone
    else may look for are objects; the rest of a request is a count, and once idle one `_Tail`.

    Blocks that decodes fill become objects only when their content can matter: when they are
    given back, or when a request that continues theirs looks for them.
    """

    def __init__(
        self, limits: EngineLimits, known_tokens: Sequence[int], requests: Sequence[Request]
    ) -> None:
        super().__init__(limits, known_tokens)
        self.requests = requests
        self.row = {request.request_id: row for row, request in enumerate(requests)}
        self.shared_blocks = self._count_shared_blocks()
        self.untouched: float = self.free_blocks
        self.idle: OrderedDict[_Block | _Tail, None] = OrderedDict()  # next to be taken first
        self.cached: dict[Key, dict[_Block, None]] = {}
        self.tails: dict[int, _Tail] = {}
        self.own: dict[int, list[_Block]] = {}  # of who runs, the blocks that are objects
        self.lineages: dict[int, _Texts] = {}
        self.continued = math.inf in self.shared_blocks
        self.version = 0  # of what is cached
        self.found: tuple[int, int, int, tuple[list[_Block], int]] | None = None
        self.order: VictimOrder | None = None

    def cached_tokens(self, request: int) -> int:
        """Return how many leading tokens of a waiting request are cached, in whole blocks.

        At least one token is left to compute, since the next output comes from it.
        """
        blocks, in_tail = self._hits(request)
        return (len(blocks) + in_tail) * self.block_size

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
        hits, in_tail = self._hits(request)
        idle = sum([not block.holders for block in hits]) + in_tail
        known = self.known_tokens[request] if self.reserve_full_prompt else cached_tokens + tokens
        if self.blocks(known) - len(hits) - in_tail + idle > self.free_blocks:
            return False
        hits = hits.copy()  # what was found is kept for the next look
        for block in hits:
            if not block.holders:
                del self.idle[block]
            block.holders += 1
        if in_tail:
            self._leave_tail(request, in_tail)
        super()._take(idle)
        self.own[request] = hits
        self.tokens[request] = cached_tokens
        self._grow(request, tokens)
        return True

    def release(self, request: int) -> None:
        """Give a request's blocks back, the tail first, so that the tail is evicted first."""
        self._settle(request)
        own, tokens = self.own.pop(request), self.tokens_held(request)
        in_tail = self.blocks(tokens) - len(own)
        if in_tail:
            partial = int(tokens % self.block_size > 0)
            tail = _Tail(request, in_tail - partial, partial)
            self.idle[tail] = None
            self.tails[request] = tail
            self.version += 1
            self._give_back(in_tail)
        for block in reversed(own):
            block.holders -= 1
            if not block.holders:
                self.idle[block] = None
                self._give_back(1)
        self._forget(request)

    def _hits(self, request: int) -> tuple[list[_Block], int]:
        """Return the blocks that a waiting request finds, and how many more in its own tail."""
        if self.requests[request].continues is not None:
            self._settle_continued(request)
        known = self.known_tokens[request]
        if self.found and self.found[:3] == (request, known, self.version):
            return self.found[3]
        self.found = (request, known, self.version, self._look_up(request))
        return self.found[3]

    def _look_up(self, request: int) -> tuple[list[_Block], int]:
        most = (self.known_tokens[request] - 1) // self.block_size
        shared = self.shared_blocks[request]
        hits: list[_Block] = []
        for index in range(int(min(most, shared))):
            found = self.cached.get(self._key(request, index))
            if not found:
                return hits, 0
            hits.append(next(iter(found)))
        tail = self.tails.get(request)
        if tail is None or shared > most:
            return hits, 0
        return hits, min(most - len(hits), tail.full)

    def _leave_tail(self, request: int, blocks: int) -> None:
        self.version += 1
        tail = self.tails[request]
        tail.full -= blocks
        if not tail.full:
            del self.tails[request]
            if not tail.partial:
                del self.idle[tail]

    def _filled(self, request: int) -> None:
        if self.shared_blocks[request]:
            self._settle_continued(request)
            self._settle(request)

    def _take(self, blocks: int) -> None:
        super()._take(blocks)
        untouched = min(self.untouched, blocks)
        self.untouched -= untouched
        needed = blocks - int(untouched)
        while needed:
            first = next(iter(self.idle))
            if isinstance(first, _Tail):
                if self.found and self.found[0] == first.request:
                    self.found = None  # nobody else looks for a tail
                needed -= first.take(needed)
                if not first.full:
                    del self.idle[first]
                    if self.tails.get(first.request) is first:
                        del self.tails[first.request]
                continue
            needed -= 1
            del self.idle[first]
            if first.key is not None:
                same = self.cached[first.key]
                del same[first]
                self.version += 1
                if not same:
                    del self.cached[first.key]

    def _settle(self, request: int) -> None:
        """Make objects of the blocks that a request holds and others may look for."""
        own, tokens, shared = self.own[request], self.tokens_held(request), self.shared_blocks
        most = shared[request]
        while len(own) < min(most, self.blocks(tokens)):
            own.append(_Block())
        for index in range(int(min(most, tokens // self.block_size)) - 1, -1, -1):
            block = own[index]
            if block.key is not None:
                break
            block.key = self._key(request, index)
            self.version += 1
            self.cached.setdefault(block.key, {})[block] = None

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
        if len(self.own) < self._lineage(request).length:  # a long conversation, few that run
            for row in self.own:
                if row != request and self.shared_blocks[row] == math.inf:
                    self._settle(row)
            return
        while before is not None:
            row = self.row[before]
            if row in self.own:
                self._settle(row)
            before = self.requests[row].continues

    def _count_shared_blocks(self) -> list[float]:
        """Return by request how many of its leading blocks someone else may look for."""
        members: dict[str, int] = {}
        continued = set()
        for request in self.requests:
            if request.shared_group is not None:
                members[request.shared_group] = members.get(request.shared_group, 0) + 1
            if request.continues is not None:
                continued.add(request.continues)
        counts: list[float] = []
        for request in self.requests:
            shared: float = 0
            if request.request_id in continued:
                shared = math.inf
            elif request.shared_group is not None and members[request.shared_group] > 1:
                shared = request.shared_tokens // self.block_size
            elif request.continues is not None:
                before = self.requests[self.row[request.continues]]
                shared = (before.prompt_tokens + before.output_tokens) // self.block_size
            counts.append(shared)
        return counts

    def _key(self, request: int, index: int) -> Key:
        """Return what a request's block is found by: whose text it ends in, and its number."""
        texts = self.lineages.get(request) or self._lineage(request)
        at = bisect_left(texts.ends, (index + 1) * self.block_size, hi=texts.length)
        return (request if at == texts.length else texts.owners[at]), index

    def _lineage(self, request: int) -> _Texts:
        """Return the texts that a request's own one goes on from.

        A conversation of many turns shares one list: each turn adds one text to it.
        """
        line = [request]
        while line[-1] not in self.lineages and self.requests[line[-1]].continues is not None:
            line.append(self.row[self.requests[line[-1]].continues or ""])
        for row in reversed(line):
            if row in self.lineages:
                continue
            asked = self.requests[row]
            texts = _Texts([], [], 0)
            if asked.shared_group is not None:
                texts = texts.and_then(asked.shared_tokens, asked.shared_group)
            elif asked.continues is not None:
                before = self.requests[self.row[asked.continues]]
                length = before.prompt_tokens + before.output_tokens
                texts = self.lineages[self.row[asked.continues]].and_then(
                    length, self.row[asked.continues]
                )
            self.lineages[row] = texts
        return self.lineages[request]
