"""The KV pool of an experiment's own machine."""

import re
from dataclasses import replace

import pytest

from s11 import Experiment, LinearCost, simulate
from s11.catalog import MODELS, Deployment
from s11.costs import RooflineCost
from s11.kv_pool import beyond_positions, in_its_memory, kv_pool, within_memory
from s11.largest_chunk import largest_chunk_within_target
from s11.plan import EngineLimits
from s11.sweeps import figures_of, sweep_chunk_sizes
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


SMALL = replace(
    Experiment(cost=LLAMA),
    workload=replace(chapter_scenario(prompt_tokens=32_768, streaming_users=2)),
)


def test_every_variant_of_an_experiment_has_its_own_pool() -> None:
    """On an L4 a whole prompt of 32,768 tokens leaves too few blocks for its own KV."""
    whole = SMALL.chunking_off()
    chunked, unchunked = kv_pool(SMALL), kv_pool(whole)
    assert chunked is not None
    assert unchunked is not None
    assert chunked.kv_blocks * 16 > 32_768 > unchunked.kv_blocks * 16
    assert figures_of(SMALL).ttft_ms is not None
    assert figures_of(whole).ttft_ms is None


def test_the_largest_chunk_runs_in_the_memory_that_it_leaves() -> None:
    best = largest_chunk_within_target(replace(SMALL, itl_target_ms=10_000))
    assert best is not None
    assert figures_of(SMALL.with_chunk_tokens(best)).ttft_ms is not None
    assert best < 32_768


def test_a_sweep_has_no_ttft_where_memory_ends() -> None:
    points = sweep_chunk_sizes(SMALL, [1024, 32_768])
    assert points[0].ttft_ms is not None
    assert points[1].ttft_ms is None


def test_a_variant_whose_activations_take_all_memory_never_runs() -> None:
    long = replace(SMALL, workload=chapter_scenario(prompt_tokens=131_072, streaming_users=1))
    with pytest.raises(ValueError, match="does not fit 1 × L4"):
        within_memory(long.chunking_off())
    assert in_its_memory(long.chunking_off()).limits.kv_blocks == 1
    assert figures_of(long.chunking_off()).ttft_ms is None


def test_more_blocks_than_can_ever_be_filled_are_no_error() -> None:
    model = replace(MODELS["phi-2"], layers=1, hidden=64, ffn=64, heads=1, kv_heads=1, head_dim=2)
    cost = RooflineCost(deployment=Deployment(model=model, gpu="h200"))
    assert within_memory(Experiment(cost=cost)).limits.kv_blocks == 16_777_216


def test_requests_longer_than_the_model_was_made_for_are_told() -> None:
    cost = RooflineCost(deployment=Deployment(model=MODELS["phi-2"], gpu="h100"))
    short = Experiment(cost=cost, workload=chapter_scenario(prompt_tokens=2047))
    assert beyond_positions(short) is None
    told = beyond_positions(replace(short, workload=chapter_scenario(prompt_tokens=2048)))
    assert told is not None
    assert told.startswith("Phi-2 was made for 2,048 tokens, and a request here has 2,049")
    assert beyond_positions(Experiment()) is None


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
