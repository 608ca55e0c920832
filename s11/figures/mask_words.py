"""The sentences of the mask page, computed from what it shows."""

from __future__ import annotations

from collections.abc import Sequence

from s11.attention import ChunkSizeCheck, Fault
from s11.figures.key_difference_info import number
from s11.figures.mask_info import MaskInfo, counted, span

LESSONS = {
    Fault.CHUNK_RELATIVE_POSITIONS: (
        "A query finds a key by their distance in the prompt, so RoPE must turn both by their "
        "absolute positions. Numbered from 0 in every chunk, each chunk looks right on its own and "
        "the distance to everything before it is lost."
    ),
    Fault.CACHED_KEYS_HIDDEN: (
        "A chunk continues its prompt, so its queries need every key that earlier chunks left in "
        "the cache. A square causal mask fits the chunk alone: no shape clashes, nothing crashes, "
        "and the prompt before the chunk is forgotten."
    ),
    Fault.NO_CAUSALITY_IN_CHUNK: (
        "A token's K and V are computed once and read by every later token, so nothing that comes "
        "after it may change them. Inside a chunk only the mask keeps the future out; without it "
        "the cache depends on where the chunks happen to end."
    ),
    Fault.MASK_SHIFTED_BY_ONE: (
        "The last key that a query may see is its own. One key further and it reads the token that "
        "it is there to predict, except at the end of a chunk, where that token is not there yet."
    ),
    Fault.CACHE_NOT_APPENDED: (
        "The cache is the only memory between chunks: each appends its K and V, and all later "
        "tokens, decodes included, read them. Replaced instead of appended, it starts every chunk "
        "from an empty prompt and keeps only the last."
    ),
}
NO_BUG_LESSON = (
    "In aligned tiles every token meets products of one shape, in one place, in one order, "
    "whatever its chunk, so not a bit changes. Plain products round differently with the number "
    "of rows beside a token: look at them too, then switch a bug on and see how far apart rounding "
    "and a bug are."
)


def mask_lesson(info: MaskInfo) -> str:
    """Return the lesson of the right mask, in two sentences with its numbers."""
    first, last, own = info.cached_tokens, info.end - 1, info.right_pairs
    alone = info.chunk_tokens * (info.chunk_tokens + 1) // 2
    sees = f"The query at position {first} sees {counted(first + 1, 'key')}"
    if last > first:
        sees += f" and the one at position {last} sees {last + 1}"
    if not info.cached_tokens:
        return (
            f"{sees}: with an empty cache the mask is the causal triangle that everyone knows. "
            "Raise the cached length, and a full block of keys that every query sees grows "
            "on its left."
        )
    lost = own - alone
    return (
        f"{sees}: everything in the cache, and of its own chunk itself and what came before it. "
        f"A causal square over the chunk alone would show {alone:,} of these {own:,} pairs and "
        f"lose the other {lost:,}, all of them to the cache."
    )


def same_bits_lesson(checks: Sequence[ChunkSizeCheck]) -> str:
    """Return what a set of correct chunk sizes shows, in two sentences."""
    identical = sum(check.tiled.identical for check in checks)
    largest = max(check.plain.max_abs_diff for check in checks)
    tolerance = min(check.rounding_tolerance for check in checks)
    if identical == len(checks):
        tiles = f"In aligned tiles all {counted(len(checks), 'chunk size')} leave the same K and V"
        tiles += " as the whole prompt, bit for bit."
    else:
        tiles = f"In aligned tiles {identical} of {len(checks)} chunk sizes leave the same bits."
    if largest > tolerance:
        return f"{tiles} Plain products are up to {number(largest)} apart: more than rounding."
    return (
        f"{tiles} Plain products add in an order that depends on how many rows stand beside "
        f"a token, so they end up to {number(largest)} apart: rounding, which explains up to "
        f"{number(tolerance)} here, and no bug."
    )


def hidden_from(fault: Fault, *, prompt_tokens: int) -> tuple[int, ...]:
    """Return the chunk sizes 1..prompt_tokens that cannot reveal a fault."""
    return tuple(
        size
        for size in range(1, prompt_tokens + 1)
        if not fault.revealed_by(_chunk_lengths(prompt_tokens, size))
    )


def hidden_from_sentence(fault: Fault, *, prompt_tokens: int) -> str:
    """Say which chunk sizes cannot reveal a fault."""
    sizes = hidden_from(fault, prompt_tokens=prompt_tokens)
    if not sizes:
        return "Every chunk size reveals it."
    whole = " (the whole prompt at once)" if sizes == (prompt_tokens,) else ""
    return (
        f"Of all chunk sizes from 1 to {prompt_tokens} tokens, only "
        f"{span(sizes[0], sizes[-1] + 1)}{whole} cannot reveal it."
    )


def verdict_sentence(check: ChunkSizeCheck) -> str:
    """Say whether the check of one chunk size caught the fault that was switched on."""
    if check.fault is None:
        return "The check passes." if check.passed else "The check fails."
    if not check.passed:
        return "The check catches it."
    chunks = counted(len(check.chunk_lengths), "chunk")
    return f"The check passes: {chunks} of {check.chunk_tokens} cannot reveal it."


def _chunk_lengths(prompt_tokens: int, size: int) -> tuple[int, ...]:
    whole, rest = divmod(prompt_tokens, size)
    return (size,) * whole + ((rest,) if rest else ())
