"""Requests that no later step could begin: said, with the reason, and never looped over."""

import pytest

from s11 import Experiment, simulate
from tests.loads import load, request, times_ms


def never(experiment: Experiment) -> tuple[tuple[str, ...], str | None]:
    result = simulate(experiment)
    assert not result.stopped_at_max_steps
    return result.never_scheduled, result.never_scheduled_because


def test_everyone_behind_a_prompt_that_never_runs_waits_for_ever() -> None:
    """Budget 10: a runs, b's eleven tokens never do, and c and d stand behind it."""
    line = load(
        request("a", 5, output_tokens=3),
        request("b", 11),
        request("c", 1),
        request("d", 1, arrival_ms=500),
        policy="whole_prompt",
        budget=10,
    )
    result = simulate(line)
    assert result.never_scheduled == ("b", "c", "d")
    assert result.never_scheduled_because == "chunking off"
    assert list(result.schedule()) == [{"a": 5}, {"a": 1}, {"a": 1}]
    assert times_ms(result, "c") == []


def test_who_came_before_it_still_runs() -> None:
    line = load(
        request("a", 10), request("b", 11, arrival_ms=0.5), policy="whole_prompt", budget=10
    )
    assert never(line) == (("b",), "chunking off")
    assert times_ms(simulate(line), "a") == [1]


def test_chunking_on_runs_what_chunking_off_never_does() -> None:
    line = load(request("b", 11), request("c", 1), budget=10)
    assert never(line) == ((), None)


@pytest.mark.parametrize(("prompt_tokens", "runs"), [(7, True), (8, False)])
def test_chunking_off_a_prompt_must_fit_beside_the_streams(prompt_tokens: int, runs: bool) -> None:
    """Budget 10 and three streams: seven tokens fit, eight never do."""
    line = load(request("a", prompt_tokens), users=3, policy="whole_prompt", budget=10, tail=1)
    assert never(line) == (((), None) if runs else (("a",), "chunking off"))


@pytest.mark.parametrize(("budget", "runs"), [(4, True), (3, False)])
def test_streams_that_take_the_whole_budget_leave_nothing_for_a_chunk(
    budget: int, runs: bool
) -> None:
    line = load(request("a", 2), request("b", 1), users=3, budget=budget, lead_in=1, tail=1)
    assert never(line) == (((), None) if runs else (("a", "b"), "token budget"))


@pytest.mark.parametrize("policy", ["chunked", "whole_prompt"])
@pytest.mark.parametrize(("seats", "runs"), [(4, True), (3, False)])
def test_streams_that_hold_every_seat_let_nobody_in(policy: str, seats: int, runs: bool) -> None:
    line = load(request("a", 2), request("b", 1), users=3, seats=seats, policy=policy, tail=1)
    assert never(line) == (((), None) if runs else (("a", "b"), "seats"))


def test_streams_go_on_until_the_last_arrival_and_then_the_tail() -> None:
    """a waits from 0 ms and b from 3 ms; nobody else comes, so after b only the tail passes."""
    line = load(request("a", 1), request("b", 1, arrival_ms=3), users=2, seats=2, lead_in=1, tail=2)
    result = simulate(line)
    assert len(result.steps) == 1 + 3 + 2
    assert result.steps.decode_tokens.tolist() == [2] * 6
    assert result.never_scheduled == ("a", "b")


def test_a_request_that_only_waits_for_another_is_not_reported() -> None:
    line = load(request("a", 5, output_tokens=50), request("b", 5), seats=1)
    assert never(line) == ((), None)


def test_a_run_of_which_nothing_can_begin_has_no_steps() -> None:
    line = load(request("a", 11), request("b", 1), policy="whole_prompt", budget=10)
    result = simulate(line)
    assert len(result.steps) == 0
    assert result.never_scheduled == ("a", "b")
