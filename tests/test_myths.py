"""The myths' computations, against arithmetic by hand on the chapter's costs and a tiny model."""

from dataclasses import replace

import numpy as np
import pytest

from s11.catalog import MODELS, Deployment, Model
from s11.costs import LinearCost, RooflineCost
from s11.myths_flops import prefill_work
from s11.myths_itl import gaps_both
from s11.myths_mixing import Load, Way, Ways, ways
from s11.myths_smaller import sizes_to_try, sizes_tried

TINY = Model(
    name="tiny",
    title="Tiny",
    layers=2,
    hidden=4,
    ffn=8,
    heads=2,
    kv_heads=1,
    head_dim=2,
    gated=True,
    vocab=10,
    tied_embeddings=True,
    max_positions=16,
)
H100 = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")
DECODE_MS = 5.2  # 4 + 24 x 0.05


def test_flops_of_a_tiny_model_by_hand() -> None:
    """A layer has 2 x 4 x (4 + 2) + 3 x 4 x 8 = 144 weights, two layers 288. Of four tokens in
    twos, the first chunk has 1 + 2 pairs of query and key, the second 3 + 4; a pair takes
    4 x 2 FLOPs for each of two heads and two layers."""
    work = prefill_work(Deployment(model=TINY, gpu="h100"), prompt_tokens=4, chunk_tokens=2)
    assert work.linear_flops.tolist() == [2 * 288 * 2, 2 * 288 * 2]
    assert work.attention_flops.tolist() == [3 * 32, 7 * 32]
    assert work.flops == 2 * 288 * 4 + 10 * 32
    assert work.weight_bytes.tolist() == [576, 576]
    # K and V, two layers, one head of 2 values of 2 bytes: 16 bytes a token; two tokens before.
    assert work.cached_kv_bytes.tolist() == [0, 32]
    assert work.read_bytes == 2 * 576 + 32


@pytest.mark.parametrize("chunk", [1, 100, 512, 999, 2000, 5000])
def test_chunks_add_no_flops_and_reads_that_grow_with_their_number(chunk: int) -> None:
    whole = prefill_work(H100, prompt_tokens=2000, chunk_tokens=2000)
    cut = prefill_work(H100, prompt_tokens=2000, chunk_tokens=chunk)
    assert cut.flops == whole.flops
    assert cut.chunks == -(-2000 // chunk)
    assert cut.weight_bytes.sum() == cut.chunks * whole.weight_bytes.sum()
    before = sum(range(0, 2000, chunk))
    assert cut.cached_kv_bytes.sum() == before * 131_072  # bytes a token of Llama-3.1-8B


def test_time_of_the_chunks_is_that_of_their_steps() -> None:
    cost = RooflineCost(deployment=H100)
    steps = [
        cost.step_ms(prefill_tokens=n, decode_tokens=0, slices=((at, n),))
        for at, n in ((0, 700), (700, 300))
    ]
    work = prefill_work(H100, prompt_tokens=1000, chunk_tokens=700)
    assert work.duration_ms == pytest.approx(sum(steps))


def test_fp8_halves_the_weights_alone() -> None:
    half = prefill_work(replace(H100, precision="fp8"), prompt_tokens=64, chunk_tokens=32)
    full = prefill_work(H100, prompt_tokens=64, chunk_tokens=32)
    assert 2 * half.weight_bytes.sum() == full.weight_bytes.sum()
    assert half.cached_kv_bytes.tolist() == full.cached_kv_bytes.tolist()


@pytest.mark.parametrize(("chunk", "chunks"), [(1024, 8), (128, 64), (8192, 1), (3000, 3)])
def test_mean_gap_is_the_same_and_the_longest_is_not(chunk: int, chunks: int) -> None:
    """100 tokens each, and 0.018 ms for each of 8,192 prompt tokens, however they are cut."""
    both = gaps_both(LinearCost(), prompt_tokens=8192, chunk_tokens=chunk, streaming_users=24)
    mean_ms = DECODE_MS + 0.018 * 8192 / 100
    assert both.whole.metrics.itl_mean_ms == pytest.approx(mean_ms)
    assert both.chunked.metrics.itl_mean_ms == pytest.approx(mean_ms)
    assert both.whole.metrics.longest_stall_ms == pytest.approx(DECODE_MS + 0.018 * 8192)
    longest = DECODE_MS + 0.018 * min(chunk, 8192)
    assert both.chunked.metrics.longest_stall_ms == pytest.approx(longest)
    assert (both.whole.prefill_steps, both.chunked.prefill_steps) == (1, chunks)
    assert len(both.whole.gap_ms) == len(both.chunked.gap_ms) == 100
    slow = int((both.chunked.gap_ms > DECODE_MS + 0.001).sum())
    assert slow == chunks


def test_more_chunks_than_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match=r"chunks: 128 .*90"):
        gaps_both(LinearCost(), prompt_tokens=8192, chunk_tokens=64, streaming_users=24)
    with pytest.raises(ValueError, match="streaming_users: 0"):
        gaps_both(LinearCost(), prompt_tokens=8192, chunk_tokens=128, streaming_users=0)


def test_sizes_and_their_floor_by_hand() -> None:
    """Chunks of n take 5.2 + 0.018 n; a tenth above the least of 5.488 is 6.037: size 32."""
    tried = sizes_tried(LinearCost(), prompt_tokens=100, streaming_users=24)
    assert sizes_to_try(100) == (16, 32, 64, 100)
    assert [size.chunk_tokens for size in tried.sizes] == [16, 32, 64, 100]
    assert tried.floor_ms == pytest.approx(DECODE_MS)
    stalls = [size.longest_stall_ms for size in tried.sizes]
    assert stalls == pytest.approx([DECODE_MS + 0.018 * n for n in (16, 32, 64, 100)])
    ttfts = [size.ttft_ms for size in tried.sizes]
    assert ttfts == pytest.approx([n * DECODE_MS + 1.8 for n in (7, 4, 2, 1)])
    assert [size.prefill_steps for size in tried.sizes] == [7, 4, 2, 1]
    assert (tried.smoothest.chunk_tokens, tried.enough.chunk_tokens) == (16, 32)
    assert tried.at(64).chunk_tokens == 64
    assert tried.at(4096).chunk_tokens == 100


def served(load: Load) -> Ways:
    return ways(LinearCost(), load, most_prompt_tokens=131_072, kv_bytes_per_token=131_072)


def test_prompts_only_gain_nothing_from_chunks() -> None:
    """32 prompts of 2,048: in chunks of 512 each takes 4 x 13.216; whole, four share a step of
    151.456; the KV of one travels 131,072 x 2,048 bytes at 50 GB/s, and 1 ms."""
    told = served(Load.PROMPTS_ONLY)
    assert told.values("itl_p50_ms") == {}
    travel_ms = 131_072 * 2_048 / 50e9 * 1e3 + 1.0
    assert told.values("ttft_p50_ms") == pytest.approx(
        {
            Way.MIXED: 16 * 4 * 13.216,
            Way.OWN_STEPS: 4 * 151.456,
            Way.TWO_GPUS: 4 * 151.456 + travel_ms,
        }
    )


def test_prompt_after_prompt_slows_the_median_token_of_mixed_steps() -> None:
    """128 mixed steps of 4 + 9.216 + 1.2, among 200 tokens; whole prompts stop the streams for
    8 steps of 151.456 at once."""
    told = served(Load.MANY_PROMPTS)
    assert told.values("itl_p50_ms") == pytest.approx(
        {Way.MIXED: 14.416, Way.OWN_STEPS: DECODE_MS, Way.TWO_GPUS: DECODE_MS}
    )
    assert told.values("longest_stall_ms") == pytest.approx(
        {Way.MIXED: 14.416, Way.OWN_STEPS: 8 * 151.456 + DECODE_MS, Way.TWO_GPUS: DECODE_MS}
    )
    mean = told.values("itl_mean_ms")
    assert mean[Way.MIXED] == pytest.approx(DECODE_MS + 128 * 9.216 / 200)
    assert mean[Way.OWN_STEPS] == pytest.approx(DECODE_MS + 8 * 151.456 / 200)


def test_one_prompt_is_where_mixing_pays() -> None:
    told = served(Load.ONE_PROMPT)
    stall = told.values("longest_stall_ms")
    assert stall[Way.MIXED] == pytest.approx(14.416)
    assert stall[Way.OWN_STEPS] == pytest.approx(151.456 + DECODE_MS)
    assert told.values("ttft_p50_ms")[Way.MIXED] == pytest.approx(16 * 14.416)


def test_streams_only_are_the_same_every_way() -> None:
    told = served(Load.STREAMS_ONLY)
    for name in ("itl_p50_ms", "longest_stall_ms", "itl_mean_ms"):
        assert np.allclose(list(told.values(name).values()), DECODE_MS)
    assert told.values("ttft_p50_ms") == {}


def test_prompts_are_cut_to_what_the_model_takes() -> None:
    told = ways(LinearCost(), Load.ONE_PROMPT, most_prompt_tokens=2048, kv_bytes_per_token=1)
    assert told.prompt_tokens == 2048
    assert told.values("ttft_p50_ms")[Way.MIXED] == pytest.approx(4 * 14.416)
