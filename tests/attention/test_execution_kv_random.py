"""Preemptions and prefix-cache hits that are drawn at random, and those of real schedulers."""

import json
from collections import Counter
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11.attention import verify_execution

from .kv_schedules import assert_all_identical, prompt_of, random_kv_schedule


def assert_served_as_alone(served, decoder):
    comparisons = verify_execution(decoder=decoder, **served.arguments)
    assert_all_identical(comparisons)
    assert {name: c.computed_tokens for name, c in comparisons.items()} == served.computed
    assert {name: c.output_tokens for name, c in comparisons.items()} == served.outputs


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_random_preemptions_and_hits_serve_everyone_as_alone(tiny, seed):
    assert_served_as_alone(random_kv_schedule(seed, tiny), tiny)


@pytest.mark.parametrize("seed", range(4))
def test_random_preemptions_and_hits_on_the_default_decoder(decoder, seed):
    served = random_kv_schedule(seed, decoder, longest_prompt=200, steps=30)
    assert_served_as_alone(served, decoder)


def test_the_random_schedules_have_everything_in_them(tiny):
    drawn = sum((random_kv_schedule(seed, tiny).kinds for seed in range(40)), start=Counter())
    assert set(drawn) == {
        "preempted prefill",
        "preempted decode",
        "preempted twice",
        "hit",
        "same step",
        "chain",
        "own outputs",
        "left by the preempted",
    }
    assert min(drawn.values()) >= 4, drawn


def case_arguments(case, decoder) -> dict[str, Any]:
    """The case's requests as prompts, its expected steps and notes as what to execute."""
    prompts, notes = {}, case["expected_notes"]
    for index, request in enumerate(case["requests"]):
        prompt = prompt_of(request["prompt_tokens"], decoder, seed=index)
        if shared := request.get("shared_prefix"):
            prompt[: shared["tokens"]] = prompt_of(shared["tokens"], decoder, seed=1_000)
        prompts[request["id"]] = prompt
    preempted = {int(step): names for step, names in notes.get("preempted", {}).items()}
    hits = {name: list(tokens) for name, tokens in notes.get("cached", {}).items()}
    holding: set[str] = set()
    cached: dict[int, dict[str, int]] = {}
    for step, scheduled in enumerate(case["expected_steps"]):
        holding.difference_update(preempted.get(step, ()))
        for name in scheduled.keys() - holding:
            if hits.get(name):
                cached.setdefault(step, {})[name] = hits[name].pop(0)
        holding |= scheduled.keys()
    return {
        "schedule": case["expected_steps"],
        "prompts": prompts,
        "output_tokens": {each["id"]: each["max_new_tokens"] for each in case["requests"]},
        "preempted": preempted,
        "cached": cached,
    }


def test_the_schedules_of_real_schedulers_that_preempt_and_hit(tiny, shared_dir):
    """Every case whose notes name a preemption or a hit, as expected of vLLM, computed for real."""
    cases = json.loads((shared_dir / "cases" / "scheduler_cases.json").read_text())
    seen: Counter[str] = Counter()
    for case in cases:
        notes = case.get("expected_notes", {})
        if not (notes.get("preempted") or notes.get("cached")):
            continue
        arguments = case_arguments(case, tiny)
        comparisons = verify_execution(decoder=tiny, **arguments)
        assert_all_identical(comparisons)
        for name in notes.get("finished", {}):
            assert comparisons[name].output_tokens == arguments["output_tokens"][name], case["id"]
        seen["preempted"] += len(arguments["preempted"])
        seen["hits"] += sum(
            hit > 0 for hits in arguments["cached"].values() for hit in hits.values()
        )
    assert seen["preempted"] >= 5
    assert seen["hits"] >= 9
