"""Queueing theory on many policies: M/D/1 against Lindley and Pollaczek-Khinchine, Little's law,
a request alone, and the choice of time unit."""

import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from s11 import Experiment, LinearCost, Result, poisson_workload, simulate
from s11.bench import LLAMA_ON_H100
from s11.costs import AnyCost, FittedCost
from s11.plan import EngineLimits, HandOver
from s11.policies import CHUNKING, DISAGGREGATED, POLICIES
from tests.loads import load, random_kv_experiment, random_policy_experiment, request

BATCHES = 40
T_QUANTILE_39 = 3.558  # Student's t, 39 degrees of freedom, two-sided 99.9 %
RANDOM = st.randoms(use_true_random=False)
ANY_POLICY = st.one_of(RANDOM.map(random_kv_experiment), RANDOM.map(random_policy_experiment))
PROMPT_TOKENS = 1_000
SERVICE_MS = 22.0  # a step of 4 + 0.018 * 1,000 ms


def whole_prompts(utilisation: float, requests: int, seed: int) -> Experiment:
    """Poisson arrivals of whole prompts that want one token; the budget holds one prompt a step."""
    workload = poisson_workload(
        request_count=requests,
        rate_per_s=1000 * utilisation / SERVICE_MS,
        prompt_tokens=PROMPT_TOKENS,
        output_tokens=1,
        seed=seed,
    )
    limits = EngineLimits(token_budget=PROMPT_TOKENS, chunk_tokens=None)
    return Experiment(workload=workload, policy="whole_prompt", limits=limits)


@pytest.mark.parametrize("utilisation", [0.1, 0.5, 0.8, 0.9])
def test_whole_prompts_wait_as_in_m_d_1(utilisation: float) -> None:
    """Mean TTFT D + R D^2 / (2 (1 - R D)), Pollaczek and Khinchine's.

    30,000 requests without the first 2,000, in 40 batches that tame autocorrelation: the mean
    lies within its 99.9 % interval. Each delay is also Lindley's: what the one before waited and
    took, less the gap between them, or nothing.
    """
    experiment = whole_prompts(utilisation, 30_000, seed=11)
    result = simulate(experiment)
    requests = result.requests
    # The theory serves one at a time: every step is one whole prompt.
    assert len(result.slices) == len(result.steps) == 30_000
    assert set(result.slices.tokens.tolist()) == {PROMPT_TOKENS}
    np.testing.assert_allclose(result.steps.duration_ms, SERVICE_MS, rtol=1e-12)

    delay_ms, lindley = 0.0, [0.0]
    for gap_ms in np.diff(requests.arrival_ms):
        delay_ms = max(0.0, delay_ms + SERVICE_MS - float(gap_ms))
        lindley.append(delay_ms)
    ttft_ms = requests.first_token_ms - requests.arrival_ms
    np.testing.assert_allclose(ttft_ms - SERVICE_MS, lindley, atol=1e-5)

    means = np.array([batch.mean() for batch in np.array_split(ttft_ms[2_000:], BATCHES)])
    half_width_ms = T_QUANTILE_39 * float(means.std(ddof=1)) / math.sqrt(BATCHES)
    wait_ms = utilisation * SERVICE_MS / (2 * (1 - utilisation))
    assert float(means.mean()) == pytest.approx(SERVICE_MS + wait_ms, abs=half_width_ms)
    assert half_width_ms < 0.35 * wait_ms


def test_a_share_of_one_less_the_utilisation_does_not_wait() -> None:
    """As an arrival finds the server idle with the probability that it is idle (PASTA).

    30 seeds, 500 requests each after 100: their shares' mean within its 99.9 % interval.
    """
    utilisation = 0.7
    shares = []
    for seed in range(30):
        requests = simulate(whole_prompts(utilisation, 600, seed)).requests
        delays_ms = requests.first_scheduled_ms - requests.arrival_ms
        shares.append(float((delays_ms[100:] == 0).mean()))
    half_width = 3.659 * float(np.std(shares, ddof=1)) / math.sqrt(30)  # t, 29 degrees, 99.9 %
    assert float(np.mean(shares)) == pytest.approx(1 - utilisation, abs=half_width)
    assert half_width < 0.06


def departures_ms(result: Result) -> dict[str, float]:
    """When each finished request left: the end of the last step whose batch holds it."""
    last: dict[str, float] = {}
    ends_ms = result.steps.end_ms.tolist()
    for end_ms, batch in zip(ends_ms, result.schedule(), strict=True):
        last.update(dict.fromkeys(batch, end_ms))
    done = ~np.isnan(result.requests.last_token_ms)
    return {
        name: last[name]
        for name, ended in zip(result.requests.request_id, done, strict=True)
        if ended
    }


def area_under(changes: list[tuple[float, int]], until_ms: float) -> Fraction:
    """The exact integral over time, up to a moment, of a number that changes."""
    area, number, before = Fraction(0), 0, Fraction(0)
    for time, change in sorted(changes):
        now = min(Fraction(time), Fraction(until_ms))
        area += number * (now - before)
        number, before = number + change, now
    return area + number * (Fraction(until_ms) - before)


@settings(max_examples=120)
@given(RANDOM.map(random_kv_experiment))
def test_littles_law_on_every_run(experiment: Experiment) -> None:
    """L = rate x W over [0, makespan], for all who arrive in it, whatever the policy and KV pool.

    L: the integral of arrivals less departures, which come from the steps' batches. W: from the
    requests' own times, that of those who never leave up to the end.
    """
    result = simulate(experiment)
    end_ms = float(result.steps.end_ms[-1]) if len(result.steps) else 0.0
    left = departures_ms(result)
    requests = result.requests
    inside, sojourns = [], Fraction(0)
    for row, name in enumerate(requests.request_id):
        arrival_ms = float(requests.arrival_ms[row])
        if name in result.rejected or math.isnan(arrival_ms) or arrival_ms > end_ms:
            continue
        last_ms = float(requests.last_token_ms[row])
        sojourns += Fraction(end_ms if math.isnan(last_ms) else last_ms) - Fraction(arrival_ms)
        inside.append((arrival_ms, 1))
        if name in left:
            inside.append((left[name], -1))
    assert area_under(inside, end_ms) == sojourns


@settings(max_examples=120)
@given(RANDOM.map(random_kv_experiment))
def test_littles_law_of_those_without_a_seat(experiment: Experiment) -> None:
    """The steps' count of who waits, times their durations, is what requests waited in steps:
    from the first step that saw them to their seat, and from each preemption to the next."""
    result = simulate(experiment)
    steps, requests = result.steps, result.requests
    starts_ms = steps.start_ms
    seated: dict[int, list[int]] = {}
    for row, step in zip(result.admissions.request, result.admissions.step, strict=True):
        seated.setdefault(int(row), []).append(int(step))
    lost: dict[int, list[int]] = {}
    for row, step in zip(result.preemptions.request, result.preemptions.step, strict=True):
        lost.setdefault(int(row), []).append(int(step))
    waited = np.zeros(len(steps), dtype=np.int64)
    for row, name in enumerate(requests.request_id):
        if name in result.rejected or np.isnan(requests.arrival_ms[row]):
            continue
        begins = [int(np.searchsorted(starts_ms, requests.arrival_ms[row])), *lost.get(row, [])]
        ends = [*seated.get(row, []), len(steps)]
        for begin, end in zip(begins, ends, strict=False):
            waited[begin:end] += 1
    assert waited.tolist() == steps.waiting.tolist()


COSTS: dict[str, AnyCost] = {
    "linear": LinearCost(),
    "roofline": LLAMA_ON_H100,
    "fitted": FittedCost(
        fixed_ms=3.0, prefill_ms_per_token=0.02, decode_ms_per_token=0.1, context_ms_per_token=1e-4
    ),
}


@pytest.mark.parametrize("cost", COSTS)
@pytest.mark.parametrize("policy", POLICIES)
def test_alone_a_request_has_its_first_token_after_the_sum_of_its_steps(
    policy: str, cost: str
) -> None:
    """1,024 tokens in four chunks of 256, or at once where the policy takes prompts whole.

    Of a disaggregated deployment the KV travels then. Three requests, far apart, are each alone.
    """
    model = COSTS[cost]
    hand_over = HandOver()
    experiment = replace(
        load(
            *[request(f"r{n}", 1024, output_tokens=3, arrival_ms=16_384.0 * n) for n in range(3)],
            policy=policy,
            chunk=256,
            cost=model,
        ),
        hand_over=hand_over,
    )
    size = 256 if policy in CHUNKING else 1024
    expected_ms = sum(
        model.step_ms(prefill_tokens=size, decode_tokens=0, slices=((start, size),))
        for start in range(0, 1024, size)
    )
    if policy == DISAGGREGATED:
        expected_ms += hand_over.duration_ms(1024)
    result = simulate(experiment)
    requests = result.requests
    ttft_ms = requests.first_token_ms - requests.arrival_ms
    assert ttft_ms.tolist() == [pytest.approx(expected_ms, abs=1e-8)] * 3
    delays_ms = requests.first_scheduled_ms - requests.arrival_ms
    assert delays_ms.tolist() == [0, 0, 0]


def in_other_units(experiment: Experiment, factor: float) -> Experiment:
    """The same run on a clock of another unit: arrivals, costs, targets and the link's times."""
    cost, workload, hand_over = experiment.cost, experiment.workload, experiment.hand_over
    assert isinstance(cost, LinearCost | FittedCost)
    changed = {
        name: factor * value for name, value in cost.to_dict().items() if isinstance(value, float)
    }
    return replace(
        experiment,
        cost=type(cost).from_dict(cost.to_dict() | changed),
        itl_target_ms=factor * experiment.itl_target_ms,
        workload=replace(
            workload,
            requests=tuple(
                [replace(r, arrival_ms=factor * r.arrival_ms) for r in workload.requests]
            ),
        ),
        hand_over=replace(
            hand_over,
            link_bytes_per_s=hand_over.link_bytes_per_s / factor,
            link_latency_ms=factor * hand_over.link_latency_ms,
        ),
    )


def all_times(result: Result) -> dict[str, NDArray[np.float64]]:
    steps, requests = result.steps, result.requests
    return {
        **{name: getattr(steps, name) for name in ("start_ms", "end_ms", "duration_ms")},
        **{name: getattr(requests, name) for name in ("arrival_ms", "first_scheduled_ms")},
        **{name: getattr(requests, name) for name in ("first_token_ms", "last_token_ms")},
        "admitted": result.admissions.time_ms,
        "preempted": result.preemptions.time_ms,
        "tokens": result.spans.token_ms,
    }


@pytest.mark.parametrize("factor", [0.5, 4.0, 256.0])
@settings(max_examples=50)
@given(ANY_POLICY)
def test_a_power_of_two_scales_every_time_of_every_policy_exactly(
    factor: float, experiment: Experiment
) -> None:
    """Floats keep their digits under a power of two, so the schedule is the same to the bit."""
    result, scaled = simulate(experiment), simulate(in_other_units(experiment, factor))
    assert list(scaled.schedule()) == list(result.schedule())
    mine, theirs = all_times(result), all_times(scaled)
    for name, times in mine.items():
        np.testing.assert_array_equal(theirs[name], factor * times, err_msg=name)
    if result.prefill_worker is not None:
        assert scaled.prefill_worker is not None
        before, after = all_times(result.prefill_worker), all_times(scaled.prefill_worker)
        for name, times in before.items():
            np.testing.assert_array_equal(after[name], factor * times, err_msg=name)
