"""The tables that leave, against the result's own columns and by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, measure, simulate
from s11.export_tables import TABLES, outcomes, requests_table, slices_table, steps_table, table
from s11.results import REASONS
from tests.loads import (
    EXPERIMENTS,
    load,
    random_kv_experiment,
    random_policy_experiment,
    request,
    times_ms,
)

RANDOM = st.randoms(use_true_random=False)
ANY_EXPERIMENT = st.one_of(
    EXPERIMENTS, RANDOM.map(random_kv_experiment), RANDOM.map(random_policy_experiment)
)


def listed(columns: Any) -> dict[str, list[Any]]:
    return {name: list(column) for name, column in columns.items()}


@settings(max_examples=60)
@given(ANY_EXPERIMENT)
def test_every_table_is_whole(experiment: Experiment) -> None:
    """As many rows as the result has, on both workers; tokens add up between the tables."""
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    tables = {name: table(name, experiment, result, metrics) for name in TABLES}
    workers = [result] if result.prefill_worker is None else [result.prefill_worker, result]
    rows = {
        "steps": sum(len(worker.steps) for worker in workers),
        "slices": len(workers[0].slices),
        "requests": len(experiment.workload.requests),
        "metrics": 1,
    }
    for name, columns in tables.items():
        assert {len(column) for column in columns.values()} == {rows[name]}
    slices, steps = tables["slices"], tables["steps"]
    of_steps = np.zeros(rows["steps"], dtype=np.int64)
    np.add.at(of_steps, slices["step"], slices["tokens"])  # the worker that prefills comes first
    assert of_steps.tolist() == list(steps["prefill_tokens"])
    assert sum(tables["requests"]["preemptions"]) == metrics.preemptions
    assert sum(tables["requests"]["cached_tokens"]) == int(
        workers[0].admissions.cached_tokens.sum()
    )


@settings(max_examples=60)
@given(ANY_EXPERIMENT)
def test_names_stand_for_the_codes(experiment: Experiment) -> None:
    result = simulate(experiment)
    workers = [result] if result.prefill_worker is None else [result.prefill_worker, result]
    columns = listed(steps_table(result))
    begin = 0
    for worker in workers:
        for step in range(len(worker.steps)):
            row = int(worker.steps.blocked_request[step])
            who = None if row < 0 else result.requests.request_id[row]
            assert columns["blocked_request"][begin + step] == who
            assert columns["blocked_by"][begin + step] == REASONS[worker.steps.blocked_by[step]]
            assert columns["step"][begin + step] == step
        begin += len(worker.steps)


def test_the_chapters_slices_by_hand() -> None:
    columns = listed(slices_table(simulate(Experiment())))
    assert columns["worker"] == ["engine"] * 8
    assert columns["step"] == list(range(2, 10))
    assert columns["request_id"] == ["long"] * 8
    assert columns["start_token"] == [1024 * n for n in range(8)]
    assert columns["wanted_tokens"] == [8192 - 1024 * n for n in range(8)]
    assert columns["limited_by"] == ["chunk cap"] * 7 + [None]
    assert columns["start_ms"][:2] == pytest.approx([10.4, 34.032])


def test_what_a_request_saw_by_hand() -> None:
    """One-millisecond steps: a has its tokens at 1, 2, 3; b comes at 1.5 and waits for its seat."""
    both = (request("a", 4, output_tokens=3), request("b", 2, arrival_ms=1.5))
    experiment = load(*both, seats=1, target_ms=1.0)
    result = simulate(experiment)
    assert times_ms(result, "a") == [1.0, 2.0, 3.0]
    columns = listed(requests_table(experiment, result))
    assert columns["request_id"] == ["a", "b"]
    assert columns["ttft_ms"] == [1.0, 2.5]
    assert columns["scheduling_delay_ms"] == [0.0, 1.5]
    assert columns["longest_itl_ms"][0] == 1.0
    assert math.isnan(columns["longest_itl_ms"][1])
    assert columns["latency_ms"] == [3.0, 2.5]
    assert columns["meets_targets"] == [True, True]
    assert columns["outcome"] == ["finished", "finished"]


def test_what_became_of_each() -> None:
    refused = load(request("a", 9), request("b", 2), max_model_len=5)
    assert list(outcomes(simulate(refused))) == ["refused on arrival", "finished"]
    stuck = load(request("a", 9), policy="whole_prompt", budget=5)
    assert list(outcomes(simulate(stuck))) == ["never scheduled"]
    endless = load(request("a", 3, output_tokens=9), block_size=1, kv_blocks=5)
    assert list(outcomes(simulate(endless))) == ["never finished"]
    cut = load(request("a", 3, output_tokens=9))
    assert list(outcomes(simulate(cut, max_steps=2))) == ["cut with the run"]


def test_a_table_that_is_none() -> None:
    experiment = Experiment()
    result = simulate(experiment)
    with pytest.raises(ValueError, match="table: 'tokens' is not one of steps, slices"):
        table("tokens", experiment, result, measure(result, itl_target_ms=50))
