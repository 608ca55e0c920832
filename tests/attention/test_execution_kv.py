"""Preemption by recompute and prefix-cache hits, executed for real."""

import itertools
from typing import Any

import numpy as np
import pytest

from s11.attention import (
    Fault,
    SharedPrefix,
    execute,
    execution,
    forward,
    generate,
    same_bits,
    verify_execution,
)
from s11.attention.prefix_store import Prefix, PrefixStore
from s11.attention.served import ServedRequest

from .kv_schedules import assert_all_identical, prompt_of
from .reference import reference_tokens


def test_golden_preempted_decode(tiny):
    """By hand: 5 prompt tokens, 2 outputs; 7 to recompute give the third, a decode the fourth."""
    prompt = prompt_of(5, tiny)
    arguments: dict[str, Any] = {
        "schedule": [{"a": 5}, {"a": 1}, {}, {"a": 4}, {"a": 3}, {"a": 1}],
        "prompts": {"a": prompt},
        "output_tokens": {"a": 4},
        "preempted": {2: ["a"]},
    }
    served = execute(decoder=tiny, **arguments)["a"]
    assert served.tokens.tolist() == reference_tokens(prompt, 4, tiny)
    assert served.computed_tokens == 8
    assert_all_identical(verify_execution(decoder=tiny, **arguments))


def test_golden_hits_and_own_outputs(tiny):
    """By hand, in blocks of 4: b begins as a does; a, preempted, hits its prompt and 2 outputs.

    a: 6 prompt tokens and 3 outputs leave 9 known; 8 of them hit, 1 computed yields the fourth.
    b: 7 prompt tokens, the first 5 of a's; 4 hit, 3 computed yield its first.
    """
    a = prompt_of(6, tiny)
    b = a[:5] + prompt_of(2, tiny, seed=1)
    schedule = [{"a": 6}, {"b": 3, "a": 1}, {"a": 1}, {"a": 1}]
    cached = {1: {"b": 4}, 3: {"a": 8}}
    served = execute(
        schedule,
        {"a": a, "b": b},
        decoder=tiny,
        output_tokens={"a": 4, "b": 1},
        preempted={3: ["a"]},
        cached=cached,
    )
    assert served["a"].tokens.tolist() == reference_tokens(a, 4, tiny)
    assert served["b"].tokens.tolist() == reference_tokens(b, 1, tiny)
    assert [served[name].computed_tokens for name in "ab"] == [9, 7]


def test_mid_prefill_and_twice_preempted(decoder):
    """a loses 70 of 100 prompt tokens, then all 101 of its known; b decodes on beside it."""
    prompts = {"a": prompt_of(100, decoder), "b": prompt_of(9, decoder, seed=1)}
    schedule = [
        {"b": 9, "a": 70},
        {"b": 1},
        {"b": 1, "a": 100},
        {"b": 1, "a": 1},
        {"b": 1, "a": 65},
        {"b": 1, "a": 37},
    ]
    comparisons = verify_execution(
        schedule,
        prompts,
        decoder=decoder,
        output_tokens={"a": 3, "b": None},
        preempted={1: ["a"], 4: ["a"]},
    )
    assert_all_identical(comparisons)
    assert [comparisons[name].output_tokens for name in "ab"] == [3, 6]
    assert [comparisons[name].computed_tokens for name in "ab"] == [102, 14]


def test_preempted_after_the_last_step(tiny):
    """Its outputs stay and its cache is empty; an already prefilled request can be a victim."""
    comparisons = verify_execution(
        [{"a": 1}],
        {"a": [1, 2, 3], "b": [4, 5]},
        decoder=tiny,
        output_tokens={"a": None, "b": None},
        already_prefilled={"a", "b"},
        preempted={0: ("b",), 1: ("a",)},
    )
    assert_all_identical(comparisons)
    assert [comparisons[name].output_tokens for name in "ab"] == [2, 1]
    assert [comparisons[name].computed_tokens for name in "ab"] == [0, 0]


def test_hits_on_what_finished_and_preempted_requests_left(decoder):
    """In blocks of 16: `after` continues what `done` put out, `again` what `victim` was asked."""
    done = prompt_of(40, decoder)
    outputs = generate(done, 30, decoder=decoder).tokens.tolist()
    victim = prompt_of(80, decoder, seed=1)
    prompts = {
        "done": done,
        "victim": victim,
        "after": done + outputs + prompt_of(5, decoder, seed=2),
        "again": victim[:70] + prompt_of(3, decoder, seed=3),
    }
    schedule = [{"done": 40, "victim": 65}, *[{"done": 1}] * 29, {"after": 11, "again": 9}]
    comparisons = verify_execution(
        schedule,
        prompts,
        decoder=decoder,
        output_tokens={"done": 30, "victim": 2, "after": 1, "again": 1},
        preempted={1: ["victim"]},
        cached={30: {"after": 64, "again": 64}},
    )
    assert_all_identical(comparisons)
    assert comparisons["after"].computed_tokens == 75
    assert comparisons["again"].computed_tokens == 73
    assert comparisons["victim"].computed_tokens == 0


CHAIN: dict[str, Any] = {
    "schedule": [{"x": 20}, {"a": 20, "b": 14, "c": 12}, {"a": 1, "b": 1, "c": 1}],
    "output_tokens": {"x": 1, "a": 2, "b": 2, "c": 2},
    "cached": {1: {"a": 0, "b": 16, "c": 28}},
}


def chain(decoder):
    """c takes 28 tokens from b, of which b takes 16 from a, all in step 1; x is another prompt."""
    tokens = prompt_of(40, decoder)
    prompts = {"x": prompt_of(20, decoder, seed=1), "a": tokens[:20], "b": tokens[:30], "c": tokens}
    return CHAIN | {"prompts": prompts, "decoder": decoder}


@pytest.mark.parametrize("order", list(itertools.permutations("abc")))
def test_a_chain_of_hits_in_one_step_in_any_order(tiny, order):
    arguments = chain(tiny)
    schedule = [CHAIN["schedule"][0], {name: CHAIN["schedule"][1][name] for name in order}]
    comparisons = verify_execution(**arguments | {"schedule": [*schedule, CHAIN["schedule"][2]]})
    assert_all_identical(comparisons)
    assert [comparisons[name].computed_tokens for name in "xabc"] == [20, 21, 31, 41]


COPY, SHARE = SharedPrefix.copy, PrefixStore.share


def first_layer_only(self, layer):
    if layer == 0:
        COPY(self, layer)


def one_token_short(self, layer):
    COPY(SharedPrefix(self.source, self.target, self.tokens - 1), layer)


@pytest.mark.parametrize(
    ("owner", "name", "bug", "wrong"),
    [
        (SharedPrefix, "copy", lambda self, layer: None, "bc"),
        (SharedPrefix, "copy", first_layer_only, "bc"),
        (SharedPrefix, "copy", one_token_short, "bc"),
        (Prefix, "begins_with", lambda self, known, tokens: self.tokens >= tokens, "bc"),
        (PrefixStore, "share", lambda self, *args: SHARE(self, *args)[::-1], "c"),
    ],
    ids=["not copied", "first layer only", "one token short", "wrong prefix", "wrong order"],
)
def test_a_wrong_copy_is_caught(tiny, monkeypatch, owner, name, bug, wrong):
    monkeypatch.setattr(owner, name, bug)
    for request_id, comparison in verify_execution(**chain(tiny)).items():
        assert comparison.identical is (request_id not in wrong), request_id
        assert comparison.keys_identical is comparison.values_identical is comparison.identical


def test_hit_tokens_are_not_recomputed(tiny, monkeypatch):
    batches = []

    def counted(slices, **arguments):
        batches.append([len(part.tokens) for part in slices])
        return forward(slices, **arguments)

    monkeypatch.setattr(execution, "forward", counted)
    execute(**chain(tiny))
    assert batches == [[20], [20, 14, 12], [1, 1, 1]]


def test_a_hit_takes_over_the_very_bits(tiny):
    """a's second chunk is rotated wrongly; b, which would get it right, must inherit that."""
    prompt = prompt_of(14, tiny)
    served = execute(
        [{"a": 6}, {"a": 6, "b": 4}],
        {"a": prompt[:12], "b": prompt},
        decoder=tiny,
        output_tokens={"a": 1, "b": 1},
        cached={1: {"b": 10}},
        faults={Fault.CHUNK_RELATIVE_POSITIONS},
    )
    alone = generate(prompt, 1, decoder=tiny)
    assert same_bits(served["b"].keys[:, :10], served["a"].keys[:, :10])
    assert same_bits(served["b"].values[:, :10], served["a"].values[:, :10])
    assert same_bits(served["b"].keys[:, :6], alone.keys[:, :6])
    assert not np.any(np.all(served["b"].keys[:, 6:10] == alone.keys[:, 6:10], axis=(2, 3)))


@pytest.mark.parametrize("fault", Fault)
def test_every_fault_is_caught_beside_preemptions_and_hits(decoder, fault):
    prompt = prompt_of(60, decoder)
    comparisons = verify_execution(
        [{"a": 30, "b": 9}, {"a": 20, "b": 20}, {"b": 7, "a": 12}],
        {"a": prompt[:50], "b": prompt[:45] + prompt_of(5, decoder, seed=1)},
        decoder=decoder,
        output_tokens={"a": 2, "b": 1},
        preempted={1: ["b"], 2: ["a"]},
        cached={1: {"b": 8}, 2: {"a": 30}},
        faults={fault},
    )
    for comparison in comparisons.values():
        assert not comparison.keys_identical
        assert not comparison.values_identical


def test_a_cache_that_is_not_appended_holds_no_hit_either(tiny):
    arguments = chain(tiny) | {"faults": {Fault.CACHE_NOT_APPENDED}}
    arguments["schedule"] = arguments["schedule"][:2]
    served = execute(**arguments)
    for name, hit in (("b", 16), ("c", 28)):
        assert not served[name].keys[:, :hit].any()
        assert not served[name].values[:, :hit].any()
        assert served[name].keys[:, hit:].all()


def test_no_more_is_retained_than_was_computed_differently(tiny):
    """Kept: the longest of what begins alike. Preempted again halfway, a request adds nothing."""
    store, kept = PrefixStore(), []
    for tokens, computed in (([1, 2, 3], 2), ([1, 2, 3], 3), ([1, 2, 9], 2), ([1, 5, 3], 3)):
        request = ServedRequest(tiny.new_cache(), tokens, wanted=None)
        request.cache.extend(computed)
        store.retain(request)
        kept.append(len(store._retained))
    assert kept == [1, 1, 1, 2]
