"""Decode attention: hand-worked times on a made-up GPU, limits, and every size."""

from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import GPUS
from s11.costs.decode_attention import (
    DecodeAttention,
    DecodeAttentionConstants,
    decode_attention_ms,
)

# 1e9 FLOPs and 1e9 bytes a millisecond, four SMs, an L2 that nothing fills
TOY = replace(
    GPUS["a100-80"],
    bf16_flops_per_s=1e12,
    hbm_bytes_per_s=1e12,
    sm_count=4,
    l2_bytes=10**15,
)
MEMORY = DecodeAttentionConstants(
    bandwidth_share=1.0,
    compute_share=1e9,
    floor_ms=0.0,
    split_ms=0.0,
    ramp_ms=0.0,
    block_us=0.0,
    l2_speed=1.0,
    unsplit_multi_head=0.0,
)
# Of about the size of what is fitted; with and without split-KV for multi-head models.
DECODES = [
    DecodeAttentionConstants(
        bandwidth_share=0.9,
        compute_share=0.5,
        floor_ms=0.01,
        split_ms=0.005,
        ramp_ms=0.01,
        block_us=1.0,
        l2_speed=5.0,
        unsplit_multi_head=unsplit,
    )
    for unsplit in (0.0, 1.0)
]
HEADS = [(4, 4), (5, 1), (8, 1), (28, 4), (32, 8), (40, 40), (64, 8)]
ONE_HEAD: dict[str, Any] = {"q_heads": 1, "kv_heads": 1, "head_dim": 64}


def toy_decode(sequences: int, context_tokens_sum: int, **changes: float) -> float:
    constants = replace(MEMORY, **changes)
    return float(
        decode_attention_ms(sequences, context_tokens_sum, **ONE_HEAD, gpu=TOY, constants=constants)
    )


def test_decode_reads_all_keys_and_values() -> None:
    # 3,000 tokens of context, K and V of 64 bf16 values each: 256 bytes a token, 1e9 bytes a ms.
    assert toy_decode(3, 3000) == pytest.approx(3000 * 256 / 1e9)
    assert toy_decode(3, 3000, bandwidth_share=0.5) == pytest.approx(2 * 3000 * 256 / 1e9)


def test_decode_floors_and_blocks_add() -> None:
    extra = toy_decode(3, 3000, floor_ms=0.5, split_ms=0.25, block_us=8.0) - toy_decode(3, 3000)
    assert extra == pytest.approx(0.5 + 0.25 + 3 * 0.008 / 4)  # 3 blocks over 4 SMs


@pytest.mark.parametrize(("sequences", "waves"), [(1, 1), (4, 1), (5, 2), (8, 2), (9, 3)])
def test_unsplit_blocks_run_in_whole_waves(sequences: int, waves: int) -> None:
    # 64 padded rows on 1,000 keys, a quarter of the GPU; bandwidth without bound
    timed = toy_decode(
        sequences,
        1000 * sequences,
        compute_share=1.0,
        bandwidth_share=1e9,
        unsplit_multi_head=1.0,
    )
    assert timed == pytest.approx(waves * 64 * 1000 * 256 / (1e9 / 4))


def test_split_keys_keep_all_sms_busy() -> None:
    timed = toy_decode(1, 1000, compute_share=1.0, bandwidth_share=1e9)
    assert timed == pytest.approx(64 * 1000 * 256 / 1e9)


@pytest.mark.parametrize("constants", [replace(each, ramp_ms=0.0) for each in DECODES])
def test_decode_is_affine_in_the_sum_of_contexts(constants: DecodeAttentionConstants) -> None:
    kernel = DecodeAttention.of(
        q_heads=40, kv_heads=40, head_dim=128, gpu=GPUS["a100-80"], constants=constants
    )
    times = [kernel.ms(24, total) for total in (10_000, 20_000, 30_000, 40_000)]
    steps = [after - before for before, after in pairwise(times)]
    assert steps == pytest.approx([steps[0]] * 3)


def test_only_a_repeated_kernel_finds_its_keys_in_the_l2() -> None:
    shape: dict[str, Any] = {"q_heads": 32, "kv_heads": 8, "head_dim": 128}
    kernel = DecodeAttention.of(**shape, gpu=GPUS["h100"], constants=DECODES[0])
    small, large = 1_000, 10_000_000
    assert kernel.repeated_ms(1, small) < kernel.ms(1, small)
    assert kernel.repeated_ms(1, large) == pytest.approx(kernel.ms(1, large), rel=1e-6)


@pytest.mark.parametrize("constants", DECODES)
def test_no_sequence_takes_no_time(constants: DecodeAttentionConstants) -> None:
    shape: dict[str, Any] = {
        "q_heads": 8,
        "kv_heads": 8,
        "head_dim": 128,
        "gpu": TOY,
        "constants": constants,
    }
    assert decode_attention_ms(0, 0, **shape) == 0
    assert decode_attention_ms(np.array([0, 1]), np.array([0, 9]), **shape)[0] == 0


@pytest.mark.parametrize("constants", DECODES)
@given(
    sequences=st.integers(1, 512),
    context_tokens=st.integers(1, 130_000),
    heads=st.sampled_from(HEADS),
    head_dim=st.sampled_from([64, 80, 96, 128]),
)
def test_more_of_anything_never_makes_a_decode_faster(
    constants: DecodeAttentionConstants,
    sequences: int,
    context_tokens: int,
    heads: tuple[int, int],
    head_dim: int,
) -> None:
    def ms(sequences: int, context_tokens: int, head_dim: int) -> float:
        shape: dict[str, Any] = {"q_heads": heads[0], "kv_heads": heads[1], "head_dim": head_dim}
        settings: dict[str, Any] = {
            "gpu": GPUS["a100-80"],
            "constants": constants,
            "repeated": True,
        }
        total = sequences * context_tokens
        return float(decode_attention_ms(sequences, total, **shape, **settings))

    here = ms(sequences, context_tokens, head_dim)
    assert ms(sequences + 1, context_tokens, head_dim) >= here
    assert ms(sequences, context_tokens + 1, head_dim) >= here
    assert ms(sequences, context_tokens, head_dim + 16) >= here
