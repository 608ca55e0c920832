"""What a policy sees (`Batch`, `EngineLimits`) and what it decides (`StepPlan`)."""

from __future__ import annotations

import math
from collections import deque
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from s11.checks import MAX_TOKENS, require_optional_int


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """The engine's knobs; None means no limit.

    token_budget: most tokens in one step (vLLM `max_num_batched_tokens`).
    chunk_tokens: chunk cap, the most prompt tokens of one request in one step
        (vLLM `long_prefill_token_threshold`; the chapter's `max_chunk`).
    max_seqs: most requests that are running, prefilling or decoding (vLLM `max_num_seqs`).

    Raises:
        ValueError: a limit that is not a whole number of at least 1.
    """

    token_budget: int | None = None
    chunk_tokens: int | None = 1024
    max_seqs: int | None = None

    def __post_init__(self) -> None:
        for name in ("token_budget", "chunk_tokens", "max_seqs"):
            limit = require_optional_int(name, getattr(self, name), 1, MAX_TOKENS)
            object.__setattr__(self, name, limit)

    def tokens_per_step(self) -> float:
        """Return the token budget, infinite where there is none."""
        return math.inf if self.token_budget is None else self.token_budget

    def tokens_per_slice(self) -> float:
        """Return the chunk cap, infinite where there is none."""
        return math.inf if self.chunk_tokens is None else self.chunk_tokens

    def seats(self) -> float:
        """Return the most running requests, infinite where there is no limit."""
        return math.inf if self.max_seqs is None else self.max_seqs


@dataclass(slots=True)
class Batch:
    """The engine's state as a policy reads it (and never writes it).

    decoding: how many requests decode; each takes one token a step.
    prefilling: partly prefilled requests in admission order.
    waiting: requests that have arrived and hold no seat, first come first.
    remaining_tokens: prompt tokens still to compute, by request.
    """

    decoding: int
    remaining_tokens: list[int]
    prefilling: list[int] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)


class BlockedBy(StrEnum):
    """Why the first request that got nothing in a step got nothing."""

    TOKEN_BUDGET = "token budget"
    CHUNKING_OFF = "chunking off"
    SEATS = "seats"


class PrefillSlice(NamedTuple):
    """`tokens` of a request's prompt, to be computed in this step."""

    request: int
    tokens: int


class StepPlan(NamedTuple):
    """One step: the prefill slices that join the decodes, in batch order.

    blocked_by: why the first request that got nothing got nothing; None where every
        request got something.
    steps: for how many steps the policy would plan the same again if nothing arrives, no
        decode ends and no prompt is complete. The engine advances them in one run.
    """

    slices: list[PrefillSlice]
    blocked_by: BlockedBy | None
    steps: int = 1


class Policy(Protocol):
    """A scheduler: what joins the next step. No clock, no randomness, no memory."""

    def __call__(self, batch: Batch, limits: EngineLimits) -> StepPlan:
        """Return the next step's plan."""
