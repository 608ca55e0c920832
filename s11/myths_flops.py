"""“Chunking adds FLOPs”: it adds none. It adds reads, of the weights and of the K/V before.

A chunk's tokens are multiplied with the same weights and attend to the same keys as in one piece,
so both counts add up exactly. But every step reads all weights once, and every chunk reads the
keys and values of all tokens before it again: the reads grow with the number of chunks.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from s11.catalog import Deployment
from s11.checks import MAX_TOKENS, require_int
from s11.costs.attention_kernels import attention_flops
from s11.costs.breakdown import Ints
from s11.piggyback import step_parts

KEPT = 64


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PrefillWork:
    """What the prefill of one prompt takes, chunk by chunk, nothing else running.

    FLOPs are those of the layers' products and of attention; bytes are of all GPUs together.
    """

    prompt_tokens: int
    chunk_tokens: int
    start_token: Ints  # (chunks,) tokens before each chunk
    linear_flops: Ints  # (chunks,)
    attention_flops: Ints  # (chunks,)
    weight_bytes: Ints  # (chunks,) the layers' weights, read once a step
    cached_kv_bytes: Ints  # (chunks,) K/V of the tokens before, read at least once
    duration_ms: float

    @property
    def chunks(self) -> int:
        """Return in how many steps the prompt is computed."""
        return len(self.start_token)

    @property
    def flops(self) -> int:
        """Return all FLOPs."""
        return int(self.linear_flops.sum()) + int(self.attention_flops.sum())

    @property
    def read_bytes(self) -> int:
        """Return all bytes that are counted as read."""
        return int(self.weight_bytes.sum()) + int(self.cached_kv_bytes.sum())


@lru_cache(maxsize=KEPT)
def prefill_work(machine: Deployment, *, prompt_tokens: int, chunk_tokens: int) -> PrefillWork:
    """Return what a prompt's prefill takes in chunks of a size; the prompt's own size: in one.

    Raises:
        ValueError: a number of tokens out of range.
    """
    prompt = require_int("prompt_tokens", prompt_tokens, 1, MAX_TOKENS)
    chunk = require_int("chunk_tokens", chunk_tokens, 1, MAX_TOKENS)
    model = machine.model
    start = np.arange(0, prompt, chunk, dtype=np.int64)  # (chunks,)
    tokens = np.minimum(chunk, prompt - start)
    parameters = model.layers * model.layer_linear_parameters()
    attended = attention_flops(tokens, start, q_heads=model.heads, head_dim=model.head_dim)
    return PrefillWork(
        prompt_tokens=prompt,
        chunk_tokens=chunk,
        start_token=start,
        linear_flops=2 * parameters * tokens,
        attention_flops=model.layers * attended,
        weight_bytes=np.full(len(start), parameters * machine.weight_bytes, dtype=np.int64),
        cached_kv_bytes=model.kv_bytes_per_token() * start,
        duration_ms=float(step_parts(machine, prefill=tokens, start=start).total_ms().sum()),
    )
