"""The attention core: a real small decoder that proves chunked prefill, bit for bit."""

from .check import MAX_CHECK_TOKENS, ChunkSizeCheck, check_chunk_sizes, rounding_tolerance
from .chunks import PrefillResult, prefill, sample_prompt
from .comparison import KVComparison, compare, same_bits, ulp_distance
from .decoder import Decoder, DecoderConfig
from .execution import execute, generate
from .faults import Fault
from .kv_cache import TILE_TOKENS, KVCache, SharedPrefix
from .mask import chunk_attention_mask
from .ragged import Slice, forward, greedy_tokens
from .served import GeneratedTokens
from .verify import RequestComparison, compare_generated, verify_execution

__all__ = [
    "MAX_CHECK_TOKENS",
    "TILE_TOKENS",
    "ChunkSizeCheck",
    "Decoder",
    "DecoderConfig",
    "Fault",
    "GeneratedTokens",
    "KVCache",
    "KVComparison",
    "PrefillResult",
    "RequestComparison",
    "SharedPrefix",
    "Slice",
    "check_chunk_sizes",
    "chunk_attention_mask",
    "compare",
    "compare_generated",
    "execute",
    "forward",
    "generate",
    "greedy_tokens",
    "prefill",
    "rounding_tolerance",
    "same_bits",
    "sample_prompt",
    "ulp_distance",
    "verify_execution",
]
