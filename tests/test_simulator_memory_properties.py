"""What must hold of every run with KV blocks, whatever the load and the scheduler."""

import random

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, Result, measure, simulate
from s11.metrics import inter_token_gaps
from s11.results import REASONS
from tests.loads import random_kv_experiment

RUNS = st.integers(0, 2**32 - 1).map(
    lambda seed: (lambda experiment: (experiment, simulate(experiment)))(
        random_kv_experiment(random.Random(seed))
    )
)
Run = tuple[Experiment, Result]


@settings(max_examples=300, deadline=None)
@given(RUNS)
def test_the_pool_the_budget_and_the_seats_are_kept(run: Run) -> None:
    experiment, result = run
    limits, steps = experiment.limits, result.steps
    if limits.kv_blocks is not None:
        assert steps.kv_blocks.max(initial=0) <= limits.kv_blocks
    if limits.token_budget is not None:
        tokens = steps.prefill_tokens + steps.decode_tokens
        assert tokens.max(initial=0) <= limits.token_budget
    for batch, held in zip(result.schedule(), steps.held_decodes, strict=True):
        if limits.max_seqs is not None:
            assert len(batch) + held <= limits.max_seqs + experiment.workload.streaming_users


@settings(max_examples=300, deadline=None)
@given(RUNS)
def test_every_token_is_computed_or_cached_and_what_is_lost_is_computed_again(run: Run) -> None:
    """From each admission on: hits, slices and decodes up to the next preemption or the end."""
    _, result = run
    slices, ids = result.slices, result.requests.request_id
    scheduled = dict.fromkeys(ids, 0)
    held: dict[str, int] = {}
    lost = result.preempted()
    hits = result.cached()
    admitted = {
        (int(step), ids[row])
        for step, row in zip(result.admissions.step, result.admissions.request, strict=True)
    }
    for step, batch in enumerate(result.schedule()):
        for name in lost.get(step, []):
            del held[name]
        for name, tokens in batch.items():
            if name.startswith("user-"):
                continue
            if (step, name) in admitted:
                assert name not in held
                held[name] = hits.get(step, {}).get(name, 0)
            held[name] += tokens
            scheduled[name] += tokens
    for row, name in enumerate(ids):
        if not np.isnan(result.requests.last_token_ms[row]):
            needed = result.requests.prompt_tokens[row] + result.requests.output_tokens[row] - 1
            assert held[name] == needed
            assert scheduled[name] >= needed - sum(hit.get(name, 0) for hit in hits.values())
    assert (slices.tokens <= slices.wanted_tokens).all()
    assert ((slices.tokens < slices.wanted_tokens) == (slices.limited_by > 0)).all()


@settings(max_examples=300, deadline=None)
@given(RUNS)
def test_tokens_come_one_after_the_other_and_gaps_are_all_accounted_for(run: Run) -> None:
    experiment, result = run
    gaps_ms, weights = inter_token_gaps(result)
    assert (weights >= 0).all()
    times = [result.token_times_ms(row) for row in range(len(result.requests))]
    users = experiment.workload.streaming_users
    user_times = np.concatenate(([0.0], result.decode_ends_ms()))
    expected = sorted(
        [float(gap) for each in times for gap in np.diff(each)]
        + [float(gap) for gap in np.diff(user_times)] * users
    )
    seen = sorted(np.repeat(gaps_ms, weights).tolist())
    assert seen == expected  # the loads' times are short binary fractions
    assert all(gap > 0 for gap in seen)
    for row, each in enumerate(times):
        if not np.isnan(result.requests.last_token_ms[row]):
            assert len(each) == result.requests.output_tokens[row]
            assert each[-1] == result.requests.last_token_ms[row]
    figures = measure(result, itl_target_ms=experiment.itl_target_ms)
    assert figures.longest_stall_ms == (max(expected) if expected else None)


@settings(max_examples=300, deadline=None)
@given(RUNS)
def test_whoever_is_blocked_is_named_with_a_reason(run: Run) -> None:
    experiment, result = run
    steps = result.steps
    assert ((steps.blocked_by > 0) == (steps.blocked_request >= 0)).all()
    assert steps.blocked_by.max(initial=0) < len(REASONS)
    # Someone waits only where someone is blocked; the tail is after all that.
    workload = experiment.workload
    served = len(steps) - (workload.tail_steps if workload.streaming_users else 0)
    assert ((steps.waiting == 0) | (steps.blocked_by > 0))[:served].all()
