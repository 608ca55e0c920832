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
# Measured on Hopper in fp8, at 129, 257, … 4,097 rows: where the last tile of 128 rows is not full,
# a product takes the time of further rows of tiles: more of them the more full ones come before,
# up to a most, of which half is reached after this many (three to six fit alike). Only one row
# over the edge was measured; that 16 or 100 rows over it take as long is assumed.
PARTIAL_TILE_ROWS = 128
HALF_OF_PARTIAL_AFTER_TILES = 5


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
    partial_tile_rows: the most that a last tile row that is not full takes beyond its own time,
        in further rows of tiles spread over the SMs; of fp8 products on Hopper.
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
    partial_tile_rows: float = 0.0
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

    More rows never take less time but for one case: fp8 on Hopper, where rows that fill the last
    tile of 128 save what a tile that is not full takes, partial_tile_rows at the most.
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
    """Return the soft minimum over tiles and splits of k.

    Powers are taken of times over the first choice's, so that they stay within a float's range.
    """
    first_ms: Numbers = None
    relative: Numbers = 0.0
    for rows, columns in SM90_TILES if constants.fine_tiles else SM80_TILES:
        for splits in SPLITS_OF_K:
            tiles = -(-m // rows) * -(-n // columns) * splits
            flops = 2 * rows * columns * k / splits
            traffic = tiles * (rows * BF16_BYTES + columns * weight_bytes) * (k / splits)
            reduction = (splits > 1) * splits * m * n * 2 * PARTIAL_SUM_BYTES  # write, read
            tiled_ms = _soft_maximum(
                _waves_ms(tiles, flops, gpu.bf16_flops_per_s, gpu, constants),
                (traffic + reduction) / _l2_bytes_per_ms(gpu, constants),
                TILE_SHARPNESS,
            )
            choice_ms = tiled_ms + (splits > 1) * SPLIT_MS
            if first_ms is None:
                first_ms = choice_ms
            relative = relative + (choice_ms / first_ms) ** -CHOICE_SHARPNESS
    return first_ms * relative ** (-1 / CHOICE_SHARPNESS)


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
    flops_per_s = gpu.fp8_flops_per_s or gpu.bf16_flops_per_s

    def tiled_ms(tiles: Numbers) -> Numbers:
        return _soft_maximum(
            _waves_ms(tiles, 2 * rows * columns * k, flops_per_s, gpu, constants),
            tiles * (tile_bytes / _l2_bytes_per_ms(gpu, constants)),
            TILE_SHARPNESS,
        )

    tile_bytes = (rows * FP8_BYTES + columns * weight_bytes) * k
    tiles_across = -(-n // columns)
    took_ms = tiled_ms(-(-m // rows) * tiles_across)
    if hopper:
        full = m // PARTIAL_TILE_ROWS
        partial = (m % PARTIAL_TILE_ROWS > 0) * full / (full + HALF_OF_PARTIAL_AFTER_TILES)
        further_waves = partial * constants.partial_tile_rows * tiles_across / gpu.sm_count
        took_ms = took_ms + further_waves * tiled_ms(gpu.sm_count)
    return took_ms


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
