"""Both attention kernels: scalars and arrays, where they meet, and measured kernels."""

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import GPUS
from s11.costs.attention_kernels import (
    ChunkAttention,
    DecodeAttention,
    DecodeAttentionConstants,
    PrefillAttentionConstants,
    chunk_attention_ms,
    decode_attention_ms,
)
from scripts.calibrate_attention import fit, leave_out_pct, read_tables

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


def test_one_query_on_a_long_past_nears_the_decode_kernel_where_keys_are_split() -> None:
    heads: dict[str, Any] = {"q_heads": 32, "kv_heads": 8, "head_dim": 128, "gpu": GPUS["h100"]}
    split = float(chunk_attention_ms(1, 100_000, **heads, constants=PREFILLS[1]))
    decode = float(decode_attention_ms(1, 100_000, **heads, constants=DECODES[0]))
    read_ms = 100_000 * 2 * 8 * 128 * 2 / 3.35e12 * 1e3
    assert read_ms < split < 3 * decode
    assert float(chunk_attention_ms(1, 100_000, **heads, constants=PREFILLS[0])) > 2 * split


@given(st.lists(st.integers(1, 100_000), min_size=1, max_size=20), st.sampled_from(HEADS))
def test_scalars_and_arrays_agree(sizes: list[int], heads: tuple[int, int]) -> None:
    shape: dict[str, Any] = {
        "q_heads": heads[0],
        "kv_heads": heads[1],
        "head_dim": 128,
        "gpu": GPUS["h100"],
    }
    column, turned = np.array(sizes), np.array(sizes[::-1])
    for prefill in PREFILLS:
        chunk = ChunkAttention.of(**shape, constants=prefill)
        one_by_one = [chunk.ms(*pair) for pair in zip(sizes, sizes[::-1], strict=True)]
        np.testing.assert_allclose(chunk.ms(column, turned), one_by_one, rtol=1e-12)
    for constants in DECODES:
        decode = DecodeAttention.of(**shape, constants=constants)
        one_by_one = [decode.ms(*pair) for pair in zip(sizes, sizes[::-1], strict=True)]
        np.testing.assert_allclose(decode.ms(column, turned), one_by_one, rtol=1e-12)


# Measured


@pytest.fixture(scope="module")
def measured(shared_dir: Path) -> Path:
    return shared_dir / "measured"


@pytest.mark.parametrize("kernel", ["prefill_attention", "decode_attention"])
def test_measured_kernels_are_met_within_nine_percent(measured: Path, kernel: str) -> None:
    fitted = fit(measured)
    errors = {
        gpu: fitted[gpu][kernel]["mean_abs_error_pct"] for gpu in read_tables(measured)[kernel]
    }
    assert max(errors.values()) <= 9, errors


@pytest.mark.parametrize("kernel", ["prefill_attention", "decode_attention"])
def test_shapes_left_out_of_the_fit_are_met_within_nine_percent(
    measured: Path, kernel: str
) -> None:
    tables = read_tables(measured)[kernel]
    errors = {gpu: leave_out_pct(rows, gpu, kernel) for gpu, rows in tables.items()}
    assert max(errors.values()) <= 9, errors


def test_the_fit_is_reproducible(measured: Path) -> None:
    assert fit(measured) == fit(measured)


def test_sarathi_on_a6000_within_ten_percent(measured: Path) -> None:
    """Agrawal et al. 2023: attention of LLaMA-13B's 40 layers, in ms."""
    fitted = fit(measured)["a6000"]
    summary = {"points", "mean_abs_error_pct"}
    prefill, decode = (
        {name: value for name, value in fitted[kernel].items() if name not in summary}
        for kernel in ("prefill_attention", "decode_attention")
    )
    heads: dict[str, Any] = {"q_heads": 40, "kv_heads": 40, "head_dim": 128, "gpu": GPUS["a6000"]}
    chunk = ChunkAttention.of(**heads, constants=PrefillAttentionConstants(**prefill))
    token = DecodeAttention.of(**heads, constants=DecodeAttentionConstants(**decode))
    assert 40 * chunk.ms(1024, 0) == pytest.approx(10, rel=0.1)
    assert 40 * token.ms(4, 4 * 1024) == pytest.approx(5.68, rel=0.1)
    together = 40 * (chunk.ms(1021, 0) + token.ms(3, 3 * 1024))
    assert together == pytest.approx(15.2, rel=0.1)
