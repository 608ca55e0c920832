"""What became of each KV block of each request: hit, computed, or computed again, and why.

Derived from a run's tables alone: what a newcomer was given is held against all that requests
ahead of it had computed of the same text by then.
"""

from __future__ import annotations

import math
from collections.abc import Hashable
from dataclasses import dataclass
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.results import Result
from s11.workload import HASH_BLOCK_TOKENS, Request, Workload


class BlockKind(IntEnum):
    """How a block came to hold its tokens.

    HIT: found in the prefix cache.
    NEW: computed; nobody ahead had computed any of it.
    NOT_WHOLE: computed; of its text a part was there before, but never as a whole block.
    LAST_TOKEN: computed again although it was there, since at least one token has to be.
    NOT_YET: computed; a request ahead was about to compute the same later.
    EVICTED: computed again; it, or a block before it, had been evicted.
    OUTPUT: filled by decodes.
    """

    HIT = 0
    NEW = 1
    NOT_WHOLE = 2
    LAST_TOKEN = 3
    NOT_YET = 4
    EVICTED = 5
    OUTPUT = 6


@dataclass(frozen=True, slots=True, eq=False)
class AdmittedBlocks:
    """The blocks of one request from one admission on, up to its end or its preemption."""

    request: int  # row of the request table
    resumed: bool
    step: int
    known_tokens: int
    hit_tokens: int
    held_tokens: int
    computed_before: int  # of its known tokens, by requests ahead and itself
    block_size: int
    kinds: NDArray[np.uint8]  # (blocks,) values of `BlockKind`

    def count(self, kind: BlockKind) -> int:
        """Return how many blocks are of one kind."""
        return int(np.count_nonzero(self.kinds == kind))

    def tokens_again(self, kind: BlockKind) -> int:
        """Return how many tokens in blocks of one kind had been computed before."""
        starts = np.flatnonzero(self.kinds == kind) * self.block_size
        return int(np.clip(self.computed_before - starts, 0, self.block_size).sum())

    def runs(self) -> list[tuple[BlockKind, int, int]]:
        """Return neighbours of one kind as (kind, first block, block after the last)."""
        edges = np.flatnonzero(np.diff(self.kinds)) + 1
        starts = [0, *edges.tolist()] if len(self.kinds) else []
        ends = [*edges.tolist(), len(self.kinds)] if len(self.kinds) else []
        return [
            (BlockKind(int(self.kinds[start])), start, end)
            for start, end in zip(starts, ends, strict=True)
        ]


def admitted_blocks(experiment: Experiment, result: Result) -> tuple[AdmittedBlocks, ...]:
    """Return the blocks of every admission, in order, of a run with the prefix cache on.

    Every admission is held against all before it: made for dozens, not for thousands.
    """
    texts = _Texts(experiment.workload)
    stays = _stays(result)
    block_size = experiment.limits.block_size
    rows = []
    for place, stay in enumerate(stays):
        ahead = stays[:place]
        common = [texts.common_tokens(stay.request, other.request) for other in ahead]
        by_now = [other.computed(stay.step) for other in ahead]
        there = max([min(*pair) for pair in zip(common, by_now, strict=True)], default=0)
        coming = max(
            [min(c, other.held_tokens) for c, other in zip(common, ahead, strict=True)], default=0
        )
        rows.append(
            AdmittedBlocks(
                request=stay.request,
                resumed=any(other.request == stay.request for other in ahead),
                step=stay.step,
                known_tokens=stay.known_tokens,
                hit_tokens=stay.hit_tokens,
                held_tokens=stay.held_tokens,
                computed_before=int(min(there, stay.known_tokens)),
                block_size=block_size,
                kinds=_kinds(stay, block_size, there=there, coming=coming),
            )
        )
    return tuple(rows)


def _kinds(stay: _Stay, block_size: int, *, there: float, coming: float) -> NDArray[np.uint8]:
    """Name the kind of each block: `there` tokens of its text were computed, `coming` will be."""
    blocks = -(-stay.held_tokens // block_size)
    most_hits = (stay.known_tokens - 1) // block_size
    hits = stay.hit_tokens // block_size
    start = np.arange(blocks) * block_size
    end = start + block_size
    kinds = np.full(blocks, BlockKind.NEW, dtype=np.uint8)
    kinds[start < there] = BlockKind.NOT_WHOLE
    kinds[end <= coming] = BlockKind.NOT_YET
    kinds[end <= there] = BlockKind.LAST_TOKEN if hits == most_hits else BlockKind.EVICTED
    kinds[start >= stay.known_tokens] = BlockKind.OUTPUT
    kinds[:hits] = BlockKind.HIT
    return kinds


@dataclass(frozen=True, slots=True, eq=False)
class _Stay:
    """A request from one admission to its end or its preemption: what it computed, and when."""

    request: int
    step: int
    known_tokens: int
    hit_tokens: int
    slice_steps: NDArray[np.int64]  # (slices,)
    slice_ends: NDArray[np.int64]  # (slices,) computed tokens after each
    decode_steps: NDArray[np.int64]  # (decodes,) one token each

    @property
    def held_tokens(self) -> int:
        """The tokens whose KV it held in the end."""
        return int(self.slice_ends[-1]) + len(self.decode_steps)

    def computed(self, step: int) -> int:
        """Return the tokens that are computed when `step` is done."""
        slices = int(np.searchsorted(self.slice_steps, step, side="right"))
        decodes = int(np.searchsorted(self.decode_steps, step, side="right"))
        return (int(self.slice_ends[slices - 1]) if slices else self.hit_tokens) + decodes


def _stays(result: Result) -> list[_Stay]:
    admissions, slices, spans = result.admissions, result.slices, result.spans
    decode_steps = np.flatnonzero(result.steps.decode_tokens)
    next_span = {}
    for span in range(len(spans) - 1, -1, -1):
        next_span[int(spans.request[span])] = span
    stays = []
    for place in range(len(admissions)):
        request, step = int(admissions.request[place]), int(admissions.step[place])
        again = np.flatnonzero(admissions.request[place + 1 :] == request)
        until = int(admissions.step[place + 1 + again[0]]) if len(again) else math.inf
        mine = np.flatnonzero(
            (slices.request == request) & (slices.step >= step) & (slices.step < until)
        )
        if not len(mine):
            continue  # the run was cut before its first step
        first, last = mine[0], mine[-1]
        decoded = np.empty(0, dtype=np.int64)
        if slices.tokens[last] == slices.wanted_tokens[last]:
            span = next_span[request]
            next_span[request] = span + 1
            begin = int(spans.first_decode[span])
            decoded = decode_steps[begin : begin + int(spans.decodes[span])]
        stays.append(
            _Stay(
                request=request,
                step=step,
                known_tokens=int(slices.start_token[first] + slices.wanted_tokens[first]),
                hit_tokens=int(admissions.cached_tokens[place]),
                slice_steps=slices.step[mine],
                slice_ends=slices.start_token[mine] + slices.tokens[mine],
                decode_steps=decoded,
            )
        )
    return stays


class _Texts:
    """Whose words the requests' tokens are."""

    def __init__(self, workload: Workload) -> None:
        self.requests = workload.requests
        self.row = {asked.request_id: row for row, asked in enumerate(self.requests)}

    def common_tokens(self, request: int, other: int) -> float:
        """Return how many leading tokens two requests have in common, outputs included."""
        if request == other:
            return math.inf
        common = 0.0
        for (end, whose), (other_end, other_whose) in zip(
            self._parts(request), self._parts(other), strict=False
        ):
            if whose != other_whose:
                break
            common = min(end, other_end)
            if end != other_end:
                break
        return common

    def _parts(self, request: int) -> list[tuple[float, Hashable]]:
        """Return up to which token a request's text is whose; its own never ends."""
        chain = [self.requests[request]]
        while chain[-1].continues is not None:
            chain.append(self.requests[self.row[chain[-1].continues]])
        parts: list[tuple[float, Hashable]] = []
        first = chain[-1]
        if first.shared_group is not None:
            parts.append((first.shared_tokens, ("group", first.shared_group)))
        for number, hash_id in enumerate(first.hash_ids):
            tokens = min((number + 1) * HASH_BLOCK_TOKENS, first.prompt_tokens)
            parts.append((tokens, ("hash block", hash_id)))
        for asked in reversed(chain):
            end = math.inf if asked is chain[0] else _length(asked)
            parts.append((end, ("request", asked.request_id)))
        return parts


def _length(asked: Request) -> int:
    return asked.prompt_tokens + asked.output_tokens
