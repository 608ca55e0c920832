"""What holds of every run, whatever the load, the limits and the policy."""

from collections import defaultdict
from itertools import pairwise

import numpy as np
from hypothesis import given, settings

from s11 import Experiment, Result, simulate
from tests.loads import EXPERIMENTS

every_run = settings(max_examples=120)


def scheduled_tokens(result: Result) -> dict[str, int]:
    total: dict[str, int] = defaultdict(int)
    for batch in result.schedule():
        for name, tokens in batch.items():
            total[name] += tokens
    return total


@every_run
@given(EXPERIMENTS)
def test_each_prompt_is_computed_once_in_order_and_without_gaps(experiment: Experiment) -> None:
    result = simulate(experiment)
    computed = [0] * len(result.requests)
    step_of: list[int] = [-1] * len(result.requests)
    slices = result.slices
    for step, row, start, tokens in zip(
        slices.step, slices.request, slices.start_token, slices.tokens, strict=True
    ):
        assert tokens >= 1
        assert start == computed[row]
        assert step > step_of[row]
        computed[row] += tokens
        step_of[row] = step
    for row, name in enumerate(result.requests.request_id):
        prompt = result.requests.prompt_tokens[row]
        assert computed[row] == (0 if name in result.never_scheduled else prompt)


@every_run
@given(EXPERIMENTS)
def test_a_finished_request_computed_its_prompt_and_all_but_one_output_token(
    experiment: Experiment,
) -> None:
    result = simulate(experiment)
    total = scheduled_tokens(result)
    for request in experiment.workload.requests:
        if request.request_id not in result.never_scheduled:
            needed = request.prompt_tokens + request.output_tokens - 1
            assert total[request.request_id] == needed
        else:
            assert request.request_id not in total


@every_run
@given(EXPERIMENTS)
def test_every_request_finishes_or_is_reported(experiment: Experiment) -> None:
    result = simulate(experiment)
    unfinished = np.isnan(result.requests.last_token_ms)
    ids = np.array(result.requests.request_id, dtype=object)
    assert tuple(ids[unfinished]) == result.never_scheduled
    assert np.isnan(result.requests.first_scheduled_ms[unfinished]).all()
    assert (result.never_scheduled_because is None) == (not result.never_scheduled)


@every_run
@given(EXPERIMENTS)
def test_budget_seats_and_chunk_cap_are_kept(experiment: Experiment) -> None:
    result = simulate(experiment)
    limits, users = experiment.limits, experiment.workload.streaming_users
    steps, requests = result.steps, result.requests
    assert (steps.prefill_tokens + steps.decode_tokens <= limits.tokens_per_step()).all()
    if experiment.policy == "chunked":
        assert (result.slices.tokens <= limits.tokens_per_slice()).all()
    else:
        assert (
            result.slices.tokens.tolist() == requests.prompt_tokens[result.slices.request].tolist()
        )
    for start_ms, end_ms in zip(steps.start_ms, steps.end_ms, strict=True):
        begun, over = requests.first_scheduled_ms <= start_ms, requests.last_token_ms < end_ms
        assert users + np.count_nonzero(begun & ~over) <= limits.seats()


@every_run
@given(EXPERIMENTS)
def test_no_running_request_is_skipped(experiment: Experiment) -> None:
    """Between its first and its last token a request takes a token in every step."""
    result = simulate(experiment)
    steps, requests = result.steps, result.requests
    users = experiment.workload.streaming_users
    for number, end_ms in enumerate(steps.end_ms):
        running = (requests.first_token_ms < end_ms) & (end_ms <= requests.last_token_ms)
        assert steps.decode_tokens[number] == users + np.count_nonzero(running)


@every_run
@given(EXPERIMENTS)
def test_time_goes_on_and_a_step_is_its_start_its_end_and_its_costs(
    experiment: Experiment,
) -> None:
    """Every time here is a short binary fraction, so equality is exact."""
    steps = simulate(experiment).steps
    assert (np.diff(steps.end_ms) > 0).all()
    assert (steps.duration_ms > 0).all()
    assert (steps.end_ms == steps.start_ms + steps.duration_ms).all()
    assert (steps.start_ms[1:] >= steps.end_ms[:-1]).all()
    assert (steps.fixed_ms + steps.prefill_ms + steps.decode_ms == steps.duration_ms).all()
    assert (steps.prefill_tokens + steps.decode_tokens > 0).all()


@every_run
@given(EXPERIMENTS)
def test_the_engine_sleeps_only_until_an_arrival_and_never_beside_streams(
    experiment: Experiment,
) -> None:
    result = simulate(experiment)
    steps = result.steps
    slept = steps.start_ms[1:] > steps.end_ms[:-1]
    assert np.isin(steps.start_ms[1:][slept], result.requests.arrival_ms).all()
    assert not (slept.any() and experiment.workload.streaming_users)


@every_run
@given(EXPERIMENTS)
def test_a_requests_token_times_are_the_ends_of_the_steps_that_carry_it(
    experiment: Experiment,
) -> None:
    result = simulate(experiment)
    requests, ends_ms = result.requests, result.steps.end_ms
    carried: dict[str, list[float]] = defaultdict(list)
    for number, batch in enumerate(result.schedule()):
        for name in batch:
            carried[name].append(ends_ms[number])
    chunks = np.bincount(result.slices.request, minlength=len(requests))
    for row, name in enumerate(requests.request_id):
        times_ms = result.token_times_ms(row).tolist()
        if name in result.never_scheduled:
            assert times_ms == []
            continue
        assert times_ms == carried[name][chunks[row] - 1 :]
        assert len(times_ms) == requests.output_tokens[row]
        assert times_ms[0] == requests.first_token_ms[row]
        assert times_ms[-1] == requests.last_token_ms[row]
        gaps_ms = [after - before for before, after in pairwise(times_ms)]
        begin = int(np.searchsorted(ends_ms, times_ms[0])) + 1
        assert gaps_ms == result.steps.duration_ms[begin : begin + len(gaps_ms)].tolist()


@every_run
@given(EXPERIMENTS)
def test_first_come_first_served(experiment: Experiment) -> None:
    """Whoever came first begins first, and never before it came."""
    requests = simulate(experiment).requests
    begun = requests.first_scheduled_ms[~np.isnan(requests.first_scheduled_ms)]
    assert (np.diff(requests.arrival_ms) >= 0).all()
    assert (np.diff(begun) >= 0).all()
    assert not np.isnan(requests.first_scheduled_ms[: len(begun)]).any()
    assert (begun >= requests.arrival_ms[: len(begun)]).all()


@every_run
@given(EXPERIMENTS)
def test_the_schedule_is_the_tables(experiment: Experiment) -> None:
    result = simulate(experiment)
    batches = list(result.schedule())
    users = {f"user-{n}" for n in range(1, experiment.workload.streaming_users + 1)}
    sliced = np.bincount(
        result.slices.step, weights=result.slices.tokens, minlength=len(result.steps)
    )
    assert sliced.tolist() == result.steps.prefill_tokens.tolist()
    assert [sum(batch.values()) for batch in batches] == (
        result.steps.prefill_tokens + result.steps.decode_tokens
    ).tolist()
    assert all(users <= batch.keys() for batch in batches)
