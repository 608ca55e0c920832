"""What to set: chunk sizes on one machine, and why the knee is where it is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from s11.catalog import Deployment
from s11.costs import RooflineCost
from s11.costs.breakdown import StepWork
from s11.costs.host import HOST_OF_POLICY
from s11.experiment import Experiment
from s11.kv_pool import within_memory
from s11.largest_chunk import largest_chunk_within_target
from s11.piggyback import linear_times
from s11.plan import EngineLimits
from s11.sweeps import SweepPoint, knee, longest_prompt_tokens, sweep_point
from s11.workload import chapter_scenario

SMALLEST_CHUNK = 64
BLOCK_SIZES = {"vllm_v1": 16, "sglang": 1, "tensorrt_llm": 32, "chunked": 16}
"""By scheduler that is tuned here, the tokens in one KV block as it comes."""

MOST_SEATS = 256
"""Requests that may run at once: vLLM's default below 70 GiB. Each costs memory for its logits."""


def tuned_experiment(
    machine: Deployment,
    *,
    policy: str,
    prompt_tokens: int,
    streaming_users: int,
    user_context_tokens: int,
    itl_target_ms: float,
    mixed: bool = True,
) -> Experiment:
    """Return the chapter's scenario on a machine and an engine; its chunk size is yet to be set.

    The chunk size is swept as the cap on one prompt's slice. For one prompt beside the streams
    that is the same schedule as a token budget of so many tokens and one for each decode.

    Raises:
        ValueError: a number out of range.
    """
    scenario = chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=streaming_users)
    return Experiment(
        workload=replace(scenario, user_context_tokens=user_context_tokens),
        policy=policy,
        limits=EngineLimits(
            chunk_tokens=prompt_tokens,
            max_seqs=MOST_SEATS,
            mixed=mixed,
            block_size=BLOCK_SIZES[policy],
        ),
        cost=RooflineCost(deployment=machine, engine=HOST_OF_POLICY.get(policy, "vllm")),
        itl_target_ms=itl_target_ms,
    )


def tuned_sizes(experiment: Experiment, *, halves: bool = True) -> tuple[int, ...]:
    """Return the chunk sizes to sweep: from 64 to the prompt, powers of two and halves between.

    SGLang's size counts the decodes that ride along: there, only sizes that leave room.
    """
    users, longest = experiment.workload.streaming_users, longest_prompt_tokens(experiment)
    counted = users if experiment.policy == "sglang" and experiment.limits.mixed else 0
    last = longest + counted
    sizes, size = {last}, SMALLEST_CHUNK
    while size < last:
        sizes |= {n for n in (size, size * 3 // 2 if halves else size) if counted < n < last}
        size *= 2
    return tuple(sorted(sizes))


@dataclass(frozen=True, slots=True, kw_only=True)
class Tried:
    """One chunk size on one machine: what it gives, or why it does not run."""

    chunk_tokens: int
    point: SweepPoint | None
    refused: str = ""


def try_chunk(experiment: Experiment, chunk_tokens: int, *, max_steps: int) -> Tried:
    """Return what a chunk size gives with the KV pool that it leaves."""
    try:
        described = within_memory(experiment.with_chunk_tokens(chunk_tokens))
    except ValueError as error:
        return Tried(chunk_tokens=chunk_tokens, point=None, refused=str(error))
    point = sweep_point(described, chunk_tokens, max_steps=max_steps)
    if point.ttft_ms is None:
        return Tried(
            chunk_tokens=chunk_tokens,
            point=None,
            refused=_never(described, cut=point.step_count >= max_steps, max_steps=max_steps),
        )
    return Tried(chunk_tokens=chunk_tokens, point=point)


def _never(experiment: Experiment, *, cut: bool, max_steps: int) -> str:
    """Return why the prompt never had its first token."""
    if cut:
        return f"cut at {max_steps:,} steps"
    limits, prompt_tokens = experiment.limits, longest_prompt_tokens(experiment)
    left = None if limits.kv_blocks is None else limits.kv_blocks * limits.block_size
    if left is not None and left < prompt_tokens:
        return (
            f"the prompt needs {prompt_tokens:,} KV tokens, and beside the users' contexts the "
            f"pool has {left:,}"
        )
    return "the prompt never gets a token of any step"


def largest_that_fits(experiment: Experiment, *, max_steps: int) -> int | None:
    """Return the largest chunk within the target whose own KV pool lets the prompt run.

    Where the engine cuts a chunk to whole blocks, it is the chunk that happens.

    Raises:
        ValueError: a model that does not fit, or streams whose contexts do not.
    """
    within_memory(experiment.with_chunk_tokens(1))
    most = largest_chunk_within_target(experiment, max_steps=max_steps)
    size = most
    while size and try_chunk(experiment, size, max_steps=max_steps).point is None:
        size //= 2
    return _that_happens(experiment, size) if size else None


def _that_happens(experiment: Experiment, chunk_tokens: int) -> int:
    """Return what a prompt gets of a chunk size where the engine cuts to whole blocks."""
    block = experiment.limits.block_size
    if experiment.policy != "tensorrt_llm" or chunk_tokens >= longest_prompt_tokens(experiment):
        return chunk_tokens
    return max(block, chunk_tokens - chunk_tokens % block)


def stands_still(experiment: Experiment) -> bool:
    """Return whether the decodes wait for the whole prompt, whatever the chunk size."""
    return experiment.policy == "sglang" and not experiment.limits.mixed


def balanced_knee(points: Sequence[SweepPoint], *, waiting: bool) -> SweepPoint | None:
    """Return the knee where it is a balance: larger chunks run, and smaller ones stall less.

    waiting: the decodes stand still for the whole prompt: no chunk size balances anything.
    """
    best = knee(points)
    if best is None or waiting or best is points[-1]:
        return None
    stall_ms = best.longest_stall_ms or 0.0
    smaller = [p for p in points if p.chunk_tokens < best.chunk_tokens and p.longest_stall_ms]
    if smaller and min(p.longest_stall_ms or 0.0 for p in smaller) >= stall_ms:
        return None
    return best


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkStep:
    """What the last step with a full chunk spends on what, in ms.

    rows: of its products: the chunk's tokens and one for each decode that rides along.
    compute_ms, memory_ms: what the products would take were memory, or arithmetic, infinitely
        fast; products_ms is both, joined, and launches.
    without_chunk_ms: the same step with its decodes alone.
    """

    chunk_tokens: int
    rows: int
    start_token: int
    total_ms: float
    without_chunk_ms: float
    compute_ms: float
    memory_ms: float
    products_ms: float
    prefill_attention_ms: float

    @property
    def bound(self) -> str:
        """Return what takes most: "attention", "memory" or "arithmetic"; see `turning_tokens`."""
        if self.prefill_attention_ms > self.products_ms:
            return "attention"
        return "memory" if self.compute_ms < self.memory_ms else "arithmetic"


def chunk_step(experiment: Experiment, chunk_tokens: int) -> ChunkStep:
    """Return what the last step with a full chunk of the longest prompt spends on what.

    Raises:
        ValueError: a cost model without operators.
    """
    cost, workload = experiment.cost, experiment.workload
    if not isinstance(cost, RooflineCost):
        raise ValueError(f"cost: {cost.name} has no operators (allowed: {RooflineCost.name})")
    prompt, users = longest_prompt_tokens(experiment), workload.streaming_users
    riding = 0 if stands_still(experiment) else users
    if experiment.policy == "sglang":
        chunk_tokens = max(1, chunk_tokens - riding)
    chunk = min(chunk_tokens, prompt)
    start = (prompt // chunk - 1) * chunk
    context = riding * (workload.user_context_tokens + workload.lead_in_steps + start // chunk)
    work = StepWork(  # a step with the chunk, and one without
        prefill_tokens=np.array([chunk, 0]),
        decode_tokens=np.array([riding, users]),
        decode_context_tokens=np.array([context, users * workload.user_context_tokens]),
        slice_step=np.array([0]),
        slice_start_token=np.array([start]),
        slice_tokens=np.array([chunk]),
    )
    products = linear_times(cost.deployment, np.array([chunk + riding]))
    parts = cost.parts(work)
    total_ms = parts.total_ms()
    return ChunkStep(
        chunk_tokens=chunk,
        rows=chunk + riding,
        start_token=start,
        total_ms=float(total_ms[0]),
        without_chunk_ms=float(total_ms[1]),
        compute_ms=float(products.compute_ms[0]),
        memory_ms=float(products.memory_ms[0]),
        products_ms=float(parts.linear_ms[0]),
        prefill_attention_ms=float(parts.prefill_attention_ms[0]),
    )


def seats(token_budget: int) -> int:
    """Return the most running requests to set: `MOST_SEATS`, which a budget must cover."""
    return min(MOST_SEATS, token_budget)
