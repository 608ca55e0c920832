"""What a policy sees (`Batch`, `EngineLimits`) and what it decides (`StepPlan`)."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple, Protocol

from s11.checks import MAX_TOKENS, require_bool, require_int, require_ms, require_optional_int

MAX_INTERVAL, MAX_BLOCK_TOKENS = 10_000, 65_536


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineLimits:
    """The engine's knobs; None means no limit. `s11.presets` names the engines' own flags.

    token_budget: most tokens in one step.
    chunk_tokens: chunk cap, the most prompt tokens of one request in one step; for `sglang`
        the prompt tokens of a whole step (its chunked_prefill_size).
    max_seqs: most requests that are running, prefilling or decoding.
    chunking: whether a prompt may be cut to what is left of the budget.
    mixed: whether decodes ride along in a prefill step of `sglang`.
    prefill_interval: at most one prefill-carrying step in every so many, while anyone decodes.
    block_size: tokens in one KV block; also the page and the chunk unit that cuts keep to.
    kv_blocks: blocks in the pool; streaming users' own blocks are not among them.
    prefix_caching: whether whole blocks are shared between requests with the same beginning.
    reserve_full_prompt: admit only where the whole known sequence would fit in the blocks
        free now (a check, not a reservation).
    max_model_len: longer prompts are refused on arrival.
    align_first_chunk: floor a newcomer's budget-cut chunk to whole blocks (vLLM V0 did, with
        its prefix cache on).

    Raises:
        ValueError: a limit that is not a whole number in its range, a switch that is no bool.
    """

    token_budget: int | None = None
    chunk_tokens: int | None = 1024
    max_seqs: int | None = None
    chunking: bool = True
    mixed: bool = False
    prefill_interval: int = 1
    block_size: int = 16
    kv_blocks: int | None = None
    prefix_caching: bool = False
    reserve_full_prompt: bool = False
    max_model_len: int | None = None
    align_first_chunk: bool = False

    def __post_init__(self) -> None:
        for name in ("token_budget", "chunk_tokens", "max_seqs", "kv_blocks", "max_model_len"):
            limit = require_optional_int(name, getattr(self, name), 1, MAX_TOKENS)
            object.__setattr__(self, name, limit)
        for name, most in (("block_size", MAX_BLOCK_TOKENS), ("prefill_interval", MAX_INTERVAL)):
            object.__setattr__(self, name, require_int(name, getattr(self, name), 1, most))
        for name in (
            "chunking",
            "mixed",
            "prefix_caching",
            "reserve_full_prompt",
            "align_first_chunk",
        ):
            object.__setattr__(self, name, require_bool(name, getattr(self, name)))

    def tokens_per_step(self) -> float:
        """Return the token budget, infinite where there is none."""
        return math.inf if self.token_budget is None else self.token_budget

    def tokens_per_slice(self) -> float:
        """Return the chunk cap, infinite where there is none."""
        return math.inf if self.chunk_tokens is None else self.chunk_tokens

    def seats(self) -> float:
        """Return the most running requests, infinite where there is no limit."""
        return math.inf if self.max_seqs is None else self.max_seqs


@dataclass(frozen=True, slots=True, kw_only=True)
class HandOver:
    """The way of a prompt's KV from the prefill worker to the decode worker.

    Defaults: 131,072 bytes a token are Llama-3.1-8B's in 16 bits (2 x 32 layers x 8 KV heads
    x 128 dimensions x 2 bytes); 50e9 bytes/s are one 400 Gbit/s link.

    Raises:
        ValueError: a size or speed out of range.
    """

    kv_bytes_per_token: int = 131_072
    link_bytes_per_s: float = 50e9
    link_latency_ms: float = 1.0

    def __post_init__(self) -> None:
        size = require_int("kv_bytes_per_token", self.kv_bytes_per_token, 1, 2**30)
        object.__setattr__(self, "kv_bytes_per_token", size)
        speed = require_ms("link_bytes_per_s", self.link_bytes_per_s, 1e3, 1e15)
        object.__setattr__(self, "link_bytes_per_s", speed)
        latency = require_ms("link_latency_ms", self.link_latency_ms, 0, 1e6)
        object.__setattr__(self, "link_latency_ms", latency)

    def duration_ms(self, prompt_tokens: int) -> float:
        """Return how long the KV of so many tokens travels: size / bandwidth + latency."""
        size_bytes = self.kv_bytes_per_token * prompt_tokens
        return 1000.0 * size_bytes / self.link_bytes_per_s + self.link_latency_ms


class BlockedBy(StrEnum):
    """Why a request got less than it wanted in a step, or nothing.

    code: its number in the result's columns, from 1; 0 stands for no reason.
    """

    code: int
    TOKEN_BUDGET = "token budget"
    CHUNK_CAP = "chunk cap"
    CHUNKING_OFF = "chunking off"
    ALIGNMENT = "whole blocks"
    SEATS = "seats"
    KV_BLOCKS = "KV blocks"
    PREEMPTION = "preemption"
    HEAD_OF_LINE = "head of line"
    ONE_AT_A_TIME = "one prefill at a time"
    BATCH_RUNNING = "batch running"
    PREFILL_FIRST = "prefill first"
    PREFILL_INTERVAL = "prefill interval"
    ITL_TARGET = "ITL target"


for _code, _reason in enumerate(BlockedBy, start=1):
    _reason.code = _code


class PrefillSlice(NamedTuple):
    """`tokens` of what a request has known but not computed, to be computed in this step.

    limited_by: why it is not all that the request wants; None where it is.
    cached_tokens: of a newcomer, the tokens before it whose KV the prefix cache holds.
    """

    request: int
    tokens: int
    limited_by: BlockedBy | None = None
    cached_tokens: int = 0


class StepPlan(NamedTuple):
    """One step: the prefill slices, in batch order, and whether the decodes run beside them.

    blocked_by: why the first request that got nothing got nothing; None where every
        request got something. Those behind it wait for it: head of line.
    steps: for how many steps the policy would plan the same again if nothing arrives, no
        decode ends and no prompt is complete. The engine advances them in one run.
    preempted: requests that lost their blocks for this step, in that order.
    decodes: whether every running decode gets its token in this step; if not, none does.
    """

    slices: Sequence[PrefillSlice]
    blocked_by: BlockedBy | None
    steps: int = 1
    preempted: Sequence[int] = ()
    decodes: bool = True


class VictimOrder(StrEnum):
    """In which order running requests take KV blocks; the last of it is preempted first."""

    ADMISSION = "admission"
    DECODES_FIRST = "decodes first"


class Memory(Protocol):
    """The KV cache as a policy uses it: the one thing that it changes while it plans."""

    def cached_tokens(self, request: int) -> int:
        """Return how many leading tokens of a waiting request the prefix cache holds."""

    def admit(self, request: int, cached_tokens: int, tokens: int) -> bool:
        """Take the blocks for a newcomer's first slice; False where too few are free."""

    def hold(
        self, slices: Sequence[PrefillSlice], order: VictimOrder, *, decodes: bool = True
    ) -> Sequence[int]:
        """Take the blocks for running requests' slices and decodes.

        Where too few are free, the last of the order loses its own, until the rest fits.
        Returns the requests that lost them.
        """


class AmpleMemory:
    """Memory that never ends and caches nothing."""

    def cached_tokens(self, request: int) -> int:
        """Return 0."""
        return 0

    def admit(self, request: int, cached_tokens: int, tokens: int) -> bool:
        """Return True."""
        return True

    def hold(
        self, slices: Sequence[PrefillSlice], order: VictimOrder, *, decodes: bool = True
    ) -> Sequence[int]:
        """Return no request."""
        return ()


def _no_time(**work: object) -> float:
    return 0.0


@dataclass(slots=True)
class Batch:
    """The engine's state as a policy reads it (and never writes it, `memory` aside).

    decoding: how many requests decode; each takes one token a step.
    remaining_tokens: tokens still to compute before the next output, by request.
    known_tokens: a request's prompt and the outputs that it had before its prefill.
    decode_context_tokens: cached tokens of all that decodes, summed.
    prefilling: partly prefilled requests in admission order.
    waiting: requests that hold no seat, first come first; a preempted one in front.
    memory: the KV cache.
    prefill_held: the prefill interval lets no prefill into this step.
    step_ms: the cost model's prediction of a step, in ms.
    itl_target_ms: what the streams were promised.
    """

    decoding: int
    remaining_tokens: list[int]
    known_tokens: list[int] = field(default_factory=list)
    decode_context_tokens: int = 0
    prefilling: list[int] = field(default_factory=list)
    waiting: deque[int] = field(default_factory=deque)
    memory: Memory = field(default_factory=AmpleMemory)
    prefill_held: bool = False
    step_ms: Callable[..., float] = _no_time
    itl_target_ms: float = math.inf


class Policy(Protocol):
    """A scheduler: what joins the next step. No clock, no randomness, no memory of its own."""

    def __call__(self, batch: Batch, limits: EngineLimits) -> StepPlan:
        """Return the next step's plan."""
