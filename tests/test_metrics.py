import random
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import LinearCost, Metrics, measure, simulate
from s11.experiment import Experiment
from s11.metrics import inter_token_gaps, percentile, percentiles
from s11.results import Result
from tests.loads import (
    load,
    random_kv_experiment,
    random_policy_experiment,
    request,
    times_ms,
)
from tests.reference_simulator import naive_percentile


def of(values: list[float], percent: int, weights: list[int] | None = None) -> float | None:
    return percentile(
        np.array(values, dtype=np.float64),
        Fraction(percent, 100),
        weights=None if weights is None else np.array(weights, dtype=np.int64),
    )


def metrics(experiment: Experiment) -> Metrics:
    return measure(simulate(experiment), itl_target_ms=experiment.itl_target_ms)


@pytest.mark.parametrize(
    ("percent", "value"), [(1, 10), (25, 10), (26, 20), (50, 20), (51, 30), (75, 30), (100, 40)]
)
def test_a_percentile_is_the_smallest_value_whose_share_reaches_it(
    percent: int, value: float
) -> None:
    """Of four values each holds a quarter: no interpolation, and the order does not matter."""
    assert of([40, 10, 30, 20], percent) == value


@pytest.mark.parametrize(
    ("weights", "percent", "value"),
    [
        ([99, 1], 99, 5),
        ([98, 1], 99, 100),  # 98 of 99 tokens are 98.99 %
        ([98, 2], 99, 100),
        ([1, 1], 50, 5),
        ([1, 2], 50, 100),
        ([0, 3], 1, 100),
        ([3, 0], 100, 5),
    ],
)
def test_a_weight_is_how_many_tokens_saw_the_value(
    weights: list[int], percent: int, value: float
) -> None:
    assert of([5, 100], percent, weights) == value


def test_where_nothing_has_weight_there_is_no_percentile() -> None:
    assert of([], 50) is None
    assert of([], 50, []) is None
    assert of([1, 2], 50, [0, 0]) is None


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 5)), max_size=20), st.integers(1, 100))
def test_weights_are_repetitions(pairs: list[tuple[int, int]], percent: int) -> None:
    values, weights = [float(v) for v, _ in pairs], [w for _, w in pairs]
    repeated = [value for value, weight in pairs for _ in range(weight)]
    assert of(values, percent, weights) == naive_percentile([float(v) for v in repeated], percent)


@pytest.mark.parametrize("share", [Fraction(0), Fraction(-1, 2), Fraction(101, 100)])
def test_a_share_outside_0_to_1_is_refused(share: Fraction) -> None:
    with pytest.raises(ValueError, match=rf"^share: {share} is not a number above 0 to 1$"):
        percentile(np.array([1.0]), share)


def test_several_percentiles_come_in_the_order_in_which_they_are_asked() -> None:
    """Of four values each holds a quarter; the weights make the 10 worth three of four."""
    values = np.array([40.0, 10.0, 30.0, 20.0])
    shares = [Fraction(n, 100) for n in (100, 25, 50)]
    assert percentiles(values, shares) == [40, 10, 20]
    assert percentiles(values, shares, weights=np.array([0, 3, 1, 0])) == [30, 10, 10]
    assert percentiles(values[:0], shares) == [None, None, None]
    with pytest.raises(ValueError, match=r"^share: 2 is not a number above 0 to 1$"):
        percentiles(values, [Fraction(1, 2), Fraction(2)])


def test_a_large_count_keeps_its_last_token() -> None:
    """99 % of 10^17 tokens is 99 * 10^15, beyond what a float counts exactly."""
    weights = [99 * 10**15, 10**15]
    assert of([1, 2], 99, weights) == 1
    assert of([1, 2], 99, [weights[0] - 1, weights[1] + 1]) == 2


def test_the_figures_of_a_run_by_hand() -> None:
    """Cost 1 + 0.5 a prefill token + 0.25 a decode token; one stream, s, decodes in every step.

    a arrives when the lead-in ends, at 1.25 ms; b two milliseconds later.
    step 0: s            1.25 ms, until 1.25: the lead-in
    step 1: s, a 4       3.25 ms, until 4.5: a's first token
    step 2: s, a, b 4    3.5 ms, until 8.0
    step 3: s, a, b 3    3.0 ms, until 11.0: a's third token, its last, and b's first
    step 4: s, b         1.5 ms, until 12.5: b's last
    step 5: s            1.25 ms, until 13.75: the tail
    """
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=0.5, decode_ms_per_token=0.25)
    a, b = request("a", 4, output_tokens=3), request("b", 7, output_tokens=2, arrival_ms=2)
    run = load(a, b, users=1, lead_in=1, tail=1, chunk=4, cost=cost, target_ms=3.25)
    assert simulate(run).steps.duration_ms.tolist() == [1.25, 3.25, 3.5, 3.0, 1.5, 1.25]
    m = metrics(run)
    assert m.longest_stall_ms == 3.5
    assert m.ttft_ms == 11.0 - 3.25  # b's: the longest prompt
    assert m.steps_over_target == 1  # 3.25 is at the target, not over it
    assert m.makespan_ms == 13.75
    assert m.decode_tokens_per_s == 9 / 0.01375
    assert m.prefill_tokens_per_s == 11 / 0.01375
    assert m.step_count == 6
    # ITLs by tokens: 1.25 twice, 3.25 once, 3.5 twice, 3.0 twice, 1.5 twice.
    assert m.itl_mean_ms == pytest.approx((2 * 1.25 + 3.25 + 2 * 3.5 + 2 * 3.0 + 2 * 1.5) / 9)
    assert (m.itl_p50_ms, m.itl_p99_ms) == (3.0, 3.5)
    assert (m.ttft_p50_ms, m.ttft_p99_ms) == (3.25, 7.75)
    assert (m.tpot_p50_ms, m.tpot_p99_ms) == (1.5, (11.0 - 4.5) / 2)
    assert m.finished_requests == m.request_count == 2
    # Of nine, 90 % are 8.1: the ninth. Of two, 90 % are both.
    assert (m.itl_p90_ms, m.ttft_p90_ms, m.tpot_p90_ms) == (3.5, 7.75, 3.25)
    assert (m.scheduling_delay_p50_ms, m.scheduling_delay_p99_ms) == (0.0, 4.5 - 3.25)
    assert (m.latency_p50_ms, m.latency_p99_ms) == (12.5 - 3.25, 11.0 - 1.25)
    assert m.output_tokens_per_s == 11 / 0.01375  # the nine decode tokens and two first ones
    assert m.requests_per_s == 2 / 0.01375
    # a's longest ITL is 3.5 ms, over the target of 3.25; b's is 1.5.
    assert (m.stalled_share, m.slo_attainment, m.goodput_per_s) == (0.5, 0.5, 1 / 0.01375)


@pytest.mark.parametrize(
    ("itl_target_ms", "ttft_target_ms", "share"),
    [(3.5, None, 1.0), (3.5, 7.75, 1.0), (3.5, 7.5, 0.5), (3.25, 7.5, 0.0), (1.0, None, 0.0)],
)
def test_the_share_that_meets_both_targets(
    itl_target_ms: float, ttft_target_ms: float | None, share: float
) -> None:
    """The run above: a has TTFT 3.25 and a stall of 3.5 ms, b TTFT 7.75 and one of 1.5 ms."""
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=0.5, decode_ms_per_token=0.25)
    a, b = request("a", 4, output_tokens=3), request("b", 7, output_tokens=2, arrival_ms=2)
    result = simulate(load(a, b, users=1, lead_in=1, tail=1, chunk=4, cost=cost))
    m = measure(result, itl_target_ms=itl_target_ms, ttft_target_ms=ttft_target_ms)
    assert m.slo_attainment == share
    assert m.goodput_per_s == 2 * share / 0.01375
    stalls = {3.5: 0.0, 3.25: 0.5, 1.0: 1.0}  # at the target is not over it
    assert m.stalled_share == stalls[itl_target_ms]


def test_who_is_not_served_is_a_request_all_the_same() -> None:
    """One of two prompts never fits the budget of 50: half of them meet the targets, if any."""
    m = metrics(load(request("a", 5), request("b", 99), policy="whole_prompt", budget=50))
    assert (m.request_count, m.finished_requests, m.slo_attainment) == (2, 1, 0.5)
    assert m.goodput_per_s == m.requests_per_s == 1 / 0.001


@settings(max_examples=60)
@given(st.randoms(use_true_random=False))
def test_output_tokens_are_those_that_requests_and_streams_got(draw: random.Random) -> None:
    experiment = draw.choice((random_kv_experiment, random_policy_experiment))(draw)
    result = simulate(experiment)
    own = sum(len(result.token_times_ms(row)) for row in range(len(result.requests)))
    streamed = experiment.workload.streaming_users * len(result.decode_ends_ms())
    m = metrics(experiment)
    if m.makespan_ms == 0:
        assert m.output_tokens_per_s is None
    else:
        assert m.output_tokens_per_s == 1000 * (own + streamed) / m.makespan_ms


def test_without_steps_there_is_nothing_to_measure() -> None:
    m = metrics(load())
    assert (m.step_count, m.makespan_ms, m.steps_over_target, m.finished_requests) == (0, 0, 0, 0)
    none = {name for name, value in m.to_dict().items() if value is None}
    zero = {"step_count", "makespan_ms", "steps_over_target", "finished_requests"}
    zero |= {"preemptions", "cached_tokens", "computed_prefill_tokens", "request_count"}
    assert none == m.to_dict().keys() - zero


def test_where_nobody_decodes_the_longest_stall_is_null() -> None:
    m = metrics(load(request("a", 8), chunk=4))
    assert (m.longest_stall_ms, m.itl_mean_ms, m.itl_p50_ms, m.tpot_p50_ms) == (None,) * 4
    assert m.decode_tokens_per_s == 0


def test_a_first_token_is_not_a_decode_token() -> None:
    """Five output tokens in five steps of 1 ms: four of them are decodes."""
    assert metrics(load(request("a", 8, output_tokens=5))).decode_tokens_per_s == 4 / 0.005


def test_a_step_that_nobody_decodes_in_is_no_stall_but_may_be_over_the_target() -> None:
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=1, decode_ms_per_token=0)
    m = metrics(load(request("a", 9, output_tokens=2), cost=cost, target_ms=5))
    assert (m.longest_stall_ms, m.steps_over_target) == (1, 1)


def test_the_makespan_begins_with_the_first_step() -> None:
    assert metrics(load(request("a", 1, arrival_ms=70))).makespan_ms == 1


def test_ttft_is_that_of_the_first_of_the_longest_prompts() -> None:
    """One seat: the two prompts of nine tokens have their first tokens at 2 and at 3 ms."""
    assert (
        metrics(load(*(request(n, p) for n, p in (("a", 1), ("b", 9), ("c", 9))), seats=1)).ttft_ms
        == 2
    )


def test_ttft_is_null_where_the_longest_prompt_got_no_token() -> None:
    m = metrics(load(request("a", 5), request("b", 99), policy="whole_prompt", budget=50))
    assert (m.ttft_ms, m.ttft_p99_ms, m.finished_requests) == (None, 1, 1)


def gaps(result: Result) -> dict[float, int]:
    """How many tokens saw a gap of so many ms."""
    seen: dict[float, int] = {}
    columns = [column.tolist() for column in inter_token_gaps(result)]
    for gap_ms, tokens in zip(*columns, strict=True):
        if tokens:
            seen[gap_ms] = seen.get(gap_ms, 0) + tokens
    return seen


def test_each_step_is_a_gap_that_its_decode_tokens_saw() -> None:
    """Two users over four steps, and two decodes of the request: all gaps are steps."""
    result = simulate(load(request("a", 2, output_tokens=3), users=2, tail=1))
    assert gaps(result) == {1: 10}


def test_a_gap_spans_the_steps_that_a_decode_stood_still_in() -> None:
    """a: tokens at 1, 2 and, two prefill-only steps later, 5. b and c (in one step each, by the
    budget) have theirs at 3 and 4, and decode at 5: gaps of 2 and 1."""
    result = simulate(
        load(
            request("a", 5, output_tokens=3),
            request("b", 5, output_tokens=2, arrival_ms=1.5),
            request("c", 5, output_tokens=2, arrival_ms=1.5),
            policy="prefill_first",
            budget=5,
        )
    )
    assert times_ms(result, "a") == [1, 2, 5]
    assert gaps(result) == {1: 2, 3: 1, 2: 1}


def test_a_token_after_a_preemption_ends_a_gap_too() -> None:
    """The case kv-decode-evicts-latest: 1 is preempted with its token of t = 1, and has the next
    at t = 4 from the prefill of 81 tokens, the last at 5."""
    result = simulate(
        load(
            request("0", 80, output_tokens=3),
            request("1", 80, output_tokens=3),
            policy="vllm_v1",
            budget=200,
            block_size=16,
            kv_blocks=10,
        )
    )
    assert times_ms(result, "1") == [1, 4, 5]
    assert gaps(result) == {1: 3, 3: 1}
    assert measure(result, itl_target_ms=50).preemptions == 1
