"""The classic bugs of chunked prefill, to be switched on by name and caught by the check."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import StrEnum


class Fault(StrEnum):
    """One classic bug of chunked prefill; its value is its name on the command line.

    Two families. Three faults act *between* chunks: they need a second chunk, so a chunk that
    is the whole prompt cannot reveal them. Two act *inside* a chunk: they need a chunk of two
    tokens, so one-token chunks cannot reveal them. No layer-0 key or value depends on a mask,
    so a mask fault shows in the keys and values of layer 1 and above; the two faults inside a
    chunk leave its last token right in layer 0, hence they need a decoder of two layers.
    """

    CHUNK_RELATIVE_POSITIONS = "chunk-relative-positions"
    CACHED_KEYS_HIDDEN = "cached-keys-hidden"
    NO_CAUSALITY_IN_CHUNK = "no-causality-in-chunk"
    MASK_SHIFTED_BY_ONE = "mask-shifted-by-one"
    CACHE_NOT_APPENDED = "cache-not-appended"

    @property
    def description(self) -> str:
        """What the bug is and what it breaks, in one sentence."""
        return _FACTS[self].description

    @property
    def symptom(self) -> str:
        """Which keys and values come out wrong: layers and positions, in one sentence."""
        return _FACTS[self].symptom

    @property
    def revealed_by_whole_prompt(self) -> bool:
        """Whether one chunk that is the whole prompt (two tokens or more) differs from correct."""
        return not _FACTS[self].between_chunks

    @property
    def revealed_by_one_token_chunks(self) -> bool:
        """Whether chunks of one token (of a prompt of two or more) differ from correct."""
        return _FACTS[self].between_chunks

    def revealed_by(self, chunk_lengths: Sequence[int]) -> bool:
        """Whether these chunks of one prompt can reveal the fault (decoder of two layers or more).

        Args:
            chunk_lengths: tokens of each chunk, in order.
        """
        if _FACTS[self].between_chunks:
            return len(chunk_lengths) >= 2
        return max(chunk_lengths, default=0) >= 2


@dataclass(frozen=True)
class _Facts:
    description: str
    symptom: str
    between_chunks: bool


_FACTS = {
    Fault.CHUNK_RELATIVE_POSITIONS: _Facts(
        description=(
            "RoPE numbers the tokens of every chunk from 0 instead of from their place in the "
            "prompt, so later chunks are rotated as if they stood at its start."
        ),
        symptom=(
            "From the second chunk on, K is wrong in every layer, the first included; "
            "V is right in the first layer and wrong in all others."
        ),
        between_chunks=True,
    ),
    Fault.CACHED_KEYS_HIDDEN: _Facts(
        description=(
            "The causal mask is a square over the chunk alone, so a token cannot see the keys "
            "that earlier chunks left in the cache and forgets the prompt before its chunk."
        ),
        symptom=(
            "K and V of the first layer are right; in all others both are wrong from the second "
            "chunk on."
        ),
        between_chunks=True,
    ),
    Fault.NO_CAUSALITY_IN_CHUNK: _Facts(
        description=(
            "Every token sees the whole of its chunk, the tokens after it included, so the "
            "future leaks into the past."
        ),
        symptom=(
            "K and V of the first layer are right; in the second both are wrong everywhere but "
            "at the last token of each chunk; in all others they are wrong everywhere."
        ),
        between_chunks=False,
    ),
    Fault.MASK_SHIFTED_BY_ONE: _Facts(
        description=(
            "The causal diagonal is one key too far to the right, so a token also sees the next "
            "token of its chunk: the one that it is there to predict."
        ),
        symptom=(
            "K and V of the first layer are right; in the second both are wrong everywhere but "
            "at the last token of each chunk; in all others they are wrong everywhere."
        ),
        between_chunks=False,
    ),
    Fault.CACHE_NOT_APPENDED: _Facts(
        description=(
            "Every chunk replaces the cache instead of being appended to it, so a token sees its "
            "own chunk alone and only the last chunk's keys and values are left at the end."
        ),
        symptom=(
            "K and V of every chunk but the last are missing (they read as zero) in every layer; "
            "the last chunk's are right in the first layer and wrong in all others."
        ),
        between_chunks=True,
    ),
}


def checked_faults(faults: Iterable[Fault]) -> frozenset[Fault]:
    """Return the faults as a set.

    Raises:
        ValueError: a value that names no fault.
    """
    names = [fault.value for fault in Fault]
    values = [faults] if isinstance(faults, str) else list(faults)
    for value in values:
        if value not in names:
            raise ValueError(f"fault: got {value!r}; allowed: {', '.join(names)}")
    return frozenset(Fault(value) for value in values)
