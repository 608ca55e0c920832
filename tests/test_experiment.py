import json
import re
from dataclasses import FrozenInstanceError, replace
from typing import Any

import pytest
from hypothesis import given

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, chapter_scenario
from tests.loads import EXPERIMENTS, load, request


def test_the_defaults_are_the_chapters() -> None:
    experiment = Experiment()
    assert experiment.workload == chapter_scenario()
    assert experiment.policy == "chunked"
    assert experiment.limits == EngineLimits(token_budget=None, chunk_tokens=1024, max_seqs=None)
    assert experiment.cost == LinearCost()
    assert experiment.itl_target_ms == 50


def test_it_is_a_value_frozen_hashable_and_equal_by_content() -> None:
    one, two = load(request("a", 5), target_ms=7), load(request("a", 5), target_ms=7.0)
    assert one == two
    assert len({one, two, replace(one, policy="whole_prompt")}) == 2
    with pytest.raises(FrozenInstanceError):
        one.policy = "whole_prompt"  # type: ignore[misc]


@pytest.mark.parametrize(
    "changed",
    [
        load(request("a", 6)),
        load(request("a", 5), users=1),
        load(request("a", 5), policy="whole_prompt"),
        load(request("a", 5), chunk=9),
        load(request("a", 5), cost=LinearCost()),
        load(request("a", 5), target_ms=51),
        replace(load(request("a", 5)), ttft_target_ms=51),
    ],
)
def test_every_part_counts(changed: Experiment) -> None:
    assert changed != load(request("a", 5))


@given(EXPERIMENTS)
def test_plain_data_and_json_lead_back_to_an_equal_experiment(experiment: Experiment) -> None:
    data = experiment.to_dict()
    assert Experiment.from_dict(data) == experiment
    assert Experiment.from_dict(json.loads(json.dumps(data))) == experiment
    assert hash(Experiment.from_dict(data)) == hash(experiment)


@pytest.mark.parametrize("target", [1, 2.5, 1_000_000])
def test_a_ttft_target_is_part_of_the_plain_data(target: float) -> None:
    experiment = Experiment(ttft_target_ms=target)
    data = experiment.to_dict()
    assert data["ttft_target_ms"] == target
    assert Experiment.from_dict(json.loads(json.dumps(data))) == experiment


@pytest.mark.parametrize("target", [0, -1, float("nan"), float("inf"), 1_000_001, "5", True])
def test_a_ttft_target_out_of_range_is_refused(target: Any) -> None:
    with pytest.raises(ValueError, match=r"^ttft_target_ms: .* is not a number above 0 to 1e\+06$"):
        Experiment(ttft_target_ms=target)


def test_a_run_without_a_ttft_target_is_described_as_before_there_were_any() -> None:
    assert "ttft_target_ms" not in Experiment().to_dict()
    assert Experiment.from_dict(Experiment().to_dict()).ttft_target_ms is None
    assert Experiment.from_dict({"ttft_target_ms": None}).ttft_target_ms is None


def test_the_plain_data_of_a_run() -> None:
    data = load(request("a", 5, output_tokens=2, arrival_ms=1), users=3, budget=9).to_dict()
    assert data == {
        "schema_version": 1,
        "workload": {
            "requests": [
                {"request_id": "a", "prompt_tokens": 5, "arrival_ms": 1, "output_tokens": 2},
            ],
            "streaming_users": 3,
            "lead_in_steps": 0,
            "tail_steps": 0,
            "user_context_tokens": 1024,
        },
        "policy": "chunked",
        "limits": {
            "token_budget": 9,
            "chunk_tokens": None,
            "max_seqs": None,
            "chunking": True,
            "mixed": False,
            "prefill_interval": 1,
            "block_size": 16,
            "kv_blocks": None,
            "prefix_caching": False,
            "reserve_full_prompt": False,
            "max_model_len": None,
            "align_first_chunk": False,
        },
        "cost": {
            "model": "linear",
            "fixed_ms": 1,
            "prefill_ms_per_token": 0,
            "decode_ms_per_token": 0,
        },
        "itl_target_ms": 50,
        "hand_over": {
            "kv_bytes_per_token": 131_072,
            "link_bytes_per_s": 50e9,
            "link_latency_ms": 1,
        },
    }


def test_what_is_left_out_takes_its_default() -> None:
    assert Experiment.from_dict({}) == Experiment()
    assert Experiment.from_dict({"policy": "whole_prompt"}) == Experiment().chunking_off()
    assert Experiment.from_dict({"cost": {}}) == Experiment()
    few = Experiment.from_dict(
        {"workload": {"requests": [{"request_id": "a", "prompt_tokens": 1}]}}
    )
    assert few.workload == Workload(requests=(Request(request_id="a", prompt_tokens=1),))


ROW = {"request_id": "a", "prompt_tokens": 1}


@pytest.mark.parametrize(
    ("data", "refusal"),
    [
        (None, "experiment: not an object"),
        ([], "experiment: not an object"),
        ("chunked", "experiment: not an object"),
        ({"schema_version": 2}, "schema_version: '2' is not known (allowed: 1)"),
        ({"schema_version": None}, "schema_version: 'None' is not known (allowed: 1)"),
        ({"schema_version": [1]}, "schema_version: '[1]' is not known (allowed: 1)"),
        ({"seed": 1}, "experiment: 'seed' is not a known key (allowed: cost, hand_over, "),
        ({1: 1}, "experiment: '1' is not a known key"),
        ({"x" * 999: 1}, f"experiment: '{'x' * 40}' is not a known key"),
        ({"workload": None}, "workload: not an object"),
        ({"workload": {"users": 1}}, "workload: 'users' is not a known key"),
        ({"workload": {"requests": None}}, "requests: not a list"),
        ({"workload": {"requests": {"a": 1}}}, "requests: not a list"),
        ({"workload": {"requests": [5]}}, "request: not an object"),
        ({"workload": {"requests": [{"prompt_tokens": 1}]}}, "request: request_id is missing"),
        ({"workload": {"requests": [{"request_id": "a"}]}}, "request: prompt_tokens is missing"),
        ({"workload": {"requests": [ROW | {"size": 1}]}}, "request: 'size' is not a known key"),
        ({"workload": {"requests": [ROW, ROW]}}, "request_id: 'a' is used twice"),
        ({"workload": {"requests": [], "tail_steps": 1.0}}, "tail_steps: 1.0 is not a whole"),
        ({"workload": {"requests": [], "streaming_users": "5"}}, "streaming_users: '5' is not"),
        ({"limits": 3}, "limits: not an object"),
        ({"limits": {"seats": 3}}, "limits: 'seats' is not a known key"),
        ({"limits": {"max_seqs": True}}, "max_seqs: True is not a whole number"),
        ({"cost": {"model": "roof"}}, "cost model: 'roof' is not one of linear"),
        ({"cost": {"model": None}}, "cost model: None is not one of linear"),
        ({"cost": {"fixed": 3}}, "cost: 'fixed' is not a known key"),
        ({"cost": {"fixed_ms": "4"}}, "fixed_ms: '4' is not a number from 0 to 1e+06"),
        ({"policy": None}, "policy: None is not one of chunked, whole_prompt"),
        ({"policy": "fifo"}, "policy: 'fifo' is not one of chunked, whole_prompt"),
        ({"itl_target_ms": 0}, "itl_target_ms: 0 is not a number above 0 to 1e+06"),
        ({"itl_target_ms": float("nan")}, "itl_target_ms: nan is not a number"),
        ({"itl_target_ms": None}, "itl_target_ms: None is not a number"),
    ],
)
def test_data_of_another_kind_is_refused_by_name(data: Any, refusal: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(refusal)}"):
        Experiment.from_dict(data)


def test_a_schema_version_is_a_number() -> None:
    with pytest.raises(ValueError, match=r"^schema_version: 'True' is not known"):
        Experiment.from_dict({"schema_version": True})


@pytest.mark.parametrize("field", ["token_budget", "max_seqs"])
def test_limits_that_the_streams_alone_exceed_are_refused(field: str) -> None:
    limits = EngineLimits(**{field: 24})  # type: ignore[arg-type]
    assert Experiment(limits=limits).limits == limits
    expected = rf"^{field}: 23 is less than the 24 .*\(allowed: 24 or more, or none\)$"
    with pytest.raises(ValueError, match=expected):
        Experiment(limits=EngineLimits(**{field: 23}))  # type: ignore[arg-type]


def test_variants_change_one_thing_each() -> None:
    base = load(request("a", 5), users=2, budget=50, chunk=3, seats=9)
    assert base.chunking_off() == replace(base, policy="whole_prompt")
    assert base.chunking_off().with_chunk_tokens(4) == replace(
        base, limits=replace(base.limits, chunk_tokens=4)
    )
    with pytest.raises(ValueError, match=r"^chunk_tokens: 0 is not"):
        base.with_chunk_tokens(0)
