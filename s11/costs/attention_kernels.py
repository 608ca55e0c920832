"""The two attention kernels of a step, in one place to import from."""

from s11.costs.decode_attention import (
    DecodeAttention,
    DecodeAttentionConstants,
    decode_attention_ms,
)
from s11.costs.prefill_attention import (
    ChunkAttention,
    PrefillAttentionConstants,
    attention_flops,
    chunk_attention_ms,
    prefill_attention_ms,
)

__all__ = [
    "ChunkAttention",
    "DecodeAttention",
    "DecodeAttentionConstants",
    "PrefillAttentionConstants",
    "attention_flops",
    "chunk_attention_ms",
    "decode_attention_ms",
    "prefill_attention_ms",
]
