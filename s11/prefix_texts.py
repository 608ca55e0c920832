"""Whose text each KV block of a request ends in, and how much of it others may look for."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Sequence
from itertools import chain
from typing import NamedTuple

from s11.hash_tree import shared_texts
from s11.workload import Request


class _Texts(NamedTuple):
    """Whose texts begin a request: the first `length` of two lists that others may go on with."""

    ends: list[int]  # after which block each text ends, ascending
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


class PrefixTexts:
    """Requests' texts in whole blocks of `block_size` tokens.

    A block belongs to the text that it ends in: a group's, a part of the tree of hash ids, a
    continued request's, or the request's own, which is named by its row. So blocks of one number
    and one owner have the same content, and the same beginning.

    shared_blocks: by request, how many of its leading blocks someone else may look for.
    """

    def __init__(self, requests: Sequence[Request], block_size: int) -> None:
        self.requests, self.block_size = requests, block_size
        self.row = {request.request_id: row for row, request in enumerate(requests)}
        self.hashed = shared_texts(requests)
        self.lineages: dict[int, _Texts] = {}
        self.shared_blocks = self._count_shared_blocks()

    def parts(self, request: int, start: int = 0) -> Iterable[tuple[float, Hashable]]:
        """Return the texts from a block on: after which block each ends, and whose it is.

        The request's own text comes last and never ends; all is its own where nobody looks.
        """
        own = ((math.inf, request),)
        if not self.shared_blocks[request]:
            return own
        ends, owners, length = self.lineages.get(request) or self.lineage(request)
        first = bisect_right(ends, start, hi=length)
        return chain(zip(ends[first:length], owners[first:length], strict=True), own)

    def lineage(self, request: int) -> _Texts:
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
                texts = texts.and_then(asked.shared_tokens // self.block_size, asked.shared_group)
            elif asked.continues is not None:
                before = self.row[asked.continues]
                texts = self.lineages[before].and_then(self._blocks_of(before), before)
            for part in self.hashed.get(row, ()):
                texts = texts.and_then(part.end_token // self.block_size, part.number)
            self.lineages[row] = texts
        return self.lineages[request]

    def _blocks_of(self, row: int) -> int:
        request = self.requests[row]
        return (request.prompt_tokens + request.output_tokens) // self.block_size

    def _count_shared_blocks(self) -> list[float]:
        members: dict[str, int] = {}
        continued = set()
        for request in self.requests:
            if request.shared_group is not None:
                members[request.shared_group] = members.get(request.shared_group, 0) + 1
            if request.continues is not None:
                continued.add(request.continues)
        counts: list[float] = []
        for row, request in enumerate(self.requests):
            shared: float = 0
            if request.request_id in continued:
                shared = math.inf
            elif request.shared_group is not None and members[request.shared_group] > 1:
                shared = request.shared_tokens // self.block_size
            elif row in self.hashed:
                shared = self.hashed[row][-1].end_token // self.block_size
            elif request.continues is not None:
                shared = self._blocks_of(self.row[request.continues])
            counts.append(shared)
        return counts
