import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11.attention import (
    Fault,
    compare_generated,
    execute,
    execution,
    forward,
    generate,
    prefill,
    same_bits,
    sample_prompt,
    verify_execution,
)

from .reference import reference_tokens
from .schedules import random_schedule


def test_generate_gets_the_tokens_of_an_independent_decoder(tiny):
    prompt = sample_prompt(9, decoder=tiny, seed=2)
    alone = generate(prompt, 6, decoder=tiny)
    assert alone.tokens.tolist() == reference_tokens(prompt, 6, tiny)
    assert len(set(alone.tokens.tolist())) > 1


@pytest.mark.parametrize("prompt_tokens", [1, 60, 63, 64, 65, 130])
def test_decoding_leaves_what_prefill_leaves(decoder, prompt_tokens):
    """Ten tokens decoded one by one against one whole prefill of the prompt and those tokens."""
    prompt = sample_prompt(prompt_tokens, decoder=decoder)
    alone = generate(prompt, 10, decoder=decoder)
    assert alone.computed_tokens == prompt_tokens + 9
    everything = np.concatenate([prompt, alone.tokens[:-1]])
    whole = prefill(everything, len(everything), decoder=decoder)
    assert same_bits(alone.keys, whole.keys)
    assert same_bits(alone.values, whole.values)
    assert same_bits(alone.hidden[-1], whole.last_hidden)


def test_a_step_that_ends_a_prompt_yields_its_first_token(tiny):
    prompts = {"a": sample_prompt(5, decoder=tiny), "b": sample_prompt(3, decoder=tiny, seed=1)}
    served = execute(
        [{"a": 3}, {"b": 3, "a": 1}, {}, {"a": 1, "b": 1}, {"b": 1}],
        prompts,
        decoder=tiny,
        output_tokens={"a": 1, "b": None},
    )
    assert [len(served[name].tokens) for name in "ab"] == [1, 3]
    assert [served[name].computed_tokens for name in "ab"] == [5, 5]
    assert served["b"].hidden.shape == (3, 20)
    for name, outputs in (("a", 1), ("b", 3)):
        expected = reference_tokens(prompts[name], outputs, tiny)
        assert served[name].tokens.tolist() == expected


def test_an_unfinished_prompt_has_keys_but_no_token(tiny):
    served = execute(
        [{"a": 4}],
        {"a": sample_prompt(6, decoder=tiny), "never": [1, 2]},
        decoder=tiny,
        output_tokens={"a": 2, "never": 1},
    )
    assert served["a"].keys.shape == (3, 4, 2, 6)
    assert served["a"].tokens.shape == (0,)
    assert served["a"].hidden.shape == (0, 20)
    assert served["never"].computed_tokens == 0


def test_an_already_prefilled_request_decodes_from_the_start(tiny):
    prompt = sample_prompt(7, decoder=tiny)
    served = execute(
        [{"user": 1}, {"user": 1}],
        {"user": prompt},
        decoder=tiny,
        output_tokens={"user": None},
        already_prefilled={"user"},
    )["user"]
    assert served.computed_tokens == 9
    assert served.tokens.tolist() == reference_tokens(prompt, 3, tiny)


def assert_served_as_alone(served, decoder):
    comparisons = verify_execution(
        served.schedule,
        served.prompts,
        decoder=decoder,
        output_tokens=served.output_tokens,
        already_prefilled=served.already_prefilled,
    )
    assert comparisons.keys() == served.prompts.keys()
    for name, comparison in comparisons.items():
        assert comparison.identical, (name, comparison)
        assert comparison.computed_tokens == served.computed[name]
        outputs = max(0, served.computed[name] - len(served.prompts[name]) + 1)
        assert comparison.output_tokens == outputs


@settings(max_examples=40)
@given(st.integers(0, 2**32 - 1))
def test_random_schedules_serve_everyone_as_alone(tiny, seed):
    assert_served_as_alone(random_schedule(seed, tiny), tiny)


@pytest.mark.parametrize("seed", range(4))
def test_random_schedules_on_the_default_decoder(decoder, seed):
    served = random_schedule(seed, decoder, most_requests=8, longest_prompt=300, steps=30)
    assert_served_as_alone(served, decoder)


def test_the_chapters_scenario_in_small(decoder):
    """Streaming users decode all along; a long prompt comes in chunks that divide nothing."""
    users = [f"user{i}" for i in range(6)]
    decodes = dict.fromkeys(users, 1)
    chunks = [77, 77, 77, 69]
    schedule = [decodes] * 2 + [decodes | {"long": chunk} for chunk in chunks] + [decodes] * 3
    prompts = {user: sample_prompt(20 + 9 * i, decoder=decoder) for i, user in enumerate(users)}
    comparisons = verify_execution(
        schedule,
        prompts | {"long": sample_prompt(300, decoder=decoder, seed=1)},
        decoder=decoder,
        output_tokens=dict.fromkeys(users) | {"long": 1},
        already_prefilled=set(users),
    )
    assert all(comparison.identical for comparison in comparisons.values())
    assert [comparisons[user].output_tokens for user in users] == [10] * 6
    assert (comparisons["long"].computed_tokens, comparisons["long"].output_tokens) == (300, 1)


def test_a_step_is_one_forward_pass(tiny, monkeypatch):
    batches = []

    def counted(slices, **arguments):
        batches.append([len(part.tokens) for part in slices])
        return forward(slices, **arguments)

    monkeypatch.setattr(execution, "forward", counted)
    prompts = {"a": [1, 2, 3], "b": [4, 5], "c": [6]}
    schedule = [{"b": 1, "a": 2}, {}, {"c": 1, "b": 1, "a": 1}]
    execute(schedule, prompts, decoder=tiny, output_tokens=dict.fromkeys(prompts, 1))
    assert batches == [[1, 2], [1, 1, 1]]


def test_the_schedules_of_real_schedulers(tiny, shared_dir):
    """Every case without preemption or prefix hits, as expected of vLLM, computed for real."""
    cases = json.loads((shared_dir / "cases" / "scheduler_cases.json").read_text())
    executed = 0
    for case in cases:
        notes = case.get("expected_notes", {})
        if notes.get("preempted") or notes.get("cached"):
            continue
        prompts, outputs = {}, {}
        for index, request in enumerate(case["requests"]):
            length = request["prompt_tokens"]
            prompts[request["id"]] = sample_prompt(length, decoder=tiny, seed=index)
            outputs[request["id"]] = request["max_new_tokens"]
        comparisons = verify_execution(
            case["expected_steps"], prompts, decoder=tiny, output_tokens=outputs
        )
        for name, comparison in comparisons.items():
            assert comparison.identical, (case["id"], name, comparison)
            total = sum(step.get(name, 0) for step in case["expected_steps"])
            assert comparison.computed_tokens == total, (case["id"], name)
            executed += comparison.output_tokens
    assert executed > 100


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_in_a_batch_is_caught(decoder, fault):
    prompts = {"a": sample_prompt(50, decoder=decoder), "b": sample_prompt(9, decoder=decoder)}
    schedule = [{"a": 30, "b": 9}, {"b": 1, "a": 20}, {"b": 1, "a": 1}]
    comparisons = verify_execution(
        schedule, prompts, decoder=decoder, output_tokens={"a": 2, "b": 3}, faults={fault}
    )
    for comparison in comparisons.values():
        assert not comparison.identical
        assert not comparison.keys_identical
        assert not comparison.values_identical
    assert not comparisons["a"].hidden_identical


def test_compare_generated_looks_at_everything(tiny):
    alone = generate([1, 2, 3], 3, decoder=tiny)
    assert compare_generated(alone, alone).identical
    for name, flag in (
        ("tokens", "tokens_equal"),
        ("hidden", "hidden_identical"),
        ("keys", "keys_identical"),
        ("values", "values_identical"),
    ):
        changed = generate([1, 2, 3], 3, decoder=tiny)
        getattr(changed, name).flat[0] += 1
        comparison = compare_generated(alone, changed)
        assert not comparison.identical
        assert not getattr(comparison, flag)


GOOD: dict[str, Any] = {
    "schedule": [{"a": 2, "b": 2}, {"a": 1}],
    "prompts": {"a": [1, 2, 3], "b": [4, 5]},
    "output_tokens": {"a": 2, "b": 1},
}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"schedule": [{"a": 4}]}, r"schedule\[0\]\['a'\]: got 4; allowed: an integer in 1\.\.3"),
        ({"schedule": [{"a": 2}, {"a": 2}]}, r"schedule\[1\]\['a'\]: got 2; .* in 1\.\.1"),
        ({"schedule": [{"a": 3}, {"a": 2}]}, r"schedule\[1\]\['a'\]: got 2; .* in 1\.\.1"),
        ({"schedule": [{"a": 0}]}, r"schedule\[0\]\['a'\]: got 0; allowed: an integer in 1\.\.3"),
        ({"schedule": [{"a": -1}]}, r"schedule\[0\]\['a'\]: got -1"),
        ({"schedule": [{"a": 1.0}]}, r"schedule\[0\]\['a'\]: got 1\.0"),
        ({"schedule": [{"c": 1}]}, r"schedule\[0\]: got 'c'; allowed: any of \['a', 'b'\]"),
        (
            {"schedule": [{"b": 2}, {"b": 1}]},
            r"schedule\[1\]\['b'\]: got 1; allowed: none, the request has finished",
        ),
        ({"prompts": {"a": [], "b": [4]}}, r"prompts\['a'\]: got .* of shape \(0,\)"),
        ({"prompts": {"a": [1, 2, 3], "b": [61]}}, r"prompts\['b'\]: got token id 61"),
        ({"output_tokens": {"a": 2}}, r"output_tokens\['b'\]: missing"),
        ({"output_tokens": {"a": 2, "b": 0}}, r"output_tokens\['b'\]: got 0"),
        ({"output_tokens": {"a": 2, "b": 1, "c": 1}}, r"output_tokens: got 'c'; allowed: any of"),
        ({"already_prefilled": {"c"}}, r"already_prefilled: got 'c'; allowed: any of"),
        ({"already_prefilled": {"b"}}, r"schedule\[0\]\['b'\]: got 2; allowed: none"),
        ({"faults": {"no-such-bug"}}, r"fault: got 'no-such-bug'"),
    ],
)
def test_execute_refuses(tiny, change, message):
    arguments = GOOD | change
    with pytest.raises(ValueError, match=message):
        execute(decoder=tiny, **arguments)


def test_the_schedule_that_the_refusals_vary_is_fine(tiny):
    assert all(c.identical for c in verify_execution(decoder=tiny, **GOOD).values())


@pytest.mark.parametrize(
    ("prompt", "outputs", "message"),
    [([], 1, "prompt_tokens: got"), ([1], 0, "output_tokens: got 0; allowed: an integer of at")],
)
def test_generate_refuses(tiny, prompt, outputs, message):
    with pytest.raises(ValueError, match=message):
        generate(prompt, outputs, decoder=tiny)
