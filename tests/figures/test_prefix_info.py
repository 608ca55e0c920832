"""What the prefix page's pictures and sentences say, worked out by hand."""

import numpy as np
import pytest

from s11.figures.prefix_blocks_info import blocks_alt, blocks_info
from s11.figures.prefix_info import load_caption, per_request_columns, strips
from s11.figures.prefix_words import composition, recomputed, rules
from s11.prefix_blocks import admitted_blocks
from s11.prefix_workloads import conversation, shared_system_prompt
from tests.prefix_runs import four_runs, same_prompt_twice

# A step of 1,024 tokens takes 22.432 ms, of 512 13.216 ms, of 128 6.304 ms (nobody streams).
TWICE = same_prompt_twice()


def blocks_of(four):
    return admitted_blocks(four.both.experiment, four.both.result)


def test_four_runs_count_what_the_cache_skips():
    assert [run.name for run in TWICE] == ["neither", "chunking only", "cache only", "both"]
    assert [run.chunks for run in TWICE] == [2, 4, 2, 3]
    assert TWICE.skipped_chunks == 1
    assert TWICE.hit_share == 896 / 2048
    assert TWICE.both.hits().tolist() == [0, 896]


def test_strips_lay_the_prefill_steps_side_by_side():
    neither, chunking, caching, both = strips(TWICE)
    np.testing.assert_allclose(neither.duration_ms, [22.432, 22.432])
    np.testing.assert_allclose(chunking.duration_ms, [13.216] * 4)
    np.testing.assert_allclose(caching.duration_ms, [22.432, 6.304])
    np.testing.assert_allclose(both.duration_ms, [13.216, 13.216, 6.304])
    np.testing.assert_allclose(both.left, [0, 13.216, 26.432])
    assert [strip.total_ms for strip in (neither, chunking, caching, both)] == pytest.approx(
        [44.864, 52.864, 28.736, 32.736]
    )
    # Against the same chunking without the cache.
    assert [strip.saved_ms for strip in (neither, chunking)] == [0, 0]
    assert [caching.saved_ms, both.saved_ms] == pytest.approx([16.128, 20.128])
    assert [group.label for group in both.groups] == ["1", "2"]
    assert both.group.tolist() == [0, 0, 1]
    assert both.words[-1] == "128 prompt tokens of request 2"
    assert both.label == "3 steps, 32.7 ms"  # nobody streams: no stall


def test_a_step_of_several_requests_is_called_by_the_first_and_the_last():
    together = shared_system_prompt(
        requests=3, shared_tokens=8, own_tokens=0, output_tokens=1, gap_ms=0
    )
    (strip, *_) = strips(four_runs(together, chunk=8, block_size=4))
    assert [group.label for group in strip.groups] == ["1–3"]
    assert strip.words == ["24 prompt tokens of request 1, request 2, request 3"]


def test_sentence_says_how_the_two_compose():
    # One streaming user adds 0.05 ms to each step: 22.482, 13.266.
    assert composition(same_prompt_twice(users=1)) == (
        "**The cache removes work:** it skips 1 of 4 chunks; 896 of 2,048 tokens are hits. "
        "**Chunking spreads** what is left: 3 chunks over 3 steps instead of 2. "
        "**Together** the longest stall falls from 22.5 ms to **13.3 ms** "
        "(cache alone 22.5 ms, chunking alone 13.3 ms)."
    )


def test_sentence_where_nothing_is_shared_and_nothing_is_cut():
    apart = shared_system_prompt(
        requests=2, shared_tokens=0, own_tokens=100, output_tokens=1, gap_ms=1000
    )
    assert composition(four_runs(apart, chunk=512, block_size=16)) == (
        "**The cache** finds nothing: all 200 tokens are computed. "
        "**Chunking** has nothing left to spread: what is left of each prompt is one chunk, "
        "2 chunks in 2 steps. Nobody streams, so nothing can stall."
    )


def test_sentence_says_where_chunks_cost_hits():
    # Two prompts of 12 tokens at once. Whole: 8 of 12 are hits. In chunks of 4: 4 are.
    together = shared_system_prompt(
        requests=2, shared_tokens=12, own_tokens=0, output_tokens=1, gap_ms=0
    )
    told = composition(four_runs(together, chunk=4, block_size=4))
    assert "4 of 24 tokens are hits" in told
    assert "It hits 4 tokens less than whole prompts do (8)" in told


def test_sentence_names_preemptions():
    # 7 tokens and 6 outputs each in a pool of 4 blocks of 4: the second loses its blocks.
    pair = shared_system_prompt(
        requests=2, shared_tokens=0, own_tokens=7, output_tokens=6, gap_ms=0, streaming_users=1
    )
    four = four_runs(pair, chunk=16, block_size=4, kv_blocks=4)
    assert "preemptions: neither 1, chunking only 1, cache only 1, both 1" in composition(four)


@pytest.mark.parametrize(
    ("tokens", "sentence"),
    [
        (8, "1 block (4 tokens) since at least one token is computed, and hits are whole blocks"),
        (9, "1 block (1 token) since only a part of it had been there"),
    ],
)
def test_what_is_computed_once_more_is_said_with_its_reason(tokens, sentence):
    prompts = shared_system_prompt(
        requests=2, shared_tokens=tokens, own_tokens=0, output_tokens=1, gap_ms=1000
    )
    four = four_runs(prompts, chunk=16, block_size=4)
    assert recomputed(blocks_of(four)) == f"**Computed once more:** {sentence}."


def test_nothing_computed_once_more_is_said_too():
    assert recomputed(()).startswith("No block")


def test_rules_name_the_block_size():
    assert len(rules(32)) == 3
    assert "whole blocks of 32 tokens" in rules(32)[0]


def test_table_has_a_row_for_each_request():
    columns = per_request_columns(TWICE, blocks_of(TWICE))
    times = {name: values for name, values in columns.items() if name.startswith("ttft")}
    assert {name: values for name, values in columns.items() if name not in times} == {
        "request": ["request 1", "request 2"],
        "arrival_ms": [0, 1000],
        "prompt_tokens": [1024, 1024],
        "hit_tokens": [0, 896],
        "computed_tokens": [1024, 128],
        "chunks_cache_off": [2, 2],
        "chunks_cache_on": [2, 1],
        "evicted_tokens": [0, 0],
        "last_token_tokens": [0, 128],
    }
    assert times["ttft_ms_neither"] == pytest.approx([22.432, 22.432])
    assert times["ttft_ms_chunking_only"] == pytest.approx([26.432, 26.432])
    assert times["ttft_ms_cache_only"] == pytest.approx([22.432, 6.304])
    assert times["ttft_ms_both"] == pytest.approx([26.432, 6.304])


def test_caption_has_the_parameters_with_units():
    assert load_caption(TWICE) == [
        "2 prompts of 1,024 tokens, chunks of 512",
        "blocks of 128 tokens, 0 streaming users, s11",
    ]
    talk = conversation(turns=2, system_tokens=10, user_tokens=5, answer_tokens=2, gap_ms=500)
    # 15 tokens, then 15 + 2 + 5.
    assert load_caption(four_runs(talk, chunk=4, kv_blocks=9))[0] == (
        "2 prompts of 15 to 22 tokens, chunks of 4"
    )


def test_blocks_are_counted_in_title_and_alt():
    info = info_of(TWICE)
    assert info.title == "7 of 16 prompt blocks are hits"
    assert info.caption[0] == "blocks of 128 tokens, pool: no limit"
    assert info.caption[1].startswith("a cell is a block")
    assert "request 2: 7 hit, 1 again: last token" in blocks_alt(info)


def test_evicted_blocks_are_in_the_title():
    # Two texts of 9 tokens in turn, a pool of 4 blocks of 4: see test_prefix_blocks.
    turns = shared_system_prompt(
        requests=3, shared_tokens=9, own_tokens=0, output_tokens=1, gap_ms=1000, system_prompts=2
    )
    info = info_of(four_runs(turns, chunk=16, block_size=4, kv_blocks=4))
    assert info.title == "1 of 9 blocks hit; 1 evicted"
    assert info.caption[0] == "blocks of 4 tokens, pool: 4 blocks"


@pytest.mark.parametrize(("blocks", "cell"), [(80, 1), (81, 2), (160, 2), (161, 4), (640, 8)])
def test_cells_stand_for_more_blocks_where_there_are_many(blocks, cell):
    one = shared_system_prompt(
        requests=1, shared_tokens=0, own_tokens=blocks, output_tokens=1, gap_ms=0
    )
    assert info_of(four_runs(one, chunk=1024, block_size=1)).blocks_per_cell == cell


def info_of(four):
    limits = four.both.experiment.limits
    return blocks_info(
        blocks_of(four),
        request_ids=four.both.result.requests.request_id,
        block_size=limits.block_size,
        kv_blocks=limits.kv_blocks,
    )


def test_only_so_many_rows_are_drawn():
    many = shared_system_prompt(
        requests=30, shared_tokens=8, own_tokens=1, output_tokens=1, gap_ms=100
    )
    info = info_of(four_runs(many, chunk=8, block_size=4))
    assert (len(info.rows), len(info.shown)) == (30, 24)
    assert info.title == "58 of 90 prompt blocks are hits"  # all but the first hit 2 of 3
