"""What the comparison draws, by value: tiny loads on the one-millisecond clock."""

from dataclasses import replace

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, LinearCost, Request, measure, simulate
from s11.comparison import compare
from s11.figures.compare_info import CompareInfo, compare_alt, compare_info, knobs, stall_words
from s11.figures.compare_rows import CachedPrefix, RequestRow, Span, request_rows
from s11.figures.compare_strips import HOVER_LETTERS, MOST_HOVER_LINES, Strip, strips
from s11.metric_rows import EngineRun
from tests.loads import load, request


def rows(experiment: Experiment) -> dict[str, RequestRow]:
    found, _ = request_rows(experiment, simulate(experiment))
    return {row.name: row for row in found}


def strip(experiment: Experiment) -> Strip:
    (found,) = strips(experiment, simulate(experiment))
    return found


def ran(experiment: Experiment, label: str = "Engine") -> EngineRun:
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
    return EngineRun(label=label, experiment=experiment, result=result, metrics=metrics)


def info(*runs: EngineRun, scene: str = "") -> CompareInfo:
    return compare_info(runs, compare(runs), scene=scene)


PREFILL_FIRST = load(
    request("A", 1, output_tokens=3),
    request("L", 4, arrival_ms=0.5),
    policy="prefill_first",
    target_ms=1.5,
)


def test_row_has_queue_chunks_tokens_and_stalls():
    """A's token comes at 1 ms, L's whole prompt takes 1 to 2 ms, A's decodes end at 3 and 4."""
    found = rows(PREFILL_FIRST)
    a, long = found["A"], found["L"]
    assert a.tokens_ms.tolist() == [1.0, 3.0, 4.0]
    assert (a.first_token_ms, a.stalls, a.queued) == (1.0, (Span(1.0, 3.0),), ())
    assert long.queued == (Span(0.5, 1.0),)
    (part,) = long.passes
    assert (part.left_ms.tolist(), part.width_ms.tolist()) == ([1.0], [1.0])
    assert (part.chunks, part.tokens, part.merged) == (1, 4, False)


def test_preemption_has_its_own_span_and_pass():
    """Three blocks of 4: B loses its own from 1 to 3 ms, then computes its 5 tokens anew."""
    limits = EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=3)
    two = (request("A", 4, output_tokens=3), request("B", 4, output_tokens=3))
    b = rows(replace(load(*two, target_ms=1.5), limits=limits))["B"]
    assert b.preempted == (Span(1.0, 3.0),)
    assert [(part.left_ms.tolist(), part.tokens) for part in b.passes] == [([0.0], 4), ([3.0], 5)]
    assert b.tokens_ms.tolist() == [1.0, 4.0, 5.0]
    assert b.stalls == (Span(1.0, 4.0),)


def test_cached_prefix_is_marked_where_it_was_found():
    shared = [
        Request(request_id=name, prompt_tokens=10, shared_group="g", shared_tokens=8)
        for name in "AB"
    ]
    limits = EngineLimits(chunk_tokens=None, block_size=4, prefix_caching=True)
    assert rows(replace(load(*shared), limits=limits))["B"].cached == (CachedPrefix(0.0, 1.0, 8),)


def test_hand_over_lasts_as_long_as_the_kv_travels():
    """Chunks of 3: done at 2 ms; 4 tokens of 131,072 bytes at 50 GB/s, and 1 ms latency."""
    experiment = load(request("A", 4, output_tokens=2), policy="disaggregated", chunk=3)
    (span,) = rows(experiment)["A"].hand_over
    assert span.start_ms == 2.0
    assert span.end_ms == pytest.approx(2.0 + 1.0 + 4 * 131_072 / 50e9 * 1000)
    prefill, decode = strips(experiment, simulate(experiment))
    assert (prefill.name, decode.name) == ("prefill steps", "decode steps")
    assert prefill.prefill.tolist() == [True, True]
    assert decode.decode.tolist() == [True]


def test_who_is_never_served_is_told_why():
    never = rows(load(*[request(name, 4) for name in "AB"], policy="whole_prompt", budget=3))
    assert never["A"].note == "never runs: chunking off"
    assert never["B"].note == "waits behind “A” for ever"
    refused = rows(replace(load(request("A", 4)), limits=EngineLimits(max_model_len=3)))["A"]
    assert refused.note == "refused: longer than max_model_len"
    assert not refused.queued


@pytest.mark.parametrize(
    ("requests", "shown", "folded"), [(1, 1, 0), (9, 9, 0), (10, 8, 2), (24, 8, 16)]
)
def test_rows_beyond_eight_are_folded(requests: int, shown: int, folded: int):
    experiment = load(*[request(f"r{number}", 1) for number in range(requests)])
    found, rest = request_rows(experiment, simulate(experiment))
    assert (len(found), rest) == (shown, folded)


def test_streaming_users_share_the_first_row():
    experiment = load(request("A", 1), users=3, lead_in=2)
    first = request_rows(experiment, simulate(experiment))[0][0]
    assert (first.name, first.tokens_ms.tolist()) == ("3 streams", [0.0, 1.0, 2.0, 3.0])


def test_very_many_chunks_are_one_bar():
    (part,) = rows(load(request("A", 200), chunk=1))["A"].passes
    assert (part.chunks, part.merged) == (200, True)
    assert (part.left_ms.tolist(), part.width_ms.tolist()) == ([0.0], [200.0])


def test_strip_tells_what_a_step_carries():
    """A prefill, then A's decode beside L's prompt... but here L goes first, alone."""
    found = strip(PREFILL_FIRST)
    assert found.prefill.tolist() == [True, True, False, False]
    assert found.decode.tolist() == [False, False, True, True]
    assert found.stories[1].startswith("<b>Step 2: 1.0 to 2.0 ms, 4 prefill tokens</b><br>")
    assert found.steps_per_cell == 1


def test_many_steps_share_cells_and_the_longest_is_told():
    """601 steps: three to a cell. The 301st, of 101 tokens beside the decode, is the longest."""
    assert isinstance(PREFILL_FIRST.cost, LinearCost)
    experiment = load(
        request("A", 1, output_tokens=601),
        request("L", 100, arrival_ms=299.5),
        cost=replace(PREFILL_FIRST.cost, prefill_ms_per_token=1.0 / 128),
    )
    found = strip(experiment)
    assert (found.steps_per_cell, len(found.stories)) == (3, 201)
    cell = int(np.flatnonzero(found.prefill)[1])
    assert "100 prefill + 1 decode" in found.stories[cell]
    assert found.stories[cell].startswith("The longest of steps ")
    assert found.width_ms.sum() == pytest.approx(simulate(experiment).steps.end_ms[-1])


def test_story_fits_a_phone_and_shows_markup_as_text():
    many = [request(f"<b>request {number} of many", 9) for number in range(20)]
    text = strip(load(*many, budget=100, chunk=8)).stories[0]
    lines = text.split("<br>")
    assert len(lines) <= MOST_HOVER_LINES
    assert all(
        len(line.replace("&lt;", "<").replace("&gt;", ">").replace("&nbsp;", " ")) <= HOVER_LETTERS
        for line in lines[1:]
    )
    assert "<b>request" not in text


def test_knobs_are_those_that_the_policy_reads():
    limits = EngineLimits(token_budget=2048, chunk_tokens=512, max_seqs=1, kv_blocks=288)
    base = load(request("A", 1))
    assert knobs(ran(replace(base, limits=limits))) == (
        "budget 2,048 · cap 512 · 288 KV blocks of 16 · 1 seat",
    )
    whole = replace(base, limits=limits, policy="whole_prompt")
    assert knobs(ran(whole)) == ("budget 2,048 · 288 KV blocks of 16 · 1 seat",)
    off = replace(base, policy="vllm_v1", limits=EngineLimits(chunking=False))
    assert knobs(ran(off)) == ("no budget · chunking off",)


def test_axis_caption_and_words():
    slow = replace(PREFILL_FIRST, policy="chunked")
    found = info(ran(PREFILL_FIRST, "One"), ran(slow, "Two"), scene="Small")
    assert found.end_ms == 4.0  # the longer of the two, for both
    assert not found.in_seconds
    assert found.caption[0] == "Small: 2 requests, 5 prompt tokens"
    assert [stall_words(band) for band in found.bands] == [
        "longest stall 2 ms",
        "longest stall 1 ms",
    ]
    alone = info(ran(load(request("A", 1))))
    assert stall_words(alone.bands[0]) == "nobody streams"


def test_alt_text_has_the_numbers():
    run = ran(PREFILL_FIRST, "Prefill first")
    alt = compare_alt(info(run), [run.metrics])
    assert (
        "Prefill first (no budget): longest stall 2 ms, TTFT p50 1 ms, 4 steps, 0 preemptions"
        in alt
    )
