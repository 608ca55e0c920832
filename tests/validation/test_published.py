"""The papers' figures, within the issue's limits, and the arithmetic around them."""

import pytest

from s11.validation.published import (
    CHUNK_SIZES,
    CHUNKED_PROMPTS,
    ChunkOverhead,
    Published,
    chunk_overheads,
    decode_costs,
    falcon_gap,
    sarathi,
)

LIMIT_PCT = 10
ROWS = sarathi()
OVERHEADS = {(one.prompt_tokens, one.chunk_tokens): one.overhead_pct for one in chunk_overheads()}


@pytest.mark.parametrize("row", ROWS, ids=lambda row: f"{row.what}, {row.part}")
def test_sarathis_table_within_ten_percent(row):
    assert abs(row.error_pct) <= LIMIT_PCT


def test_all_nine_figures_of_the_table_are_there():
    assert [row.published_ms for row in ROWS] == [
        224.8, 10, 44.28, 5.68, 223.2, 15.2, 55, 69.8, 92.33,
    ]  # fmt: skip
    assert sum(row.rests_on_it for row in ROWS) == 2


def test_a_decode_alone_and_piggybacked_as_the_paper_works_it_out():
    alone, riding = decode_costs(ROWS)
    # (44.28 + 5.68) / 4 = 12.49; (223.2 + 15.2 - 224.8 - 10) / 3 = 1.2.
    assert alone.published_ms == pytest.approx(12.49)
    assert riding.published_ms == pytest.approx(1.2)
    # Neither is a figure of its own; of the nine, seven are.
    assert not alone.is_check
    assert not riding.is_check
    assert sum(row.is_check for row in ROWS) == 7
    assert abs(alone.error_pct) <= LIMIT_PCT
    # A small difference of large sums, so its size alone: a decode rides at less than a sixth.
    assert 0 < riding.ours_ms < alone.ours_ms / 6


def test_a_tile_more_costs_more_than_a_token():
    by_tokens = {row.what: row.ours_ms for row in ROWS[6:]}
    step = by_tokens["257 tokens"] - by_tokens["256 tokens"]
    # The paper: 92.33 - 69.8 = 22.53 ms for the 257th token, 14.8 ms for the 128 before it.
    assert step > by_tokens["256 tokens"] / 10


def test_percentages_by_hand():
    assert Published(what="", part="", published_ms=200, ours_ms=190).error_pct == pytest.approx(-5)
    overhead = ChunkOverhead(prompt_tokens=8, chunk_tokens=4, whole_ms=80, chunked_ms=100)
    assert overhead.overhead_pct == pytest.approx(25)


@pytest.mark.parametrize("prompt", CHUNKED_PROMPTS)
def test_chunks_of_512_cost_yi_at_most_about_a_quarter(prompt):
    assert 0 < OVERHEADS[prompt, 512] <= 25 * (1 + LIMIT_PCT / 100)


@pytest.mark.parametrize("prompt", CHUNKED_PROMPTS)
def test_chunks_of_2048_cost_yi_little(prompt):
    assert 0 <= OVERHEADS[prompt, 2_048] <= LIMIT_PCT
    assert OVERHEADS[prompt, 2_048] < OVERHEADS[prompt, 512] / 3


@pytest.mark.parametrize("prompt", CHUNKED_PROMPTS)
def test_smaller_chunks_cost_more(prompt):
    costs = [OVERHEADS[prompt, chunk] for chunk in CHUNK_SIZES]
    assert costs == sorted(costs, reverse=True)


def test_a_prompt_in_one_chunk_costs_nothing_more():
    assert OVERHEADS[2_048, 2_048] == pytest.approx(0)


def test_decodes_of_a_falcon_wait_for_the_whole_prefill_or_for_a_chunk():
    gap = falcon_gap()
    assert gap.gap_whole_ms >= gap.whole_prefill_ms
    assert gap.gap_whole_ms > 10 * gap.decode_step_ms
    # An eighth of the prompt each: less than a quarter of the wait.
    assert gap.decode_step_ms < gap.gap_chunk_ms < gap.gap_whole_ms / 4
