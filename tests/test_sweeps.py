from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from s11 import (
    EngineLimits,
    Experiment,
    LinearCost,
    Result,
    chapter_scenario,
    largest_chunk_within_target,
    measure,
    simulate,
    sweep_chunk_sizes,
)
from s11.catalog import MODELS, Deployment
from s11.costs import FittedCost, RooflineCost
from s11.costs.breakdown import successive_ms
from s11.largest_chunk import longest_chunk_step_ms
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


FITTED = FittedCost(
    fixed_ms=1, prefill_ms_per_token=0.125, decode_ms_per_token=0, context_ms_per_token=0.001
)


def grains(experiment: Experiment, longest: int) -> int | None:
    """The largest multiple of 16 (or the whole prompt) that meets the target, one by one."""
    sizes = [longest, *range((longest - 1) // 16 * 16, 0, -16)]
    return next((size for size in sizes if meets(experiment, size)), None)


def test_what_is_attended_to_counts_in_the_largest_chunk() -> None:
    """Chunks of 160: the fifth starts at 640, 1 + 20 + 0.64 = 21.64; of 176: over 23."""
    run = load(request("a", 800), cost=FITTED, target_ms=22)
    assert largest_chunk_within_target(run) == 160 == grains(run, 800)
    assert largest_chunk_within_target(replace(run, itl_target_ms=101)) == 800  # 1 + 100
    assert largest_chunk_within_target(replace(run, itl_target_ms=21.63)) == 144


def test_below_one_grain_powers_of_two_are_tried() -> None:
    """Eight tokens: 1 + 1 + 0.08 (they start at 80 of 88) = 2.08 ms; sixteen: 3.06 ms."""
    run = load(request("a", 88), cost=FITTED, target_ms=2.1)
    assert largest_chunk_within_target(run) == 8
    assert largest_chunk_within_target(replace(run, itl_target_ms=1.0)) is None


def test_small_chunks_over_the_target_do_not_hide_larger_ones_within() -> None:
    """While 1,024 chunks of 16 pass, the contexts of 100 streams grow by 1,023 tokens each.

    The last of them: 1 + 0.16 + (16,368 + 102,300) / 10,000 = 13.03 ms. The last of 16 chunks
    of 1,024 tokens: 1 + 10.24 + (15,360 + 1,500) / 10,000 = 12.93 ms.
    """
    cost = replace(FITTED, prefill_ms_per_token=0.01, context_ms_per_token=1e-4)
    run = load(request("a", 16_384), users=100, cost=cost, target_ms=13)
    run = replace(run, workload=replace(run.workload, user_context_tokens=0))
    assert not meets(run, 16)
    assert meets(run, 1024)
    best = largest_chunk_within_target(run)
    assert best is not None
    assert 1024 <= best < 2048
    assert meets(run, best)


@settings(max_examples=40)
@given(
    prompt_tokens=st.integers(1, 600),
    users=st.integers(0, 30),
    context=st.integers(0, 500),
    chunk=st.integers(1, 700),
)
def test_the_longest_step_is_known_without_simulating(
    prompt_tokens: int, users: int, context: int, chunk: int
) -> None:
    run = load(request("a", prompt_tokens), users=users, lead_in=2, cost=FITTED)
    run = replace(run, workload=replace(run.workload, user_context_tokens=context))
    longest_ms = simulate(run.with_chunk_tokens(chunk)).steps.duration_ms.max()
    # Every decode or token more costs more: with this model the longest step has a full chunk
    # or the rest behind the last of them.
    assert longest_chunk_step_ms(run, chunk) == pytest.approx(longest_ms)


ROOFLINE = RooflineCost(deployment=Deployment(model=MODELS["llama-3.1-8b"], gpu="h100"))


@settings(max_examples=12, deadline=None)
@given(
    prompt_tokens=st.integers(1, 3000),
    prompts=st.integers(1, 3),
    users=st.integers(0, 64),
    policy=st.sampled_from(["chunked", "vllm_v1", "sglang", "tensorrt_llm"]),
    times=st.sampled_from([0.9, 1.05, 1.5, 3.0]),
)
def test_the_largest_chunk_on_a_machine_against_every_size(
    prompt_tokens: int, prompts: int, users: int, policy: str, times: float
) -> None:
    """Whatever the constants: targets are multiples of what a step of 16 tokens takes."""
    step_ms = ROOFLINE.step_ms(
        prefill_tokens=16, decode_tokens=users, decode_context_tokens=1024 * users
    )
    run = load(*(request(f"r{n}", prompt_tokens) for n in range(prompts)), users=users, lead_in=2)
    limits = EngineLimits(mixed=True)
    run = replace(run, policy=policy, limits=limits, cost=ROOFLINE, itl_target_ms=times * step_ms)
    best = largest_chunk_within_target(run)
    if best is not None:
        metrics = measure(simulate(run.with_chunk_tokens(best)), itl_target_ms=run.itl_target_ms)
        assert metrics.steps_over_target == 0
        assert (metrics.longest_stall_ms or 0) <= run.itl_target_ms
    # What is found is near what trying all finds: tiles and shared steps are not monotone.
    tried = [prompt_tokens, *range((prompt_tokens - 1) // 16 * 16, 0, -16)]
    within = [size for size in tried if prefills_within(run, size)]
    if within and max(within) >= 16:
        assert best is not None
        assert best >= 0.8 * max(within)


class Aligned(FittedCost):
    """Rows take 1/8 ms each, and half of that where chunk and decodes are a multiple of 128."""

    line = None  # type: ignore[assignment]

    def step_ms(self, *, prefill_tokens: int, decode_tokens: int, **more: Any) -> float:
        rows = prefill_tokens + decode_tokens
        return rows / 16 if rows % 128 == 0 else rows / 8

    def successive_ms(self, **work: Any) -> Iterator[float]:
        return successive_ms(self, **work)


@pytest.mark.parametrize(
    ("policy", "users", "expected"),
    [
        ("vllm_v1", 24, 360),  # 384 rows, 24 ms; of multiples of 16, 160 would be the largest
        ("vllm_v1", 32, 352),  # a multiple of 16 by itself too
        ("sglang", 24, 384),  # its size counts the decodes
    ],
)
def test_the_largest_chunk_is_looked_for_with_the_decodes_that_ride_along(
    policy: str, users: int, expected: int
) -> None:
    cost = Aligned(fixed_ms=1, prefill_ms_per_token=1, decode_ms_per_token=1)
    run = load(request("a", 2 * (384 - users)), users=users, lead_in=1, cost=cost, target_ms=24)
    run = replace(run, policy=policy, limits=EngineLimits(mixed=True, block_size=1))
    assert prefills_within(run, expected)
    assert largest_chunk_within_target(run) == expected


def prefills_within(run: Experiment, size: int) -> bool:
    result = simulate(run.with_chunk_tokens(size))
    metrics = measure(result, itl_target_ms=run.itl_target_ms)
    stall_ms = metrics.longest_stall_ms or 0.0
    served = bool(result.steps.prefill_tokens.any())
    return served and not metrics.steps_over_target and stall_ms <= run.itl_target_ms


def test_a_machine_is_asked_by_few_simulations(monkeypatch: pytest.MonkeyPatch) -> None:
    """The simulator page asks at every change: a long prompt must not cost a long search."""
    asked = []

    def counted(experiment: Experiment, **more: Any) -> Result:
        asked.append(experiment)
        return simulate(experiment, **more)

    monkeypatch.setattr("s11.largest_chunk.simulate", counted)
    run = Experiment(workload=chapter_scenario(prompt_tokens=65_536), cost=ROOFLINE)
    assert largest_chunk_within_target(run) is not None
    assert len(asked) <= 10
