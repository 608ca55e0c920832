"""What a token budget costs in KV memory, and what that costs a busy load."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from s11.catalog import Deployment, KvCapacity, kv_capacity
from s11.costs import RooflineCost
from s11.costs.host import HOST_OF_POLICY
from s11.experiment import Experiment
from s11.metrics import measure
from s11.plan import EngineLimits
from s11.simulator import simulate
from s11.tuning import BLOCK_SIZES, seats
from s11.workload import closed_loop_workload

REQUESTS_PER_CLIENT = 4
BUDGETS = tuple(2**power for power in range(9, 17))  # 512 to 65,536 tokens


@dataclass(frozen=True, slots=True, kw_only=True)
class BusyLoad:
    """Clients that each send their next request when their last one has ended."""

    clients: int
    prompt_tokens: int
    output_tokens: int


@dataclass(frozen=True, slots=True, kw_only=True)
class BudgetTried:
    """A token budget under a busy load: the KV pool that it leaves, and what that serves.

    same_pool_tokens_per_s: what it would serve with the pool of the smallest budget, so that
        the two differ by what the budget's own memory costs, and by nothing else.
    refused: why there is no throughput; "" where there is.
    """

    token_budget: int
    kv_tokens: int
    output_tokens_per_s: float | None
    same_pool_tokens_per_s: float | None
    preemptions: int
    refused: str = ""


def try_budget(
    machine: Deployment,
    load: BusyLoad,
    token_budget: int,
    *,
    smallest_budget: int,
    policy: str,
    max_steps: int,
) -> BudgetTried:
    """Return what a busy load gets under a token budget, with the KV pool that the budget leaves.

    Raises:
        ValueError: a model that does not fit even under the smallest budget.
    """
    block_size = BLOCK_SIZES[policy]

    def pool(budget: int) -> KvCapacity:
        max_seqs = seats(budget)
        return kv_capacity(machine, token_budget=budget, block_size=block_size, max_seqs=max_seqs)

    def served(kv_blocks: int) -> Served:
        return serve(machine, load, token_budget, policy=policy, kv_blocks=kv_blocks,
                     max_steps=max_steps)  # fmt: skip

    free = served(pool(smallest_budget).kv_blocks)
    try:
        capacity = pool(token_budget)
        own = served(capacity.kv_blocks)
        kv_tokens = capacity.kv_tokens
    except ValueError as error:
        own, kv_tokens = Served(None, 0, str(error)), 0
    return BudgetTried(
        token_budget=token_budget,
        kv_tokens=kv_tokens,
        output_tokens_per_s=own.output_tokens_per_s,
        same_pool_tokens_per_s=free.output_tokens_per_s,
        preemptions=own.preemptions,
        refused=own.refused,
    )


class Served(NamedTuple):
    """What a busy load got: output tokens over the time from the first step to the last."""

    output_tokens_per_s: float | None
    preemptions: int
    refused: str


def serve(
    machine: Deployment,
    load: BusyLoad,
    token_budget: int,
    *,
    policy: str,
    kv_blocks: int,
    max_steps: int,
) -> Served:
    """Return what a busy load gets under a token budget and with a KV pool."""
    in_chunks = policy == "sglang"  # its chunk size is the prompt tokens of a whole step
    experiment = Experiment(
        workload=closed_loop_workload(
            clients=load.clients,
            requests_per_client=REQUESTS_PER_CLIENT,
            prompt_tokens=load.prompt_tokens,
            output_tokens=load.output_tokens,
        ),
        policy=policy,
        limits=EngineLimits(
            token_budget=None if in_chunks else token_budget,
            chunk_tokens=token_budget if in_chunks else None,
            max_seqs=seats(token_budget),
            mixed=True,
            block_size=BLOCK_SIZES[policy],
            kv_blocks=kv_blocks,
        ),
        cost=RooflineCost(deployment=machine, engine=HOST_OF_POLICY.get(policy, "vllm")),
    )
    result = simulate(experiment, max_steps=max_steps)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    if result.stopped_at_max_steps:
        return Served(None, metrics.preemptions, f"cut at {max_steps:,} steps")
    if metrics.finished_requests < len(experiment.workload.requests):
        return Served(None, metrics.preemptions, "a request's KV never fits the pool")
    output_tokens = metrics.finished_requests * load.output_tokens
    return Served(1000 * output_tokens / metrics.makespan_ms, metrics.preemptions, "")
