"""One dense matrix product on one GPU: tensor cores, L2 and HBM joined by a soft maximum.

A product (m, k) @ (k, n) is cut into tiles, one thread block each; the SMs take them in waves, and
a tile that is one row over its edge costs as much as a full one (NVIDIA, "Matrix Multiplication
Background User's Guide": tile and wave quantisation). A library picks the best of several tiles,
and splits k where tiles are fewer than SMs. Roofline: Williams, Waterman and Patterson 2009.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, TypeAlias

from s11.catalog import Gpu

Numbers: TypeAlias = Any  # a Python number or a NumPy array of them: one expression serves both

BF16_BYTES, FP8_BYTES, PARTIAL_SUM_BYTES = 2, 1, 4
SPLITS_OF_K = (1, 2, 4, 8)
SPLIT_MS = 0.004  # the second kernel that adds the partial sums of a split k
CHOICE_SHARPNESS = 40  # of the soft minimum over tiles: the library chooses nearly the best
TILE_SHARPNESS = 8  # of the soft maximum of arithmetic and L2 traffic in a tile
RESIDENCE_SHARPNESS = 8  # how sharply weights stop being served by the L2 once they outgrow it
L2_SPEED = 3  # bandwidth of what stayed in the L2, over the HBM's
THROTTLE_MS = 0.5  # arithmetic of this length feels half of the power throttling
SM80_TILES = ((64, 64), (64, 128), (128, 64), (128, 128), (128, 256), (256, 128))  # cuBLAS, sm_80
# Hopper's warpgroup products come in steps of 8 columns, and either operand can be the columns.
SM90_TILES = tuple((rows, 128) for rows in (64, 96, 128, 160, 192, 256))
SM90_FAMILIES = ("hopper", "blackwell")
# fp8 (vLLM's CUTLASS kernels) choose the tile by m alone, and never split k: above that many
# rows, a tile of so many rows and columns.
SM89_FP8_TILES = ((0, 16, 64), (16, 32, 64), (32, 64, 64), (64, 64, 128), (256, 128, 128))
SM90_FP8_TILES = ((0, 64, 64), (64, 64, 128), (128, 128, 128))
# Measured on Hopper in fp8: 129, 257, 513, … rows run a slower kernel, of tiles of 256 rows. That
# it is for want of a multiple of 16 is cuBLASLt's rule for fp8; the rows measured tell no more.
ALIGNED_ROWS = 16
UNALIGNED_FROM_ROWS = 128
UNALIGNED_TILE_ROWS = 256


@dataclass(frozen=True, slots=True, kw_only=True)
class GemmConstants:
    """What one GPU's dense products reach of the datasheet, in one precision; fitted.

    compute_efficiency: share of the peak FLOP/s within a tile, unthrottled.
    memory_efficiency: share of the peak HBM bandwidth.
    launch_ms: floor that adds to every product.
    roofline_exponent: of the soft maximum of arithmetic and HBM traffic.
    flops_per_l2_byte: bf16 peak FLOP/s over the L2's bandwidth.
    tile_ms: what a tile takes beside its arithmetic: prologue, epilogue.
    wave_quantisation: share of the work that waits for whole waves; 0 spreads the last wave.
    throttle: by how much long arithmetic is slowed for want of power.
    l2_resident_share: share of the L2 that holds weights between repeated runs; half where two
        partitions each keep a copy (A100, H100). Of benchmarks only.
    fine_tiles: 1 where the library has a tile for every 32 rows (today's on Hopper), else 0.
    unaligned_slowdown: of fp8 products on Hopper whose rows are not a multiple of 16.
    quantise_ms_per_row, quantise_efficiency: turning the activations into fp8, by row and by
        byte (share of the peak HBM bandwidth); not used in bf16.
    """

    compute_efficiency: float
    memory_efficiency: float
    launch_ms: float
    roofline_exponent: float
    flops_per_l2_byte: float
    tile_ms: float
    wave_quantisation: float
    throttle: float
    l2_resident_share: float
    fine_tiles: float = 0.0
    unaligned_slowdown: float = 1.0
    quantise_ms_per_row: float = 0.0
    quantise_efficiency: float = 1.0


def gemm_ms(
    m: Numbers,
    n: Numbers,
    k: Numbers,
    *,
    gpu: Gpu,
    constants: GemmConstants,
    fp8: bool,
    weight_copies: float = math.inf,
) -> Numbers:
    """Return the time of one product (m, k) @ (k, n), all of them at least 1, in ms.

    fp8: weights in fp8, and the product too where the GPU's tensor cores can; else it is bf16.
    weight_copies: how many weights of this size a benchmark cycles through before it meets the
        same again: what fits into the L2 stays there. A forward pass reads all other weights
        in between, so nothing stays (infinity).
    """
    product_fp8 = fp8 and gpu.fp8_flops_per_s is not None
    weight_bytes = n * k * (FP8_BYTES if fp8 else BF16_BYTES)
    input_bytes = m * k * (FP8_BYTES if product_fp8 else BF16_BYTES)
    output_bytes = m * n * BF16_BYTES
    hbm_bytes_per_ms = gpu.hbm_bytes_per_s * constants.memory_efficiency / 1e3
    l2_filled = weight_copies * weight_bytes / (gpu.l2_bytes * constants.l2_resident_share)
    resident = 1 / (1 + l2_filled**RESIDENCE_SHARPNESS)
    read_bytes = weight_bytes * (1 - resident * (1 - 1 / L2_SPEED))
    memory_ms = (read_bytes + input_bytes + output_bytes) / hbm_bytes_per_ms

    tiles_ms = _fp8_tiles_ms if product_fp8 else _bf16_tiles_ms
    compute_ms = tiles_ms(m, n, k, gpu, constants, FP8_BYTES if fp8 else BF16_BYTES)
    throttled_ms = compute_ms * (1 + constants.throttle * compute_ms / (compute_ms + THROTTLE_MS))
    return (
        constants.launch_ms
        + _soft_maximum(throttled_ms, memory_ms, constants.roofline_exponent)
        + product_fp8 * _quantise_ms(m, k, gpu, constants)
    )


def _bf16_tiles_ms(
    m: Numbers, n: Numbers, k: Numbers, gpu: Gpu, constants: GemmConstants, weight_bytes: int
) -> Numbers:
    """Return the soft minimum over tiles and splits of k."""
    choices = 0.0
    for rows, columns in SM90_TILES if constants.fine_tiles else SM80_TILES:
        for splits in SPLITS_OF_K:
            tiles = -(-m // rows) * -(-n // columns) * splits
            flops = 2 * rows * columns * k / splits
            traffic = tiles * (rows * BF16_BYTES + columns * weight_bytes) * k / splits
            reduction = (splits > 1) * splits * m * n * 2 * PARTIAL_SUM_BYTES  # write, read
            tiled_ms = _soft_maximum(
                _waves_ms(tiles, flops, gpu.bf16_flops_per_s, gpu, constants),
                (traffic + reduction) / _l2_bytes_per_ms(gpu, constants),
                TILE_SHARPNESS,
            )
            choices = choices + (tiled_ms + (splits > 1) * SPLIT_MS) ** -CHOICE_SHARPNESS
    return choices ** (-1 / CHOICE_SHARPNESS)


def _fp8_tiles_ms(
    m: Numbers, n: Numbers, k: Numbers, gpu: Gpu, constants: GemmConstants, weight_bytes: int
) -> Numbers:
    """Return the time of the one tile that m selects."""
    hopper = gpu.family in SM90_FAMILIES
    rows = columns = last_rows = last_columns = 0
    for above, tile_rows, tile_columns in SM90_FP8_TILES if hopper else SM89_FP8_TILES:
        rows = rows + (m > above) * (tile_rows - last_rows)
        columns = columns + (m > above) * (tile_columns - last_columns)
        last_rows, last_columns = tile_rows, tile_columns
    unaligned = hopper * (m % ALIGNED_ROWS > 0) * (m > UNALIGNED_FROM_ROWS)
    padding = -(-m // UNALIGNED_TILE_ROWS) * UNALIGNED_TILE_ROWS - m
    tiles = -(-(m + unaligned * padding) // rows) * -(-n // columns)
    flops_per_s = gpu.fp8_flops_per_s or gpu.bf16_flops_per_s
    return (1 + unaligned * (constants.unaligned_slowdown - 1)) * _soft_maximum(
        _waves_ms(tiles, 2 * rows * columns * k, flops_per_s, gpu, constants),
        tiles * (rows * FP8_BYTES + columns * weight_bytes) * k / _l2_bytes_per_ms(gpu, constants),
        TILE_SHARPNESS,
    )


def _quantise_ms(m: Numbers, k: Numbers, gpu: Gpu, constants: GemmConstants) -> Numbers:
    bytes_per_ms = gpu.hbm_bytes_per_s * constants.quantise_efficiency / 1e3
    return m * (constants.quantise_ms_per_row + k * (BF16_BYTES + FP8_BYTES) / bytes_per_ms)


def _waves_ms(
    tiles: Numbers,
    flops_per_tile: Numbers,
    flops_per_s: float,
    gpu: Gpu,
    constants: GemmConstants,
) -> Numbers:
    """Return the time in which the SMs work off the tiles, wave after wave."""
    spread = tiles / gpu.sm_count
    waves = spread + constants.wave_quantisation * (-(-tiles // gpu.sm_count) - spread)
    flops_per_sm_ms = flops_per_s * constants.compute_efficiency / gpu.sm_count / 1e3
    return waves * (flops_per_tile / flops_per_sm_ms + constants.tile_ms)


def _l2_bytes_per_ms(gpu: Gpu, constants: GemmConstants) -> float:
    return gpu.bf16_flops_per_s / constants.flops_per_l2_byte / 1e3


def _soft_maximum(one: Numbers, other: Numbers, exponent: float) -> Numbers:
    return (one**exponent + other**exponent) ** (1 / exponent)
