"""The longest waits: by hand, and against every token of every request."""

from collections import defaultdict
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, LinearCost, Request, Workload, simulate
from s11.plan import HandOver
from s11.results import Result
from s11.worst_stalls import (
    WorstStall,
    steps_around,
    stories_around,
    worst_stalls,
)
from tests.loads import (
    load,
    random_experiment,
    random_kv_experiment,
    random_policy_experiment,
    request,
)

RANDOM_LOADS = st.builds(
    lambda draw, make: make(draw),
    st.randoms(use_true_random=False),
    st.sampled_from((random_experiment, random_kv_experiment, random_policy_experiment)),
)


def worst(experiment: Experiment, count: int = 10) -> tuple[WorstStall, ...]:
    return worst_stalls(simulate(experiment), experiment, count=count)


def test_the_chapters_stall_is_the_step_of_the_whole_prompt():
    # The chapter: 4 + 0.018 x 8,192 + 0.05 x 24 = 152.656 ms, after two steps of 5.2 ms.
    (first, second, *_) = worst(Experiment(policy="whole_prompt"))
    assert first.duration_ms == pytest.approx(152.656)
    assert first.start_ms == pytest.approx(10.4)
    assert (first.first_step, first.step, first.last_step) == (2, 2, 2)
    assert (first.request, first.seen_by, first.who) == (None, 24, "a streaming user")
    assert (first.prefill_tokens, first.decode_tokens) == (8192, 24)
    assert (first.chunk_request, first.chunk_tokens) == ("long", 8192)
    assert first.reason == (
        "one step carries 8,192 prompt tokens of “long”, its whole prompt, beside 24 decodes"
    )
    assert first.sentence == (
        "a streaming user and 23 more wait 153 ms for a token, from 10 ms on: " + first.reason
    )
    assert second.duration_ms == pytest.approx(5.2)
    assert second.step == 0  # of equal waits the earliest
    assert second.reason == "a step of 24 decodes takes that long"


def test_a_chunk_is_told_with_what_cut_it():
    (first, *_) = worst(Experiment())  # the chapter, chunk 1,024
    assert first.duration_ms == pytest.approx(23.632)
    assert first.reason == (
        "one step carries 1,024 prompt tokens of “long” (the chunk cap of one request is 1,024), "
        "beside 24 decodes"
    )


def test_steps_that_leave_the_decodes_out_are_one_wait():
    # A has its first token at 1. B and C arrive at 1.5 and 2.5; each is prefilled first, in the
    # steps 2-3 and 3-4, and A's next token comes at 5, 3 after that at 2.
    experiment = load(
        request("A", 1, output_tokens=3),
        request("B", 7, arrival_ms=1.5),
        request("C", 5, arrival_ms=2.5),
        policy="prefill_first",
    )
    (first, second) = worst(experiment)
    assert (first.duration_ms, first.start_ms, first.end_ms) == (3.0, 2.0, 5.0)
    assert (first.first_step, first.last_step) == (2, 4)
    assert (first.request, first.seen_by, first.prefill_tokens) == ("A", 1, 12)
    assert first.reason == (
        "2 steps in a row of prompts alone, without a decode, carry 7 prompt tokens of “B”, its "
        "whole prompt, and 5 of another prompt"
    )
    assert second.duration_ms == 1.0


def test_a_preempted_requests_wait_is_one_with_what_is_computed_anew():
    # Two blocks of 2: B is preempted at 1 with its first token, and A's 4 tokens are cached at
    # 3, when A has its third token. B's prompt of 2 and its output are computed anew in 3-4.
    experiment = load(
        request("A", 2, output_tokens=3),
        request("B", 2, output_tokens=3),
        kv_blocks=2,
        block_size=2,
    )
    (first, *_) = worst(experiment)
    assert (first.request, first.duration_ms, first.preemptions) == ("B", 3.0, 1)
    assert (first.start_ms, first.end_ms) == (1.0, 4.0)
    assert first.reason == (
        "it is preempted once, as KV blocks ran short, and 3 tokens are computed anew"
    )


def test_who_has_its_kv_and_no_seat_waits_for_one():
    # The decode worker has one seat: B's KV is there with A's, and A decodes 4 steps first.
    experiment = load(
        request("A", 1, output_tokens=5),
        request("B", 1, output_tokens=2),
        policy="disaggregated",
        seats=1,
        budget=2,
    )
    result = simulate(experiment)
    (first, *_) = worst_stalls(result, experiment)
    assert first.request == "B"
    assert first.reason.startswith("it has its KV, and waits ")
    assert first.reason.endswith(" for a seat to decode in")
    handed_ms = result.requests.first_token_ms[1]
    assert first.duration_ms == result.requests.last_token_ms[1] - handed_ms


def every_wait(result: Result) -> dict[float, list[tuple[float, int | None]]]:
    """Everyone's waits by the time at which they end: how long, and whose."""
    waits: dict[float, list[tuple[float, int | None]]] = defaultdict(list)
    for row in range(len(result.requests)):
        times = result.token_times_ms(row)
        for begin, end in pairwise(times):
            waits[float(end)].append((float(end - begin), row))
    ends = result.decode_ends_ms()
    for begin, end in zip(np.append(0.0, ends), ends, strict=False):
        waits[float(end)] += [(float(end - begin), None)] * result.streaming_users
    return waits


def test_kv_that_comes_while_a_step_runs_waits_for_no_seat():
    """Both prompts in 0.5 ms, KV 0.25 ms a token: "b" is there at 0.75 ms, "a" (two tokens) at 1.

    "b" decodes from 0.75 to 1.25 ms, and "a" in the step after it, to 1.75 ms.
    """
    requests = tuple(
        Request(request_id=name, prompt_tokens=tokens, output_tokens=2)
        for name, tokens in (("a", 2), ("b", 1))
    )
    experiment = Experiment(
        workload=Workload(requests=requests),
        policy="disaggregated",
        limits=EngineLimits(token_budget=None, chunk_tokens=None),
        cost=LinearCost(fixed_ms=0.5, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
        hand_over=HandOver(
            kv_bytes_per_token=1024, link_bytes_per_s=4_096_000.0, link_latency_ms=0.0
        ),
    )
    first = worst_stalls(simulate(experiment), experiment, count=1)[0]
    assert (first.request, first.start_ms, first.end_ms) == ("a", 1.0, 1.75)
    assert first.reason == "its KV comes while a step runs, and it decodes in the next"


@given(RANDOM_LOADS, st.integers(1, 12))
def test_they_are_the_longest_of_all_waits_one_a_step(experiment, most):
    result = simulate(experiment)
    waits = every_wait(result)
    longest = sorted([(-max(d for d, _ in each), end) for end, each in waits.items()])
    found = worst_stalls(result, experiment, count=most)
    assert [(-stall.duration_ms, stall.end_ms) for stall in found] == longest[:most]
    ids = result.requests.request_id
    for stall in found:
        alike = [row for wait, row in waits[stall.end_ms] if wait == stall.duration_ms]
        assert stall.seen_by == len(alike)
        assert stall.request in {None if row is None else ids[row] for row in alike}
        steps = result.steps
        assert steps.end_ms[stall.last_step] == stall.end_ms
        if result.prefill_worker is None:
            assert steps.start_ms[stall.first_step] >= stall.start_ms
        else:  # the KV may come while a step runs
            assert steps.end_ms[stall.first_step] > stall.start_ms
        inside = range(stall.first_step, stall.last_step + 1)
        assert stall.step in inside
        assert steps.duration_ms[stall.step] == max(steps.duration_ms[list(inside)])
        slices = [row for row in range(len(result.slices)) if result.slices.step[row] in inside]
        tokens = result.slices.tokens[slices]
        assert stall.prefill_tokens == tokens.sum()
        assert stall.chunk_tokens == max(tokens, default=0)
        assert stall.reason
        assert not stall.reason.endswith(".")


def test_nobody_with_two_tokens_is_no_stall():
    assert worst(load(request("A", 9))) == ()
    assert worst(load()) == ()


def test_the_steps_around_end_with_the_run():
    result = simulate(load(request("A", 1, output_tokens=6)))  # 6 steps
    assert steps_around(result, 0, before=2, after=1) == range(2)
    assert steps_around(result, 3, before=1, after=1) == range(2, 5)
    assert steps_around(result, 5) == range(2, 6)


def test_the_stories_around_are_numbered_from_one():
    experiment = load(request("A", 1, output_tokens=6))
    told = stories_around(experiment, simulate(experiment), 4, before=1, after=0)
    assert [story.number for story in told] == [4, 5]


def test_a_long_clock_does_not_part_what_is_alike():
    # Steps of 0.1 ms from a million ms on: their ends differ in the last bits.
    cost = LinearCost(fixed_ms=0.1, prefill_ms_per_token=0.0, decode_ms_per_token=0.0)
    experiment = load(
        request("A", 1, output_tokens=40, arrival_ms=1_000_000.0),
        request("B", 1, output_tokens=40, arrival_ms=1_000_000.0),
        cost=cost,
    )
    found = worst(experiment, count=3)
    assert [stall.last_step for stall in found] == [1, 2, 3]
    assert [stall.first_step for stall in found] == [1, 2, 3]
    assert [stall.seen_by for stall in found] == [2, 2, 2]


@pytest.mark.parametrize("count", [0, 1001, 2.5, True])
def test_a_count_out_of_range_is_refused(count):
    with pytest.raises(ValueError, match=r"count: .* is not a whole number from 1 to 1,000"):
        worst(load(), count=count)


@pytest.mark.parametrize(
    ("step", "change", "sentence"),
    [
        (6, {}, "step: 6 is not a whole number from 0 to 5"),
        (-1, {}, "step: -1 is not"),
        (0, {"before": 51}, "before: 51 is not a whole number from 0 to 50"),
        (0, {"after": -1}, "after: -1 is not"),
    ],
)
def test_a_step_that_is_not_there_is_refused(step, change, sentence):
    result = simulate(load(request("A", 1, output_tokens=6)))
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        steps_around(result, step, **change)
    assert str(refused.value).startswith(sentence)


def test_a_run_without_a_step_has_none_around():
    with pytest.raises(ValueError, match="step: the run has no step"):
        steps_around(simulate(load()), 0)


def test_a_wait_for_a_decode_counts_from_the_hand_over():
    # 1 KiB a token at 1,024 bytes per ms: a prompt of 4 travels 4 ms.
    link = HandOver(kv_bytes_per_token=1024, link_bytes_per_s=1_024_000.0, link_latency_ms=0.0)
    experiment = load(request("A", 4, output_tokens=2), policy="disaggregated")
    (only,) = worst(replace(experiment, hand_over=link))
    assert (only.start_ms, only.end_ms) == (5.0, 6.0)
