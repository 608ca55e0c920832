"""The prefix cache page's state: the values of its controls by key, and what they describe."""

from __future__ import annotations

import math
from collections.abc import Callable
from enum import StrEnum
from typing import Any

import streamlit as st

from s11.costs import LinearCost
from s11.experiment import Experiment
from s11.figures.prefix_info import FourRuns, Measured
from s11.plan import EngineLimits
from s11.prefix_workloads import conversation, shared_system_prompt
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole
from s11.ui.runs import run
from s11.workload import Workload


class Load(StrEnum):
    """Whose prompts begin alike, and why."""

    CONVERSATION = "conversation"
    SHARED = "shared system prompt"


CHUNK_SIZES = (256, 512, 1024, 2048, 4096, 8192)
BLOCK_SIZES = (16, 32, 64, 128, 256)
MAX_POOL = 1_000_000
THINK_MS, ROUND_MS = 500, 100

BOUNDS: dict[str, tuple[int, int, int]] = {  # lowest, highest, step
    "turns": (1, 8, 1),
    "chats": (1, 3, 1),
    "system": (0, 16_384, 500),
    "message": (1, 4_096, 250),
    "answer": (1, 300, 50),
    "requests": (1, 16, 1),
    "systems": (1, 4, 1),
    "shared": (0, 32_768, 512),
    "own": (0, 4_096, 100),
    "output": (1, 300, 50),
    "gap": (0, 5_000, 50),
    "pool": (1, MAX_POOL, 50),
    "prefix_users": (0, 128, 4),
}

DEFAULTS: dict[str, Any] = {
    "load": str(Load.CONVERSATION),
    "turns": 6,
    "chats": 1,
    "system": 2_000,
    "message": 1_000,
    "answer": 250,
    "requests": 6,
    "systems": 1,
    "shared": 4_000,
    "own": 500,
    "output": 100,
    "gap": 300,
    "prefix_chunk": 1024,
    "block": 16,
    "pool": None,
    "prefix_users": 24,
}

PRESETS: dict[str, dict[str, str]] = {
    "One conversation": {},
    "Shared system prompt": {"load": str(Load.SHARED)},
    "Exactly one block too much": {
        "load": str(Load.SHARED),
        "requests": "4",
        "shared": "1024",
        "own": "0",
        "block": "128",
        "prefix_chunk": "512",
    },
    "Pool too small: evicted": {"turns": "4", "chats": "2", "pool": "500"},
    "Same-step sharing": {"load": str(Load.SHARED), "requests": "4", "shared": "4096", "gap": "0"},
}


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none (left empty, or not yet)."""
    value = st.session_state.get(key, DEFAULTS[key])
    return DEFAULTS[key] if value is None else value


def load() -> Load:
    """Return which load is chosen."""
    return Load(value_of("load"))


def longest_prompt_tokens() -> int:
    """Return the tokens of the longest prompt."""
    if load() is Load.SHARED:
        return int(value_of("shared")) + int(value_of("own"))
    turns = int(value_of("turns"))
    said = turns * int(value_of("message")) + (turns - 1) * int(value_of("answer"))
    return int(value_of("system")) + said


def gap_ms() -> int:
    """Return the time between arrivals; a turn's holds the slowest run of the one before."""
    if load() is Load.SHARED:
        return int(value_of("gap"))
    cost, decodes = LinearCost(), int(value_of("prefix_users")) + 1
    longest = longest_prompt_tokens()
    chunks = math.ceil(longest / int(value_of("prefix_chunk")))
    decode_ms = cost.step_ms(prefill_tokens=0, decode_tokens=decodes)
    slowest_ms = cost.step_ms(prefill_tokens=longest, decode_tokens=decodes)
    slowest_ms += (chunks + int(value_of("answer"))) * decode_ms
    return math.ceil((slowest_ms + THINK_MS) / ROUND_MS) * ROUND_MS


def workload() -> Workload:
    """Return the load that the controls describe.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """
    if load() is Load.SHARED:
        return shared_system_prompt(
            requests=int(value_of("requests")),
            shared_tokens=int(value_of("shared")),
            own_tokens=int(value_of("own")),
            output_tokens=int(value_of("output")),
            gap_ms=gap_ms(),
            system_prompts=int(value_of("systems")),
            streaming_users=int(value_of("prefix_users")),
        )
    return conversation(
        turns=int(value_of("turns")),
        system_tokens=int(value_of("system")),
        user_tokens=int(value_of("message")),
        answer_tokens=int(value_of("answer")),
        gap_ms=gap_ms(),
        conversations=int(value_of("chats")),
        streaming_users=int(value_of("prefix_users")),
    )


def experiment(*, caching: bool, chunking: bool) -> Experiment:
    """Return one of the four experiments: vLLM V1 without a token budget.

    With chunking off a prompt is one slice, so a budget below the longest one would starve it;
    without one, chunking off can run, and the chunk cap alone tells the two apart.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """
    asked, block_size, pool = workload(), int(value_of("block")), value_of("pool")
    longest = max(asked.requests, key=lambda request: request.prompt_tokens)
    needed = -(-(longest.prompt_tokens + longest.output_tokens - 1) // block_size)
    if pool is not None and pool < needed:
        raise ValueError(
            f"Pool: {pool:,} blocks of {block_size:,} tokens cannot hold {longest.request_id} "
            f"(allowed: {needed:,} or more, or none)"
        )
    return Experiment(
        workload=asked,
        policy="vllm_v1",
        limits=EngineLimits(
            chunk_tokens=int(value_of("prefix_chunk")) if chunking else None,
            chunking=chunking,
            block_size=block_size,
            kv_blocks=pool,
            prefix_caching=caching,
        ),
    )


def four_runs() -> FourRuns:
    """Run the load with caching off and on, chunking off and on.

    Raises:
        ValueError: values that do not go together, in one sentence.
    """

    def measured(*, caching: bool, chunking: bool) -> Measured:
        asked = experiment(caching=caching, chunking=chunking)
        done = run(asked)
        return Measured(asked, done.result, done.metrics)

    return FourRuns(
        neither=measured(caching=False, chunking=False),
        chunking=measured(caching=False, chunking=True),
        caching=measured(caching=True, chunking=False),
        both=measured(caching=True, chunking=True),
    )


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "load": one_of(*Load),
    **{key: whole(low, high) for key, (low, high, _) in BOUNDS.items()},
    "prefix_chunk": one_of(*map(str, CHUNK_SIZES)),
    "block": one_of(*map(str, BLOCK_SIZES)),
    "picture": one_of(*PICTURE_FORMATS),
}
