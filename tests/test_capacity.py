"""The highest rate that holds, of queues that can be worked out."""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, LinearCost, poisson_workload
from s11.capacity import (
    CapacityTargets,
    RatePoint,
    at_rate,
    capacity_of,
    highest_rate,
    rate_point,
    requests_needed,
    tried_rates,
)
from tests.evenly import evenly
from tests.loads import CLOCK, load, request

TARGETS = CapacityTargets(itl_p99_ms=50, scheduling_delay_p50_ms=10)
T_QUANTILE_7 = 5.408  # Student's t, 7 degrees of freedom, two-sided 99.9 %


def one_a_ms(count: int) -> Callable[[float], Experiment]:
    """One-token requests on one seat, a millisecond each: at 1,000 a second nobody waits."""
    return evenly(count, seats=1)


def test_a_rate_by_hand() -> None:
    """Every half millisecond one comes that takes one: number i waits i/2 ms; of 101 the 51st
    waits 25, and has its token a millisecond later. The last is done at 101 ms."""
    point = rate_point(one_a_ms(101)(2_000), 2_000, TARGETS)
    assert point == RatePoint(
        rate_per_s=2_000,
        request_count=101,
        itl_p99_ms=None,
        scheduling_delay_p50_ms=25,
        ttft_p50_ms=26,
        ttft_p99_ms=50.5,  # of 101, 99 % are 99.99: the hundredth, number 99
        slo_attainment=1.0,
        goodput_per_s=2_000,
        requests_per_s=1_000,
        never_served=0,
        rejected=0,
        stopped_at_max_steps=False,
        fails=("scheduling_delay_p50_ms",),
    )
    assert not point.holds
    assert point.judged(CapacityTargets(itl_p99_ms=1, scheduling_delay_p50_ms=25)).holds
    assert point.to_dict()["holds"] is False


def test_of_an_even_number_the_median_is_the_lower_one_of_the_middle() -> None:
    """The inverted CDF: of 0, 0.5, 1 and 1.5 ms half wait at most 0.5."""
    assert rate_point(one_a_ms(4)(2_000), 2_000, TARGETS).scheduling_delay_p50_ms == 0.5


def test_goodput_is_the_rate_of_those_who_meet_the_experiments_targets() -> None:
    """As above: number i has its token after 1 + i/2 ms, so 21 of 101 within 11 ms."""
    experiment = replace(one_a_ms(101)(2_000), ttft_target_ms=11)
    point = rate_point(experiment, 2_000, TARGETS)
    assert point.slo_attainment == 21 / 101
    assert point.goodput_per_s == pytest.approx(2_000 * 21 / 101)


def test_a_queue_of_equal_gaps() -> None:
    """Of 101 requests the 51st waits 50 (1 - gap) ms: 10 ms at a gap of 0.8, 1,250 a second."""
    found = highest_rate(one_a_ms(101), TARGETS, high_per_s=10_000)
    assert found.highest is not None
    assert found.failing is not None
    assert 1_250 / 1.02 <= found.highest.rate_per_s <= 1_250 < found.failing.rate_per_s
    assert found.failing.rate_per_s <= 1.02 * found.highest.rate_per_s
    assert found.failing.fails == ("scheduling_delay_p50_ms",)
    assert found.highest_per_s == found.highest.rate_per_s
    assert {found.highest, found.failing} <= set(found.points)


def test_enough_requests_show_the_true_limit_to_within_the_precision() -> None:
    """1,000 a second are served, so a median within 10 ms at 2 % needs 2 * 0.01 * 1,000 / 0.02.

    Of these 1,000 the one in the middle waits 499 (1 - gap): 10 ms at 1,020.4 a second.
    """
    count = requests_needed(1_000, TARGETS, relative_precision=0.02)
    assert count == 1_000
    found = highest_rate(one_a_ms(count), TARGETS, high_per_s=10_000)
    assert found.highest_per_s is not None
    assert 1_020.4 / 1.02 <= found.highest_per_s <= 1_020.5
    assert requests_needed(6, CapacityTargets(itl_p99_ms=1)) == 1_200  # 2 * 2 s * 6 / 0.02
    assert found.requests_needed == math.ceil(found.highest_per_s)


def test_seats_that_decode_limit_the_rate() -> None:
    """Four seats, eight tokens at a millisecond each: one request every two milliseconds.

    Of 801 the one in the middle waits 400 (2 - gap), give or take the 8 ms for which a seat is
    taken: 10 ms between gaps of 2 - 18/400 and 2 (nobody waits longer where nobody has to).
    """
    found = highest_rate(evenly(801, output_tokens=8, seats=4), TARGETS)
    assert found.highest_per_s is not None
    assert 500 / 1.02 <= found.highest_per_s <= 1000 / (2 - 18 / 400)


def test_stalls_limit_the_rate() -> None:
    """Alone a request takes a step of 1 + 9 ms for its prompt and ten decodes of 1 ms.

    Where the next comes 20 ms later nobody's decode meets a prefill; 19 ms later, at the begin
    of its last decode, everybody's does: one of ten ITLs is 10 ms.
    """
    cost = LinearCost(fixed_ms=1, prefill_ms_per_token=1, decode_ms_per_token=0)
    make = evenly(50, 9, output_tokens=11, policy="whole_prompt", cost=cost)
    targets = CapacityTargets(itl_p99_ms=9.5, scheduling_delay_p50_ms=1e6)
    found = highest_rate(make, targets)
    assert found.highest_per_s is not None
    assert 50 / 1.02 <= found.highest_per_s < 1000 / 19
    assert found.failing is not None
    assert found.failing.fails == ("itl_p99_ms",)
    assert (rate_point(make(50), 50, targets).itl_p99_ms) == 1
    assert (rate_point(make(1000 / 19), 1000 / 19, targets).itl_p99_ms) == 10


def test_the_median_delay_of_m_d_1() -> None:
    """Erlang, 1909: of Poisson arrivals at a server that takes D each, a share of
    (1 - u) e^(u t / D) waits at most t, for t up to D. Half waits at most D where
    (1 - u) e^u = 1/2, at a utilisation u of 0.768.

    Eight seeds, 1,500 requests each, at 1 ms a request: the mean of their answers, each at most
    2 % below its own limit, within its 99.9 % interval.
    """
    utilisation = 0.768039
    assert (1 - utilisation) * math.exp(utilisation) == pytest.approx(0.5, abs=1e-6)
    targets = CapacityTargets(itl_p99_ms=50, scheduling_delay_p50_ms=1)

    def answer(seed: int) -> float:
        def make(rate_per_s: float) -> Experiment:
            workload = poisson_workload(
                request_count=1_500,
                rate_per_s=rate_per_s,
                prompt_tokens=1,
                output_tokens=1,
                seed=seed,
            )
            return load(*workload.requests, seats=1)

        found = highest_rate(make, targets, low_per_s=500, high_per_s=1_000, first_per_s=760)
        assert found.highest_per_s is not None
        return found.highest_per_s / 1_000

    answers = np.array([answer(seed) for seed in range(8)])
    half_width = T_QUANTILE_7 * float(answers.std(ddof=1)) / math.sqrt(8)
    assert half_width < 0.07
    assert -half_width - 0.02 < answers.mean() - utilisation < half_width


@settings(max_examples=25)
@given(st.floats(0.001, 0.5), st.floats(1.0, 20.0), st.one_of(st.none(), st.floats(1.0, 5_000.0)))
def test_what_is_found_holds_and_the_next_fails(
    precision: float, delay_ms: float, first_per_s: float | None
) -> None:
    targets = CapacityTargets(itl_p99_ms=50, scheduling_delay_p50_ms=delay_ms)
    found = highest_rate(
        one_a_ms(61),
        targets,
        low_per_s=1,
        high_per_s=5_000,
        first_per_s=first_per_s,
        relative_precision=precision,
    )
    limit = 1000 / (1 - delay_ms / 30)  # number 30 is in the middle
    assert found.highest is not None
    assert found.failing is not None
    assert found.highest.holds
    assert not found.failing.holds
    assert found.highest.rate_per_s <= limit * (1 + 1e-9)
    assert found.failing.rate_per_s >= limit * (1 - 1e-9)
    assert found.failing.rate_per_s <= found.highest.rate_per_s * (1 + precision)
    assert found.relative_precision == precision
    rates = [point.rate_per_s for point in found.points]
    assert len(set(rates)) == len(rates)
    assert {point.holds == (point.rate_per_s <= limit) for point in found.points} == {True}


def test_where_the_highest_allowed_rate_holds_nothing_fails() -> None:
    found = highest_rate(one_a_ms(11), TARGETS, low_per_s=10, high_per_s=500, first_per_s=100)
    assert [point.rate_per_s for point in found.points] == [100, 200, 400, 500]
    assert found.highest_per_s == 500
    assert found.failing is None


def test_where_the_lowest_allowed_rate_fails_there_is_none() -> None:
    """Every token but the first takes a millisecond, over the target of half of one."""
    targets = CapacityTargets(itl_p99_ms=0.5)
    make = evenly(5, output_tokens=3)
    found = highest_rate(make, targets, low_per_s=30, high_per_s=500, first_per_s=200)
    assert [point.rate_per_s for point in found.points] == [200, 100, 50, 30]
    assert (found.highest, found.highest_per_s, found.requests_needed) == (None, None, 0)
    assert found.failing is not None
    assert found.failing.rate_per_s == 30


def test_who_can_never_run_holds_at_no_rate() -> None:
    """A prompt of 99 tokens, never cut, in a budget of 50: it and all behind it hang."""
    requests = [request("a", 5), request("b", 99, arrival_ms=10), request("c", 5, arrival_ms=20)]
    stuck = load(*requests, policy="whole_prompt", budget=50)
    point = rate_point(stuck, 100, TARGETS)
    assert point.never_served == 2
    assert point.fails == ("scheduling_delay_p50_ms", "never_served")
    assert point.scheduling_delay_p50_ms is None


def test_who_is_refused_on_arrival_waits_for_ever_and_is_counted() -> None:
    """One of three is longer than the model allows; with two of three nothing holds."""
    one = rate_point(evenly_long(5, 5, 99), 100, TARGETS)
    assert (one.rejected, one.holds, one.scheduling_delay_p50_ms) == (1, True, 0)
    two = rate_point(evenly_long(5, 99, 99), 100, TARGETS)
    assert (two.rejected, two.fails) == (2, ("scheduling_delay_p50_ms",))


def evenly_long(*prompts: int) -> Experiment:
    return load(
        *[request(f"r{n}", size, arrival_ms=10.0 * n) for n, size in enumerate(prompts)],
        policy="vllm_v1",
        max_model_len=50,
        cost=CLOCK,
    )


def test_a_run_that_was_cut_holds_nothing() -> None:
    point = rate_point(one_a_ms(9)(1_000), 1_000, TARGETS, max_steps=8)
    assert point.stopped_at_max_steps
    assert point.fails == ("max_steps",)
    cut_early = rate_point(one_a_ms(9)(1_000), 1_000, TARGETS, max_steps=3)
    assert cut_early.fails == ("scheduling_delay_p50_ms", "max_steps")


def test_progress_hears_of_every_point_as_it_comes() -> None:
    heard: list[RatePoint] = []
    found = highest_rate(one_a_ms(21), TARGETS, progress=heard.append)
    assert tuple(heard) == found.points


def test_a_search_can_be_left_and_what_it_tried_is_kept() -> None:
    search = tried_rates(one_a_ms(21), TARGETS, first_per_s=100)
    points = [next(search), next(search)]
    found = capacity_of(points, TARGETS)
    assert [point.rate_per_s for point in found.points] == [100, 200]
    assert (found.highest_per_s, found.failing) == (200, None)
    assert capacity_of([], TARGETS).highest is None


def test_points_that_are_known_are_not_tried_again() -> None:
    """Another target's search goes on where the first one ended, with the same answer."""
    made: list[float] = []
    make = one_a_ms(101)

    def counted(rate_per_s: float) -> Experiment:
        made.append(rate_per_s)
        return make(rate_per_s)

    first = highest_rate(counted, TARGETS, high_per_s=10_000)
    tried = len(made)
    wider = CapacityTargets(itl_p99_ms=50, scheduling_delay_p50_ms=20)
    again = highest_rate(counted, wider, high_per_s=10_000, known=first.points)
    assert len(set(made)) == len(made)
    assert len(again.points) == len(made)
    assert len(made) - tried < tried
    # 50 (1 - gap) within 20 ms: a gap of 0.6.
    assert again.highest_per_s is not None
    assert 1000 / 0.6 / 1.02 <= again.highest_per_s <= 1000 / 0.6


def test_arrivals_come_at_the_asked_rate_and_in_their_proportions() -> None:
    """Three requests in 400 ms are two gaps: 5 a second. At 20 they take 100 ms."""
    workload = load(
        request("a", 5, arrival_ms=100), request("b", 6, arrival_ms=200, output_tokens=3),
        request("c", 7, arrival_ms=500), users=2,
    ).workload  # fmt: skip
    scaled = at_rate(workload, 20)
    assert [r.arrival_ms for r in scaled.requests] == [25, 50, 125]
    assert at_rate(workload, 5) == workload
    assert [(r.request_id, r.prompt_tokens, r.output_tokens) for r in scaled.requests] == [
        ("a", 5, 1), ("b", 6, 3), ("c", 7, 1),
    ]  # fmt: skip
    assert scaled.streaming_users == 2


@given(st.randoms(use_true_random=False), st.floats(0.01, 1_000))
def test_a_scaled_workload_has_the_rate(draw: random.Random, rate_per_s: float) -> None:
    requests = [
        request(f"r{n}", 1, arrival_ms=draw.uniform(0, 1000)) for n in range(draw.randrange(2, 20))
    ]
    requests.append(request("last", 1, arrival_ms=1001))
    times = [r.arrival_ms for r in at_rate(load(*requests).workload, rate_per_s).requests]
    assert (len(times) - 1) / (times[-1] - times[0]) * 1000 == pytest.approx(rate_per_s)


@pytest.mark.parametrize(
    ("arrivals", "reason"),
    [
        ([], r"^requests: 0 arriving all at once have no rate"),
        ([5.0], r"^requests: 1 arriving all at once have no rate"),
        ([5.0, 5.0], r"^requests: 2 arriving all at once have no rate"),
    ],
)
def test_what_has_no_rate_is_refused(arrivals: list[float], reason: str) -> None:
    requests = [request(f"r{n}", 1, arrival_ms=ms) for n, ms in enumerate(arrivals)]
    with pytest.raises(ValueError, match=reason):
        at_rate(load(*requests).workload, 1)


def test_requests_that_wait_for_others_have_no_rate() -> None:
    requests = [request("a", 1), replace(request("b", 1, arrival_ms=9), after="a")]
    with pytest.raises(ValueError, match=r"^after: .* have no rate \(allowed: arrival times\)$"):
        at_rate(load(*requests).workload, 1)


@pytest.mark.parametrize("rate_per_s", [0, -1, math.nan, math.inf, 1e7])
def test_a_rate_out_of_range_is_refused(rate_per_s: float) -> None:
    with pytest.raises(ValueError, match=r"^rate_per_s: .* is not a number above 0 to 1e\+06$"):
        at_rate(load(request("a", 1), request("b", 1, arrival_ms=1)).workload, rate_per_s)


def test_without_requests_there_is_nothing_to_judge() -> None:
    with pytest.raises(ValueError, match=r"^requests: 0 is not a whole number from 1 to "):
        rate_point(load(users=3, lead_in=2), 1, TARGETS)


@pytest.mark.parametrize(
    ("changed", "reason"),
    [
        ({"itl_p99_ms": 0}, r"^itl_p99_ms: 0 is not a number above 0 to 1e\+06$"),
        ({"itl_p99_ms": math.nan}, r"^itl_p99_ms: nan is not"),
        ({"scheduling_delay_p50_ms": -1}, r"^scheduling_delay_p50_ms: -1 is not a number above 0"),
        ({"scheduling_delay_p50_ms": 1e10}, r"^scheduling_delay_p50_ms: 10000000000.0 is not"),
    ],
)
def test_targets_out_of_range_are_refused(changed: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        CapacityTargets(**({"itl_p99_ms": 50} | changed))


@pytest.mark.parametrize(
    ("search", "reason"),
    [
        ({"low_per_s": 0}, r"^low_per_s: 0 is not a number from 0.001 to 100000$"),
        ({"low_per_s": 5, "high_per_s": 4}, r"^high_per_s: 4 is not a number from 5 to 100000$"),
        ({"high_per_s": 1e6}, r"^high_per_s: 1000000.0 is not a number from"),
        ({"first_per_s": 2_000}, r"^first_per_s: 2000 is not a number from 0.05 to 1000$"),
        ({"relative_precision": 0}, r"^relative_precision: 0 is not a number from 0.0001 to 1$"),
        ({"relative_precision": math.nan}, r"^relative_precision: nan is not"),
    ],
)
def test_a_search_out_of_range_is_refused(search: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        highest_rate(one_a_ms(5), TARGETS, **search)
