"""`schedule FILE`: cases that others wrote, and cases that must not pass."""

import json
from pathlib import Path
from typing import Any

import pytest

from s11.cases import CaseOutcome, Outcome, read_cases, run_case
from s11.cli import main


def case(**changes: Any) -> dict[str, Any]:
    """Two prompts of 6 and 3 tokens, budget 5: a case that passes as it stands.

    Step 0: a 5. Step 1: a 1 and b 3. Step 2: a's second token. Then nothing.
    """
    made: dict[str, Any] = {
        "id": "two",
        "policy": "chunked",
        "config": {"token_budget": 5, "max_seqs": None, "max_chunk": None, "chunking": True},
        "requests": [
            {"id": "a", "arrival_step": 0, "prompt_tokens": 6, "max_new_tokens": 2},
            {"id": "b", "arrival_step": 1, "prompt_tokens": 3, "max_new_tokens": 1},
        ],
        "expected_steps": [{"a": 5}, {"a": 1, "b": 3}, {"a": 1}, {}],
        "expected_notes": {
            "finished": {"a": 2, "b": 1},
            "total_tokens": {"a": 7, "b": 3},
            "never_scheduled": [],
            "preempted": {},
            "asserted": "a remark",
        },
    }
    return made | changes


def notes(**changes: Any) -> dict[str, Any]:
    return case(expected_notes=changes)


def write(tmp_path: Path, cases: Any) -> str:
    path = tmp_path / "cases.json"
    path.write_text(json.dumps(cases), encoding="utf-8")
    return str(path)


def test_every_shared_case_passes(shared_dir: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = shared_dir / "cases" / "scheduler_cases.json"
    assert main(["schedule", str(path)]) == 0
    assert capsys.readouterr().out == f"{len(read_cases(path))} passed, 0 failed\n"


def test_the_case_by_hand_passes() -> None:
    assert run_case(case()).outcome is Outcome.PASSED


@pytest.mark.parametrize("policy", ["chunked", "whole_prompt", "vllm_v1"])
def test_a_policy_is_known_by_our_name_and_by_vllms(policy: str) -> None:
    alone = case(
        policy=policy,
        config={"token_budget": 6, "chunking": policy != "whole_prompt"},
        requests=[{"id": "a", "prompt_tokens": 6, "max_new_tokens": 1}],
        expected_steps=[{"a": 6}, {}],
        expected_notes={},
    )
    assert run_case(alone).outcome is Outcome.PASSED


@pytest.mark.parametrize(
    ("wrong", "reason"),
    [
        (case(expected_steps=[{"a": 4}]), "step 0: expected {'a': 4}, got {'a': 5}"),
        (case(expected_steps=[{"a": 5}, {"a": 1}]), "step 1: expected {'a': 1}, got "),
        (case(expected_steps=[{"a": 5}, {}]), "step 1: expected {}, got {'a': 1, 'b': 3}"),
        (
            case(expected_steps=[{"a": 5}, {"a": 1, "b": 3}, {"a": 1}, {"a": 1}]),
            "step 3: expected {'a': 1}, got {}",
        ),
        (notes(finished={"a": 3}), "finished: expected a in step 3, got 2"),
        (notes(finished={"b": 0}), "finished: expected b in step 0, got 1"),
        (notes(total_tokens={"a": 8}), "total_tokens: expected 8 for a, got 7"),
        (notes(total_tokens={"ghost": 1}), "total_tokens: expected 1 for ghost, got 0"),
        (notes(never_scheduled=["b"]), "never_scheduled: expected ['b'], got []"),
        (notes(preempted={"1": ["a"]}), "preempted: expected {'1': ['a']}, got {}"),
        (notes(rejected=["a"]), "rejected: expected ['a'], got []"),
    ],
)
def test_a_case_that_differs_fails_with_the_first_difference(
    wrong: dict[str, Any], reason: str
) -> None:
    outcome = run_case(wrong)
    assert outcome.outcome is Outcome.FAILED
    assert outcome.reason.startswith(reason)


def test_a_run_longer_than_a_list_that_ends_in_nothing_fails() -> None:
    """b comes at step 5, two steps after the list says that all is over."""
    late = case(expected_steps=[{"a": 5}, {"a": 1}, {"a": 1}, {}])
    late["requests"][1]["arrival_step"] = 5
    outcome = run_case(late | {"expected_notes": {}})
    assert outcome.outcome is Outcome.FAILED
    assert outcome.reason == "step 5: expected the end, got {'b': 3}"


def test_a_list_that_does_not_end_in_nothing_is_a_prefix_of_the_run() -> None:
    assert run_case(case(expected_steps=[{"a": 5}])).outcome is Outcome.PASSED


def test_never_scheduled_is_compared_whatever_its_order() -> None:
    stuck = case(
        policy="whole_prompt",
        expected_steps=[{}, {}],
        expected_notes={"never_scheduled": ["b", "a"]},
    )
    assert run_case(stuck).outcome is Outcome.PASSED
    stuck["expected_notes"]["never_scheduled"] = ["a"]
    assert run_case(stuck).outcome is Outcome.FAILED


def test_hits_that_cannot_be_are_a_failure() -> None:
    """The cases' README lists `cached` among what is checked; without a cache nothing is hit."""
    assert run_case(notes(cached={"a": [4]})).outcome is Outcome.FAILED


@pytest.mark.parametrize(
    ("setting", "value"),
    [
        ("token_budget", 4),
        ("max_seqs", 1),
        ("max_chunk", 2),
        ("chunking", False),
        ("kv_blocks", 2),
        ("max_model_len", 5),
    ],
)
def test_every_setting_reaches_the_engine(setting: str, value: int) -> None:
    """Each of these changes the steps of the case (a pool of two blocks of two holds four
    tokens of a's six)."""
    changed = case(expected_notes={})
    changed["config"] |= {setting: value, "block_size": 2}
    assert run_case(changed).outcome is Outcome.FAILED


def test_a_shared_prefix_is_hit_where_caching_is_on() -> None:
    """b has a's first four tokens, two blocks of two, and then two of its own."""
    shared = {"group": "g", "tokens": 4}
    cached = case(
        policy="vllm_v1",
        config={"token_budget": 8, "block_size": 2, "prefix_caching": True},
        requests=[
            {"id": "a", "prompt_tokens": 5, "max_new_tokens": 1, "shared_prefix": shared},
            {"id": "b", "prompt_tokens": 6, "max_new_tokens": 1, "shared_prefix": shared},
        ],
        expected_steps=[{"a": 5, "b": 2}, {}],
        expected_notes={"cached": {"a": [0], "b": [4]}},
    )
    assert run_case(cached) == CaseOutcome(case_id="two", outcome=Outcome.PASSED)
    cached["config"]["prefix_caching"] = False
    assert run_case(cached).reason.startswith("step 0: expected")


def test_what_is_continued_is_prompt_and_outputs() -> None:
    """b's prompt is a's three tokens and two outputs, then one of its own; four are computed
    (the last output never is), in two whole blocks."""
    cached = case(
        policy="vllm_v1",
        config={"block_size": 2, "prefix_caching": True},
        requests=[
            {"id": "a", "prompt_tokens": 3, "max_new_tokens": 2},
            {
                "id": "b",
                "arrival_step": 2,
                "prompt_tokens": 6,
                "max_new_tokens": 1,
                "shared_prefix": {"continues": "a"},
            },
        ],
        expected_steps=[{"a": 3}, {"a": 1}, {"b": 2}, {}],
        expected_notes={"cached": {"b": [4]}},
    )
    assert run_case(cached) == CaseOutcome(case_id="two", outcome=Outcome.PASSED)


def test_a_prefix_of_another_kind_is_malformed() -> None:
    odd = case()
    odd["requests"][0]["shared_prefix"] = {"like": "b"}
    with pytest.raises(ValueError, match="shared_prefix: 'like' is not one of"):
        run_case(odd)


def test_a_prompt_over_the_model_length_is_refused() -> None:
    refused = case(
        config={"max_model_len": 5},
        expected_steps=[{}, {"b": 3}, {}],
        expected_notes={"rejected": ["a"], "never_scheduled": []},
    )
    assert run_case(refused) == CaseOutcome(case_id="two", outcome=Outcome.PASSED)


def test_vllm_v0_is_the_chapters_scheduler() -> None:
    """A newcomer's chunk that the budget cuts is floored to whole blocks of four, where asked."""
    v0 = case(
        policy="vllm_v0",
        config={"token_budget": 11, "block_size": 4, "align_first_chunk": True},
        requests=[
            {"id": "a", "prompt_tokens": 5, "max_new_tokens": 1},
            {"id": "b", "prompt_tokens": 9, "max_new_tokens": 1},
        ],
        expected_steps=[{"a": 5, "b": 4}, {"b": 5}, {}],
        expected_notes={},
    )
    assert run_case(v0) == CaseOutcome(case_id="two", outcome=Outcome.PASSED)


def test_an_unknown_setting_is_skipped() -> None:
    outcome = run_case(case(config={"quantum": 3}))
    assert outcome.outcome is Outcome.SKIPPED
    assert "unknown setting 'quantum'" in outcome.reason


def test_an_unknown_policy_is_skipped() -> None:
    outcome = run_case(case(policy="vllm_v9"))
    assert outcome.outcome is Outcome.SKIPPED
    assert "'vllm_v9'" in outcome.reason


def test_one_failure_makes_the_exit_code_1_and_a_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    cases = [case(), case(id="odd", expected_steps=[{"a": 4}]), case(id="x", policy="other")]
    assert main(["schedule", write(tmp_path, cases)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "failed odd: step 0: expected {'a': 4}, got {'a': 5}",
        "skipped x: needs the policy 'other', which is not built",
        "1 passed, 1 failed, 1 skipped",
    ]


def test_no_cases_is_none_passed(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["schedule", write(tmp_path, [])]) == 0
    assert capsys.readouterr().out == "0 passed, 0 failed\n"


def grown(policy: str, config: dict[str, Any], expected_steps: list[dict[str, int]]) -> CaseOutcome:
    """a prefills 320 shared tokens; b shares 199 of its 200 with it."""
    return run_case(
        case(
            policy=policy,
            config={"max_chunk": 64, "block_size": 16, "prefix_caching": True} | config,
            requests=[
                {
                    "id": name,
                    "prompt_tokens": prompt,
                    "max_new_tokens": 1,
                    "shared_prefix": {"group": "g", "tokens": shared},
                }
                for name, prompt, shared in (("a", 320, 320), ("b", 200, 199))
            ],
            expected_steps=expected_steps,
            expected_notes={},
        )
    )


def test_what_the_head_of_the_queue_finds_grows_while_another_prefills() -> None:
    """After three slices of 64 planned, 192 tokens of b are cached: the other 8 fit into the 36
    that are left of the budget, which its 200 or its 72 did not."""
    outcome = grown(
        "vllm_v1",
        {"token_budget": 100, "chunking": False},
        [{"a": 64}, {"a": 64}, {"a": 64, "b": 8}, {"a": 64}, {"a": 64}, {}],
    )
    assert outcome == CaseOutcome(case_id="two", outcome=Outcome.PASSED)
    # In whole blocks of 16, ten tokens left are none; but eight that are all of it fit.
    outcome = grown(
        "tensorrt_llm",
        {"token_budget": 74},
        [{"a": 64}, {"a": 64}, {"a": 64, "b": 8}, {"a": 64}, {"a": 64}, {}],
    )
    assert outcome == CaseOutcome(case_id="two", outcome=Outcome.PASSED)


def test_of_two_that_fill_the_same_block_in_a_step_the_first_admitted_is_found() -> None:
    """r1 goes on from r0 and stands ahead of it; both fill the first block of three in step 2. In
    step 3 r1 needs the third block, and r0 goes. Its hit is r1's, which is held: one new block
    is all it needs in step 4, and one is free."""
    outcome = run_case(
        case(
            policy="vllm_v1",
            config={"max_chunk": 1, "block_size": 3, "kv_blocks": 3, "prefix_caching": True},
            requests=[
                {
                    "id": "r1",
                    "prompt_tokens": 5,
                    "max_new_tokens": 1,
                    "shared_prefix": {"continues": "r0"},
                },
                {"id": "r0", "prompt_tokens": 2, "max_new_tokens": 3},
            ],
            expected_steps=[{"r1": 1, "r0": 1}] * 3 + [{"r1": 1}, {"r1": 1, "r0": 1}, {}],
            expected_notes={"preempted": {"3": ["r0"]}},
        )
    )
    assert outcome == CaseOutcome(case_id="two", outcome=Outcome.PASSED)


def test_an_unknown_field_of_a_request_is_skipped() -> None:
    odd = case()
    odd["requests"][0]["arival_step"] = 3
    assert "unknown request field 'arival_step'" in run_case(odd).reason
