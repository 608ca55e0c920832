"""A run in buckets: worked out by hand, and against the run's own tables, piece by piece."""

from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11 import LinearCost, simulate
from s11.over_time import Band, over_time, run_span_ms
from s11.results import Result
from tests.loads import (
    load,
    random_experiment,
    random_kv_experiment,
    random_policy_experiment,
    request,
)

RANDOM_LOADS = st.builds(
    lambda draw, make: make(draw),
    st.randoms(use_true_random=False),
    st.sampled_from((random_experiment, random_kv_experiment, random_policy_experiment)),
)
NAMES = ("waiting", "running", "kv_blocks", "step_ms", "prefill_tokens", "decode_tokens")


def lists(band: Band) -> tuple[list[float], list[float], list[float]]:
    return band.lowest.tolist(), band.mean.tolist(), band.highest.tolist()


def test_by_hand_a_step_counts_in_every_bucket_that_it_reaches_into():
    # A's prompt of 6 takes 3 ms a slice of 3; then one decode of 1 ms: steps 0-3, 3-6, 6-7.
    cost = LinearCost(fixed_ms=0.0, prefill_ms_per_token=1.0, decode_ms_per_token=1.0)
    result = simulate(load(request("A", 6, output_tokens=2), chunk=3, cost=cost))
    found = over_time(result, begin_ms=0.0, end_ms=8.0, buckets=4)  # of 2 ms
    assert found.edges_ms.tolist() == [0, 2, 4, 6, 8]
    assert lists(found.step_ms) == ([3, 3, 3, 0], [3, 3, 3, 0.5], [3, 3, 3, 1])
    assert lists(found.prefill_tokens) == ([3, 3, 3, 0], [3, 3, 3, 0], [3, 3, 3, 0])
    assert lists(found.decode_tokens) == ([0, 0, 0, 0], [0, 0, 0, 0.5], [0, 0, 0, 1])
    assert lists(found.running) == ([1, 1, 1, 0], [1, 1, 1, 0.5], [1, 1, 1, 1])


def test_by_hand_who_arrives_in_a_step_waits_and_idle_is_nothing():
    # One seat on the one-millisecond clock: A has step 0-1; B and C arrive at 0.25 and 0.5, B
    # has 1-2, C 2-3; nothing until D at 5.
    result = simulate(
        load(
            request("A", 1),
            request("B", 1, arrival_ms=0.25),
            request("C", 1, arrival_ms=0.5),
            request("D", 1, arrival_ms=5.0),
            seats=1,
        )
    )
    found = over_time(result, begin_ms=0.0, end_ms=6.0, buckets=6)
    assert lists(found.waiting) == (
        [0, 1, 0, 0, 0, 0],
        [0.75 + 0.5, 1, 0, 0, 0, 0],
        [2, 1, 0, 0, 0, 0],
    )
    assert found.running.mean.tolist() == [1, 1, 1, 0, 0, 1]
    assert found.step_ms.mean.tolist() == [1, 1, 1, 0, 0, 1]


def test_by_hand_streaming_users_run_from_the_first_step_to_the_last():
    result = simulate(load(request("A", 1), users=3, lead_in=2, tail=1))  # 2 + 1 + 1 steps
    found = over_time(result, begin_ms=0.0, end_ms=5.0, buckets=5)
    assert found.running.highest.tolist() == [3, 3, 4, 3, 0]
    assert run_span_ms(result) == (0.0, 4.0)


def test_by_hand_blocks_are_held_until_the_end_and_a_preempted_request_waits():
    # Two blocks of 2 tokens: A and B hold one each with their prompts of 2, and each wants
    # another for its next token; B, who came last, goes and waits until A is done.
    result = simulate(
        load(
            request("A", 2, output_tokens=3),
            request("B", 2, output_tokens=3),
            kv_blocks=2,
            block_size=2,
        )
    )
    assert result.preemptions.time_ms.tolist() == [1.0]
    until_ms = float(result.requests.last_token_ms[0])
    found = over_time(result, begin_ms=1.0, end_ms=until_ms, buckets=1)
    assert lists(found.waiting) == ([1], [1], [1])
    assert lists(found.running) == ([1], [1], [1])
    assert lists(found.kv_blocks) == ([2], [2], [2])


def pieces(result: Result, edges_ms: list[float]) -> list[tuple[float, float, dict[str, float]]]:
    """Between all moments at which anything changes: what holds there, told a request at a time."""
    prefiller, steps = result.prefilling, result.steps
    moments = {0.0, run_span_ms(result)[1], *edges_ms, *steps.start_ms, *steps.end_ms}
    moments |= {*prefiller.steps.start_ms, *prefiller.steps.end_ms}
    requests = result.requests
    for times in (requests.arrival_ms, requests.first_token_ms, requests.last_token_ms):
        moments |= {*times[~np.isnan(times)]}
    moments |= {*result.preemptions.time_ms, *prefiller.preemptions.time_ms}
    moments |= {*result.admissions.time_ms, *prefiller.admissions.time_ms}
    told = []
    ordered = sorted(moments)
    for begin, end in pairwise(ordered):
        told.append((begin, end, holds_at(result, (begin + end) / 2)))
    return told


def holds_at(result: Result, at_ms: float) -> dict[str, float]:
    steps, prefiller, requests = result.steps, result.prefilling, result.requests

    def under_way(table):
        return np.flatnonzero((table.start_ms <= at_ms) & (table.end_ms > at_ms))

    def seated(worker: Result, row: int, done_ms: float) -> bool:
        came = (worker.admissions.request == row) & (worker.admissions.time_ms <= at_ms)
        went = (worker.preemptions.request == row) & (worker.preemptions.time_ms <= at_ms)
        return came.sum() > went.sum() and not done_ms <= at_ms

    now = dict.fromkeys(NAMES, 0.0)
    if at_ms >= run_span_ms(result)[1]:
        return now
    for step in under_way(steps):
        now |= {
            "kv_blocks": steps.kv_blocks[step],
            "step_ms": steps.duration_ms[step],
            "decode_tokens": steps.decode_tokens[step],
        }
    for step in under_way(prefiller.steps):
        now["prefill_tokens"] = prefiller.steps.prefill_tokens[step]
    if len(steps) and at_ms >= steps.start_ms[0]:
        now["running"] += result.streaming_users
    for row, name in enumerate(requests.request_id):
        if not requests.arrival_ms[row] <= at_ms or name in result.rejected:
            continue
        if result.prefill_worker is None:
            done_ms = requests.last_token_ms[row]
            runs = seated(result, row, done_ms)
            waits = not runs and not done_ms <= at_ms
        else:
            prefilled_ms = prefiller.requests.last_token_ms[row]
            handed_ms, done_ms = requests.first_token_ms[row], requests.last_token_ms[row]
            prefills = seated(prefiller, row, prefilled_ms)
            decodes = seated(result, row, done_ms)
            runs = prefills or decodes
            in_first_queue = not prefills and not prefilled_ms <= at_ms
            to_decode = requests.output_tokens[row] > 1
            in_second = to_decode and handed_ms <= at_ms and not decodes and not done_ms <= at_ms
            waits = in_first_queue or in_second
        now["running"] += runs
        now["waiting"] += waits
    return now


@given(RANDOM_LOADS, st.integers(1, 9), st.integers(0, 8), st.integers(1, 8))
def test_no_extreme_is_lost_and_means_are_exact_whatever_the_window(experiment, buckets, at, size):
    result = simulate(experiment)
    _, end_ms = run_span_ms(result)
    begin_ms = end_ms * at / 8
    window = over_time(
        result, begin_ms=begin_ms, end_ms=begin_ms + end_ms * size / 8, buckets=buckets
    )
    edges = window.edges_ms.tolist()
    told = pieces(result, edges)
    for bucket, (left, right) in enumerate(pairwise(edges)):
        inside = [(b, e, now) for b, e, now in told if b >= left and e <= right]
        covered = sum(Fraction(e) - Fraction(b) for b, e, _ in inside)
        for name in NAMES:
            band: Band = getattr(window, name)
            values = [now[name] for _, _, now in inside]
            if covered < Fraction(right) - Fraction(left):
                values.append(0)  # beyond the run's end
            assert band.highest[bucket] == max(values)
            assert band.lowest[bucket] == min(values)
            area = sum(Fraction(now[name]) * (Fraction(e) - Fraction(b)) for b, e, now in inside)
            mean = float(area / (Fraction(right) - Fraction(left)))
            assert band.mean[bucket] == pytest.approx(mean, rel=1e-9, abs=1e-9)


@given(RANDOM_LOADS)
def test_the_queue_is_the_one_that_the_engine_noted_in_each_step(experiment):
    result = simulate(experiment)
    if result.prefill_worker is not None:
        return
    for step in range(min(len(result.steps), 40)):
        start_ms = float(result.steps.start_ms[step])
        shortest = (float(result.steps.end_ms[step]) - start_ms) / 2**20
        found = over_time(result, begin_ms=start_ms, end_ms=start_ms + shortest, buckets=1)
        assert found.waiting.lowest[0] == result.steps.waiting[step]


def test_a_single_spike_is_in_every_zoom_that_holds_it():
    requests = [request(f"r{n}", 1, arrival_ms=4.0 * n) for n in range(500)]
    requests.append(request("spike", 700, arrival_ms=1001.0))
    cost = LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.25, decode_ms_per_token=0.0)
    result = simulate(load(*requests, cost=cost))
    spike = int(np.argmax(result.steps.duration_ms))
    start_ms, longest_ms = result.steps.start_ms[spike], result.steps.duration_ms[spike]
    for half_ms in (1000.0, 100.0, 10.0, 1.0, 0.1):
        found = over_time(
            result, begin_ms=start_ms - half_ms, end_ms=start_ms + half_ms, buckets=300
        )
        assert found.step_ms.highest.max() == longest_ms
        assert found.prefill_tokens.highest.max() == result.steps.prefill_tokens[spike]


def test_a_run_without_a_step_is_nothing_over_one_millisecond():
    result = simulate(load())
    assert run_span_ms(result) == (0.0, 1.0)
    found = over_time(result, begin_ms=0.0, end_ms=1.0, buckets=2)
    assert all(lists(getattr(found, name)) == ([0, 0], [0, 0], [0, 0]) for name in NAMES)


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"begin_ms": -1.0}, "begin_ms: -1.0 is not a number from 0"),
        ({"end_ms": float("nan")}, "end_ms: nan is not a number"),
        ({"end_ms": float("inf")}, "end_ms: inf is not a number"),
        ({"begin_ms": 5.0, "end_ms": 5.0}, "end_ms: 5 leaves no room for 3 buckets after 5"),
        ({"begin_ms": 6.0, "end_ms": 5.0}, "end_ms: 5 leaves no room"),
        ({"buckets": 0}, "buckets: 0 is not a whole number from 1 to 10,000"),
        ({"buckets": 10_001}, "buckets: 10001 is not"),
    ],
)
def test_refusals_name_field_value_and_range(change, sentence):
    result = simulate(load(request("A", 1)))
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        over_time(result, **{"begin_ms": 0.0, "end_ms": 9.0, "buckets": 3, **change})
    assert str(refused.value).startswith(sentence)
