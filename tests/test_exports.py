import csv
import io
import json
import math
from typing import Any, NoReturn

import pytest
from hypothesis import given, settings

from s11 import Experiment, LinearCost, measure, simulate
from s11.exports import rounded, steps_to_csv, to_csv, to_json
from tests.loads import EXPERIMENTS, load, request


def exported(experiment: Experiment) -> Any:
    def refuse(constant: str) -> NoReturn:
        raise AssertionError(f"{constant} is not JSON")

    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return json.loads(to_json(experiment, result, metrics), parse_constant=refuse)


def test_rounding_drops_binary_dust_at_any_depth() -> None:
    dusty = {"a": [0.1 + 0.2, (math.nan, 3)], "b": {"c": 23.631999999999998}, "d": "0.30000000004"}
    assert rounded(dusty) == {"a": [0.3, [None, 3]], "b": {"c": 23.632}, "d": "0.30000000004"}


@settings(max_examples=60)
@given(EXPERIMENTS)
def test_json_holds_the_run(experiment: Experiment) -> None:
    """Times here are short binary fractions of at most eight decimals: nothing is rounded."""
    data, result = exported(experiment), simulate(experiment)
    assert Experiment.from_dict(data["experiment"]) == experiment
    for name in ("start_ms", "duration_ms", "prefill_tokens", "decode_tokens"):
        column = [step[name] for step in data["steps"]]
        assert column == pytest.approx(getattr(result.steps, name).tolist(), abs=1e-9)
    assert data["never_scheduled"] == list(result.never_scheduled)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms).to_dict()
    assert data["metrics"].keys() == metrics.keys()
    for name, value in metrics.items():
        assert data["metrics"][name] == (None if value is None else pytest.approx(value, abs=1e-9))


def test_json_has_the_contracts_keys() -> None:
    data = exported(Experiment())
    assert data.keys() >= {"experiment", "metrics", "steps", "never_scheduled"}
    assert data["metrics"].keys() >= {
        "longest_stall_ms",
        "ttft_ms",
        "steps_over_target",
        "decode_tokens_per_s",
        "makespan_ms",
        "itl_p50_ms",
        "itl_p99_ms",
    }


def test_json_says_who_never_ran_and_what_was_cut() -> None:
    stuck = exported(load(request("a", 9), policy="whole_prompt", budget=5, users=1, tail=1))
    assert stuck["never_scheduled"] == ["a"]
    assert stuck["never_scheduled_because"] == "chunking off"
    assert stuck["stopped_at_max_steps"] is False
    experiment = Experiment()
    cut = simulate(experiment, max_steps=2)
    metrics = measure(cut, itl_target_ms=50)
    assert json.loads(to_json(experiment, cut, metrics))["stopped_at_max_steps"] is True


def test_json_stays_json_for_a_step_of_next_to_no_time() -> None:
    cost = LinearCost(fixed_ms=1e-6, prefill_ms_per_token=0, decode_ms_per_token=0)
    exported(load(request("a", 1, output_tokens=2), cost=cost))


def test_csv_of_steps_reads_back() -> None:
    result = simulate(Experiment())
    rows = list(csv.DictReader(io.StringIO(steps_to_csv(result))))
    assert len(rows) == 13
    assert list(rows[0]) == list(result.steps.columns())
    assert [int(row["prefill_tokens"]) for row in rows] == [0] * 2 + [1024] * 8 + [0] * 3
    assert [row["duration_ms"] for row in rows] == ["5.2"] * 2 + ["23.632"] * 8 + ["5.2"] * 3


def test_csv_quotes_what_needs_it_and_leaves_what_is_missing_empty() -> None:
    text = to_csv({"name": ["a,b", 'c"d', "e\nf"], "ms": [None, math.nan, 1.5]})
    assert text.startswith("name,ms\n")
    assert list(csv.reader(io.StringIO(text)))[1:] == [["a,b", ""], ['c"d', ""], ["e\nf", "1.5"]]


def test_csv_of_nothing_is_its_header() -> None:
    assert to_csv({"a": [], "b": []}) == "a,b\n"


def test_columns_of_several_lengths_are_refused() -> None:
    with pytest.raises(ValueError, match="shorter"):
        to_csv({"a": [1, 2], "b": [1]})
