"""Prefill attention: hand-worked times on a made-up GPU, chunks, and every size."""

from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import GPUS, Gpu
from s11.costs.prefill_attention import (
    ChunkAttention,
    PrefillAttentionConstants,
    attention_flops,
    chunk_attention_ms,
    prefill_attention_ms,
)

# 1e9 FLOPs and 1e9 bytes a millisecond, four SMs, an L2 that nothing fills
TOY = replace(
    GPUS["a100-80"],
    bf16_flops_per_s=1e12,
    hbm_bytes_per_s=1e12,
    sm_count=4,
    l2_bytes=10**15,
)
SWIFT = replace(TOY, hbm_bytes_per_s=1e30)  # its memory takes no time
ARITHMETIC = PrefillAttentionConstants(
    compute_share=1.0,
    tail_share=0.0,
    floor_ms=0.0,
    io_passes=0.0,
    write_passes=0.0,
    token_ns=0.0,
    splits_and_packs=0.0,
)
# Of about the size of what is fitted; with and without FlashAttention-3's ways.
PREFILLS = [
    PrefillAttentionConstants(
        compute_share=0.6,
        tail_share=0.5,
        floor_ms=0.01,
        io_passes=0.7,
        write_passes=1.5,
        token_ns=4.0,
        splits_and_packs=flash_3,
    )
    for flash_3 in (0.0, 1.0)
]
HEADS = [(4, 4), (5, 1), (8, 1), (28, 4), (32, 8), (40, 40), (64, 8)]
ONE_HEAD: dict[str, Any] = {"q_heads": 1, "kv_heads": 1, "head_dim": 64}


def toy_chunk(tokens: int, start_tokens: int, *, gpu: Gpu = SWIFT, **changes: float) -> float:
    """One head of dimension 64 on the toy GPU, in ms."""
    constants = replace(ARITHMETIC, **changes)
    return float(chunk_attention_ms(tokens, start_tokens, **ONE_HEAD, gpu=gpu, constants=constants))


# FLOPs


def test_flops_of_two_queries_behind_three_cached_tokens() -> None:
    # They see 4 and 5 keys: 9 pairs of 4 · 10 FLOPs, on 2 heads.
    assert attention_flops(2, 3, q_heads=2, head_dim=10) == 9 * 40 * 2


@given(st.lists(st.integers(1, 5000), min_size=1, max_size=20), st.integers(0, 100_000))
def test_chunking_adds_no_flops(chunks: list[int], start_tokens: int) -> None:
    sizes: dict[str, Any] = {"q_heads": 40, "head_dim": 128}
    starts = [start_tokens + sum(chunks[:n]) for n in range(len(chunks))]
    in_chunks = sum(attention_flops(*at, **sizes) for at in zip(chunks, starts, strict=True))
    assert in_chunks == attention_flops(sum(chunks), start_tokens, **sizes)


# Prefill, each part alone


def test_arithmetic_takes_whole_diagonal_tiles() -> None:
    # Two tiles of 64 rows see 64 and 128 keys; 4 · 64 FLOPs a pair, 1e9 FLOPs a ms.
    assert toy_chunk(128, 0) == pytest.approx((64 * 64 + 64 * 128) * 256 / 1e9)


def test_each_tile_sees_the_cached_tokens_too() -> None:
    assert toy_chunk(128, 1000) - toy_chunk(128, 0) == pytest.approx(128 * 1000 * 256 / 1e9)


def test_a_token_past_a_tile_costs_a_tile() -> None:
    assert toy_chunk(65, 0) == toy_chunk(128, 0) > toy_chunk(64, 0) == toy_chunk(1, 0)


def test_chunks_of_whole_tiles_take_the_arithmetic_of_the_whole_prompt() -> None:
    chunks = [toy_chunk(512, start) for start in range(0, 4096, 512)]
    assert sum(chunks) == pytest.approx(toy_chunk(4096, 0))


def test_the_tail_is_the_longest_block_on_one_sm() -> None:
    # The last tile's 64 rows meet 128 keys at a quarter of the GPU; one more key tile of margin.
    longest_ms = 64 * (128 + 64) * 256 / (1e9 / 4)
    assert toy_chunk(128, 0, tail_share=0.5) - toy_chunk(128, 0) == pytest.approx(longest_ms / 2)


def test_q_k_v_and_o_pass_once_and_cached_keys_too() -> None:
    # bf16: Q and O 2 · 128 bytes a token, K and V the same, of new tokens and of cached ones.
    read = toy_chunk(64, 1000, gpu=TOY, io_passes=1.0) - toy_chunk(64, 1000)
    assert read == pytest.approx(64 * 512 / 1e9 + 1000 * 256 / 1e9)
    cached = toy_chunk(64, 1000, gpu=TOY, io_passes=0.0) - toy_chunk(64, 1000)
    assert cached == pytest.approx(1000 * 256 / 1e9)


@pytest.mark.parametrize(("kv_heads", "share"), [(1, 0.25), (2, 0.5), (4, 1.0), (8, 1.0)])
def test_the_cache_write_launches_at_most_512_threads_a_token(kv_heads: int, share: float) -> None:
    def ms(token_ns: float) -> float:
        constants = replace(ARITHMETIC, token_ns=token_ns)
        heads: dict[str, Any] = {"q_heads": 8, "kv_heads": kv_heads, "head_dim": 128}
        return float(chunk_attention_ms(1000, 0, **heads, gpu=TOY, constants=constants))

    assert ms(10.0) - ms(0.0) == pytest.approx(1000 * 10e-6 * share)


def test_new_keys_reach_the_memory_only_beyond_their_share_of_the_l2() -> None:
    new_bytes = 4096 * 256
    small, large = (replace(TOY, l2_bytes=size) for size in (new_bytes // 100, new_bytes * 100))

    def write_ms(gpu: Gpu) -> float:
        constants = replace(ARITHMETIC, write_passes=2.0)
        timed = chunk_attention_ms(4096, 0, **ONE_HEAD, gpu=gpu, constants=constants)
        return float(timed) - toy_chunk(4096, 0)

    assert write_ms(small) == pytest.approx(2 * new_bytes / 1e9, rel=1e-3)
    assert write_ms(large) == pytest.approx(0.0, abs=1e-6 * new_bytes / 1e9)


# Prefill, together


@pytest.mark.parametrize("constants", PREFILLS)
@pytest.mark.parametrize(("q_heads", "kv_heads"), HEADS)
def test_a_chunk_without_a_past_is_a_whole_prompt(
    q_heads: int, kv_heads: int, constants: PrefillAttentionConstants
) -> None:
    shape: dict[str, Any] = {"q_heads": q_heads, "kv_heads": kv_heads, "head_dim": 128}
    settings: dict[str, Any] = {"gpu": GPUS["h100"], "constants": constants}
    for tokens in (1, 63, 64, 1000, 8192):
        whole = prefill_attention_ms(1, tokens, **shape, **settings)
        assert chunk_attention_ms(tokens, 0, **shape, **settings) == whole


@pytest.mark.parametrize("constants", PREFILLS)
def test_chunks_of_one_step_pay_the_floor_once(constants: PrefillAttentionConstants) -> None:
    kernel = ChunkAttention.of(
        q_heads=32, kv_heads=8, head_dim=128, gpu=GPUS["h100"], constants=constants
    )
    first, second = (512, 4096), (300, 0)  # tokens, start
    alone = [kernel.ms(*chunk) for chunk in (first, second)]
    assert kernel.together_ms([first]) == pytest.approx(alone[0], rel=1e-12)
    assert kernel.together_ms([first, (0, 77)]) == kernel.together_ms([first])
    both = kernel.together_ms([first, second])
    assert max(alone) < both <= sum(alone) - kernel.floor_ms
    assert kernel.together_ms([second, first]) == pytest.approx(both, rel=1e-12)


@pytest.mark.parametrize("constants", PREFILLS)
def test_nothing_takes_no_time(constants: PrefillAttentionConstants) -> None:
    shape: dict[str, Any] = {
        "q_heads": 8,
        "kv_heads": 2,
        "head_dim": 128,
        "gpu": TOY,
        "constants": constants,
    }
    assert chunk_attention_ms(0, 5000, **shape) == 0
    kernel = ChunkAttention.of(**shape)
    assert kernel.together_ms([]) == kernel.together_ms([(0, 5000)]) == 0


@pytest.mark.parametrize("constants", PREFILLS)
@given(
    tokens=st.integers(1, 40_000),
    start_tokens=st.integers(0, 130_000),
    heads=st.sampled_from(HEADS),
    head_dim=st.sampled_from([64, 80, 96, 128]),
)
def test_more_of_anything_never_makes_a_chunk_faster(
    constants: PrefillAttentionConstants,
    tokens: int,
    start_tokens: int,
    heads: tuple[int, int],
    head_dim: int,
) -> None:
    def ms(tokens: int, start: int, groups: int, kv_heads: int, head_dim: int) -> float:
        shape: dict[str, Any] = {
            "q_heads": groups * kv_heads,
            "kv_heads": kv_heads,
            "head_dim": head_dim,
        }
        settings: dict[str, Any] = {"gpu": GPUS["l40s"], "constants": constants}
        return float(chunk_attention_ms(tokens, start, **shape, **settings))

    sizes = [tokens, start_tokens, heads[0] // heads[1], heads[1], head_dim]
    here = ms(*sizes)
    for place, more in enumerate((1, 1, 1, 1, 16)):
        larger = list(sizes)
        larger[place] += more
        assert ms(*larger) >= here * (1 - 1e-12)
