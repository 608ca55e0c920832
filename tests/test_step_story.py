"""What a step's story says: tiny loads on the one-millisecond clock, lines worked out by hand."""

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, Request, Workload, simulate
from s11.results import Result
from s11.scenes import SCENES
from s11.step_story import StepStory, names, step_stories, story_text
from s11.step_tables import Standing
from tests.loads import CLOCK, load, random_kv_experiment, random_policy_experiment, request


def told(experiment: Experiment) -> list[StepStory]:
    return step_stories(experiment, simulate(experiment))


def lines(experiment: Experiment, step: int) -> tuple[str, ...]:
    return told(experiment)[step - 1].lines


def kv_load(*requests: Request, policy: str = "chunked", **limits: Any) -> Experiment:
    return Experiment(
        workload=Workload(requests=requests),
        policy=policy,
        limits=EngineLimits(**{"chunk_tokens": None, "block_size": 4} | limits),
        cost=CLOCK,
    )


TWO = (request("A", 4, output_tokens=3), request("B", 6))


def test_budget_cuts_the_second_prompt():
    """Budget 5: A 4, B 1; then A decodes and B gets 4 of 5; then A ends beside B's last."""
    experiment = load(*TWO, budget=5)
    first, second, third = told(experiment)
    assert first.head == "Step 1: 0.0 to 1.0 ms, 5 prefill tokens"
    assert first.lines == (
        "“A” gets all 4 tokens that it still wants.",
        "“B” gets 1 of the 6 tokens that it wants: no more is left of the token budget.",
        "Room: 5 of 5 budget tokens used, 0 left; 2 requests running, with no limit on seats.",
        "At its end “A” gets its first token.",
    )
    assert second.head == "Step 2: 1.0 to 2.0 ms, 4 prefill + 1 decode tokens"
    assert second.lines == (
        "“B” gets 4 of the 5 tokens that it wants: no more is left of the token budget.",
        "“A” gets 1 decode token.",
        "Room: 5 of 5 budget tokens used, 0 left; 2 requests running, with no limit on seats.",
    )
    assert third.lines == (
        "“B” gets the 1 token that it still wants.",
        "“A” gets 1 decode token.",
        "Room: 2 of 5 budget tokens used, 3 left; 2 requests running, with no limit on seats.",
        "At its end “B” gets its first token and “A” and “B” are done.",
    )


def test_cap_is_named_and_nothing_said_of_a_budget_that_is_not():
    assert lines(load(request("A", 5), chunk=3), 1) == (
        "“A” gets 3 of the 5 tokens that it wants: the chunk cap of one request is 3.",
        "Room: 1 request running, with no limit on seats.",
    )


def test_whole_prompt_that_does_not_fit_holds_up_those_behind():
    """Budget 5: A takes 4, B wants 6 whole: never; C stands behind it."""
    experiment = load(*TWO, request("C", 1), request("D", 1), policy="whole_prompt", budget=5)
    assert lines(experiment, 1)[1] == (
        "“B” gets nothing: it is taken whole or not at all, and the 1 token left of the budget is "
        "too few. 2 more wait behind it."
    )
    assert lines(experiment, 2)[1].startswith(
        "“B” gets nothing: it is taken whole or not at all, and the 4 tokens left of the budget are"
    )


def test_prefill_first_holds_decodes_and_shares_no_budget_with_them():
    """Step 2 prefills C alone; A and B, begun in step 1, stand still."""
    experiment = load(
        request("A", 2, output_tokens=4),
        request("B", 2, output_tokens=4),
        request("C", 3, arrival_ms=1.0),
        request("D", 9, arrival_ms=1.0),
        policy="prefill_first",
        budget=4,
    )
    assert lines(experiment, 2)[:3] == (
        "“C” gets all 3 tokens that it still wants.",
        "“A” and “B” stand still: this step carries prompts alone.",
        "“D” gets nothing: it is taken whole or not at all, and the 1 token left of the budget is "
        "too few.",
    )
    # A decode step takes nothing from the budget of prompts.
    assert "the 4 tokens left of the budget are too few" in lines(experiment, 3)[1]


def test_who_began_before_a_prompt_step_stands_still_and_nobody_else():
    """Steps 2 and 3 are C's and D's alone, and each begins to decode only after its own.

    C's first token comes at the end of step 2, so in step 3 it stands still, and D does not.
    """
    experiment = load(
        request("A", 2, output_tokens=4),
        request("B", 2, output_tokens=4),
        request("C", 4, output_tokens=2, arrival_ms=1.0),
        request("D", 4, output_tokens=2, arrival_ms=1.0),
        policy="prefill_first",
        budget=4,
    )
    assert lines(experiment, 2)[1] == "“A” and “B” stand still: this step carries prompts alone."
    assert lines(experiment, 3)[1] == (
        "“A”, “B” and “C” stand still: this step carries prompts alone."
    )


def test_chats_alone_stand_still_when_the_first_document_comes():
    scene = SCENES["starvation"]
    assert lines(scene.experiments()[0], 44)[:2] == (
        "“doc 1” gets all 8,192 tokens that it still wants.",
        "“chat 1” and “chat 2” stand still: this step carries prompts alone.",
    )


def test_seats_and_the_batch_that_runs():
    seats = load(*TWO, seats=1)
    assert lines(seats, 1) == (
        "“A” gets all 4 tokens that it still wants.",
        "“B” gets nothing: the only seat is taken.",
        "Room: 1 of 1 seat taken.",
        "At its end “A” gets its first token.",
    )
    batch = load(TWO[0], replace(TWO[1], arrival_ms=0.5), policy="request_level")
    assert lines(batch, 2)[:2] == (
        "“A” gets 1 decode token.",
        "“B” gets nothing: the running batch decodes to its end first.",
    )


def test_one_prompt_at_a_time_in_whole_pages():
    """SGLang, chunk 6, page 4: A is cut to 4, and B must wait though 2 tokens are left."""
    experiment = kv_load(request("A", 9), request("B", 1), policy="sglang", chunk_tokens=6)
    assert lines(experiment, 1)[:2] == (
        "“A” gets 4 of the 9 tokens that it wants: the chunk cap of a whole step is 6.",
        "“B” gets nothing: another prompt is cut, and only one at a time may be.",
    )


def test_preemption_tells_who_lost_what_and_who_starts_anew():
    """Blocks of 4, 3 of them. A (4) and B (4) take 1 each; both decode into a second: too many.

    B goes, the last; it had its first token. A takes its block and runs; B needs 5 tokens.
    """
    experiment = kv_load(
        request("A", 4, output_tokens=3), request("B", 4, output_tokens=3), kv_blocks=3
    )
    assert lines(experiment, 2) == (
        "“B” was preempted just before, as KV blocks ran short: it lost its own, keeps its 1 "
        "output and is back at the front of the queue.",
        "“A” gets 1 decode token.",
        "“B” gets nothing: nobody is admitted in a step that preempted.",
        "Room: 1 request running, with no limit on seats; 2 of 3 KV blocks held, 1 free.",
    )
    assert lines(experiment, 3)[1] == "“B” gets nothing: only 1 KV block is free, too few for it."
    assert lines(experiment, 4)[0] == (
        "“B” gets all 5 tokens that it still wants, anew after its preemption."
    )


def test_cached_prefix_of_a_newcomer():
    """B shares 8 tokens, two blocks of 4, with A, and computes the other 2."""
    shared = [
        Request(request_id=name, prompt_tokens=10, shared_group="g", shared_tokens=8)
        for name in "AB"
    ]
    assert lines(kv_load(*shared, prefix_caching=True), 1)[:2] == (
        "“A” gets all 10 tokens that it still wants.",
        "“B” gets all 2 tokens that it still wants (8 more come from the prefix cache).",
    )


def test_streaming_users_and_interval():
    experiment = load(request("A", 2), users=3, lead_in=1, budget=9)
    assert lines(experiment, 1) == (
        "3 streaming users each get 1 decode token.",
        "Room: 3 of 9 budget tokens used, 6 left; 3 requests running, with no limit on seats.",
    )
    limits = replace(experiment.limits, prefill_interval=3)
    late = load(request("A", 2), request("B", 2, arrival_ms=1.0), users=1)
    held = replace(late, limits=limits)
    assert lines(held, 2)[1] == (
        "“B” gets nothing: the prefill interval of 3 lets no prompt into this step."
    )


def test_two_workers_each_have_their_own_story():
    experiment = load(request("A", 4, output_tokens=2), policy="disaggregated", chunk=3)
    result = simulate(experiment)
    assert result.prefill_worker is not None
    prefill = step_stories(experiment, result.prefill_worker)
    assert prefill[1].lines[-1] == "At its end the KV of “A” travels on."
    (decode,) = step_stories(experiment, result)
    assert decode.lines == (
        "“A” gets 1 decode token.",
        "Room: 1 request running, with no limit on seats.",
        "At its end “A” is done.",
    )


@pytest.mark.parametrize(
    ("ids", "total", "text"),
    [
        ([], 0, ""),
        (["A"], 1, "A"),
        (["A", "B"], 2, "A and B"),
        (["A", "B", "C"], 3, "A, B and C"),
        (["A", "B"], 5, "A, B and 3 more"),
        (list("ABCDEFGH"), 8, "A, B, C, D, E, F and 2 more"),
    ],
)
def test_names(ids: list[str], total: int, text: str):
    assert names(ids, total) == text


def test_story_as_a_paragraph():
    (story,) = told(load(request("A", 1)))
    assert story_text(story) == (
        "“A” gets the 1 token that it still wants. Room: 1 request running, with no limit on "
        "seats. At its end “A” gets its first token and “A” is done."
    )


def named_in(story: StepStory) -> set[str]:
    """The ids that a story's decode line names."""
    for line in story.lines:
        found = re.match(r"(.*?) (gets|each get) 1 decode token\.", line)
        if found:
            return {name.strip("“”") for name in re.split(r", | and ", found[1])}
    return set()


LOADS = st.one_of(
    st.randoms(use_true_random=False).map(random_kv_experiment),
    st.randoms(use_true_random=False).map(random_policy_experiment),
)


@given(experiment=LOADS)
@settings(max_examples=150, deadline=None)
def test_every_policys_stories_name_who_decodes_and_do_not_depend_on_the_choice(
    experiment: Experiment,
):
    result = simulate(experiment, max_steps=400)
    stories = step_stories(experiment, result)
    some = list(range(1, len(stories), 3))
    assert step_stories(experiment, result, some) == [stories[step] for step in some]
    for story, batch in zip(stories, result.schedule(), strict=True):
        check_decodes(experiment, result, story, batch)


@given(experiment=LOADS)
@settings(max_examples=300, deadline=None)
def test_as_many_stand_still_as_the_engine_counted(experiment: Experiment):
    result = simulate(experiment, max_steps=400)
    users, steps = result.streaming_users, result.steps
    standing = Standing(result)
    for step in np.flatnonzero(steps.held_decodes).tolist():
        assert len(standing.at(step)) + users == steps.held_decodes[step]


def check_decodes(
    experiment: Experiment, result: Result, story: StepStory, batch: dict[str, int]
) -> None:
    step = story.number - 1
    sliced = {
        result.requests.request_id[row] for row in result.slices.request[result.slices.step == step]
    }
    decoding = {name for name in batch if name not in sliced and not name.startswith("user-")}
    shown = {name for name in named_in(story) if re.fullmatch(r"r\d+", name)}
    assert shown <= decoding
    if len(decoding) < 6 and story.decode_tokens:
        assert shown == decoding
