"""What to set: sizes, what a chunk's step spends, and what does not run; by properties alone."""

from dataclasses import replace

import numpy as np
import pytest

from s11 import simulate
from s11.catalog import MODELS, Deployment, kv_capacity
from s11.kv_pool import within_memory
from s11.piggyback import linear_times, turning_tokens
from s11.sweeps import SweepPoint, sweep_point
from s11.tuning import (
    ChunkStep,
    balanced_knee,
    chunk_step,
    largest_that_fits,
    seats,
    stands_still,
    try_chunk,
    tuned_experiment,
    tuned_sizes,
)

H100 = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")
STEPS = 20_000


def asked(machine=H100, **changes):
    values = {
        "policy": "vllm_v1",
        "prompt_tokens": 4096,
        "streaming_users": 24,
        "user_context_tokens": 1024,
        "itl_target_ms": 50.0,
    }
    return tuned_experiment(machine, **{**values, **changes})


@pytest.mark.parametrize(
    ("changes", "halves", "sizes"),
    [
        ({"prompt_tokens": 512}, True, (64, 96, 128, 192, 256, 384, 512)),
        ({"prompt_tokens": 512}, False, (64, 128, 256, 512)),
        ({"prompt_tokens": 300}, True, (64, 96, 128, 192, 256, 300)),
        ({"prompt_tokens": 64}, True, (64,)),
        # SGLang's size counts the 24 decodes: 536 holds the prompt, 64 leaves 40 for it.
        ({"prompt_tokens": 512, "policy": "sglang"}, False, (64, 128, 256, 512, 536)),
        ({"prompt_tokens": 512, "policy": "sglang", "mixed": False}, False, (64, 128, 256, 512)),
        (
            {"prompt_tokens": 64, "policy": "sglang", "streaming_users": 100},
            True,
            (128, 164),
        ),
    ],
)
def test_sizes_go_from_64_to_the_prompt(changes, halves, sizes):
    assert tuned_sizes(asked(**changes), halves=halves) == sizes


@pytest.mark.parametrize("policy", ["vllm_v1", "tensorrt_llm", "chunked"])
def test_a_cap_is_the_same_schedule_as_a_budget_with_a_token_for_each_decode(policy):
    run = asked(policy=policy)
    capped = simulate(run.with_chunk_tokens(512))
    limits = replace(run.limits, chunk_tokens=None, token_budget=512 + 24)
    budgeted = simulate(replace(run, limits=limits))
    assert capped.steps.prefill_tokens.tolist() == budgeted.steps.prefill_tokens.tolist()
    assert capped.steps.duration_ms.tolist() == budgeted.steps.duration_ms.tolist()


def test_each_size_runs_with_the_pool_that_it_leaves():
    tried = try_chunk(asked(), 1024, max_steps=STEPS)
    assert tried.refused == ""
    assert tried.point == sweep_point(within_memory(asked().with_chunk_tokens(1024)), 1024)
    # A budget of 1,048 tokens, 256 seats and 24 contexts of 1,024 tokens.
    capacity = kv_capacity(H100, token_budget=1024 + 24, block_size=16, max_seqs=256)
    pool = within_memory(asked().with_chunk_tokens(1024)).limits.kv_blocks
    assert pool == capacity.kv_blocks - 24 * 64


def test_what_does_not_run_says_why():
    too_big = replace(H100, model=MODELS["llama-3.1-70b"])
    assert "does not fit 1 × H100" in try_chunk(asked(too_big), 512, max_steps=STEPS).refused
    with pytest.raises(ValueError, match="does not fit"):
        largest_that_fits(asked(too_big), max_steps=STEPS)
    long = asked(prompt_tokens=500_000)
    told = try_chunk(long, 8192, max_steps=STEPS).refused
    assert told.startswith("the prompt needs 500,000 KV tokens, and beside the users' contexts")
    assert largest_that_fits(long, max_steps=STEPS) is None
    assert try_chunk(asked(), 64, max_steps=20).refused == "cut at 20 steps"


def stall_ms(run, chunk) -> float:
    point = try_chunk(run, chunk, max_steps=STEPS).point
    assert point is not None
    assert point.longest_stall_ms is not None
    return point.longest_stall_ms


def test_the_largest_that_fits_meets_the_target():
    run = asked()
    step_ms = stall_ms(run, 256)
    run = replace(run, itl_target_ms=step_ms)
    best = largest_that_fits(run, max_steps=STEPS)
    assert best is not None
    assert best >= 256
    assert stall_ms(run, best) <= step_ms


@pytest.mark.parametrize(
    ("compute_ms", "attention_ms", "bound"),
    [(4.9, 1.0, "memory"), (5.0, 1.0, "arithmetic"), (4.9, 9.5, "attention")],
)
def test_what_bounds_a_step(compute_ms, attention_ms, bound):
    """The memory takes 5 ms: whatever takes longer bounds the products, as in Piggybacking."""
    step = ChunkStep(
        chunk_tokens=256,
        rows=280,
        start_token=0,
        total_ms=20.0,
        without_chunk_ms=8.0,
        compute_ms=compute_ms,
        memory_ms=5.0,
        products_ms=9.0,
        prefill_attention_ms=attention_ms,
    )
    assert step.bound == bound


@pytest.mark.parametrize("chunk", [64, 1024, 4096])
def test_a_chunks_step_is_the_one_that_is_simulated(chunk):
    step = chunk_step(asked(), chunk)
    steps = simulate(asked().with_chunk_tokens(chunk)).steps
    assert step.total_ms == pytest.approx(steps.duration_ms.max())
    assert step.start_token == 4096 - chunk
    assert step.rows == chunk + 24
    assert 0 < max(step.compute_ms, step.memory_ms) < step.products_ms < step.total_ms
    assert step.without_chunk_ms == pytest.approx(steps.duration_ms[0], rel=1e-3)


@pytest.mark.parametrize("tensor_parallel", [1, 4])
def test_a_chunk_is_bound_where_piggybacking_says_that_steps_turn(tensor_parallel):
    machine = replace(H100, tensor_parallel=tensor_parallel)
    turn = turning_tokens(machine)
    assert turn is not None
    below, at = (chunk_step(asked(machine), turn - 24 - more) for more in (1, 0))
    assert (below.rows, at.rows) == (turn - 1, turn)
    assert (below.bound, at.bound) == ("memory", "arithmetic")
    products = linear_times(machine, at.rows + np.zeros(1, int))
    assert (at.compute_ms, at.memory_ms) == (products.compute_ms[0], products.memory_ms[0])


def points(*stalls_ms):
    """Sizes of 1, 2, 4, … tokens with TTFTs of 1,000, 500, 250, … ms."""
    return [
        SweepPoint(
            chunk_tokens=2**place,
            itl_p99_ms=stall,
            longest_stall_ms=stall,
            ttft_ms=1000 / 2**place,
            prefill_tokens_per_s=None,
            steps_over_target=0,
            step_count=1,
        )
        for place, stall in enumerate(stalls_ms)
    ]


def test_a_knee_is_a_balance_or_none():
    # Stall x TTFT in thousands: 4, 2.5, 2.25, 3.
    balance = points(4, 5, 9, 24)
    assert balanced_knee(balance, waiting=False) == balance[2]
    assert balanced_knee(balance, waiting=True) is None
    assert balanced_knee(balance[:3], waiting=False) is None  # it falls to the end
    assert balanced_knee(points(9, 9, 9, 24), waiting=False) is None  # smaller stalls no less
    assert balanced_knee(points(4, 9, 24), waiting=False) is not None  # there is no smaller
    assert balanced_knee([], waiting=False) is None


def test_only_sglang_without_mixed_chunks_lets_the_decodes_stand_still():
    assert stands_still(asked(policy="sglang", mixed=False))
    assert not stands_still(asked(policy="sglang"))
    assert not stands_still(asked(mixed=False))


def test_the_largest_of_tensorrt_llm_is_the_chunk_that_happens():
    run = asked(policy="tensorrt_llm")
    target_ms = stall_ms(run, 512 + 16)
    run = replace(run, itl_target_ms=target_ms)
    best = largest_that_fits(run, max_steps=STEPS)
    assert best is not None
    assert best >= 512
    assert best % 32 == 0
    assert int(simulate(run.with_chunk_tokens(best)).steps.prefill_tokens.max()) == best
    whole = replace(asked(policy="tensorrt_llm", prompt_tokens=100), itl_target_ms=1000.0)
    assert largest_that_fits(whole, max_steps=STEPS) == 100


def test_a_budget_must_cover_the_seats():
    assert seats(64) == 64
    assert seats(8192) == 256
