"""Conversations and shared system prompts: lengths, arrivals and beginnings, by hand."""

from typing import Any

import pytest

from s11.prefix_workloads import conversation, shared_system_prompt

TALK: dict[str, Any] = {
    "turns": 3,
    "system_tokens": 100,
    "user_tokens": 50,
    "answer_tokens": 20,
    "gap_ms": 1000.0,
}
ASKED: dict[str, Any] = {
    "requests": 3,
    "shared_tokens": 64,
    "own_tokens": 16,
    "output_tokens": 5,
    "gap_ms": 250.0,
}


def test_every_turn_sends_all_turns_before_it():
    requests = conversation(**TALK).requests
    # 100 + 50; then + 20 + 50; and again.
    assert [r.prompt_tokens for r in requests] == [150, 220, 290]
    assert [r.output_tokens for r in requests] == [20, 20, 20]
    assert [r.arrival_ms for r in requests] == [0, 1000, 2000]
    assert [r.continues for r in requests] == [None, "turn 1", "turn 2"]
    assert [(r.shared_group, r.shared_tokens) for r in requests] == [
        ("system prompt", 100),
        (None, 0),
        (None, 0),
    ]


def test_conversations_take_turns_and_share_the_system_prompt():
    requests = conversation(**{**TALK, "turns": 2}, conversations=2).requests
    assert [r.request_id for r in requests] == ["A1", "B1", "A2", "B2"]
    assert [r.arrival_ms for r in requests] == [0, 1000, 2000, 3000]
    assert [r.continues for r in requests] == [None, None, "A1", "B1"]
    assert [r.shared_group for r in requests] == ["system prompt", "system prompt", None, None]


def test_a_conversation_may_begin_with_nothing_in_common():
    first, second, _ = conversation(**{**TALK, "system_tokens": 0}).requests
    assert (first.shared_group, first.prompt_tokens) == (None, 50)
    assert (second.continues, second.prompt_tokens) == ("turn 1", 120)


def test_requests_behind_one_system_prompt():
    workload = shared_system_prompt(**ASKED, streaming_users=7)
    assert [r.request_id for r in workload.requests] == ["request 1", "request 2", "request 3"]
    assert [r.prompt_tokens for r in workload.requests] == [80, 80, 80]
    assert [r.shared_tokens for r in workload.requests] == [64, 64, 64]
    assert len({r.shared_group for r in workload.requests}) == 1
    assert [r.arrival_ms for r in workload.requests] == [0, 250, 500]
    assert (workload.streaming_users, workload.lead_in_steps, workload.tail_steps) == (7, 2, 3)


def test_several_system_prompts_are_used_in_turn():
    requests = shared_system_prompt(**ASKED, system_prompts=2).requests
    assert [r.request_id for r in requests] == ["A1", "B1", "A2"]
    first, second, third = (r.shared_group for r in requests)
    assert first == third != second


def test_prompts_may_be_the_same_or_have_nothing_in_common():
    same = shared_system_prompt(**{**ASKED, "own_tokens": 0}).requests
    assert {(r.prompt_tokens, r.shared_tokens) for r in same} == {(64, 64)}
    apart = shared_system_prompt(**{**ASKED, "shared_tokens": 0}).requests
    assert {(r.prompt_tokens, r.shared_group) for r in apart} == {(16, None)}


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"turns": 0}, "turns: 0 is not a whole number from 1 to 1,000"),
        ({"conversations": 27}, "conversations: 27 is not a whole number from 1 to 26"),
        ({"system_tokens": -1}, "system_tokens: -1 is not a whole number from 0"),
        ({"user_tokens": 0}, "user_tokens: 0 is not a whole number from 1"),
        ({"answer_tokens": 1.5}, "answer_tokens: 1.5 is not a whole number from 1"),
        ({"gap_ms": -1}, "gap_ms: -1 is not a number from 0"),
        ({"streaming_users": True}, "streaming_users: True is not a whole number"),
        ({"user_tokens": 16_777_216}, "prompt_tokens: 16777316 is not a whole number"),
    ],
)
def test_conversation_refuses(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        conversation(**{**TALK, **change})


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        ({"requests": 1001}, "requests: 1001 is not a whole number from 1 to 1,000"),
        ({"system_prompts": 0}, "system_prompts: 0 is not a whole number from 1 to 26"),
        ({"shared_tokens": "many"}, "shared_tokens: 'many' is not a whole number from 0"),
        ({"own_tokens": -4}, "own_tokens: -4 is not a whole number from 0"),
        ({"shared_tokens": 0, "own_tokens": 0}, "prompt_tokens: 0 is not a whole number from 1"),
        ({"output_tokens": 0}, "output_tokens: 0 is not a whole number from 1"),
        ({"gap_ms": float("nan")}, "gap_ms: nan is not a number from 0"),
    ],
)
def test_shared_system_prompt_refuses(change, sentence):
    with pytest.raises(ValueError, match=sentence):
        shared_system_prompt(**{**ASKED, **change})
