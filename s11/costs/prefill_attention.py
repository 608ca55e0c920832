"""Attention of prompt tokens, one layer on one GPU: arithmetic, occupancy, K/V traffic, a floor.

A kernel cuts the queries of each head into tiles, one thread block each, and walks the keys that
a tile sees. It is the FlashAttention scheme (Dao 2023, arXiv:2307.08691; Shah et al. 2024,
arXiv:2407.08608). All times are the sum of five parts, because the parts that the tensor cores
do not hide (prologues, tails, cache writes) were measured to add, not to overlap.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, TypeAlias

from s11.catalog import Gpu

Numbers: TypeAlias = Any  # a Python number or a NumPy array of them: one expression serves both

QUERY_TILE = 64  # query rows of one thread block, FlashAttention-2 on a paged cache
HEAD_DIM_STEP = 32  # kernels are compiled for head_dim 64, 96, 128, …; 80 runs as 96
BYTES_PER_VALUE = 2  # bf16 activations and K/V cache
KV_L2_SHARE = 0.4  # of the L2: new K/V beyond it reach the HBM; one fit to the three GPUs measured
MISS_STEEPNESS = 4  # how sharply the L2 gives way once its share is full
CACHE_WRITE_THREADS = 512  # most threads for one token: vLLM, csrc/cache_kernels.cu


@dataclass(frozen=True, slots=True, kw_only=True)
class PrefillAttentionConstants:
    """What one GPU's prefill kernel reaches of the datasheet; fitted on measured kernels.

    compute_share: share of the peak FLOP/s that many full tiles reach.
    tail_share: share of the longest thread block's time in which the rest of the GPU idles.
    floor_ms: launch and the fixed work around it.
    io_passes: HBM-bandwidth passes over Q, O and new K/V (below 1: served by the L2). Cached K/V
        take one pass at least.
    write_passes: further passes over new K/V (the cache write) once its share of the L2 is full.
    token_ns: the cache write's thread block of one token, when it has all its threads.
    splits_and_packs: 1 where the kernel splits the keys of few blocks over idle SMs and packs
        the query heads of one K/V head into a tile (FlashAttention-3), else 0.
    """

    compute_share: float
    tail_share: float
    floor_ms: float
    io_passes: float
    write_passes: float
    token_ns: float
    splits_and_packs: float


def attention_flops(
    tokens: Numbers, start_tokens: Numbers, *, q_heads: int, head_dim: int
) -> Numbers:
    """Return the FLOPs of `tokens` causal queries behind `start_tokens` cached tokens, one layer.

    Query i sees start_tokens + i + 1 keys; each pair takes 2 · head_dim FLOPs for the score and
    2 · head_dim for the value. Exact: the chunks of a prompt add up to the whole prompt.
    """
    pairs = tokens * start_tokens + tokens * (tokens + 1) // 2
    return 4 * head_dim * q_heads * pairs


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class ChunkAttention:
    """Prefill attention of one layer with model, GPU and constants folded into coefficients.

    Build it with `of`. Heads are those of one GPU under tensor parallelism.
    """

    floor_ms: float
    pair_ms: Numbers  # one padded query row and one key, all heads, the whole GPU at work
    tail_ms_per_key: Numbers  # one key of the longest block, that the others do not hide
    kv_cached_ms_per_token: Numbers
    kv_write_ms_per_token: Numbers
    kv_l2_tokens: Numbers  # new tokens whose K/V fills its share of the L2
    token_ms: Numbers  # Q, K, V read, O written, and the cache write's thread block
    packed: Numbers  # query heads that share a tile
    tile_tokens: Numbers  # tokens that fill one tile
    splits_of_one_tile: Numbers  # SMs for each block of one query tile; 0: keys are not split

    @classmethod
    def of(
        cls,
        *,
        q_heads: Numbers,
        kv_heads: Numbers,
        head_dim: Numbers,
        gpu: Gpu,
        constants: PrefillAttentionConstants,
    ) -> ChunkAttention:
        """Return the folded kernel for one GPU's share of a model's heads."""
        values = -(-head_dim // HEAD_DIM_STEP) * HEAD_DIM_STEP
        flops_per_ms = gpu.bf16_flops_per_s * constants.compute_share / 1e3
        pass_ms_per_byte = 1e3 / gpu.hbm_bytes_per_s
        kv_bytes = 2 * BYTES_PER_VALUE * kv_heads * head_dim
        kv_values = kv_heads * head_dim
        surplus = kv_values - CACHE_WRITE_THREADS
        threads = (kv_values + CACHE_WRITE_THREADS - abs(surplus)) / 2  # the smaller of the two
        packed = 1 + constants.splits_and_packs * (q_heads / kv_heads - 1)
        q_and_o_bytes = 2 * BYTES_PER_VALUE * q_heads * head_dim
        return cls(
            floor_ms=constants.floor_ms,
            pair_ms=4 * values * q_heads / flops_per_ms,
            tail_ms_per_key=(
                constants.tail_share * 4 * values * QUERY_TILE * gpu.sm_count / flops_per_ms
            ),
            kv_cached_ms_per_token=max(constants.io_passes, 1) * kv_bytes * pass_ms_per_byte,
            kv_write_ms_per_token=constants.write_passes * kv_bytes * pass_ms_per_byte,
            kv_l2_tokens=KV_L2_SHARE * gpu.l2_bytes / kv_bytes,
            token_ms=(
                constants.io_passes * (q_and_o_bytes + kv_bytes) * pass_ms_per_byte
                + constants.token_ns * 1e-6 * threads / CACHE_WRITE_THREADS
            ),
            packed=packed,
            tile_tokens=QUERY_TILE / packed,
            splits_of_one_tile=constants.splits_and_packs * gpu.sm_count * packed / q_heads,
        )

    def ms(self, tokens: Numbers, start_tokens: Numbers, *, prompts: Numbers = 1) -> Numbers:
        """Return the time of `prompts` equal chunks in one kernel, in ms; 0 without tokens."""
        some = (tokens > 0) * (prompts > 0)
        return some * (
            self.floor_ms
            + self.tail_ms(tokens, start_tokens)
            + self.spread_ms(tokens, start_tokens, prompts=prompts)
        )

    def together_ms(self, chunks: Iterable[tuple[int, int]]) -> float:
        """Return the time of the chunks (tokens, start_tokens) of a step in one kernel, in ms.

        Work adds; the floor is paid once; only the longest tail shows, because the other chunks'
        blocks fill the SMs behind it.
        """
        longest_ms = spread_ms = 0.0
        for tokens, start_tokens in chunks:
            if tokens > 0:
                longest_ms = max(longest_ms, self.tail_ms(tokens, start_tokens))
                spread_ms += self.spread_ms(tokens, start_tokens)
        return self.floor_ms + longest_ms + spread_ms if spread_ms else 0.0

    def terms(self, tokens: int) -> tuple[float, ...]:
        """Return a to h of f·(g + x/h) + (a·(x + b) + c·x + d + e), the time of one chunk behind
        x cached tokens without its floor, in ms.
        """
        tiles = -(-tokens * self.packed // QUERY_TILE)
        diagonal_keys = -(-tokens // QUERY_TILE) * QUERY_TILE + QUERY_TILE
        fill = (tokens / self.kv_l2_tokens) ** MISS_STEEPNESS
        return (
            float(self.pair_ms * (tiles * self.tile_tokens)),
            diagonal_keys / 2,
            float(self.kv_cached_ms_per_token),
            float(self.token_ms * tokens),
            float(self.kv_write_ms_per_token * tokens * fill / (1 + fill)),
            float(self.tail_ms_per_key),
            float(diagonal_keys),
            float(1 + self.splits_of_one_tile / tiles),
        )

    def tail_ms(self, tokens: Numbers, start_tokens: Numbers) -> Numbers:
        """Return how long the longest thread block runs on while the other SMs idle, in ms."""
        tiles = -(-tokens * self.packed // QUERY_TILE)
        splits = 1 + self.splits_of_one_tile / (tiles + (tiles == 0))
        diagonal_keys = -(-tokens // QUERY_TILE) * QUERY_TILE + QUERY_TILE
        return self.tail_ms_per_key * (diagonal_keys + start_tokens / splits)

    def spread_ms(self, tokens: Numbers, start_tokens: Numbers, *, prompts: Numbers = 1) -> Numbers:
        """Return what occupies all SMs and the memory: it adds up over chunks, in ms.

        Tiles are computed whole: the last rows of a chunk, and the diagonal, where half of a
        tile is masked. Half of diagonal_keys is what a row sees on average.
        """
        rows = -(-tokens * self.packed // QUERY_TILE) * self.tile_tokens
        diagonal_keys = -(-tokens // QUERY_TILE) * QUERY_TILE + QUERY_TILE
        fill = (prompts * tokens / self.kv_l2_tokens) ** MISS_STEEPNESS
        return prompts * (
            self.pair_ms * rows * (start_tokens + diagonal_keys / 2)
            + self.kv_cached_ms_per_token * start_tokens
            + self.token_ms * tokens
            + self.kv_write_ms_per_token * tokens * fill / (1 + fill)
        )


def prefill_attention_ms(
    batch_size: Numbers,
    prompt_tokens: Numbers,
    *,
    q_heads: Numbers,
    kv_heads: Numbers,
    head_dim: Numbers,
    gpu: Gpu,
    constants: PrefillAttentionConstants,
) -> Numbers:
    """Return the time of `batch_size` whole prompts of `prompt_tokens` in one kernel, in ms."""
    kernel = ChunkAttention.of(
        q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, gpu=gpu, constants=constants
    )
    return kernel.ms(prompt_tokens, 0, prompts=batch_size)


def chunk_attention_ms(
    tokens: Numbers,
    start_tokens: Numbers,
    *,
    q_heads: Numbers,
    kv_heads: Numbers,
    head_dim: Numbers,
    gpu: Gpu,
    constants: PrefillAttentionConstants,
) -> Numbers:
    """Return the time of `tokens` new queries behind `start_tokens` cached tokens, in ms."""
    kernel = ChunkAttention.of(
        q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, gpu=gpu, constants=constants
    )
    return kernel.ms(tokens, start_tokens)
