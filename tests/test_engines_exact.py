"""What the schedulers must do to the token, from papers and arithmetic.

Times are those of the one-millisecond clock where nothing else is said.
"""

import random
from dataclasses import replace

import numpy as np
import pytest

from s11 import Experiment, LinearCost, measure, simulate
from s11.plan import HandOver
from s11.policies import POLICIES
from s11.presets import ABOUT, READS, TITLES
from s11.results import Result
from tests.loads import load, random_experiment, request, schedule, times_ms


def steps(experiment: Experiment) -> list[str]:
    """A run's steps as Figure 7 writes them: Ad a decode of A, Cp a prompt slice of C."""
    result = simulate(experiment)
    prefill = {
        (int(step), result.requests.request_id[row])
        for step, row in zip(result.slices.step, result.slices.request, strict=True)
    }
    return [
        "".join(f"{name}{'p' if (step, name) in prefill else 'd'}" for name in sorted(batch))
        for step, batch in enumerate(result.schedule())
    ]


def figure_7(policy: str, *, a_decodes: int, b_decodes: int, budget: int | None) -> list[str]:
    """Sarathi-Serve, OSDI 2024, Figure 7: A and B decode; C and D arrive after a step.

    A and B get there by prompts of one token in the first step (in the first two where a step
    holds one prompt), which the figure does not show.
    """
    shown = 2 if policy == "prefill_first" and budget == 8 else 1
    size = 8 if shown == 2 else 1
    made = steps(
        load(
            request("A", size, output_tokens=1 + a_decodes),
            request("B", size, output_tokens=1 + b_decodes),
            request("C", 8, output_tokens=9, arrival_ms=shown + 0.5),
            request("D", 8, output_tokens=9, arrival_ms=shown + 0.5),
            policy=policy,
            budget=budget,
        )
    )
    return made[shown : shown + 4]


def test_figure_7_prefill_first() -> None:
    assert figure_7("prefill_first", a_decodes=9, b_decodes=9, budget=8) == [
        "AdBd",
        "Cp",
        "Dp",
        "AdBdCdDd",
    ]


def test_figure_7_orca() -> None:
    made = figure_7("whole_prompt", a_decodes=9, b_decodes=9, budget=None)
    assert made[:3] == ["AdBd", "AdBdCpDp", "AdBdCdDd"]


def test_figure_7_request_level() -> None:
    """A wants two tokens and B four, while C and D wait."""
    made = figure_7("request_level", a_decodes=2, b_decodes=4, budget=None)
    assert made == ["AdBd", "AdBd", "Bd", "Bd"]


def test_figure_7_chunked() -> None:
    """Two decodes and half a prompt of eight tokens fill the budget of six; A wants three."""
    made = figure_7("chunked", a_decodes=3, b_decodes=9, budget=6)
    assert made == ["AdBd", "AdBdCp", "AdBdCp", "BdCdDp"]


@pytest.mark.parametrize(("mixed", "stall_ms", "chunks"), [(False, 79_650, 58), (True, 1_350, 59)])
def test_a_prompt_of_58_chunks_freezes_its_victim_unless_decodes_are_mixed_in(
    mixed: bool, stall_ms: float, chunks: int
) -> None:
    """200,019 tokens in chunks of 3,456 are 58; at 1.35 s a step 78.3 s, and the victim's own
    decode step of 1.35 s comes after. Mixed, a decode leaves 3,455 tokens, 215 pages of 16: 59."""
    result = simulate(
        load(
            request("victim", 1, output_tokens=100),
            request("long", 200_019, arrival_ms=1_350),
            policy="sglang",
            chunk=3_456,
            mixed=mixed,
            cost=LinearCost(fixed_ms=1_350, prefill_ms_per_token=0, decode_ms_per_token=0),
        )
    )
    long_slices = result.slices.request == 1
    assert np.count_nonzero(long_slices) == chunks
    figures = measure(result, itl_target_ms=50)
    assert figures.longest_stall_ms == pytest.approx(stall_ms)
    if not mixed:
        waited_ms = stall_ms - 1_350
        assert waited_ms == pytest.approx(78_300)
        assert figures.ttft_ms == pytest.approx(78_300)


def monopoly(chunk: int | None) -> Result:
    """0.1 ms a prompt token: a step of 2,048 takes 204.8 ms. `short` comes in the eleventh."""
    return simulate(
        load(
            request("long", 325_000),
            request("short", 100, arrival_ms=2_048.5),
            policy="vllm_v1",
            budget=2_048,
            chunk=chunk,
            cost=LinearCost(fixed_ms=0, prefill_ms_per_token=0.1, decode_ms_per_token=0.001),
        )
    )


def test_without_a_chunk_cap_a_long_prompt_has_the_whole_budget() -> None:
    """158 full steps and 1,416 tokens: the short prompt joins that last one."""
    result = monopoly(None)
    assert np.count_nonzero(result.slices.request == 0) == 159
    assert times_ms(result, "short")[0] == pytest.approx(32_510)  # (325,000 + 100) x 0.1 ms
    assert times_ms(result, "long") == times_ms(result, "short")


def test_with_a_cap_of_half_the_budget_the_short_prompt_starts_in_the_next_step() -> None:
    """318 chunks of 102.4 ms, twice as many, half as long. Its step is the next to begin,
    at 21 x 102.4 ms, and lasts 112.4 ms."""
    result = monopoly(1_024)
    assert np.count_nonzero(result.slices.request == 0) == 318
    assert result.steps.duration_ms[:20] == pytest.approx(102.4)
    assert times_ms(result, "short")[0] == pytest.approx(21 * 102.4 + 112.4)


@pytest.mark.parametrize(
    ("cap", "first_tokens_s"),
    [(None, [5.35, 10.7, 16.05, 21.4]), (512, [21.4, 21.4, 21.4, 21.4])],
)
def test_four_prompts_that_share_a_budget_all_end_last(
    cap: int | None, first_tokens_s: list[float]
) -> None:
    """Four of 8,192 tokens are sixteen steps of 2,048; one by one the mean TTFT is 37.5% less."""
    result = simulate(
        load(
            *(request(name, 8_192) for name in "abcd"),
            policy="vllm_v1",
            budget=2_048,
            chunk=cap,
            cost=LinearCost(fixed_ms=21_400 / 16, prefill_ms_per_token=0, decode_ms_per_token=0),
        )
    )
    assert (result.requests.first_token_ms / 1000).tolist() == pytest.approx(first_tokens_s)
    figures = measure(result, itl_target_ms=50)
    assert figures.prefill_tokens_per_s == pytest.approx(4 * 8_192 / 21.4)
    mean_s = float(np.mean(result.requests.first_token_ms)) / 1000
    assert mean_s == pytest.approx(21.4 * (0.625 if cap is None else 1))


@pytest.mark.parametrize("policy", ["chunked", "vllm_v1", "tensorrt_llm"])
def test_prompts_behind_a_prefill_interval(policy: str) -> None:
    """Eight prompts of 6,000 in a budget of 8,192, chunking off, are one a step of 2.6 s. One
    step in eight may be such; decodes take 0.25 s: 8 (2.6 + 7 x 0.25) s = 34.8 s. The first
    prompt goes first here, without the seven decodes ahead of it: 33.05 s."""
    per_token = (2_600 - 250) / 6_000
    result = simulate(
        load(
            *(request(f"p{n}", 6_000, output_tokens=100) for n in range(8)),
            users=1,
            policy=policy,
            budget=8_192,
            chunking=False,
            prefill_interval=8,
            cost=LinearCost(fixed_ms=250, prefill_ms_per_token=per_token, decode_ms_per_token=0),
        )
    )
    last_s = float(result.requests.first_token_ms.max()) / 1000
    assert last_s == pytest.approx(8 * (2.6 + 7 * 0.25) - 7 * 0.25)
    carrying = np.flatnonzero(result.steps.prefill_tokens)
    assert carrying.tolist() == [0, 8, 16, 24, 32, 40, 48, 56]


def test_the_wait_behind_an_interval_is_bounded_whatever_came_before() -> None:
    """TTFT <= C ((N - 1) D + P) for a prompt of C chunks, once a step is free to begin it."""
    draw = random.Random(6)
    for _ in range(200):
        every, chunks = draw.randint(1, 9), draw.randint(1, 12)
        cost = LinearCost(
            fixed_ms=draw.choice((1, 3)), prefill_ms_per_token=0.25, decode_ms_per_token=0.5
        )
        result = simulate(
            load(
                request("early", 4),
                request("p", 4 * chunks, arrival_ms=draw.randint(0, 40)),
                users=2,
                chunk=4,
                prefill_interval=every,
                policy=draw.choice(("chunked", "vllm_v1")),
                cost=cost,
            )
        )
        decode_ms = cost.step_ms(prefill_tokens=0, decode_tokens=2)
        prefill_ms = cost.step_ms(prefill_tokens=8, decode_tokens=2)
        wait_ms = result.requests.first_token_ms[1] - result.requests.arrival_ms[1]
        # A step under way when it arrives is not its own.
        assert wait_ms <= chunks * ((every - 1) * decode_ms + prefill_ms) + prefill_ms


def test_where_nobody_decodes_no_interval_holds_a_prompt_back() -> None:
    assert schedule(load(request("a", 9), chunk=3, prefill_interval=5)) == [{"a": 3}] * 3


def same_steps(one: Result, other: Result) -> bool:
    """Whether two runs have the same tables of steps and slices, to the last bit."""
    return all(
        np.array_equal(mine, its)
        for table in ("steps", "slices")
        for mine, its in zip(
            getattr(one, table).columns().values(),
            getattr(other, table).columns().values(),
            strict=True,
        )
    )


def test_first_come_and_with_memory_to_spare_chunked_and_vllm_v1_are_the_same() -> None:
    """Whoever runs ahead of a decode has what it had when that was admitted: so no decode is
    ever left out, and both orders give the same."""
    for seed in range(3_000):
        experiment = replace(random_experiment(random.Random(seed)), policy="chunked")
        other = replace(experiment, policy="vllm_v1")
        assert same_steps(simulate(experiment), simulate(other)), f"seed {seed}"


def test_with_memory_short_they_differ() -> None:
    """The case kv-prefill-ahead-of-decode: P's fourth slice needs the eighth block. In order of
    admission the younger decode D goes; decodes first, D needs a block for its seventeenth
    token and P goes."""

    def run(policy: str) -> list[dict[str, int]]:
        return schedule(
            load(
                request("P", 112, output_tokens=3),
                request("D", 16, output_tokens=5),
                policy=policy,
                budget=64,
                chunk=32,
                kv_blocks=8,
            )
        )

    same = [{"P": 32, "D": 16}, {"P": 32, "D": 1}, {"P": 32, "D": 1}]
    assert run("vllm_v1")[:4] == [*same, {"P": 16}]
    assert run("chunked")[:4] == [*same, {"D": 1}]


def disaggregated(**hand_over: float) -> Experiment:
    return replace(
        load(
            request("a", 100, output_tokens=4),
            request("b", 50, output_tokens=3, arrival_ms=20),
            request("c", 10, arrival_ms=21),
            users=2,
            lead_in=3,
            tail=2,
            policy="disaggregated",
            chunk=40,
            cost=LinearCost(fixed_ms=4, prefill_ms_per_token=0.25, decode_ms_per_token=0.5),
        ),
        hand_over=HandOver(**hand_over),  # type: ignore[arg-type]
    )


def test_two_workers_never_stand_in_each_others_way() -> None:
    """Lead-in: three decode steps of 5 ms. Two chunks of a, 14 ms each, end at 43 ms; then its
    last 20 tokens, 40 of b and c's 10 in one step of 21.5 ms, and b's last 10 in 6.5 ms.
    1,000 bytes a token over 100,000 bytes/s are 10 ms a token: 1,000 ms, and 3 of latency."""
    result = simulate(
        disaggregated(kv_bytes_per_token=1_000, link_bytes_per_s=100_000, link_latency_ms=3)
    )
    other = result.prefill_worker
    assert other is not None
    assert not result.steps.prefill_tokens.any()
    assert not other.steps.decode_tokens.any()
    assert other.slices.tokens.tolist() == [40, 40, 20, 40, 10, 10]
    assert result.requests.arrival_ms.tolist() == [15, 35, 36]
    assert result.requests.first_token_ms.tolist() == [64.5 + 1_003, 71 + 503, 64.5 + 103]
    for name, outputs in (("a", 4), ("b", 3), ("c", 1)):
        times = times_ms(result, name)
        assert len(times) == outputs
        # Its first gap begins within a step of two users and maybe another request; then pure
        # decode steps of 4 + 0.5 a request.
        assert all(gap in (5.5, 6.0) for gap in np.diff(times)[1:])
    assert result.steps.duration_ms.max() <= 4 + 0.5 * 4
    assert measure(result, itl_target_ms=50).longest_stall_ms <= 2 * 6.0  # type: ignore[operator]


def test_a_hand_over_is_size_over_bandwidth_and_latency() -> None:
    """Llama-3.1-8B's 131,072 bytes a token: 8,192 tokens are 1 GiB, over 50 GB/s 21.47 ms."""
    slow = simulate(disaggregated(link_latency_ms=0))
    prefilled = slow.prefill_worker
    assert prefilled is not None
    travel_ms = slow.requests.first_token_ms - prefilled.requests.first_token_ms
    assert travel_ms == pytest.approx(np.array([100, 50, 10]) * 131_072 / 50e9 * 1000)


def test_every_policy_of_the_issue_is_in_the_registry_with_a_title_and_a_sentence() -> None:
    named = "request_level whole_prompt prefill_first chunked vllm_v1 sglang tensorrt_llm "
    named += "slo_adaptive disaggregated"
    assert set(POLICIES) == set(TITLES) == set(ABOUT) == set(READS) == set(named.split())
