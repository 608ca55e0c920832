"""Attention of decode tokens, one layer on one GPU: the read of all contexts' K/V, and a floor.

One query row meets each key, so the K/V bytes rule. Two things hold a kernel back from them: it
computes a whole tile of query rows although few of its rows are used, and without split-KV (Dao
et al. 2023, "Flash-Decoding") one thread block walks a whole context, however many SMs idle.
"""

from __future__ import annotations

from dataclasses import dataclass

from s11.catalog import Gpu
from s11.costs.prefill_attention import BYTES_PER_VALUE, HEAD_DIM_STEP, QUERY_TILE, Numbers

L2_SHARE = 0.9  # of the L2: smaller K/V stay in it when a benchmark repeats the kernel
HIT_STEEPNESS = 8  # how sharply K/V stops being served by the L2 once it is larger


@dataclass(frozen=True, slots=True, kw_only=True)
class DecodeAttentionConstants:
    """What one GPU's decode kernel reaches of the datasheet; fitted on measured kernels.

    bandwidth_share: share of the peak HBM bandwidth that a long read reaches.
    compute_share: share of the peak FLOP/s that the padded tiles reach.
    floor_ms: launch and the fixed work around it.
    split_ms: further floor where keys are split: the partial results are combined.
    ramp_ms: what a read much larger than the L2 loses before and after full bandwidth.
    block_us: start and end of one thread block (one sequence and K/V head) on its SM.
    unsplit_multi_head: 1 where a model with as many K/V heads as query heads runs without
        split-KV (FlashAttention-2), else 0.
    l2_speed: bandwidth of K/V that stayed in the L2, over the HBM's; of repeated kernels only.
    """

    bandwidth_share: float
    compute_share: float
    floor_ms: float
    split_ms: float
    ramp_ms: float
    block_us: float
    unsplit_multi_head: float
    l2_speed: float


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class DecodeAttention:
    """Decode attention of one layer with model, GPU and constants folded into coefficients.

    Build it with `of`. Heads are those of one GPU under tensor parallelism.
    """

    floor_ms: Numbers
    token_ms: Numbers  # K/V of one token of context from the HBM
    ramp_ms: Numbers
    l2_tokens: Numbers  # tokens of context whose K/V is as large as the L2
    l2_hit_tokens: Numbers
    l2_saves: float  # share of the HBM's time that the L2 saves
    block_ms: Numbers  # start and end of one sequence's blocks, over all SMs
    key_ms: Numbers  # one key of one thread block on one SM
    blocks_per_sequence: Numbers
    split_waves: Numbers  # of all SMs for one block whose keys are split; 0 where they are not
    unsplit: Numbers  # 1 where blocks run whole, in whole waves, else 0
    sm_count: int

    @classmethod
    def of(
        cls,
        *,
        q_heads: Numbers,
        kv_heads: Numbers,
        head_dim: Numbers,
        gpu: Gpu,
        constants: DecodeAttentionConstants,
    ) -> DecodeAttention:
        """Return the folded kernel for one GPU's share of a model's heads."""
        values = -(-head_dim // HEAD_DIM_STEP) * HEAD_DIM_STEP
        kv_bytes = 2 * BYTES_PER_VALUE * kv_heads * head_dim
        sm_flops_per_ms = gpu.bf16_flops_per_s * constants.compute_share / gpu.sm_count / 1e3
        unsplit = (q_heads == kv_heads) * constants.unsplit_multi_head
        return cls(
            floor_ms=constants.floor_ms + (1 - unsplit) * constants.split_ms,
            token_ms=kv_bytes / (gpu.hbm_bytes_per_s * constants.bandwidth_share) * 1e3,
            ramp_ms=(1 - unsplit) * constants.ramp_ms,
            l2_tokens=gpu.l2_bytes / kv_bytes,
            l2_hit_tokens=L2_SHARE * gpu.l2_bytes / kv_bytes,
            l2_saves=1 - 1 / constants.l2_speed,
            block_ms=constants.block_us * 1e-3 * kv_heads / gpu.sm_count,
            key_ms=4 * values * QUERY_TILE / sm_flops_per_ms,
            blocks_per_sequence=kv_heads,
            split_waves=(1 - unsplit) / gpu.sm_count,
            unsplit=unsplit,
            sm_count=gpu.sm_count,
        )

    def ms(self, sequences: Numbers, context_tokens_sum: Numbers) -> Numbers:
        """Return the time of one token for each sequence inside a step, in ms; 0 for none.

        context_tokens_sum: cached tokens of all sequences together. Their K/V come from the
        HBM: since the layer last ran, all weights have passed through the L2.
        """
        return self._ms(sequences, context_tokens_sum, self.token_ms * context_tokens_sum)

    def terms(self, sequences: int) -> tuple[float, float, float, float]:
        """Return a, b, c and d of a + b·x + c·x / (x + d), the time with x cached tokens, in ms.

        For a given number of sequences, bytes and arithmetic both grow with the sum of their
        contexts, and so does the soft maximum of the two.
        """
        blocks = sequences * self.blocks_per_sequence
        waves = self.split_waves * blocks - self.unsplit * (-blocks // self.sm_count)
        compute_ms = self.key_ms * waves / sequences  # for one token of context
        memory_ms = self.token_ms
        joined = (memory_ms * memory_ms) ** 2 + (compute_ms * compute_ms) ** 2
        return (
            float(self.floor_ms + self.block_ms * sequences),
            float(joined**0.25),
            float(self.ramp_ms),
            float(self.l2_tokens),
        )

    def repeated_ms(self, sequences: Numbers, context_tokens_sum: Numbers) -> Numbers:
        """Return the same for a benchmark, which runs one kernel over and over, in ms.

        It finds small K/V in the L2, as no serving engine does.
        """
        hit = 1 / (1 + (context_tokens_sum / self.l2_hit_tokens) ** HIT_STEEPNESS)
        memory_ms = self.token_ms * context_tokens_sum * (1 - hit * self.l2_saves)
        return self._ms(sequences, context_tokens_sum, memory_ms)

    def _ms(self, sequences: Numbers, context_tokens_sum: Numbers, memory_ms: Numbers) -> Numbers:
        some = sequences > 0
        blocks = sequences * self.blocks_per_sequence
        waves = self.split_waves * blocks - self.unsplit * (-blocks // self.sm_count)
        # (sequences == 0) keeps the mean context of no sequences at 0.
        compute_ms = self.key_ms * waves * context_tokens_sum / (sequences + (sequences == 0))
        joined = (memory_ms * memory_ms) ** 2 + (compute_ms * compute_ms) ** 2
        return some * (
            self.floor_ms
            + self.block_ms * sequences
            + self.ramp_ms * context_tokens_sum / (context_tokens_sum + self.l2_tokens)
            + joined**0.25
        )


def decode_attention_ms(
    sequences: Numbers,
    context_tokens_sum: Numbers,
    *,
    q_heads: Numbers,
    kv_heads: Numbers,
    head_dim: Numbers,
    gpu: Gpu,
    constants: DecodeAttentionConstants,
    repeated: bool = False,
) -> Numbers:
    """Return the time of one decode token for each of `sequences`, in ms (see DecodeAttention).

    repeated: as a kernel benchmark runs it.
    """
    kernel = DecodeAttention.of(
        q_heads=q_heads, kv_heads=kv_heads, head_dim=head_dim, gpu=gpu, constants=constants
    )
    timed = kernel.repeated_ms if repeated else kernel.ms
    return timed(sequences, context_tokens_sum)
