"""The small decoder of the tour: one prompt's KV cache, cut in any way, computed once."""

from __future__ import annotations

from functools import lru_cache
from threading import Lock

from s11.attention import Decoder, Fault, PrefillResult, prefill, sample_prompt

KEPT = 64
_ONE_AT_A_TIME = Lock()  # one core is left for the visitors who only look


@lru_cache(maxsize=1)
def decoder() -> Decoder:
    """Return the decoder that computes the tour's keys and values."""
    return Decoder()


@lru_cache(maxsize=KEPT)
def prefilled(
    prompt_tokens: int, chunk_tokens: int, *, tiled: bool = True, fault: Fault | None = None
) -> PrefillResult:
    """Return a prompt's KV cache, computed in chunks of so many tokens.

    tiled: whether rows are multiplied in aligned tiles. fault: a bug to switch on.
    """
    with _ONE_AT_A_TIME:
        return prefill(
            sample_prompt(prompt_tokens, decoder=decoder()),
            chunk_tokens,
            decoder=decoder(),
            tiled=tiled,
            faults=frozenset() if fault is None else frozenset({fault}),
        )
