"""Prompts that share a tree of beginnings, told by the ids of their 512-token hash blocks."""

import json
import random
import re
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, Request, Workload, simulate
from s11.hash_tree import shared_texts
from s11.plan import PrefillSlice, VictimOrder
from s11.prefix_blocks import BlockKind, admitted_blocks
from s11.prefix_cache import PrefixCachingPool
from tests.loads import CLOCK, random_hash_experiment
from tests.prefix_runs import vllm
from tests.reference_simulator import ReferenceRun
from tests.test_simulator_equivalence_kv import differences


def asked(name: str, prompt: int, *ids: int, outputs: int = 1, **more: Any) -> Request:
    return Request(
        request_id=name, prompt_tokens=prompt, output_tokens=outputs, hash_ids=ids, **more
    )


def pool(*requests: Request, block_size: int = 128, blocks: int | None = None) -> PrefixCachingPool:
    limits = EngineLimits(kv_blocks=blocks, block_size=block_size, prefix_caching=True)
    return PrefixCachingPool(limits, [request.prompt_tokens for request in requests], requests)


def hits(*requests: Request, block_size: int = 128) -> list[int]:
    """What each finds when all before it hold their blocks."""
    made = pool(*requests, block_size=block_size)
    found = []
    for row, request in enumerate(requests):
        found.append(made.cached_tokens(row))
        assert made.admit(row, found[-1], request.prompt_tokens - found[-1])
    return found


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"hash_ids": (1,)}, "hash_ids: 1 do not go with prompt_tokens 513 (allowed: 2,"),
        ({"hash_ids": (1, 2, 3)}, "hash_ids: 3 do not go with prompt_tokens 513 (allowed: 2,"),
        ({"hash_ids": (1, -1)}, "hash_ids: -1 is not a whole number from 0 to"),
        ({"hash_ids": (1, 2**63)}, "hash_ids: 9223372036854775808 is not a whole number from 0 to"),
        ({"hash_ids": (1, 2.0)}, "hash_ids: 2.0 is not a whole number from 0 to"),
        ({"hash_ids": (1, True)}, "hash_ids: True is not a whole number from 0 to"),
        ({"hash_ids": "12"}, "hash_ids: '12' is not a list of whole numbers"),
        ({"hash_ids": None}, "hash_ids: None is not a list of whole numbers"),
        ({"continues": "b"}, "hash_ids: not allowed together with continues"),
        (
            {"shared_group": "g", "shared_tokens": 1},
            "hash_ids: not allowed together with shared_group",
        ),
    ],
)
def test_hash_ids_that_do_not_go_with_the_prompt_are_refused(
    changes: dict[str, Any], sentence: str
) -> None:
    good = {"request_id": "a", "prompt_tokens": 513, "hash_ids": (1, 2)}
    with pytest.raises(ValueError, match=rf"^{re.escape(sentence)}"):
        Request(**{**good, **changes})


@pytest.mark.parametrize(("tokens", "ids"), [(1, 1), (511, 1), (512, 1), (513, 2), (1024, 2)])
def test_one_id_for_each_begun_512_tokens(tokens: int, ids: int) -> None:
    assert asked("a", tokens, *range(ids)).hash_ids == tuple(range(ids))
    with pytest.raises(ValueError, match=r"^hash_ids: "):
        asked("a", tokens, *range(ids + 1))


def test_an_experiment_keeps_its_hash_ids_through_json() -> None:
    requests = asked("a", 513, 7, 2**63 - 1), Request(request_id="b", prompt_tokens=3)
    experiment = Experiment(workload=Workload(requests=requests))
    data = json.loads(json.dumps(experiment.to_dict()))
    assert data == experiment.to_dict()
    assert data["workload"]["requests"][0]["hash_ids"] == [7, 2**63 - 1]
    assert "hash_ids" not in data["workload"]["requests"][1]
    assert Experiment.from_dict(data) == experiment
    assert hash(Experiment.from_dict(data)) == hash(experiment)


def test_hash_blocks_are_common_where_all_ids_up_to_them_are() -> None:
    """a, b and c have 1 in common, a and b 2 as well; f and g have two blocks and end alike."""
    requests = [
        asked("a", 1536, 1, 2, 3),
        asked("b", 1000, 1, 2),
        asked("c", 1536, 1, 4, 3),
        asked("d", 1024, 5, 2),
        Request(request_id="e", prompt_tokens=9),
        asked("f", 700, 6, 6),
        asked("g", 1024, 6, 6),
    ]
    common = shared_texts(requests)
    ends = {row: [part.end_token for part in parts] for row, parts in common.items()}
    assert ends == {0: [512, 1024], 1: [512, 1000], 2: [512], 5: [700], 6: [1024]}
    (one, two), (six,) = ([part.number for part in common[row]] for row in (0, 5))
    assert [part.number for row in (1, 2, 6) for part in common[row]] == [one, two, one, six]
    assert len({one, two, six, *range(len(requests))}) == 10  # no part has a row's number


def test_a_tree_of_beginnings() -> None:
    """512 tokens are four blocks: b leaves a after one hash block, c after two, d shares all but
    the last of its blocks, which is left to compute."""
    requests = asked("a", 1536, 1, 2, 3), asked("b", 1024, 1, 4), asked("c", 1536, 1, 2, 5)
    assert hits(*requests, asked("d", 1024, 1, 4)) == [0, 512, 1024, 896]


def test_an_id_says_nothing_without_those_before_it() -> None:
    """2 comes second after 1 and after 3, and once first; 1 comes first and second."""
    requests = asked("a", 1024, 1, 2), asked("b", 1024, 3, 2), asked("c", 1024, 2, 1)
    assert hits(*requests, asked("d", 1536, 3, 1, 2)) == [0, 0, 0, 512]


def test_a_last_block_that_is_not_full_is_common_as_far_as_both_prompts_go() -> None:
    """700 tokens are five whole blocks of 128; of its own 700, 699 can be hit, five again."""
    longer, shorter = asked("a", 1024, 1, 2), asked("b", 700, 1, 2)
    assert hits(shorter, longer) == [0, 640]
    assert hits(longer, shorter) == [0, 640]
    assert hits(shorter, longer, asked("c", 1300, 1, 2, 3)) == [0, 640, 1024]


@pytest.mark.parametrize(
    ("block_size", "found"),
    [(16, 1024), (200, 1000), (512, 1024), (700, 700), (1024, 1024), (1025, 0)],
)
def test_a_kv_block_that_ends_in_another_text_is_not_common(block_size: int, found: int) -> None:
    """1,024 tokens are common: as many whole blocks of each size as fit."""
    requests = asked("a", 1536, 1, 2, 3), asked("b", 1536, 1, 2, 4)
    assert hits(*requests, block_size=block_size) == [0, found]


def test_outputs_are_a_requests_own() -> None:
    """a's 512 tokens and 128 outputs are five blocks; only who continues it finds the fifth."""
    requests = asked("a", 512, 1, outputs=129), asked("b", 768, 1, 2)
    made = pool(*requests, Request(request_id="c", prompt_tokens=700, continues="a"))
    assert made.admit(0, 0, 512)
    made.begin_decoding(0)
    made.take_decode_steps(128)
    assert [made.cached_tokens(1), made.cached_tokens(2)] == [512, 640]
    made.release(0)
    assert [made.cached_tokens(1), made.cached_tokens(2)] == [512, 640]


def test_the_end_of_a_beginning_is_evicted_first() -> None:
    """a's eight blocks fill the pool. b takes three of them; c, who begins as a, finds five."""
    requests = asked("a", 1024, 1, 2), asked("b", 300, 3), asked("c", 1024, 1, 2)
    made = pool(*requests, blocks=8)
    assert made.admit(0, 0, 1024)
    made.release(0)
    assert made.admit(1, 0, 300)
    assert made.cached_tokens(2) == 640


def test_what_one_holds_of_a_beginning_stays_when_the_rest_is_evicted() -> None:
    """b holds a's first four blocks and one of its own when a is done. Four newcomers evict a's
    other four from the last on; a fifth gets nothing. Of a's eight, seven can be hit."""
    requests = asked("a", 1024, 1, 2), asked("b", 640, 1, 3)
    others = [asked(f"c{number}", 128, 4 + number) for number in range(5)]
    made = pool(*requests, *others, asked("d", 1024, 1, 2), blocks=9)
    assert made.admit(0, 0, 1024)
    assert made.admit(1, 512, 128)
    made.release(0)
    found = []
    for row in range(2, 7):
        found.append(made.cached_tokens(7))
        assert made.admit(row, 0, 128) == (row < 6)
    assert found == [896, 896, 768, 640, 512]


def test_an_equal_block_is_found_when_the_one_that_was_first_is_evicted() -> None:
    """a has 300 tokens, two blocks and a part; b hits those two and goes on to 456, so that its
    third block is full first. Then a goes on to 700, five blocks and a part: its third is b's
    again. b leaves, and d takes b's two; the third that is found is a's now."""
    requests = (asked(name, 1024, 1, 2) for name in "abc")
    made = pool(*requests, asked("d", 256, 3), blocks=8)
    assert made.admit(0, 0, 300)
    assert made.admit(1, made.cached_tokens(1), 200)
    assert made.held_blocks == 3 + 2
    assert made.hold([PrefillSlice(0, 400)], VictimOrder.ADMISSION) == ()
    assert (made.held_blocks, made.cached_tokens(2)) == (8, 640)
    made.release(1)
    assert (made.held_blocks, made.cached_tokens(2)) == (6, 640)
    assert made.admit(3, 0, 256)
    assert (made.free_blocks, made.cached_tokens(2)) == (0, 640)
    made.release(0)
    assert (made.free_blocks, made.cached_tokens(2)) == (6, 640)


def test_of_equal_blocks_one_goes_and_the_other_stays() -> None:
    """a and b both compute the third of their three blocks: their last token has to be. Both
    leave, a first: c's one block evicts a's third, and b's is found; e's evicts that too."""
    requests = [asked(name, 384, 1) for name in "ab"]
    made = pool(*requests, asked("c", 128, 2), asked("d", 512, 1), asked("e", 128, 3), blocks=4)
    assert made.admit(0, 0, 384)
    assert made.admit(1, made.cached_tokens(1), 128)
    assert made.held_blocks == 3 + 1
    made.release(0)  # its third block alone is idle
    made.release(1)
    assert made.cached_tokens(3) == 384
    assert made.admit(2, 0, 128)
    assert made.cached_tokens(3) == 384
    assert made.admit(4, 0, 128)
    assert made.cached_tokens(3) == 256


def test_kinds_of_blocks() -> None:
    """Blocks of 256, each request when the one before is done. b leaves a after 512 tokens; c is
    a's first 1,000: its fourth block ends in outputs, so it is not whole; d is c and 24 more."""
    requests = (
        asked("a", 1024, 1, 2),
        asked("b", 1024, 1, 3, arrival_ms=1e3),
        asked("c", 1000, 1, 2, arrival_ms=2e3, outputs=30),
        asked("d", 1024, 1, 2, arrival_ms=3e3),
    )
    experiment = vllm(Workload(requests=requests), block_size=256)
    kinds = [
        [BlockKind(kind).name for kind in row.kinds]
        for row in admitted_blocks(experiment, simulate(experiment))
    ]
    assert kinds == [
        ["NEW"] * 4,
        ["HIT", "HIT", "NEW", "NEW"],
        ["HIT", "HIT", "HIT", "NOT_WHOLE", "OUTPUT"],
        ["HIT", "HIT", "HIT", "LAST_TOKEN"],
    ]


def test_kinds_of_blocks_agree_with_random_runs() -> None:
    draw = random.Random("kinds")
    found = 0
    for _ in range(60):
        experiment = replace(random_hash_experiment(draw), policy="vllm_v1")
        result = simulate(experiment, max_steps=10_000)
        size = experiment.limits.block_size
        cached = result.admissions.cached_tokens.tolist()
        rows = admitted_blocks(experiment, result)
        if len(rows) < len(cached):
            continue  # cut in the step of an admission
        for row, tokens in zip(rows, cached, strict=True):
            assert row.count(BlockKind.HIT) * size == tokens
            assert tokens <= row.computed_before <= row.known_tokens
            if experiment.limits.kv_blocks is None:
                most = min(row.computed_before, row.known_tokens - 1)
                assert tokens == most // size * size
                found += tokens > 0
    assert found > 30


@pytest.mark.parametrize("seed", range(6))
def test_random_trees_run_as_one_object_per_request(seed: int) -> None:
    """Against blocks that are equal where the texts of their whole beginnings are."""
    draw = random.Random(f"trees {seed}")
    for number in range(50):
        experiment = random_hash_experiment(draw)
        assert differences(experiment) == {}, f"load {number}: {experiment}"


def test_the_random_trees_meet_what_they_are_for() -> None:
    draw = random.Random("trees 0")
    far = preempting = uneven = 0
    for _ in range(100):
        experiment = random_hash_experiment(draw)
        run = ReferenceRun(experiment, 10_000)
        most = max([cached for _, _, cached in run.admissions], default=0)
        far += most > 512
        preempting += bool(run.preemptions) and most > 0
        uneven += 512 % experiment.limits.block_size > 0 and most > 0
    assert min(far, uneven) > 15
    assert preempting > 5


def known_before(ids: Sequence[int], tokens: int, seen: dict[tuple[int, ...], int]) -> int:
    """How many leading tokens earlier prompts have; `seen`: by beginning, tokens up to its end."""
    known = 0
    for number in range(1, len(ids) + 1):
        there = seen.get(tuple(ids[:number]))
        if there is None:
            break
        known = min(there, tokens)
    for number in range(1, len(ids) + 1):
        key = tuple(ids[:number])
        seen[key] = max(seen.get(key, 0), min(512 * number, tokens))
    return known


@pytest.mark.parametrize("block_size", [16, 100, 512])
def test_a_real_trace_hits_what_counting_its_ids_gives(shared_dir: Path, block_size: int) -> None:
    """Each request when the one before is done, and room for all: whole blocks of what earlier
    prompts had, but at least one token is computed."""
    path = shared_dir / "traces" / "mooncake_conversation_head.jsonl"
    rows = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    requests = [
        asked(str(at), row["input_length"], *row["hash_ids"], arrival_ms=1e3 * at)
        for at, row in enumerate(rows)
    ]
    seen: dict[tuple[int, ...], int] = {}
    expected = []
    for row in rows:
        known = known_before(row["hash_ids"], row["input_length"], seen)
        expected.append(min(known, row["input_length"] - 1) // block_size * block_size)
    limits = EngineLimits(block_size=block_size, prefix_caching=True)
    workload = Workload(requests=tuple(requests))
    result = simulate(Experiment(workload=workload, policy="vllm_v1", limits=limits, cost=CLOCK))
    np.testing.assert_array_equal(result.admissions.request, np.arange(1_500))
    assert result.admissions.cached_tokens.tolist() == expected
    assert sum(expected) > 5_000_000  # of 20,981,721 tokens
