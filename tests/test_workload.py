import itertools
import re
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from s11 import Request, Workload, chapter_scenario, poisson_workload
from tests.loads import request

GOOD = {"request_id": "a", "prompt_tokens": 1, "arrival_ms": 0.0, "output_tokens": 1}


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("prompt_tokens", 0, "from 1 to 16,777,216"),
        ("prompt_tokens", 16_777_217, "from 1 to 16,777,216"),
        ("prompt_tokens", 1.5, "from 1 to 16,777,216"),
        ("prompt_tokens", True, "from 1 to 16,777,216"),
        ("output_tokens", 0, "from 1 to 16,777,216"),
        ("output_tokens", "3", "from 1 to 16,777,216"),
        ("arrival_ms", -0.001, "from 0 to 1e+12"),
        ("arrival_ms", float("nan"), "from 0 to 1e+12"),
        ("arrival_ms", float("inf"), "from 0 to 1e+12"),
        ("arrival_ms", 1.1e12, "from 0 to 1e+12"),
        ("request_id", "", "1 to 200 characters"),
        ("request_id", "x" * 201, "1 to 200 characters"),
        ("request_id", 7, "1 to 200 characters"),
    ],
)
def test_a_request_refuses_and_names_field_value_and_range(
    field: str, value: object, allowed: str
) -> None:
    shown = re.escape(str(value)[:40])
    with pytest.raises(ValueError, match=rf"^{field}: .*{shown}.*{re.escape(allowed)}$"):
        Request(**{**GOOD, field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("field", "value", "allowed"),
    [
        ("streaming_users", -1, "from 0 to 100,000"),
        ("streaming_users", 100_001, "from 0 to 100,000"),
        ("lead_in_steps", 10_001, "from 0 to 10,000"),
        ("lead_in_steps", 0.5, "from 0 to 10,000"),
        ("tail_steps", -3, "from 0 to 10,000"),
    ],
)
def test_a_workload_refuses_and_names_field_value_and_range(
    field: str, value: object, allowed: str
) -> None:
    with pytest.raises(ValueError, match=rf"^{field}: {value} is not a whole number {allowed}$"):
        Workload(requests=(), **{field: value})  # type: ignore[arg-type]


def test_a_request_id_used_twice_is_refused() -> None:
    with pytest.raises(ValueError, match=r"^request_id: 'b' is used twice$"):
        Workload(requests=(request("a", 1), request("b", 1), request("b", 2)))


def test_requests_lie_in_arrival_order_and_those_of_one_moment_keep_theirs() -> None:
    given = [request(n, 1, arrival_ms=t) for n, t in (("a", 2), ("b", 1), ("c", 2), ("d", 0))]
    assert [r.request_id for r in Workload(requests=tuple(given)).requests] == ["d", "b", "a", "c"]


def test_values_are_frozen_hashable_and_equal_by_value() -> None:
    one = Workload(requests=(request("a", 1, arrival_ms=3),), streaming_users=2)
    two = Workload(requests=(request("a", 1, arrival_ms=3.0),), streaming_users=2)
    assert one == two
    assert hash(one) == hash(two)
    assert one != replace(one, tail_steps=1)
    with pytest.raises(FrozenInstanceError):
        one.requests[0].prompt_tokens = 5  # type: ignore[misc]
    with pytest.raises(FrozenInstanceError):
        one.streaming_users = 5  # type: ignore[misc]


def test_a_list_of_requests_becomes_a_tuple() -> None:
    workload = Workload(requests=[request("a", 1)])  # type: ignore[arg-type]
    assert workload.requests == (request("a", 1),)


def test_the_chapters_scenario() -> None:
    scenario = chapter_scenario()
    (long,) = scenario.requests
    assert (long.prompt_tokens, long.output_tokens, long.arrival_ms) == (8192, 1, 0)
    assert scenario.streaming_users == 24
    assert (scenario.lead_in_steps, scenario.tail_steps) == (2, 3)


def test_poisson_arrivals_have_the_rate_and_the_spread_of_a_poisson_process() -> None:
    """20,000 exponential gaps of mean 125 ms: the standard error is 125 / sqrt(20000) = 0.9."""
    workload = poisson_workload(
        request_count=20_000, rate_per_s=8, prompt_tokens=5, output_tokens=6, seed=3
    )
    arrivals = [r.arrival_ms for r in workload.requests]
    gaps = np.array([b - a for a, b in itertools.pairwise([0.0, *arrivals])])
    assert gaps.mean() == pytest.approx(125, abs=4 * 125 / 20_000**0.5)
    assert gaps.std() == pytest.approx(125, rel=0.05)
    assert np.mean(gaps > 125) == pytest.approx(np.exp(-1), abs=0.02)
    assert {(r.prompt_tokens, r.output_tokens) for r in workload.requests} == {(5, 6)}


def test_a_seed_fixes_the_arrivals() -> None:
    def arrivals(seed: int) -> Workload:
        return poisson_workload(
            request_count=9, rate_per_s=1, prompt_tokens=1, output_tokens=1, seed=seed
        )

    assert arrivals(1) == arrivals(1)
    assert arrivals(1) != arrivals(2)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("request_count", -1),
        ("rate_per_s", 0),
        ("rate_per_s", float("nan")),
        ("prompt_tokens", 0),
        ("output_tokens", 0),
    ],
)
def test_poisson_refuses_by_field(field: str, value: float) -> None:
    good = {"request_count": 1, "rate_per_s": 1, "prompt_tokens": 1, "output_tokens": 1, "seed": 0}
    with pytest.raises(ValueError, match=rf"^{field}: {value} is not "):
        poisson_workload(**{**good, field: value})  # type: ignore[arg-type]
