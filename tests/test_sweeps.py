from dataclasses import replace

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s11 import (
    EngineLimits,
    Experiment,
    LinearCost,
    chapter_scenario,
    largest_chunk_within_target,
    measure,
    simulate,
    sweep_chunk_sizes,
)
from s11.sweeps import SweepPoint, chunk_sizes, knee
from tests.loads import load, request


@pytest.mark.parametrize(
    ("smallest", "largest", "sizes"),
    [
        (128, 1000, (128, 256, 512, 1000)),
        (128, 1024, (128, 256, 512, 1024)),
        (5, 5, (5,)),
        (1, 2, (1, 2)),
    ],
)
def test_sizes_double_up_to_the_largest(
    smallest: int, largest: int, sizes: tuple[int, ...]
) -> None:
    assert chunk_sizes(smallest=smallest, largest=largest) == sizes


@pytest.mark.parametrize(
    ("smallest", "largest", "refusal"),
    [
        (0, 5, "smallest chunk: 0 is not a whole number from 1 to 5"),
        (6, 5, "smallest chunk: 6 is not a whole number from 1 to 5"),
        (1, 0, "largest chunk: 0 is not a whole number from 1 to 16,777,216"),
    ],
)
def test_sizes_out_of_range_are_refused(smallest: int, largest: int, refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{refusal}$"):
        chunk_sizes(smallest=smallest, largest=largest)


def test_a_point_for_each_size_in_order_and_progress_after_each() -> None:
    """4 + 0.018 c + 1.2 a step: 23.632 ms at 1,024 and 152.656 ms at 8,192 tokens."""
    told: list[tuple[int, int]] = []
    points = sweep_chunk_sizes(
        Experiment().chunking_off(), [1024, 8192], progress=lambda *done: told.append(done)
    )
    assert told == [(1, 2), (2, 2)]
    assert [p.chunk_tokens for p in points] == [1024, 8192]
    assert [p.step_count for p in points] == [13, 6]
    assert [p.steps_over_target for p in points] == [0, 1]
    for point, stall_ms, ttft_ms in zip(points, (23.632, 152.656), (189.056, 152.656), strict=True):
        assert point.longest_stall_ms == pytest.approx(stall_ms, abs=1e-9)
        assert point.itl_p99_ms == pytest.approx(stall_ms, abs=1e-9)
        assert point.ttft_ms == pytest.approx(ttft_ms, abs=1e-9)
        assert point.prefill_tokens_per_s == pytest.approx(8192 / (ttft_ms / 1000))


@pytest.mark.parametrize(("fixed_ms", "balanced"), [(4, 256), (2, 128), (16, 1024), (0.015625, 1)])
def test_the_knee_of_one_prompt_lies_where_a_chunks_work_equals_the_rest(
    fixed_ms: float, balanced: int
) -> None:
    """Stall a + bc, TTFT (a + bc) n / c; the product is least at c = a / b; b = 1/64."""
    cost = LinearCost(fixed_ms=fixed_ms, prefill_ms_per_token=1 / 64, decode_ms_per_token=0)
    run = load(request("a", 4096), users=1, cost=cost)
    best = knee(sweep_chunk_sizes(run, chunk_sizes(smallest=1, largest=4096)))
    assert best is not None
    assert best.chunk_tokens == balanced


def point(chunk_tokens: int, stall_ms: float | None, ttft_ms: float | None) -> SweepPoint:
    return SweepPoint(
        chunk_tokens=chunk_tokens,
        itl_p99_ms=stall_ms,
        longest_stall_ms=stall_ms,
        ttft_ms=ttft_ms,
        prefill_tokens_per_s=None,
        steps_over_target=0,
        step_count=1,
    )


def test_the_knee_has_the_least_product_among_what_is_known() -> None:
    points = [point(1, 1, None), point(2, None, 1), point(4, 3, 5), point(8, 2, 7), point(16, 9, 2)]
    assert knee(points) == points[3]
    assert knee(points[:2]) is None
    assert knee([]) is None


def meets(experiment: Experiment, chunk_tokens: int) -> bool:
    steps = simulate(experiment.with_chunk_tokens(chunk_tokens)).steps
    return bool(max(steps.duration_ms, default=0) <= experiment.itl_target_ms)


def brute_force(experiment: Experiment, longest: int) -> int | None:
    return max((c for c in range(1, longest + 1) if meets(experiment, c)), default=None)


@settings(max_examples=60)
@given(
    prompt_tokens=st.integers(1, 300),
    users=st.integers(1, 20),
    fixed_ms=st.integers(1, 40).map(lambda n: n / 4),
    per_prefill_ms=st.integers(1, 16).map(lambda n: n / 16),
    target_ms=st.integers(1, 120).map(lambda n: n / 4),
)
@example(prompt_tokens=300, users=4, fixed_ms=1.0, per_prefill_ms=0.25, target_ms=27.0)
def test_the_largest_chunk_is_the_closed_form(
    prompt_tokens: int, users: int, fixed_ms: float, per_prefill_ms: float, target_ms: float
) -> None:
    """floor((target - fixed - users * decode) / prefill), within 1 and the prompt."""
    cost = LinearCost(
        fixed_ms=fixed_ms, prefill_ms_per_token=per_prefill_ms, decode_ms_per_token=0.25
    )
    run = load(request("a", prompt_tokens), users=users, lead_in=1, cost=cost, target_ms=target_ms)
    closed = int((target_ms - fixed_ms - users * 0.25) // per_prefill_ms)
    expected = min(closed, prompt_tokens) if closed >= 1 else None
    assert largest_chunk_within_target(run) == expected


def test_the_largest_chunk_of_the_chapter() -> None:
    """(50 - 4 - 1.2) / 0.018 = 2488.9; a target of 23.632 ms is met by exactly 1,024 tokens."""
    assert largest_chunk_within_target(Experiment()) == 2488
    assert largest_chunk_within_target(Experiment(itl_target_ms=23.632)) == 1024
    assert largest_chunk_within_target(Experiment(itl_target_ms=152.656)) == 8192
    assert largest_chunk_within_target(Experiment(itl_target_ms=5.218)) == 1
    assert largest_chunk_within_target(Experiment(itl_target_ms=5.217)) is None
    assert largest_chunk_within_target(Experiment().chunking_off()) == 2488


def test_where_nothing_is_prefilled_there_is_no_largest_chunk() -> None:
    assert largest_chunk_within_target(load(users=3, tail=2)) is None


def test_a_budget_that_keeps_every_step_short_lets_any_chunk_pass() -> None:
    run = Experiment(workload=chapter_scenario(prompt_tokens=900))
    limited = replace(run.limits, token_budget=100)
    short = replace(run, limits=limited, itl_target_ms=6.6)  # 4 + 76 * 0.018 + 1.2 = 6.568
    assert largest_chunk_within_target(short) == 900


def test_prompts_that_share_their_steps_share_the_target() -> None:
    """Three at once on 1 + 0.25 a token: 1 + 3 c / 4 <= 10 holds up to c = 12."""
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=0.25, decode_ms_per_token=0)
    run = load(*(request(n, 40) for n in "abc"), cost=cost, target_ms=10)
    assert largest_chunk_within_target(run) == 12 == brute_force(run, 40)


def test_the_largest_chunk_of_prompts_that_only_some_sizes_bring_together() -> None:
    """Whole, a ends at 4 + 18 = 22 ms, between b (21.9) and c (22.1): each runs alone.

    In chunks of 625, a ends at 15.25 + 10.75 = 26 ms, and b and c share a step of 1,250 tokens:
    26.5 ms, over the target. d alone allows (25 - 4) / 0.018 = 1166 tokens.
    """
    run = load(
        request("a", 1000),
        request("b", 1000, arrival_ms=21.9),
        request("c", 1000, arrival_ms=22.1),
        request("d", 5000, arrival_ms=1000),
        cost=LinearCost(),
        target_ms=25,
    )
    assert meets(run, 1166)
    assert not meets(run, 1167)
    assert not meets(run, 625)
    assert largest_chunk_within_target(run) == 1166


def test_a_run_that_was_cut_is_not_known_to_meet_the_target() -> None:
    """b's 60,000 tokens come after the cut; in one step they take over 1,000 ms."""
    run = load(
        request("a", 100, output_tokens=1000), request("b", 60_000, arrival_ms=500), users=24
    )
    best = largest_chunk_within_target(run, max_steps=50)
    assert best is None or best <= 2488


@pytest.mark.parametrize(
    ("policy", "mixed", "prompt", "target_ms"),
    [
        ("sglang", True, 100, 6.0),
        ("sglang", True, 100, 5.5),
        ("sglang", False, 100, 200.0),
        ("sglang", False, 100, 5.0),
        ("tensorrt_llm", False, 40, 5.5),
        ("tensorrt_llm", False, 300, 8.0),
        ("vllm_v1", False, 100, 6.0),
    ],
)
def test_the_largest_chunk_of_engines_that_cut_to_blocks(
    policy: str, mixed: bool, prompt: int, target_ms: float
) -> None:
    """Against every size tried one by one."""
    experiment = Experiment(
        workload=chapter_scenario(prompt_tokens=prompt),
        policy=policy,
        limits=EngineLimits(mixed=mixed),
        itl_target_ms=target_ms,
    )

    def meets(size: int) -> bool:
        result = simulate(experiment.with_chunk_tokens(size))
        metrics = measure(result, itl_target_ms=target_ms)
        stall_ms = metrics.longest_stall_ms or 0.0
        served = bool(result.steps.prefill_tokens.any())
        return served and metrics.steps_over_target == 0 and stall_ms <= target_ms

    expected = max((size for size in range(1, prompt + 1) if meets(size)), default=None)
    assert largest_chunk_within_target(experiment) == expected
