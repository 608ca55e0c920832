"""Runs small enough to follow by hand: on the one-millisecond clock, step numbers are times."""

import numpy as np
import pytest

from s11 import Experiment, LinearCost, simulate
from tests.loads import load, request, schedule, times_ms

NOTHING: list[float] = []


def test_a_prompt_is_sliced_and_its_last_chunk_yields_the_first_token() -> None:
    result = simulate(load(request("a", 10, output_tokens=3), chunk=4))
    assert list(result.schedule()) == [{"a": 4}, {"a": 4}, {"a": 2}, {"a": 1}, {"a": 1}]
    assert result.slices.start_token.tolist() == [0, 4, 8]
    assert times_ms(result, "a") == [3, 4, 5]
    assert result.requests.first_scheduled_ms[0] == 0
    assert (result.requests.first_token_ms[0], result.requests.last_token_ms[0]) == (3, 5)


def test_one_output_token_needs_no_decode() -> None:
    result = simulate(load(request("a", 10)))
    assert list(result.schedule()) == [{"a": 10}]
    assert result.steps.decode_tokens.tolist() == [0]
    assert times_ms(result, "a") == [1]


def test_a_one_token_prompt_takes_one_slice_of_one_token() -> None:
    assert schedule(load(request("a", 1, output_tokens=2), chunk=512)) == [{"a": 1}, {"a": 1}]


def test_many_output_tokens_come_one_a_step() -> None:
    result = simulate(load(request("a", 7, output_tokens=1000)))
    assert times_ms(result, "a") == list(range(1, 1001))
    assert result.steps.decode_tokens.tolist() == [0] + [1] * 999


@pytest.mark.parametrize(
    ("policy", "steps"),
    [
        ("whole_prompt", [{"a": 8}, {"b": 8, "c": 2}]),
        ("chunked", [{"a": 8, "b": 2}, {"b": 6, "c": 2}]),
    ],
)
def test_nobody_overtakes_the_head_of_the_line(policy: str, steps: list[dict[str, int]]) -> None:
    """Budget 10: c's two tokens would fit beside a's eight, but b is before it."""
    line = load(request("a", 8), request("b", 8), request("c", 2), policy=policy, budget=10)
    assert schedule(line) == steps


def test_decodes_take_their_tokens_from_the_budget_first() -> None:
    """Budget 4: beside a's decode there are three tokens for b."""
    a, b = request("a", 2, output_tokens=4), request("b", 5, arrival_ms=1)
    assert schedule(load(a, b, budget=4)) == [
        {"a": 2},
        {"a": 1, "b": 3},
        {"a": 1, "b": 2},
        {"a": 1},
    ]


def test_prompts_share_a_step_each_under_the_chunk_cap() -> None:
    """Cap 4, budget 10: two slices of four, and what is left for the third."""
    three = [request(name, 6) for name in "abc"]
    assert schedule(load(*three, chunk=4, budget=10)) == [
        {"a": 4, "b": 4, "c": 2},
        {"a": 2, "b": 2, "c": 4},
    ]


def test_the_budget_cuts_a_chunk_below_the_cap() -> None:
    assert schedule(load(request("a", 10), chunk=8, budget=6)) == [{"a": 6}, {"a": 4}]


def test_a_whole_prompt_as_long_as_the_budget_runs() -> None:
    both = [request("a", 10), request("b", 10)]
    assert schedule(load(*both, policy="whole_prompt", budget=10)) == [{"a": 10}, {"b": 10}]


def test_the_chunk_cap_means_nothing_with_chunking_off() -> None:
    assert schedule(load(request("a", 10), policy="whole_prompt", chunk=3)) == [{"a": 10}]


@pytest.mark.parametrize("policy", ["chunked", "whole_prompt"])
def test_a_seat_is_held_until_the_last_token(policy: str) -> None:
    """One seat: b waits for a's third token at 3 ms, although the budget is endless."""
    a, b = request("a", 2, output_tokens=3), request("b", 1)
    result = simulate(load(a, b, policy=policy, seats=1))
    assert list(result.schedule()) == [{"a": 2}, {"a": 1}, {"a": 1}, {"b": 1}]
    assert result.requests.first_scheduled_ms.tolist() == [0, 3]


def test_a_prompt_in_progress_holds_a_seat() -> None:
    two = [request("a", 4), request("b", 1), request("c", 1)]
    assert schedule(load(*two, chunk=2, seats=2)) == [{"a": 2, "b": 1}, {"a": 2, "c": 1}]


@pytest.mark.parametrize(
    ("arrival_ms", "first_scheduled_ms"),
    [(0.0, 0), (0.25, 1), (1.0, 1), (1.0000001, 2), (2.0, 2), (2.75, 3)],
)
@pytest.mark.parametrize("policy", ["chunked", "whole_prompt"])
def test_an_arrival_is_seen_by_the_first_step_that_starts_at_or_after_it(
    policy: str, arrival_ms: float, first_scheduled_ms: float
) -> None:
    """Steps start at 0, 1, 2, 3 ms while a decodes."""
    a, b = request("a", 1, output_tokens=5), request("b", 3, arrival_ms=arrival_ms)
    result = simulate(load(a, b, policy=policy))
    row = result.requests.request_id.index("b")
    assert result.requests.first_scheduled_ms[row] == first_scheduled_ms
    assert times_ms(result, "b") == [first_scheduled_ms + 1]


def test_an_arrival_interrupts_equal_chunks_at_the_next_step() -> None:
    a, b = request("a", 12), request("b", 2, arrival_ms=1.5)
    assert schedule(load(a, b, chunk=3)) == [{"a": 3}, {"a": 3}, {"a": 3, "b": 2}, {"a": 3}]


def test_a_last_token_interrupts_equal_chunks_and_frees_its_budget() -> None:
    """Budget 3: b gets two tokens a step while a decodes, and three after a's last token."""
    a, b = request("a", 1, output_tokens=3), request("b", 10)
    assert schedule(load(a, b, budget=3)) == [
        {"a": 1, "b": 2},
        {"a": 1, "b": 2},
        {"a": 1, "b": 2},
        {"b": 3},
        {"b": 1},
    ]


def test_the_engine_sleeps_where_there_is_nothing_to_do() -> None:
    first, later = request("a", 1, arrival_ms=2), request("b", 1, arrival_ms=10.5)
    result = simulate(load(first, later))
    assert result.steps.start_ms.tolist() == [2, 10.5]
    assert result.steps.end_ms.tolist() == [3, 11.5]
    assert result.steps.duration_ms.tolist() == [1, 1]
    assert times_ms(result, "b") == [11.5]


def test_an_arrival_at_the_end_of_the_last_step_finds_no_gap() -> None:
    result = simulate(load(request("a", 1), request("b", 1, arrival_ms=1)))
    assert result.steps.start_ms.tolist() == [0, 1]


def test_users_stream_through_what_would_be_a_gap() -> None:
    result = simulate(load(request("a", 1, arrival_ms=2.5), users=2))
    assert list(result.schedule()) == [{"user-1": 1, "user-2": 1}] * 3 + [
        {"user-1": 1, "user-2": 1, "a": 1}
    ]


def test_requests_of_one_moment_keep_the_order_of_the_file() -> None:
    late, b, a = request("late", 1, arrival_ms=1), request("b", 1), request("a", 1)
    assert schedule(load(late, b, a, seats=1)) == [{"b": 1}, {"a": 1}, {"late": 1}]
    assert simulate(load(late, b, a)).requests.request_id == ("b", "a", "late")


def test_lead_in_and_tail_are_decode_only_and_the_requests_clock_starts_after_the_lead_in() -> None:
    result = simulate(load(request("a", 4), users=1, lead_in=2, tail=3, chunk=2))
    stream = {"user-1": 1}
    assert list(result.schedule()) == [stream] * 2 + [stream | {"a": 2}] * 2 + [stream] * 3
    assert result.requests.arrival_ms.tolist() == [2]
    assert times_ms(result, "a") == [4]


def test_without_streams_there_is_neither_lead_in_nor_tail() -> None:
    assert schedule(load(request("a", 4), lead_in=2, tail=3)) == [{"a": 4}]


def test_without_requests_only_lead_in_and_tail_pass() -> None:
    assert schedule(load(users=1, lead_in=2, tail=3)) == [{"user-1": 1}] * 5


def test_nothing_to_do_at_all_is_an_empty_run() -> None:
    result = simulate(load())
    assert (len(result.steps), len(result.slices), len(result.requests)) == (0, 0, 0)
    assert result.steps.start_ms.dtype == np.float64
    assert not result.stopped_at_max_steps


def test_the_costs_of_a_step_are_those_of_what_it_carries() -> None:
    """Cost 2 + 0.5 a prefill token + 0.25 a decode token; three prompt tokens, two decodes."""
    cost = LinearCost(fixed_ms=2, prefill_ms_per_token=0.5, decode_ms_per_token=0.25)
    steps = simulate(load(request("a", 3), users=2, lead_in=1, cost=cost)).steps
    assert steps.duration_ms.tolist() == [2 + 0.5, 2 + 1.5 + 0.5]
    assert steps.fixed_ms.tolist() == [2, 2]
    assert steps.prefill_ms.tolist() == [0, 1.5]
    assert steps.decode_ms.tolist() == [0.5, 0.5]
    assert steps.end_ms.tolist() == [2.5, 6.5]


@pytest.mark.parametrize(
    ("max_steps", "steps", "stopped"), [(1, 1, True), (6, 6, True), (7, 7, False), (8, 7, False)]
)
def test_a_run_is_cut_at_max_steps_and_says_so(max_steps: int, steps: int, stopped: bool) -> None:
    """Two lead-in steps, two chunks, three tail steps: seven."""
    seven = load(request("a", 4), users=1, lead_in=2, tail=3, chunk=2)
    result = simulate(seven, max_steps=max_steps)
    assert (len(result.steps), result.stopped_at_max_steps) == (steps, stopped)


def test_a_cut_run_leaves_the_times_that_never_came_open() -> None:
    result = simulate(load(request("a", 9), request("b", 1, output_tokens=5), chunk=3), max_steps=2)
    first, last = result.requests.first_token_ms, result.requests.last_token_ms
    assert np.isnan(first[0])
    assert first[1] == 1
    assert np.isnan(last).all()
    assert times_ms(result, "a") == NOTHING
    assert times_ms(result, "b") == [1, 2]
    assert result.never_scheduled == ()


def test_who_waits_when_a_run_is_cut_may_still_have_run() -> None:
    """One seat: at 2 ms a still decodes, and b and c wait for its third token."""
    line = load(request("a", 1, output_tokens=3), request("b", 1), request("c", 1), seats=1)
    assert simulate(line, max_steps=2).never_scheduled == ()
    assert simulate(line, max_steps=2).never_scheduled_because is None
    assert simulate(line, max_steps=5).never_scheduled == ()


def test_a_run_with_streams_and_no_tail_that_is_cut_says_so() -> None:
    """Budget 2 beside one stream: a takes ten steps; three are run, and b would come after it."""
    ten = load(request("a", 10), request("b", 1), users=1, budget=2)
    result = simulate(ten, max_steps=3)
    assert result.stopped_at_max_steps
    assert result.never_scheduled == ()


def test_a_request_that_the_cut_step_would_have_begun_has_not_begun() -> None:
    result = simulate(load(request("a", 1), request("b", 1), seats=1), max_steps=1)
    assert result.slices.request.tolist() == [0]
    assert np.isnan(result.requests.first_scheduled_ms[1])


@pytest.mark.parametrize("max_steps", [0, -1])
def test_less_than_one_step_is_refused(max_steps: int) -> None:
    with pytest.raises(ValueError, match=rf"max_steps: {max_steps} .* from 1 to"):
        simulate(Experiment(), max_steps=max_steps)


def test_a_step_too_short_for_the_clock_is_refused_or_counted() -> None:
    """At 1e12 ms a float resolves 1.2e-4 ms; the step takes a millionth of a millisecond."""
    cost = LinearCost(fixed_ms=1e-6, prefill_ms_per_token=0, decode_ms_per_token=0)
    try:
        steps = simulate(load(request("a", 1, arrival_ms=1e12), cost=cost)).steps
    except ValueError:
        return
    assert len(steps) == 1
