"""The KV pool of an experiment's own machine."""

import re
from dataclasses import replace

import pytest

from s11 import Experiment, LinearCost, simulate
from s11.catalog import MODELS, Deployment
from s11.costs import RooflineCost
from s11.kv_pool import kv_pool, within_memory
from s11.plan import EngineLimits
from s11.workload import chapter_scenario, closed_loop_workload

LLAMA = RooflineCost(deployment=Deployment(model=MODELS["llama-3.1-8b"], gpu="l4"))


def test_the_pool_is_what_is_left_beside_the_streams() -> None:
    """Each of 24 streams holds 1,024 tokens: 64 blocks of 16, 1,536 together."""
    pool = kv_pool(Experiment(cost=LLAMA))
    assert pool is not None
    assert pool.user_blocks == 24 * 64
    assert pool.kv_blocks == pool.capacity.kv_blocks - 1536
    # 2 x 32 layers x 8 KV heads x 128 x 2 bytes; 8.03e9 weights of 2 bytes.
    assert pool.capacity.kv_bytes_per_token == 131_072
    assert pool.capacity.weights_bytes == pytest.approx(16.06e9, rel=1e-3)


def test_a_context_that_is_no_whole_block_takes_one_more() -> None:
    workload = replace(chapter_scenario(streaming_users=3), user_context_tokens=17)
    pool = kv_pool(Experiment(cost=LLAMA, workload=workload))
    assert pool is not None
    assert pool.user_blocks == 3 * 2


def test_a_larger_budget_leaves_fewer_blocks() -> None:
    def blocks(budget: int | None, chunk: int | None = 1024) -> int:
        limits = EngineLimits(token_budget=budget, chunk_tokens=chunk)
        pool = kv_pool(Experiment(cost=LLAMA, limits=limits))
        assert pool is not None
        return pool.kv_blocks

    assert blocks(12_288) < blocks(6_144)
    # Without a budget, a step holds the prompt beside the 24 streams, or a chunk of it.
    assert blocks(None, None) == blocks(8192 + 24)
    assert blocks(None, 1024) == blocks(1024 + 24)


def test_costs_that_name_no_machine_have_no_pool() -> None:
    experiment = Experiment(cost=LinearCost())
    assert kv_pool(experiment) is None
    assert within_memory(experiment) is experiment


def test_a_pool_that_is_given_stays() -> None:
    experiment = Experiment(cost=LLAMA, limits=EngineLimits(kv_blocks=700))
    assert within_memory(experiment) is experiment


def test_two_workers_pools_are_not_simulated() -> None:
    experiment = Experiment(cost=LLAMA, policy="disaggregated")
    assert within_memory(experiment) is experiment


def test_streams_that_do_not_fit_are_refused() -> None:
    workload = replace(chapter_scenario(streaming_users=1000), user_context_tokens=4096)
    with pytest.raises(
        ValueError, match=re.escape("streaming_users: 1,000 with 4,096 tokens of context each")
    ):
        within_memory(Experiment(cost=LLAMA, workload=workload))


def test_a_load_larger_than_the_memory_preempts_or_waits() -> None:
    """40 clients of 1,300 tokens are 52,000 at full length: more than an L4 holds of them."""
    workload = closed_loop_workload(
        clients=40, requests_per_client=2, prompt_tokens=1000, output_tokens=300
    )
    limits = EngineLimits(token_budget=2048, max_seqs=256)
    experiment = within_memory(
        Experiment(cost=LLAMA, workload=workload, limits=limits, policy="vllm_v1")
    )
    assert experiment.limits.kv_blocks is not None
    assert experiment.limits.kv_blocks * 16 < 52_000
    steps = simulate(experiment).steps
    assert steps.kv_blocks.max() <= experiment.limits.kv_blocks
    assert steps.decode_tokens.max() < 40
