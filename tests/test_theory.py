"""The simulator against queueing theory: M/D/1, Little's law, and the choice of time unit."""

import math
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from numpy.typing import NDArray

from s11 import (
    EngineLimits,
    Experiment,
    LinearCost,
    Request,
    Result,
    Workload,
    poisson_workload,
    simulate,
)
from tests.loads import EXPERIMENTS

T_QUANTILE_39 = 3.558  # Student's t, 39 degrees of freedom, two-sided 99.9 %
BATCHES = 40


def batch_means(values: NDArray[np.float64]) -> tuple[float, float]:
    """Mean and half-width of its 99.9 % confidence interval; batches tame autocorrelation."""
    means = np.array([batch.mean() for batch in np.array_split(values, BATCHES)])
    return float(means.mean()), T_QUANTILE_39 * float(means.std(ddof=1)) / math.sqrt(BATCHES)


@pytest.mark.parametrize(
    ("policy", "chunk_tokens", "utilisation"),
    [("whole_prompt", None, 0.3), ("whole_prompt", None, 0.7), ("chunked", 250, 0.5)],
)
def test_one_prompt_at_a_time_waits_as_in_m_d_1(
    policy: str, chunk_tokens: int | None, utilisation: float
) -> None:
    """Pollaczek-Khinchine for a fixed service D at rate R: mean D + R D^2 / (2 (1 - R D)).

    1,000 prompt tokens take one step of 4 + 0.018 * 1000 = 22 ms, or four of
    4 + 0.018 * 250 = 8.5 ms, 34 ms.
    """
    service_ms = 22.0 if chunk_tokens is None else 34.0
    rate_per_ms = utilisation / service_ms
    workload = poisson_workload(
        request_count=40_000,
        rate_per_s=1000 * rate_per_ms,
        prompt_tokens=1000,
        output_tokens=1,
        seed=7,
    )
    limits = EngineLimits(max_seqs=1, chunk_tokens=chunk_tokens)
    requests = simulate(Experiment(workload=workload, policy=policy, limits=limits)).requests
    ttft_ms = requests.first_token_ms - requests.arrival_ms
    mean_ms, half_width_ms = batch_means(ttft_ms[1000:])
    expected_ms = service_ms + rate_per_ms * service_ms**2 / (2 * (1 - utilisation))
    assert mean_ms == pytest.approx(expected_ms, abs=half_width_ms)
    assert half_width_ms < 0.15 * (expected_ms - service_ms)
    assert ttft_ms.min() == pytest.approx(service_ms, abs=1e-6)


def in_system_integral(arrivals: NDArray[np.float64], departures: NDArray[np.float64]) -> float:
    """The area under the number of requests in the system, event by event."""
    changes = sorted([(t, 1) for t in arrivals] + [(t, -1) for t in departures])
    area, number, before = 0.0, 0, 0.0
    for time, change in changes:
        area += number * (time - before)
        number, before = number + change, time
    assert number == 0
    return area


def finished(result: Result) -> NDArray[np.bool_]:
    return ~np.isnan(result.requests.last_token_ms)


@settings(max_examples=150)
@given(EXPERIMENTS)
def test_littles_law_of_the_decode_stage(experiment: Experiment) -> None:
    """L T = sum of sojourns: the steps' decode tokens against the requests' own times."""
    result = simulate(experiment)
    steps, requests, done = result.steps, result.requests, finished(result)
    own = steps.decode_tokens - experiment.workload.streaming_users
    assert float(own @ steps.duration_ms) == float(
        (requests.last_token_ms - requests.first_token_ms)[done].sum()
    )


@settings(max_examples=150)
@given(EXPERIMENTS)
def test_littles_law_of_all_who_are_served(experiment: Experiment) -> None:
    """Without a budget everyone seated is in every step, from the first slice to the last token."""
    limits = replace(experiment.limits, token_budget=None)
    result = simulate(replace(experiment, limits=limits))
    requests, done = result.requests, finished(result)
    users = experiment.workload.streaming_users
    in_batch = np.array([len(batch) - users for batch in result.schedule()])
    assert float(in_batch @ result.steps.duration_ms if len(in_batch) else 0.0) == float(
        (requests.last_token_ms - requests.first_scheduled_ms)[done].sum()
    )


@settings(max_examples=150)
@given(EXPERIMENTS)
def test_littles_law_of_the_whole_system(experiment: Experiment) -> None:
    """Number in system, from arrivals and the ends of steps in which batches shrink."""
    result = simulate(experiment)
    requests, done = result.requests, finished(result)
    last_seen = {
        name: result.steps.end_ms[number]
        for number, batch in enumerate(result.schedule())
        for name in batch
    }
    departures = np.array(
        [last_seen[n] for n, d in zip(requests.request_id, done, strict=True) if d]
    )
    assert in_system_integral(requests.arrival_ms[done], departures) == pytest.approx(
        float((requests.last_token_ms - requests.arrival_ms)[done].sum())
    )


def in_other_units(experiment: Experiment, factor: float) -> Experiment:
    cost, workload = experiment.cost, experiment.workload
    assert isinstance(cost, LinearCost)
    return replace(
        experiment,
        cost=LinearCost(
            fixed_ms=factor * cost.fixed_ms,
            prefill_ms_per_token=factor * cost.prefill_ms_per_token,
            decode_ms_per_token=factor * cost.decode_ms_per_token,
        ),
        workload=replace(
            workload,
            requests=tuple(
                replace(request, arrival_ms=factor * request.arrival_ms)
                for request in workload.requests
            ),
        ),
    )


@pytest.mark.parametrize("factor", [0.25, 3.0, 1024.0])
@settings(max_examples=40)
@given(EXPERIMENTS)
def test_another_unit_of_time_scales_every_time_and_nothing_else(
    factor: float, experiment: Experiment
) -> None:
    result = simulate(experiment)
    scaled = simulate(in_other_units(experiment, factor))
    assert list(scaled.schedule()) == list(result.schedule())
    for name in ("start_ms", "end_ms", "duration_ms", "fixed_ms", "prefill_ms", "decode_ms"):
        column = getattr(result.steps, name)
        assert getattr(scaled.steps, name).tolist() == (factor * column).tolist()
    for name in ("arrival_ms", "first_scheduled_ms", "first_token_ms", "last_token_ms"):
        np.testing.assert_array_equal(
            getattr(scaled.requests, name), factor * getattr(result.requests, name)
        )


def test_decode_throughput_saturates_at_users_over_step_time() -> None:
    """Nothing but streams: 24 tokens every 4 + 24 * 0.05 = 5.2 ms."""
    only_streams = Workload(requests=(), streaming_users=24, lead_in_steps=50)
    steps = simulate(Experiment(workload=only_streams)).steps
    assert steps.decode_tokens.sum() / steps.end_ms[-1] == pytest.approx(24 / 5.2)


def test_unit_rate_load_is_served_at_its_arrivals() -> None:
    """Below saturation the long-run throughput is the arrival rate, not the capacity."""
    every_100_ms = tuple(
        Request(request_id=str(n), prompt_tokens=1000, arrival_ms=100.0 * n) for n in range(200)
    )
    result = simulate(Experiment(workload=Workload(requests=every_100_ms)))
    assert (result.requests.first_token_ms - result.requests.arrival_ms).tolist() == (
        [pytest.approx(22.0, abs=1e-9)] * 200
    )
