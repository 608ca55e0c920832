"""Prefill of one prompt, whole or in chunks: one function for both."""

from collections.abc import Set
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from .arrays import FloatArray, IntArray, checked_count, checked_tokens
from .decoder import Decoder
from .faults import Fault, checked_faults
from .ragged import Slice, forward


@dataclass(frozen=True, eq=False)
class PrefillResult:
    """What a prefill leaves behind. A position that the cache does not hold reads as zero."""

    chunk_lengths: tuple[int, ...]
    keys: FloatArray  # (l, p, k, e)
    values: FloatArray  # (l, p, k, e)
    last_hidden: FloatArray  # (d,)


def prefill(
    tokens: ArrayLike,
    chunk_tokens: int,
    *,
    decoder: Decoder,
    tiled: bool = True,
    faults: Set[Fault] = frozenset(),
) -> PrefillResult:
    """Compute a prompt in chunks of `chunk_tokens`, the last one shorter where it must be.

    Cost: in tiles, every chunk pays for the whole tiles that it touches: chunks of one token
    compute 64 rows each. Attention is quadratic in the prompt.

    Args:
        tokens: (p,) token ids of the prompt.
        chunk_tokens: tokens per chunk; the prompt's length or more: the whole prompt at once.
        decoder: the weights.
        tiled: aligned tiles (same bits at every chunk size) or plain products (close).
        faults: bugs to switch on.

    Raises:
        ValueError: bad tokens, chunk_tokens below 1, or an unknown fault.
    """
    prompt = checked_tokens("tokens", tokens, vocab_size=decoder.config.vocab_size)
    chunk_tokens = checked_count("chunk_tokens", chunk_tokens)
    faults = checked_faults(faults)
    cache = decoder.new_cache()
    chunks = [prompt[i : i + chunk_tokens] for i in range(0, len(prompt), chunk_tokens)]
    for chunk in chunks:
        last_hidden = forward(
            [Slice(cache, chunk)], decoder=decoder, tiled=tiled, faults=faults
        )  # (1, d)
    return PrefillResult(
        chunk_lengths=tuple(len(chunk) for chunk in chunks),
        keys=cache.keys.copy(),
        values=cache.values.copy(),
        last_hidden=last_hidden[0],
    )


def sample_prompt(tokens: int, *, decoder: Decoder, seed: int = 0) -> IntArray:
    """Draw `tokens` token ids uniformly from the decoder's vocabulary.

    Raises:
        ValueError: tokens below 1 or a negative seed.
    """
    tokens = checked_count("tokens", tokens)
    rng = np.random.default_rng(checked_count("seed", seed, low=0))
    return rng.integers(decoder.config.vocab_size, size=tokens)
