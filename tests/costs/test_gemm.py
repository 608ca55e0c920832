"""Dense products: hand-worked times on a made-up GPU, the tile's edge, and every size."""

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import GPUS, Gpu
from s11.costs.gemm import (
    CHOICE_SHARPNESS,
    HALF_OF_PARTIAL_AFTER_TILES,
    L2_SPEED,
    SM80_TILES,
    GemmConstants,
    gemm_ms,
)

# 1e9 FLOPs and 1e9 bytes a millisecond, four SMs of 2.5e8 FLOPs a millisecond each
TOY = replace(
    GPUS["a100-80"],
    bf16_flops_per_s=1e12,
    fp8_flops_per_s=None,
    hbm_bytes_per_s=1e12,
    sm_count=4,
    l2_bytes=10**6,
)
NO_MEMORY_TIME = replace(TOY, hbm_bytes_per_s=1e24)
NO_ARITHMETIC_TIME = replace(TOY, bf16_flops_per_s=1e17)
IDEAL = GemmConstants(
    compute_efficiency=1.0,
    memory_efficiency=1.0,
    launch_ms=0.0,
    roofline_exponent=32.0,
    flops_per_l2_byte=1e-6,  # an L2 that takes no time
    tile_ms=0.0,
    wave_quantisation=1.0,
    throttle=0.0,
    l2_resident_share=1.0,
)
FITTED_LIKE = GemmConstants(
    compute_efficiency=0.85,
    memory_efficiency=0.8,
    launch_ms=0.002,
    roofline_exponent=3.0,
    flops_per_l2_byte=80.0,
    tile_ms=0.003,
    wave_quantisation=0.6,
    throttle=0.3,
    l2_resident_share=0.5,
    partial_tile_rows=6.0,
    quantise_ms_per_row=5e-6,
    quantise_efficiency=0.6,
)
# Choices that tie come out a little below each of them.
TIES = (4 * len(SM80_TILES)) ** (1 / CHOICE_SHARPNESS)
SIZES = st.integers(1, 200_000)
REAL: list[tuple[str, bool]] = [("a100-80", False), ("h100", True), ("l40s", True), ("a40", True)]


def toy_ms(m: int, n: int, k: int, *, gpu: Gpu = NO_MEMORY_TIME, **changes: float) -> float:
    return float(gemm_ms(m, n, k, gpu=gpu, constants=replace(IDEAL, **changes), fp8=False))


# arithmetic


def test_full_tiles_take_their_flops() -> None:
    # 2 · 512 · 512 · 1024 FLOPs over four SMs, all tiles full: 0.5369 ms at 1e9 FLOPs/ms
    assert 0.536871 / TIES <= toy_ms(512, 512, 1024) <= 0.536871


def test_half_the_efficiency_takes_twice_as_long() -> None:
    assert toy_ms(4096, 4096, 4096, compute_efficiency=0.5) == pytest.approx(
        2 * toy_ms(4096, 4096, 4096), rel=1e-3
    )


def test_one_row_past_the_tiles_edge_costs_the_smallest_tiles_rows() -> None:
    at_edge, past_edge = toy_ms(256, 256, 1024), toy_ms(257, 256, 1024)
    assert past_edge == pytest.approx(toy_ms(320, 256, 1024), rel=1e-12)
    # 257 rows are 5 tiles of 64 instead of 4: a fifth wave
    assert 1.1 < past_edge / at_edge <= 1.25 * TIES


def test_a_tile_more_than_the_sms_waits_for_a_second_wave() -> None:
    # 128 rows: 2 tiles of 64; 8 SM-fulls of columns, and one tile's columns more
    full, over = toy_ms(128, 1024, 512), toy_ms(128, 1024 + 64, 512)
    spread = toy_ms(128, 1024 + 64, 512, wave_quantisation=0.0)
    assert over > full
    assert spread < over


def test_few_tiles_split_k_over_idle_sms() -> None:
    # one 64 × 64 tile alone would hold one SM of four for 2 · 64 · 64 · 65,536 FLOPs: 2.147 ms
    assert toy_ms(64, 64, 65_536) < 2.147 / 2


def test_long_arithmetic_is_throttled_and_short_is_not() -> None:
    # 2 · 16,384³ / 1e9 is 8,796 ms: far beyond the half-way time, so throttled in full
    long_ratio = toy_ms(16_384, 16_384, 16_384, throttle=0.3) / toy_ms(16_384, 16_384, 16_384)
    assert long_ratio == pytest.approx(1.3, rel=1e-3)
    assert toy_ms(64, 64, 64, throttle=0.3) / toy_ms(64, 64, 64) < 1.01


def test_l2_traffic_bounds_what_tiles_can_reach() -> None:
    # 256 × 128 tiles read (256 + 128) · 2 bytes per k for 2 · 256 · 128 FLOPs: 85.3 FLOPs a byte.
    # An L2 of a FLOP/s-to-bytes ratio of 853 therefore takes ten times the arithmetic.
    slow = toy_ms(4096, 4096, 4096, flops_per_l2_byte=853.3)
    assert slow / toy_ms(4096, 4096, 4096) == pytest.approx(10, rel=0.08)


# memory


@pytest.mark.parametrize(("m", "n", "k"), [(1, 4096, 4096), (64, 1024, 8192), (512, 2048, 2048)])
def test_memory_bound_products_take_weights_input_and_output(m: int, n: int, k: int) -> None:
    million_bytes = 2 * (n * k + m * k + m * n) / 1e6
    assert toy_ms(m, n, k, gpu=NO_ARITHMETIC_TIME) == pytest.approx(million_bytes / 1e3, rel=1e-6)


def test_launch_adds_to_every_product() -> None:
    plain = toy_ms(1, 4096, 4096, gpu=TOY)
    assert toy_ms(1, 4096, 4096, gpu=TOY, launch_ms=0.25) == pytest.approx(plain + 0.25)


def test_weights_that_fit_into_the_l2_are_read_faster_only_by_a_benchmark() -> None:
    sizes: dict[str, Any] = {"gpu": NO_ARITHMETIC_TIME, "constants": IDEAL, "fp8": False}
    cold = gemm_ms(1, 256, 256, **sizes)  # 131 kB of weights, an L2 of 1 MB
    assert cold == pytest.approx(2 * (256 * 256 + 512) / 1e9, rel=1e-6)
    cycled = gemm_ms(1, 256, 256, **sizes, weight_copies=2)  # 0.26 MB stay
    assert cycled == pytest.approx(2 * (256 * 256 / L2_SPEED + 512) / 1e9, rel=1e-3)
    flushed = gemm_ms(1, 256, 256, **sizes, weight_copies=100)  # 13 MB do not
    assert flushed == pytest.approx(cold, rel=1e-6)


def test_fp8_weights_are_half_the_bytes_even_without_fp8_tensor_cores() -> None:
    sizes: dict[str, Any] = {"gpu": NO_ARITHMETIC_TIME, "constants": IDEAL}
    wide = gemm_ms(1, 8192, 8192, **sizes, fp8=False)
    assert gemm_ms(1, 8192, 8192, **sizes, fp8=True) == pytest.approx(wide / 2, rel=1e-3)


# fp8


def fp8_ms(m: int, n: int, k: int, *, family: str = "ada", **changes: float) -> float:
    gpu = replace(NO_MEMORY_TIME, family=family, fp8_flops_per_s=2e12)
    return float(gemm_ms(m, n, k, gpu=gpu, constants=replace(IDEAL, **changes), fp8=True))


def test_fp8_products_run_at_the_fp8_peak() -> None:
    # 2 · 1024³ FLOPs at 2e9 a millisecond
    assert fp8_ms(1024, 1024, 1024) == pytest.approx(1.073742, rel=1e-6)


def test_each_wave_of_tiles_takes_its_fixed_time() -> None:
    # 8 · 8 tiles of 128 × 128 on four SMs: 16 waves
    assert fp8_ms(1024, 1024, 1024, tile_ms=0.01) == pytest.approx(1.073742 + 0.16, rel=1e-6)


def test_fp8_quantises_each_row_of_the_input() -> None:
    by_row = fp8_ms(1024, 1024, 1024, quantise_ms_per_row=1e-4)
    assert by_row == pytest.approx(1.073742 + 0.1024, rel=1e-6)


def hopper_ms(m: int, **changes: float) -> float:
    # 4096 columns are 32 tiles: eight waves for each row of tiles, 2 · 128 · 128 · 4096 FLOPs in
    # each at 5e8 FLOPs a millisecond and SM: 0.268435 ms a wave
    return fp8_ms(m, 4096, 4096, family="hopper", **changes)


def test_rows_fill_up_to_tiles_of_128_on_hopper() -> None:
    assert hopper_ms(512) == pytest.approx(4 * 8 * 0.268435, rel=1e-5)
    assert hopper_ms(513) == hopper_ms(640) == pytest.approx(5 * 8 * 0.268435, rel=1e-5)


@pytest.mark.parametrize("m", [513, 528, 529, 639])
def test_a_last_tile_that_is_not_full_takes_further_tile_rows(m: int) -> None:
    # four full tile rows: 4 / (4 + 5) of at most 9 further ones of eight waves
    assert HALF_OF_PARTIAL_AFTER_TILES == 5
    assert hopper_ms(m, partial_tile_rows=9.0) == pytest.approx((5 + 4) * 8 * 0.268435, rel=1e-5)


@pytest.mark.parametrize("m", [1, 64, 100, 128, 512, 640])
def test_full_tiles_and_single_ones_take_nothing_further(m: int) -> None:
    assert hopper_ms(m, partial_tile_rows=9.0) == hopper_ms(m)


def test_only_hopper_pays_for_tiles_that_are_not_full() -> None:
    assert fp8_ms(513, 4096, 4096, partial_tile_rows=9.0) == fp8_ms(513, 4096, 4096)


# every size


@pytest.mark.parametrize(("name", "fp8"), REAL)
@given(m=SIZES, n=SIZES, k=SIZES)
def test_no_product_is_faster_than_the_datasheet(
    name: str, fp8: bool, m: int, n: int, k: int
) -> None:
    gpu = GPUS[name]
    took_ms = gemm_ms(m, n, k, gpu=gpu, constants=FITTED_LIKE, fp8=fp8)
    peak = (fp8 and gpu.fp8_flops_per_s) or gpu.bf16_flops_per_s
    assert took_ms >= 2e3 * m * n * k / peak
    assert took_ms >= 1e3 * n * k * (1 if fp8 else 2) / gpu.hbm_bytes_per_s


@pytest.mark.parametrize(("name", "fp8"), REAL)
@given(m=SIZES, n=SIZES, k=SIZES, more=st.integers(1, 5_000))
def test_wider_and_deeper_weights_never_cost_less(
    name: str, fp8: bool, m: int, n: int, k: int, more: int
) -> None:
    def ms(n: int, k: int) -> float:
        return float(gemm_ms(m, n, k, gpu=GPUS[name], constants=FITTED_LIKE, fp8=fp8))

    assert ms(n + more, k) >= ms(n, k) * (1 - 1e-9)
    assert ms(n, k + more) >= ms(n, k) * (1 - 1e-9)


@given(m=SIZES, n=SIZES, k=SIZES, more=st.integers(1, 5_000))
def test_more_rows_never_cost_less_in_bf16(m: int, n: int, k: int, more: int) -> None:
    def ms(m: int) -> float:
        return float(gemm_ms(m, n, k, gpu=GPUS["h100"], constants=FITTED_LIKE, fp8=False))

    assert ms(m + more) >= ms(m) * (1 - 1e-9)


@given(m=SIZES, n=SIZES, k=SIZES, more=st.integers(1, 5_000))
def test_in_fp8_more_rows_cost_less_only_where_they_fill_the_last_tile(
    m: int, n: int, k: int, more: int
) -> None:
    def ms(m: int, **changes: float) -> float:
        constants = replace(FITTED_LIKE, **changes)
        return float(gemm_ms(m, n, k, gpu=GPUS["h100"], constants=constants, fp8=True))

    if (m + more) % 128:
        assert ms(m + more) >= ms(m) * (1 - 1e-9)
    # and what they save is at most what the tile that was not full took
    assert ms(m + more) >= ms(m, partial_tile_rows=0.0) * (1 - 1e-9)


@pytest.mark.parametrize(("name", "fp8"), REAL)
@given(shapes=st.lists(st.tuples(SIZES, SIZES, SIZES), min_size=1, max_size=5))
def test_arrays_give_what_scalars_give(
    name: str, fp8: bool, shapes: list[tuple[int, int, int]]
) -> None:
    options: dict[str, Any] = {"gpu": GPUS[name], "constants": FITTED_LIKE, "fp8": fp8}
    m, n, k = (np.array(sizes) for sizes in zip(*shapes, strict=True))
    one_by_one = [gemm_ms(*shape, **options, weight_copies=6) for shape in shapes]
    together = gemm_ms(m, n, k, **options, weight_copies=6)
    np.testing.assert_allclose(together, one_by_one, rtol=1e-12)


@pytest.mark.parametrize(("name", "fp8"), REAL)
def test_absurdly_large_products_keep_their_flops(name: str, fp8: bool) -> None:
    gpu, size = GPUS[name], 2**24
    options: dict[str, Any] = {"gpu": gpu, "constants": FITTED_LIKE, "fp8": fp8}
    alone = gemm_ms(size, size, size, **options)
    # between the datasheet and a fifth of it: efficiency 0.85, throttled by 1.3, bound by the L2
    datasheet_ms = 2e3 * size**3 / ((fp8 and gpu.fp8_flops_per_s) or gpu.bf16_flops_per_s)
    assert datasheet_ms <= alone <= 5 * datasheet_ms
    sizes = np.array([size, 1])
    together = gemm_ms(sizes, sizes, sizes, **options)
    np.testing.assert_allclose(together, [alone, gemm_ms(1, 1, 1, **options)], rtol=1e-12)
