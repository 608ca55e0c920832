"""The engine against the one-object-per-request simulator, exactly, on thousands of loads."""

import math
import random
from dataclasses import replace

import pytest

from s11 import Experiment, LinearCost, Result, measure, simulate
from tests.loads import load, random_experiment, request
from tests.reference_simulator import ReferenceRun, naive_percentile

LOADS_PER_SEED = 250


def known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def last(times_ms: list[float], wanted: int) -> float | None:
    return times_ms[-1] if len(times_ms) == wanted else None


def assert_same_tables(result: Result, reference: ReferenceRun) -> None:
    steps = result.steps
    assert steps.start_ms.tolist() == [s.start_ms for s in reference.steps]
    assert steps.end_ms.tolist() == [s.end_ms for s in reference.steps]
    assert steps.duration_ms.tolist() == [s.duration_ms for s in reference.steps]
    assert steps.decode_tokens.tolist() == [len(s.decoded) for s in reference.steps]
    assert steps.prefill_tokens.tolist() == [
        sum(tokens for _, _, tokens in s.slices) for s in reference.steps
    ]
    slices = result.slices
    rows = zip(slices.step, slices.request, slices.start_token, slices.tokens, strict=True)
    assert [tuple(map(int, row)) for row in rows] == [
        (number, call.row, start, tokens)
        for number, s in enumerate(reference.steps)
        for call, start, tokens in s.slices
    ]
    assert result.stopped_at_max_steps == reference.stopped


def assert_same_requests(result: Result, reference: ReferenceRun) -> None:
    requests = result.requests
    for call in reference.calls:
        row, times = call.row, call.token_times_ms
        assert requests.arrival_ms[row] == call.arrival_ms
        assert known(requests.first_scheduled_ms[row]) == known(call.first_scheduled_ms)
        assert known(requests.first_token_ms[row]) == (times[0] if times else None)
        assert known(requests.last_token_ms[row]) == last(times, int(call.output_tokens))
        assert result.token_times_ms(row).tolist() == times
    assert list(result.never_scheduled) == [
        requests.request_id[call.row] for call in reference.never_scheduled()
    ]


def assert_same_schedule(result: Result, reference: ReferenceRun) -> None:
    ids = result.requests.request_id
    names = {id(user): f"user-{n}" for n, user in enumerate(reference.users, start=1)}
    names |= {id(call): ids[call.row] for call in reference.calls}
    assert list(result.schedule()) == [
        {names[id(call)]: 1 for call in s.decoded}
        | {names[id(call)]: tokens for call, _, tokens in s.slices}
        for s in reference.steps
    ]


def assert_same_metrics(experiment: Experiment, result: Result, reference: ReferenceRun) -> None:
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    everyone = reference.users + reference.calls
    gaps = [gap for call in everyone for gap in call.gaps_ms]
    ttfts = [c.token_times_ms[0] - c.arrival_ms for c in reference.calls if c.token_times_ms]
    tpots = [
        (c.token_times_ms[-1] - c.token_times_ms[0]) / (len(c.token_times_ms) - 1)
        for c in reference.calls
        if c.done and c.output_tokens > 1
    ]
    assert metrics.longest_stall_ms == max(gaps, default=None)
    assert metrics.itl_p50_ms == naive_percentile(gaps, 50)
    assert metrics.itl_p99_ms == naive_percentile(gaps, 99)
    assert metrics.itl_mean_ms == (pytest.approx(sum(gaps) / len(gaps)) if gaps else None)
    assert metrics.ttft_p50_ms == naive_percentile(ttfts, 50)
    assert metrics.ttft_p99_ms == naive_percentile(ttfts, 99)
    assert metrics.tpot_p50_ms == naive_percentile(tpots, 50)
    assert metrics.tpot_p99_ms == naive_percentile(tpots, 99)
    assert metrics.finished_requests == sum(call.done for call in reference.calls)
    assert metrics.step_count == len(reference.steps)
    longest = max(reference.calls, key=lambda call: call.prompt_tokens, default=None)
    assert metrics.ttft_ms == (
        longest.token_times_ms[0] - longest.arrival_ms
        if longest is not None and longest.token_times_ms
        else None
    )
    target_ms = experiment.itl_target_ms
    assert metrics.steps_over_target == sum(s.duration_ms > target_ms for s in reference.steps)
    if not reference.steps:
        assert (metrics.decode_tokens_per_s, metrics.makespan_ms) == (None, 0.0)
        return
    makespan_ms = reference.steps[-1].end_ms - reference.steps[0].start_ms
    assert metrics.makespan_ms == makespan_ms
    assert metrics.decode_tokens_per_s == pytest.approx(len(gaps) / (makespan_ms / 1000))
    computed = sum(call.computed for call in reference.calls)
    assert metrics.prefill_tokens_per_s == pytest.approx(computed / (makespan_ms / 1000))


@pytest.mark.parametrize("seed", range(12))
def test_random_loads_run_as_one_object_per_request(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(LOADS_PER_SEED):
        experiment = random_experiment(draw)
        result, reference = simulate(experiment), ReferenceRun(experiment)
        assert_same_tables(result, reference)
        assert_same_requests(result, reference)
        assert_same_schedule(result, reference)
        assert_same_metrics(experiment, result, reference)


def test_random_loads_at_the_chapters_cost_run_as_one_object_per_request() -> None:
    draw = random.Random("chapter")
    for _ in range(400):
        experiment = replace(random_experiment(draw), cost=LinearCost())
        result, reference = simulate(experiment), ReferenceRun(experiment)
        assert_same_tables(result, reference)
        assert_same_requests(result, reference)


def test_random_loads_cut_at_any_step_keep_the_steps_before_the_cut() -> None:
    draw = random.Random("cut")
    for _ in range(600):
        experiment = random_experiment(draw)
        if not experiment.workload.tail_steps:
            workload = replace(experiment.workload, tail_steps=1)
            experiment = replace(experiment, workload=workload)
        natural = len(ReferenceRun(experiment).steps)
        max_steps = draw.randrange(1, natural + 2)
        result = simulate(experiment, max_steps=max_steps)
        reference = ReferenceRun(experiment, max_steps)
        assert_same_tables(result, reference)
        assert_same_schedule(result, reference)
        for call in reference.calls:
            assert result.token_times_ms(call.row).tolist() == call.token_times_ms
        assert len(result.never_scheduled) == len(reference.never_scheduled())
        assert result.stopped_at_max_steps == (max_steps < natural)
        assert len(result.steps) == min(max_steps, natural)


def test_where_decodes_are_free_ten_thousand_streams_change_no_time() -> None:
    one = load(request("a", 3000), users=1, lead_in=2, tail=3, chunk=1024)
    many = replace(one, workload=replace(one.workload, streaming_users=10_000))
    alone, crowd = simulate(one), simulate(many)
    assert crowd.steps.end_ms.tolist() == alone.steps.end_ms.tolist() == [1, 2, 3, 4, 5, 6, 7, 8]
    assert crowd.steps.decode_tokens.tolist() == [10_000] * 8
