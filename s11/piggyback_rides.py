"""What decodes cost aboard a prefill step and alone, and what of a step is attention."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from s11.catalog import Deployment
from s11.checks import require_int
from s11.costs.breakdown import Floats, Ints
from s11.costs.roofline import StepParts
from s11.piggyback import (
    KEPT,
    MOST_CONTEXT_TOKENS,
    MOST_TOKENS,
    LinearTimes,
    linear_times,
    quantise_ms,
    step_parts,
)

MOST_DECODES = 512
LEAST_CONTEXT_TOKENS = 1_024
CONTEXT_POINTS = 113  # 16 for each doubling
DECODE_POINTS = 40
DECODE_STEPS = np.arange(8, MOST_DECODES + 1, 8)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Ride:
    """N decodes inside a prefill step against a step of their own.

    parts: of three steps: the prefill alone, the prefill with the decodes, the decodes alone.
    edge_tokens, edge_ms: the count among the decodes' rows after which one more row adds most to
        the linear operators, and how much: a tile's edge where it is most of what they add.
    next_ms: what one row more than these would add to the linear operators.
    quantise_ms: of what the decodes add to them, turning their activations into fp8.
    """

    prefill_tokens: int
    start_token: int
    decodes: int
    context_tokens: int
    parts: StepParts
    edge_tokens: int
    edge_ms: float
    next_ms: float = 0.0
    quantise_ms: float = 0.0

    @property
    def step_ms(self) -> tuple[float, float, float]:
        """Return the durations of the three steps."""
        prefill, together, alone = self.parts.total_ms().tolist()
        return prefill, together, alone

    @property
    def added_ms(self) -> float:
        """Return by how much the decodes lengthen the prefill step; below 0: they shorten it."""
        prefill, together, _ = self.step_ms
        return together - prefill

    @property
    def aboard_ms(self) -> float:
        """Return what one piggybacked decode costs."""
        return self.added_ms / self.decodes

    @property
    def alone_ms(self) -> float:
        """Return what one decode costs in a step without prefill."""
        return self.step_ms[2] / self.decodes

    @property
    def factor(self) -> float | None:
        """Return how many times cheaper a decode is aboard; None where it costs nothing."""
        return self.alone_ms / self.aboard_ms if self.aboard_ms > 0 else None

    def added_by(self, name: str) -> float:
        """Return what the decodes add to one of the operators, in ms."""
        prefill, together, _ = getattr(self.parts, name)
        return float(together - prefill)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RideByDecodes:
    """What one decode costs aboard and alone, by how many of them there are.

    edge_decodes, edge_ms: the number after which one more adds most to each one's share of the
        linear operators, and how much it adds; usual_ms is what one more adds on average.
    """

    prefill_tokens: int
    context_tokens: int
    decodes: Ints  # (counts,)
    aboard_ms: Floats  # (counts,)
    alone_ms: Floats  # (counts,)
    edge_decodes: int
    edge_ms: float
    usual_ms: float

    def at(self, decodes: int) -> tuple[float, float]:
        """Return what a decode costs aboard and alone, among so many or the nearest number."""
        place = int(np.argmin(np.abs(self.decodes - decodes)))
        return float(self.aboard_ms[place]), float(self.alone_ms[place])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class AttentionShare:
    """What a step is made of as the context grows.

    half_tokens: the context from which attention is more than half of it; None: nowhere here.
    """

    context_tokens: Ints  # (contexts,) before the chunk, or behind each decode
    parts: StepParts
    half_tokens: int | None

    @property
    def attention(self) -> Floats:  # (contexts,)
        """Return attention's share of the step."""
        return _attention_share(self.parts)

    @property
    def linear(self) -> Floats:  # (contexts,)
        """Return the linear operators' share of the step."""
        share: Floats = self.parts.linear_ms / self.parts.total_ms()
        return share


def attention_ms(parts: StepParts) -> Floats:  # (steps,)
    """Return the attention of prefill slices and decodes together."""
    total: Floats = parts.prefill_attention_ms + parts.decode_attention_ms
    return total


def rest_ms(parts: StepParts) -> Floats:  # (steps,)
    """Return what is neither a product of the layers, nor attention, nor all-reduce."""
    total: Floats = parts.elementwise_ms + parts.lm_head_ms + parts.host_ms
    return total


@lru_cache(maxsize=KEPT)
def ride(
    deployment: Deployment,
    *,
    prefill_tokens: int,
    start_token: int,
    decodes: int,
    context_tokens: int,
) -> Ride:
    """Return what decodes cost in a prefill step, and in one of their own.

    Raises:
        ValueError: a number out of range.
    """
    prefill = require_int("prefill_tokens", prefill_tokens, 1, MOST_TOKENS)
    start = require_int("start_token", start_token, 0, MOST_CONTEXT_TOKENS)
    riding = require_int("decodes", decodes, 1, MOST_DECODES)
    context = require_int("context_tokens", context_tokens, 0, MOST_CONTEXT_TOKENS)
    rows = _rows(deployment, prefill, riding)
    edge = rows.largest_jump()
    return Ride(
        prefill_tokens=prefill,
        start_token=start,
        decodes=riding,
        context_tokens=context,
        parts=step_parts(
            deployment,
            prefill=np.array([prefill, prefill, 0]),
            start=start,
            decodes=np.array([0, riding, riding]),
            context=context,
        ),
        edge_tokens=edge,
        edge_ms=rows.jump_ms(edge),
        next_ms=_rows(deployment, prefill + riding, 1).jump_ms(prefill + riding),
        quantise_ms=quantise_ms(deployment, prefill + riding) - quantise_ms(deployment, prefill),
    )


@lru_cache(maxsize=KEPT)
def ride_by_decodes(
    deployment: Deployment, *, prefill_tokens: int, start_token: int, context_tokens: int
) -> RideByDecodes:
    """Return what one decode costs aboard and alone, from 1 to MOST_DECODES of them.

    Raises:
        ValueError: a number out of range.
    """
    prefill = require_int("prefill_tokens", prefill_tokens, 1, MOST_TOKENS)
    start = require_int("start_token", start_token, 0, MOST_CONTEXT_TOKENS)
    context = require_int("context_tokens", context_tokens, 0, MOST_CONTEXT_TOKENS)
    decodes = np.unique(np.geomspace(1, MOST_DECODES, DECODE_POINTS).round()).astype(np.int64)
    rows = _rows(deployment, prefill, MOST_DECODES)
    jumps_ms = np.diff(rows.linear_ms)
    edge = int(np.argmax(jumps_ms / np.arange(1, MOST_DECODES + 1)))
    decodes = np.union1d(decodes, [*DECODE_STEPS, max(1, edge), edge + 1])

    def steps_ms(prefill_tokens: int, decodes: Any) -> Floats:
        tokens = np.full(np.shape(decodes), prefill_tokens)
        return step_parts(
            deployment, prefill=tokens, start=start, decodes=decodes, context=context
        ).total_ms()

    alone = steps_ms(0, decodes)
    added = steps_ms(prefill, decodes) - steps_ms(prefill, np.zeros(1, np.int64))
    return RideByDecodes(
        prefill_tokens=prefill,
        context_tokens=context,
        decodes=decodes,
        aboard_ms=added / decodes,
        alone_ms=alone / decodes,
        edge_decodes=edge,
        edge_ms=float(jumps_ms[edge]),
        usual_ms=float(rows.linear_ms[-1] - rows.linear_ms[0]) / MOST_DECODES,
    )


def _rows(deployment: Deployment, prefill_tokens: int, decodes: int) -> LinearTimes:
    """Return the linear operators of a chunk with none of the decodes, with one, with all."""
    return linear_times(deployment, np.arange(prefill_tokens, prefill_tokens + decodes + 1))


@lru_cache(maxsize=KEPT)
def chunk_share(deployment: Deployment, chunk_tokens: int) -> AttentionShare:
    """Return what a chunk's step is made of, by the tokens of its prompt before it."""
    chunk = require_int("chunk_tokens", chunk_tokens, 1, MOST_TOKENS)

    def parts_of(contexts: Ints) -> StepParts:
        return step_parts(deployment, prefill=np.full_like(contexts, chunk), start=contexts)

    return _share(parts_of)


@lru_cache(maxsize=KEPT)
def decode_share(deployment: Deployment, decodes: int) -> AttentionShare:
    """Return what a step of decodes alone is made of, by the context of each."""
    riding = require_int("decodes", decodes, 1, MOST_DECODES)

    def parts_of(contexts: Ints) -> StepParts:
        return step_parts(
            deployment,
            prefill=np.zeros_like(contexts),
            decodes=np.full_like(contexts, riding),
            context=contexts,
        )

    return _share(parts_of)


def _share(parts_of: Callable[[Ints], StepParts]) -> AttentionShare:
    contexts = np.unique(
        np.geomspace(LEAST_CONTEXT_TOKENS, MOST_CONTEXT_TOKENS, CONTEXT_POINTS).round()
    ).astype(np.int64)
    parts = parts_of(contexts)
    above = _attention_share(parts) > 0.5
    half = None
    if above.any():
        first = int(np.argmax(above))
        between = np.arange(contexts[max(0, first - 1)], contexts[first] + 1)
        half = int(between[np.argmax(_attention_share(parts_of(between)) > 0.5)])
    return AttentionShare(context_tokens=contexts, parts=parts, half_tokens=half)


def _attention_share(parts: StepParts) -> Floats:
    share: Floats = attention_ms(parts) / parts.total_ms()
    return share
