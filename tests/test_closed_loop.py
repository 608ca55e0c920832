"""Clients that send their next request when their last one ends."""

import re
from dataclasses import replace

import pytest

from s11 import Request, Workload, measure, simulate
from s11.workload import closed_loop_workload
from tests.loads import load, request, schedule, times_ms


def test_a_client_sends_its_next_request_when_its_last_one_ends() -> None:
    """Two clients on a clock of 1 ms a step, prompts in one step, two tokens each."""
    workload = closed_loop_workload(
        clients=2, requests_per_client=2, prompt_tokens=5, output_tokens=2
    )
    experiment = replace(load(), workload=workload)
    assert schedule(experiment) == [
        {"1.1": 5, "2.1": 5},
        {"1.1": 1, "2.1": 1},
        {"1.2": 5, "2.2": 5},
        {"1.2": 1, "2.2": 1},
    ]
    result = simulate(experiment)
    assert dict(zip(result.requests.request_id, result.requests.arrival_ms, strict=True)) == {
        "1.1": 0,
        "2.1": 0,
        "1.2": 2,
        "2.2": 2,
    }
    metrics = measure(result, itl_target_ms=50)
    assert (metrics.ttft_p50_ms, metrics.tpot_p50_ms) == (1, 1)


def test_starts_apart_and_time_to_think() -> None:
    """Client 2 starts at 1.5 ms; each waits 1 ms before it sends again."""
    workload = closed_loop_workload(
        clients=2,
        requests_per_client=2,
        prompt_tokens=4,
        output_tokens=1,
        start_gap_ms=1.5,
        think_ms=1,
    )
    result = simulate(replace(load(), workload=workload))
    # 1.1 runs 0-1, 2.1 from 1.5 on; 1.2 is sent at 2, in the middle of that, and runs from
    # 2.5 on; 2.2 is sent at 3.5, just when that ends.
    assert [times_ms(result, name) for name in ("1.1", "2.1", "1.2", "2.2")] == [
        [1],
        [2.5],
        [3.5],
        [4.5],
    ]
    assert [r.request_id for r in workload.requests] == ["1.1", "2.1", "1.2", "2.2"]


def test_as_many_requests_as_clients_are_in_the_engine_at_every_step() -> None:
    workload = closed_loop_workload(
        clients=7, requests_per_client=9, prompt_tokens=30, output_tokens=11
    )
    result = simulate(replace(load(budget=16), workload=workload))
    requests, steps = result.requests, result.steps
    assert not result.never_finished
    for start_ms in steps.start_ms[: len(steps) // 2]:
        inside = (requests.arrival_ms <= start_ms) & (requests.last_token_ms > start_ms)
        assert inside.sum() == 7


def test_who_waits_for_a_request_that_never_ends_is_never_sent() -> None:
    experiment = load(request("a", 20), Request(request_id="b", prompt_tokens=1, after="a"))
    experiment = replace(experiment, policy="whole_prompt")
    experiment = replace(experiment, limits=replace(experiment.limits, token_budget=10))
    result = simulate(experiment)
    assert result.never_scheduled == ("a", "b")
    assert result.requests.arrival_ms.tolist()[0] == 0
    assert result.requests.arrival_ms[1] != result.requests.arrival_ms[1]  # NaN: never sent


def test_a_client_whose_request_is_refused_sends_its_next() -> None:
    experiment = load(
        request("a", 20), Request(request_id="b", prompt_tokens=3, after="a"), max_model_len=10
    )
    result = simulate(experiment)
    assert result.rejected == ("a",)
    assert times_ms(result, "b") == [1]


@pytest.mark.parametrize(
    ("waits", "sentence"),
    [
        ({"a": "z"}, "after: 'z' is no request of this workload"),
        ({"a": "a"}, "after: 'a' waits for itself"),
        ({"a": "b", "b": "a"}, "after: 'a' waits for itself"),
        ({"a": "", "b": None}, "after: '' is not a text of 1 to 200 characters"),
    ],
)
def test_waits_that_do_not_hang_together_are_refused(
    waits: dict[str, str | None], sentence: str
) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        Workload(
            requests=tuple(
                Request(request_id=name, prompt_tokens=1, after=after)
                for name, after in waits.items()
            )
        )


def test_two_workers_do_not_simulate_clients() -> None:
    workload = closed_loop_workload(
        clients=1, requests_per_client=2, prompt_tokens=1, output_tokens=1
    )
    with pytest.raises(ValueError, match=r"^after: .* not simulated for the two workers"):
        replace(load(), workload=workload, policy="disaggregated")


@pytest.mark.parametrize("name", ["clients", "requests_per_client", "start_gap_ms", "think_ms"])
def test_a_loop_out_of_range_is_refused(name: str) -> None:
    given = {"clients": 2, "requests_per_client": 2, "prompt_tokens": 1, "output_tokens": 1}
    with pytest.raises(ValueError, match=f"^{name}: -1 is not"):
        closed_loop_workload(**given | {name: -1})
