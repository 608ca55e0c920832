"""The KV pool that an experiment's own deployment has, where its cost model names one."""

from __future__ import annotations

from dataclasses import dataclass, replace

from s11.catalog.kv_capacity import KvCapacity, kv_capacity
from s11.checks import MAX_TOKENS
from s11.costs import RooflineCost
from s11.experiment import Experiment
from s11.policies import DISAGGREGATED


@dataclass(frozen=True, slots=True, kw_only=True)
class KvPool:
    """A deployment's KV pool, and what of it the streaming users' contexts take.

    kv_blocks: what is left for the workload's requests.
    """

    capacity: KvCapacity
    user_blocks: int
    kv_blocks: int

    def to_dict(self) -> dict[str, int]:
        """Return what a run's JSON says of the pool; bytes are of each GPU."""
        capacity = self.capacity
        return {
            "kv_blocks": self.kv_blocks,
            "user_blocks": self.user_blocks,
            "block_size": capacity.block_size,
            "kv_tokens": capacity.kv_tokens,
            "weights_bytes": capacity.weights_bytes,
            "activation_bytes": capacity.activation_bytes,
        }


def kv_pool(experiment: Experiment) -> KvPool | None:
    """Return the pool of the experiment's deployment; None where its cost model names none.

    Its activations are those of the token budget: without a budget, of a step that holds the
    longest prompt beside the streams, or a chunk of it where the chunk size is set.

    Raises:
        ValueError: a model that does not fit, or streams whose contexts do not.
    """
    cost, limits, workload = experiment.cost, experiment.limits, experiment.workload
    if not isinstance(cost, RooflineCost):
        return None
    users = workload.streaming_users
    budget = limits.token_budget
    if budget is None:
        longest = max([request.prompt_tokens for request in workload.requests], default=1)
        if experiment.chunking and limits.chunk_tokens:
            longest = min(longest, limits.chunk_tokens)
        budget = max(1, longest + users)
    seats = limits.max_seqs or max(1, users + len(workload.requests))
    capacity = kv_capacity(
        cost.deployment,
        token_budget=budget,
        block_size=limits.block_size,
        max_seqs=min(seats, budget),
    )
    user_blocks = users * -(-workload.user_context_tokens // limits.block_size)
    if user_blocks >= capacity.kv_blocks:
        most = capacity.kv_blocks * limits.block_size
        raise ValueError(
            f"streaming_users: {users:,} with {workload.user_context_tokens:,} tokens of context "
            f"each are more than the KV pool of {most:,} tokens on {cost.formula()} holds "
            f"(allowed: fewer users, a shorter context, or more memory)"
        )
    return KvPool(
        capacity=capacity,
        user_blocks=user_blocks,
        kv_blocks=min(capacity.kv_blocks - user_blocks, MAX_TOKENS),  # more is never filled
    )


def in_its_memory(experiment: Experiment) -> Experiment:
    """Return the experiment with its machine's pool, or one block where nothing is left for it.

    For variants of an experiment that does run: a larger chunk's activations can leave no room,
    and then its prompt never runs.
    """
    try:
        return within_memory(experiment)
    except ValueError:
        return replace(experiment, limits=replace(experiment.limits, kv_blocks=1))


def within_memory(experiment: Experiment) -> Experiment:
    """Return the experiment with the KV pool that its deployment has.

    Left as it is where its pool is given, where its cost model names no deployment, and for
    the two workers of a disaggregated one, whose pools are not simulated.

    Raises:
        ValueError: a model that does not fit, or streams whose contexts do not.
    """
    if experiment.limits.kv_blocks is not None:
        return experiment
    pool = kv_pool(experiment)
    if pool is None or experiment.policy == DISAGGREGATED:
        return experiment
    return replace(experiment, limits=replace(experiment.limits, kv_blocks=pool.kv_blocks))


def beyond_positions(experiment: Experiment) -> str | None:
    """Return a sentence where a request is longer than the model was made for."""
    cost = experiment.cost
    if not isinstance(cost, RooflineCost):
        return None
    model = cost.deployment.model
    requests = experiment.workload.requests
    longest = max([r.prompt_tokens + r.output_tokens for r in requests], default=0)
    if longest <= model.max_positions:
        return None
    return (
        f"{model.title} was made for {model.max_positions:,} tokens, and a request here has "
        f"{longest:,}: an engine would refuse it"
    )
