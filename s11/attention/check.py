"""The check that every chunk size leaves the same KV cache as the whole prompt."""

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from .arrays import IntArray, checked_count, checked_tokens
from .chunks import PrefillResult, prefill, sample_prompt
from .comparison import KVComparison, compare
from .decoder import Decoder, DecoderConfig
from .faults import Fault, checked_faults

MAX_CHECK_TOKENS = 8_192
"""Longest prompt that the check takes: the plain path's scores need 4 bytes times its square."""

PRODUCTS_PER_LAYER = 8
"""Sums in a row in one layer: norm, K, score, softmax, weighted V, output, gate, down."""


@dataclass(frozen=True, eq=False)
class ChunkSizeCheck:
    """One chunk size against the correct whole-prompt prefill of the same path."""

    chunk_tokens: int
    prompt_tokens: int
    chunk_lengths: tuple[int, ...]
    fault: Fault | None
    plain: KVComparison
    tiled: KVComparison
    rounding_tolerance: float

    @property
    def divides_prompt(self) -> bool:
        """Whether all chunks are of one size."""
        return self.prompt_tokens % self.chunk_tokens == 0

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return len(self.chunk_lengths)

    @property
    def plain_within_rounding(self) -> bool:
        """Whether the plain path differs by no more than rounding can explain."""
        return self.plain.max_abs_diff <= self.rounding_tolerance

    @property
    def passed(self) -> bool:
        """Tiled path identical, plain path within rounding."""
        return self.tiled.identical and self.plain_within_rounding


def check_chunk_sizes(
    *,
    tokens: int | IntArray,
    chunk_sizes: Sequence[int],
    decoder: Decoder,
    fault: Fault | None = None,
    progress: Callable[[int, int], None] | None = None,
) -> tuple[ChunkSizeCheck, ...]:
    """Prefill one prompt at every chunk size, on both paths, and compare with the whole prompt.

    Args:
        tokens: the prompt's token ids, or its length (then `sample_prompt` draws it).
        chunk_sizes: tokens per chunk; the prompt's length or more: the whole prompt.
        decoder: the weights.
        fault: a bug to switch on in the chunked runs; the reference is always correct.
        progress: called with (sizes done, sizes in all) after each size.

    Raises:
        ValueError: a prompt of 0 or more than `MAX_CHECK_TOKENS` tokens, token ids outside the
            vocabulary, no chunk size, a chunk size below 1, an unknown fault.
    """
    prompt = _checked_prompt(tokens, decoder)
    sizes = [checked_count("chunk_sizes", size) for size in chunk_sizes]
    if not sizes:
        raise ValueError("chunk_sizes: got none; allowed: at least one integer of at least 1")
    faults = checked_faults([] if fault is None else [fault])
    reference = {
        tiled: prefill(prompt, len(prompt), decoder=decoder, tiled=tiled) for tiled in (False, True)
    }
    tolerance = rounding_tolerance(reference[False], config=decoder.config)
    checks = []
    for done, size in enumerate(sizes, start=1):
        plain = prefill(prompt, size, decoder=decoder, tiled=False, faults=faults)
        tiled = prefill(prompt, size, decoder=decoder, tiled=True, faults=faults)
        checks.append(
            ChunkSizeCheck(
                chunk_tokens=size,
                prompt_tokens=len(prompt),
                chunk_lengths=tiled.chunk_lengths,
                fault=next(iter(faults), None),
                plain=compare(reference[False], plain),
                tiled=compare(reference[True], tiled),
                rounding_tolerance=tolerance,
            )
        )
        if progress is not None:
            progress(done, len(sizes))
    return tuple(checks)


def rounding_tolerance(reference: PrefillResult, *, config: DecoderConfig) -> float:
    """Return the largest |difference| that another order of the same additions explains.

    Adding N numbers in another order moves the result by about sqrt(N) units of rounding
    (Higham & Mary 2019, "A New Approach to Probabilistic Rounding Error Analysis"). Counted:
    every sum of every layer, at the length of the longest and the size of the largest value.
    """
    positions = reference.keys.shape[1]
    longest_sum = max(
        config.hidden_size, config.query_heads * config.head_dim, config.ffn_size, positions
    )
    largest = max(
        float(np.abs(array).max())
        for array in (reference.keys, reference.values, reference.last_hidden)
    )
    unit = float(np.finfo(np.float32).eps)
    return PRODUCTS_PER_LAYER * config.layers * math.sqrt(longest_sum) * unit * largest


def _checked_prompt(tokens: int | IntArray, decoder: Decoder) -> IntArray:
    if np.ndim(tokens) == 0:
        count = checked_count("tokens", tokens, high=MAX_CHECK_TOKENS)
        return sample_prompt(count, decoder=decoder)
    prompt = checked_tokens("tokens", tokens, vocab_size=decoder.config.vocab_size)
    checked_count("tokens", len(prompt), high=MAX_CHECK_TOKENS)
    return prompt
