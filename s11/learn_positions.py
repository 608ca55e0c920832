"""Scene 9: positions are those of the prompt; counted anew in each chunk, keys are wrong."""

from __future__ import annotations

import numpy as np

from s11.attention import Fault, compare
from s11.figures.key_difference_info import number
from s11.figures.learn_positions import PositionsInfo, positions_alt, positions_figure
from s11.learn_decoder import prefilled
from s11.learn_scene import Control, Link, Scene, Shown
from s11.words import count

PROMPT_TOKENS = 256
CHUNKS = (32, 64, 100, 128, 200, 256)
BUG = Fault.CHUNK_RELATIVE_POSITIONS


def positions_info(chunk_tokens: int) -> PositionsInfo:
    """Return how far keys are off by position, both ways to count."""
    whole = prefilled(PROMPT_TOKENS, PROMPT_TOKENS)
    right = compare(whole, prefilled(PROMPT_TOKENS, chunk_tokens))
    wrong = compare(whole, prefilled(PROMPT_TOKENS, chunk_tokens, fault=BUG))
    return PositionsInfo(
        chunk_tokens=chunk_tokens,
        absolute=right.key_abs_diff_by_position.max(axis=0),
        relative=wrong.key_abs_diff_by_position.max(axis=0),
        hidden_difference=wrong.last_hidden_max_abs_diff,
        most=float(2 * np.abs(whole.keys).max()),
    )


def place(chunk_tokens: int) -> Shown:
    """Return the scene: the same bits with absolute positions, wrong keys without."""
    info = positions_info(chunk_tokens)
    return Shown(
        spec=positions_figure(info),
        alt=positions_alt(info),
        sentences=(
            "RoPE turns each key by its position, so that a query finds it by their distance in "
            "the prompt.",
            _told(info),
        ),
        columns={
            "position": list(range(info.prompt_tokens)),
            "chunk": [at // chunk_tokens + 1 for at in range(info.prompt_tokens)],
            "key_difference_absolute": info.absolute.astype(float).tolist(),
            "key_difference_from_0_in_every_chunk": info.relative.astype(float).tolist(),
        },
        link=Link(
            label="This bug and four others, in Mask & positions",
            page="mask",
            parameters={"bug": str(BUG), "bug_chunk": str(chunk_tokens)},
        ),
    )


def _told(info: PositionsInfo) -> str:
    if not info.wrong:
        return (
            f"With one chunk of {count(info.chunk_tokens, 'token')} both ways to count are the "
            "same: a test that never cuts its prompt cannot catch this bug. Move the slider to "
            "the left."
        )
    right = info.prompt_tokens - info.wrong
    return (
        f"Counted from 0 in every chunk, only the first {right} keys are right; the other "
        f"{info.wrong} are off by up to {number(float(info.relative.max()))}, and the last token's "
        f"state by {number(info.hidden_difference)}. No shape clashes and nothing crashes; with "
        f"absolute positions the largest difference is {number(float(info.absolute.max()))}."
    )


PLACE = Scene(
    slug="positions",
    headline="Positions count from the prompt's start",
    control=Control(
        key="turn",
        label="Chunk size (tokens)",
        options=CHUNKS,
        default=64,
        about="A small real decoder computes the prompt both ways; dotted lines end the chunks.",
    ),
    show=place,
)
