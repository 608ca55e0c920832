"""The sentences of the prefix cache page, computed from what it shows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from s11.figures.prefix_info import FourRuns
from s11.prefix_blocks import AdmittedBlocks, BlockKind
from s11.words import count, ms

CLOSE = 1.02  # a fall by less is none to speak of


def composition(four: FourRuns) -> str:
    """Say what the cache does, what chunking does, and what both do together."""
    parts = [_cache_words(four), _chunk_words(four), _stall_words(four), _preemption_words(four)]
    return " ".join(part for part in parts if part)


def _cache_words(four: FourRuns) -> str:
    hits, computed = four.both.metrics.cached_tokens, four.both.metrics.computed_prefill_tokens
    if not hits:
        return f"**The cache** finds nothing: all {count(computed, 'token')} are computed."
    skipped, chunks = four.skipped_chunks, four.chunking.chunks
    told = f"skips {skipped:,} of {count(chunks, 'chunk')}"
    if skipped <= 0:
        told = f"skips none of {count(chunks, 'chunk')}"
    return (
        f"**The cache removes work:** it {told}; {hits:,} of {count(hits + computed, 'token')} "
        "are hits."
    )


def _chunk_words(four: FourRuns) -> str:
    whole, cut = _prefill_steps(four, cut=False), _prefill_steps(four, cut=True)
    chunks, fewer_hits = four.both.chunks, ""
    whole_hits = four.caching.metrics.cached_tokens
    missed = whole_hits - four.both.metrics.cached_tokens
    if missed > 0 and four.both.experiment.limits.kv_blocks is None:
        fewer_hits = (
            f" It hits {missed:,} tokens less than whole prompts do ({whole_hits:,}): prompts that "
            "arrive together share what a step computes, and a chunk is less than a prompt."
        )
    if cut <= whole:
        return (
            f"**Chunking** has nothing left to spread: what is left of each prompt is one chunk, "
            f"{count(chunks, 'chunk')} in {count(cut, 'step')}."
        )
    return (
        f"**Chunking spreads** what is left: {count(chunks, 'chunk')} over {count(cut, 'step')} "
        f"instead of {whole:,}.{fewer_hits}"
    )


def _stall_words(four: FourRuns) -> str:
    stalls = [run.metrics.longest_stall_ms for run in four]
    neither, chunking, caching, both = stalls
    if neither is None or chunking is None or caching is None or both is None:
        return "Nobody streams, so nothing can stall."
    alone = f"cache alone {ms(caching)}, chunking alone {ms(chunking)}"
    if both * CLOSE < neither:
        return (
            f"**Together** the longest stall falls from {ms(neither)} to **{ms(both)}** ({alone})."
        )
    if both > neither * CLOSE:
        return f"The longest stall rises from {ms(neither)} to **{ms(both)}** ({alone})."
    return f"The longest stall stays at {ms(both)} ({alone})."


def _preemption_words(four: FourRuns) -> str:
    """Say where the pool runs short: then what is lost is computed again, and streams wait."""
    preemptions = [f"{run.name} {run.metrics.preemptions:,}" for run in four]
    if not any(run.metrics.preemptions for run in four):
        return ""
    return (
        "**The pool runs short:** running requests lose their blocks and begin again, which blurs "
        f"the comparison (preemptions: {', '.join(preemptions)})."
    )


def _prefill_steps(four: FourRuns, *, cut: bool) -> int:
    run = four.both if cut else four.caching
    return int(np.count_nonzero(run.result.steps.prefill_tokens))


def recomputed(rows: Sequence[AdmittedBlocks]) -> str:
    """Say which blocks were computed although their text had been computed before, and why."""
    parts = []
    for kind, why in (
        (BlockKind.EVICTED, "since {they} had been evicted"),
        (
            BlockKind.LAST_TOKEN,
            "since at least one token is computed, and hits are whole blocks",
        ),
        (BlockKind.NOT_YET, "since a request ahead had not come to {them} yet"),
        (BlockKind.NOT_WHOLE, "since only a part of {them} had been there"),
    ):
        blocks = sum(row.count(kind) for row in rows)
        tokens = sum(row.tokens_again(kind) for row in rows)
        if blocks:
            they, them = ("it", "it") if blocks == 1 else ("they", "them")
            again = f" ({count(tokens, 'token')})" if tokens else ""
            parts.append(f"{count(blocks, 'block')}{again} {why.format(they=they, them=them)}")
    if not parts:
        return "No block whose text had been computed before is computed again."
    return f"**Computed once more:** {'; '.join(parts)}."


def rules(block_size: int) -> list[str]:
    """Return the cache's rules, a plain sentence each."""
    return [
        f"**Whole blocks only.** A hit is a run of whole blocks of {count(block_size, 'token')} "
        "from the very beginning; a block counts as soon as the step that fills it is planned.",
        "**At least one token is computed,** since the next output comes from it: a cached prompt "
        "of an exact multiple of the block size computes its last block again.",
        "**The tail is evicted first.** Freed blocks stay cached until no unused block is left; "
        "then the longest-freed goes, of one request its last block first.",
    ]
