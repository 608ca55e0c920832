"""Two questions about attention: what a chunk's query sees, and why positions are absolute."""

from __future__ import annotations

from s11.attention import (
    ChunkSizeCheck,
    Decoder,
    Fault,
    check_chunk_sizes,
    chunk_attention_mask,
)
from s11.quiz import Answer, PageLink, Question
from s11.words import count

CHUNK_TOKENS, CACHED_TOKENS, QUERY = 8, 24, 27
BUG_TOKENS, BUG_CHUNK = 256, 100
LATER_QUERY, EARLIER_KEY = 150, 50


def sight_question() -> Question:
    """Return the question what a query in the middle of a chunk sees."""
    mask = chunk_attention_mask(CHUNK_TOKENS, CACHED_TOKENS)
    sees = int(mask[QUERY - CACHED_TOKENS].sum())
    own, last = sees - CACHED_TOKENS, CACHED_TOKENS + CHUNK_TOKENS - 1
    later = last - QUERY
    place = (("mask_chunk", str(CHUNK_TOKENS)), ("cached", str(CACHED_TOKENS)))
    return Question(
        name="sight",
        title="What attends to what",
        asked=(
            f"The first {CACHED_TOKENS} tokens of a prompt are in the KV cache; the next "
            f"{CHUNK_TOKENS}, at positions {CACHED_TOKENS} to {last}, are this step's chunk. Which "
            f"keys does the query at position {QUERY} see?"
        ),
        answers=(
            Answer(
                f"Those of its chunk up to itself: {CACHED_TOKENS} to {QUERY}.",
                f"That is a causal square over the chunk alone: {own} of {sees} keys, and the "
                f"{CACHED_TOKENS} in the cache are lost. Every shape fits and nothing crashes; "
                "the prompt before the chunk is simply forgotten.",
            ),
            Answer(
                f"Those of the prompt up to itself: 0 to {QUERY}.",
                f"{count(sees, 'key')}: all {CACHED_TOKENS} in the cache and {own} of its chunk, "
                "the same that it sees when the prompt is computed whole. So the mask is a full "
                f"rectangle beside a triangle, {int(mask.sum())} of {mask.size} query-key pairs.",
                right=True,
            ),
            Answer(
                f"All that are computed by the end of this step: 0 to {last}.",
                f"Keys {QUERY + 1} to {last} belong to tokens after it: {later} too many. "
                "The future would leak into its state, and what the cache holds would depend on "
                "where chunks happen to end.",
            ),
            Answer(
                "Those of its chunk up to itself, and one that sums up the cache.",
                "Attention keeps no summary. The cache holds a key and a value for each token and "
                f"layer, and the query weighs each of the {CACHED_TOKENS} by itself; a state "
                "that sums up the past is how recurrent networks work.",
            ),
        ),
        scene=8,
        shown_by=(
            PageLink("Mask: this very chunk", "mask", (*place, ("bug", "none"))),
            PageLink(
                "Mask: the causal square", "mask", (*place, ("bug", str(Fault.CACHED_KEYS_HIDDEN)))
            ),
        ),
    )


def _checks() -> tuple[ChunkSizeCheck, ChunkSizeCheck]:
    """Return the check without and with positions that begin again in every chunk."""
    decoder = Decoder()
    right, wrong = (
        check_chunk_sizes(tokens=BUG_TOKENS, chunk_sizes=[BUG_CHUNK], decoder=decoder, fault=fault)
        for fault in (None, Fault.CHUNK_RELATIVE_POSITIONS)
    )
    return right[0], wrong[0]


def positions_question() -> Question:
    """Return the question what breaks when every chunk counts its positions from 0."""
    right, wrong = (each.tiled.key_abs_diff_by_position for each in _checks())
    bad = int((wrong > 0).any(axis=0).sum())
    layers, positions = wrong.shape
    chunks = -(-BUG_TOKENS // BUG_CHUNK)
    query, key = LATER_QUERY % BUG_CHUNK, EARLIER_KEY % BUG_CHUNK
    place = (("bug_chunk", str(BUG_CHUNK)),)
    return Question(
        name="positions",
        title="Absolute positions",
        asked=(
            "A colleague's RoPE numbers the tokens of every chunk from 0 again. Each chunk looks "
            "right by itself. What breaks?"
        ),
        answers=(
            Answer(
                "Nothing: RoPE encodes distances, and inside a chunk they stay as they were.",
                "Inside a chunk they do, but queries also look back into the cache. In chunks of "
                f"{BUG_CHUNK}, the tokens at {LATER_QUERY} and {EARLIER_KEY} are "
                f"{LATER_QUERY - EARLIER_KEY} apart and become numbers {query} and {key}: distance "
                f"{query - key}. In our decoder {bad} of {positions} keys come out wrong.",
            ),
            Answer(
                "The first token of each chunk; from the next one on all is right again.",
                f"Each token of a later chunk is turned by the wrong angle, not only those at the "
                f"{chunks - 1} seams: {bad} of {positions} keys are wrong, in each of the "
                f"{layers} layers, by up to {wrong.max():.1f}.",
            ),
            Answer(
                "Prompts that are longer than the context that the model was trained on.",
                f"Length is another matter. This prompt has {positions} tokens, and its keys are "
                f"wrong from position {int((wrong > 0).any(axis=0).argmax())} on, the first of the "
                f"second chunk: {bad} of {positions}.",
            ),
            Answer(
                "The distances from this chunk's queries to the keys of earlier chunks.",
                "A query turned by its position and a key turned by its own meet at the difference "
                "of the two, which is their distance only where both count from the prompt's "
                f"start. Counted so, {int((right > 0).any(axis=0).sum())} of {positions} keys "
                f"differ from the whole prompt's; counted anew in each chunk, {bad}.",
                right=True,
            ),
        ),
        scene=9,
        shown_by=(
            PageLink(
                "Mask: positions from 0 in every chunk",
                "mask",
                (*place, ("bug", str(Fault.CHUNK_RELATIVE_POSITIONS))),
            ),
            PageLink("Mask: absolute positions", "mask", (*place, ("bug", "none"))),
        ),
    )
