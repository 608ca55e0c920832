"""Scene 3: prefill can be cut, for the KV cache is the same whatever the chunk."""

from __future__ import annotations

import numpy as np

from s11.figures.key_difference_info import number
from s11.figures.learn_keys import KeysInfo, keys_alt, keys_figure
from s11.learn_decoder import decoder, prefilled
from s11.learn_scene import Control, Link, Scene, Shown

PROMPT_TOKENS = 128
CHUNKS = (7, 16, 32, 50, 64, 100, 128)
DIMENSIONS = 12


def keys_info(chunk_tokens: int) -> KeysInfo:
    """Return both caches of a chunk size, compared bit by bit."""
    sizes = (PROMPT_TOKENS, chunk_tokens)
    whole, chunked = (prefilled(PROMPT_TOKENS, size) for size in sizes)
    plain, plain_chunked = (prefilled(PROMPT_TOKENS, size, tiled=False) for size in sizes)
    pairs = [(whole.keys, chunked.keys), (whole.values, chunked.values)]
    return KeysInfo(
        whole=whole.keys[-1, :, 0, :DIMENSIONS].T,
        chunked=chunked.keys[-1, :, 0, :DIMENSIONS].T,
        chunk_tokens=chunk_tokens,
        chunks=len(chunked.chunk_lengths),
        numbers=sum(left.size for left, _ in pairs),
        differing=sum(
            int((left.view(np.int32) != right.view(np.int32)).sum()) for left, right in pairs
        ),
        plain_difference=max(
            float(np.abs(plain.keys - plain_chunked.keys).max()),
            float(np.abs(plain.values - plain_chunked.values).max()),
        ),
        layers=decoder().config.layers,
    )


def divide(chunk_tokens: int) -> Shown:
    """Return the scene: the same cache, bit for bit."""
    info = keys_info(chunk_tokens)
    same = f"all {info.numbers:,} numbers of the KV cache have the same bits"
    if info.differing:
        same = f"{info.differing:,} of the {info.numbers:,} numbers of the KV cache differ"
    aside = (
        f"Left to plain products, whose rounding depends on how many rows they are given, the two "
        f"would be up to {number(info.plain_difference)} apart: rounding, and no error."
        if info.plain_difference
        else "Plain products, which round differently with the rows they are given, agree here too."
    )
    return Shown(
        spec=keys_figure(info),
        alt=keys_alt(info),
        sentences=(
            "A token's keys and values depend on itself and the tokens before it, which are in the "
            "cache, and on none after it.",
            f"So a prompt can stop after any token and go on later: in {info.sizes} {same} as in "
            "one pass, computed just now.",
            aside,
        ),
        columns=_columns(info),
        link=Link(
            label="Every chunk size as a table, in Mask & positions",
            page="mask",
            parameters={"tokens": str(PROMPT_TOKENS), "own_size": str(chunk_tokens)},
        ),
    )


def _columns(info: KeysInfo) -> dict[str, list[object]]:
    """Return the two caches' keys in the picture's first dimension, by position."""
    return {
        "position": list(range(info.prompt_tokens)),
        "chunk": [position // info.chunk_tokens + 1 for position in range(info.prompt_tokens)],
        "key_in_one_pass": info.whole[0].astype(float).tolist(),
        "key_in_chunks": info.chunked[0].astype(float).tolist(),
        "difference": (info.chunked[0] - info.whole[0]).astype(float).tolist(),
    }


DIVIDE = Scene(
    slug="divide",
    headline="Prefill can be cut anywhere",
    control=Control(
        key="cut",
        label="Chunk size (tokens)",
        options=CHUNKS,
        default=50,
        about="A small real decoder computes the prompt again at every choice.",
    ),
    show=divide,
)
