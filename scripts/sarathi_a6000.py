"""The A6000's attention constants, worked out of two figures of SARATHI; a third checks them."""

from __future__ import annotations

from typing import Any

from s11.catalog import GPUS
from s11.costs.attention_kernels import (
    ChunkAttention,
    DecodeAttention,
    DecodeAttentionConstants,
    PrefillAttentionConstants,
)

SOURCE = (
    "Agrawal et al. 2023, SARATHI (arXiv:2308.16369), LLaMA-13B on A6000, attention over 40 "
    "layers: constants set by two figures, a prompt of 1,024 tokens (10 ms) and 4 decodes at 1,024 "
    "context (5.68 ms); a third, a 1,021-token chunk with 3 decodes (15.2 ms), is left as a check. "
    "Efficiencies that the two do not tell are the A100's."
)
LAYERS = 40
HEADS: dict[str, Any] = {"q_heads": 40, "kv_heads": 40, "head_dim": 128}
CONTEXT_TOKENS = 1024  # of the prompt, and behind each decode
DECODES = 4
ATTENTION_MS = (10.0, 5.68, 15.2)  # prompt, decodes, chunk with decodes
BANDWIDTH_SHARE = 0.9  # near the most that a kernel reads at; the three figures imply more


def rounded(value: float) -> float:
    """Return the value to 6 significant digits, as the constants file keeps it."""
    return float(f"{value:.6g}")


def fit_a6000(a100: dict[str, dict[str, float]]) -> dict[str, Any]:
    """Return the A6000's constants from SARATHI's figures, the rest taken over from `a100`.

    The figures are of 2023's kernels, far from what the same GPU would reach today. Prefill: the
    A100's efficiencies but compute_share, so that the prompt's 10 ms come out. Decode: K/V at
    BANDWIDTH_SHARE of the peak, no other term but tiles, and a floor for the rest of the
    5.68 ms. The third figure is left for the check.
    """
    prompt_ms, decode_ms_, hybrid_ms = (ms / LAYERS for ms in ATTENTION_MS)

    def prefill(tokens: int, share: float) -> float:
        constants = PrefillAttentionConstants(
            **{**a100["prefill_attention"], "compute_share": share}
        )
        kernel = ChunkAttention.of(**HEADS, gpu=GPUS["a6000"], constants=constants)
        return float(kernel.ms(tokens, 0))

    def decode(sequences: int, floor_ms: float) -> float:
        constants = DecodeAttentionConstants(**decode_constants, floor_ms=floor_ms)
        kernel = DecodeAttention.of(**HEADS, gpu=GPUS["a6000"], constants=constants)
        return float(kernel.ms(sequences, sequences * CONTEXT_TOKENS))

    # time = rest + arithmetic / share, so two shares tell both
    arithmetic_ms = prefill(CONTEXT_TOKENS, 0.5) - prefill(CONTEXT_TOKENS, 1.0)
    rest_ms = prefill(CONTEXT_TOKENS, 1.0) - arithmetic_ms
    share = rounded(arithmetic_ms / (prompt_ms - rest_ms))
    decode_constants = {
        "bandwidth_share": BANDWIDTH_SHARE,
        "compute_share": a100["decode_attention"]["compute_share"],
        "split_ms": 0.0,
        "ramp_ms": 0.0,
        "block_us": 0.0,
        "l2_speed": 1.0,
        "unsplit_multi_head": 0.0,
    }
    floor_ms = rounded(decode_ms_ - decode(DECODES, 0.0))
    predicted_ms = {
        "prefill_attention": [(prefill(CONTEXT_TOKENS, share), prompt_ms)],
        "decode_attention": [
            (decode(DECODES, floor_ms), decode_ms_),
            (prefill(1021, share) + decode(3, floor_ms), hybrid_ms),
        ],
    }
    summaries = {
        kernel: {
            "points": len(pairs),
            "mean_abs_error_pct": round(
                100 * sum(abs(ours / theirs - 1) for ours, theirs in pairs) / len(pairs), 2
            ),
        }
        for kernel, pairs in predicted_ms.items()
    }
    return {
        "prefill_attention": {**a100["prefill_attention"], "compute_share": share}
        | summaries["prefill_attention"],
        "decode_attention": {**decode_constants, "floor_ms": floor_ms}
        | summaries["decode_attention"],
        "source": SOURCE,
    }
