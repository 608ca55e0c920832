"""Scene 8: a chunk sees all that is cached, and of itself what came before."""

from __future__ import annotations

from s11.figures.learn_look import label, projected
from s11.figures.mask import mask_figure
from s11.figures.mask_info import MaskInfo, mask_alt, mask_columns, mask_info
from s11.figures.theme import INK, Spec
from s11.learn_scene import Control, Link, Scene, Shown
from s11.words import count

CHUNK_TOKENS = 8
CACHED = (0, 4, 8, 12, 16, 20, 24)
WIDE_HEIGHT = 500
NARROWEST_LABEL = 8  # tokens


def look(cached_tokens: int) -> Shown:
    """Return the scene: a full block on the left, the causal triangle on the right."""
    info = mask_info(chunk_tokens=CHUNK_TOKENS, cached_tokens=cached_tokens)
    own = CHUNK_TOKENS * (CHUNK_TOKENS + 1) // 2
    return Shown(
        spec=projected(_figure(info), height=WIDE_HEIGHT),
        alt=mask_alt(info),
        sentences=(
            f"A chunk of {count(CHUNK_TOKENS, 'token')} after {count(cached_tokens, 'token')} in "
            f"the cache: its first query sees {count(cached_tokens + 1, 'key')}, its last "
            f"{info.end}, together {info.right_pairs:,} of {info.cells.size:,} pairs.",
            _square(info, own),
        ),
        columns=mask_columns(info),
        link=Link(
            label="Any chunk, and five wrong masks, in Mask & positions",
            page="mask",
            parameters={"mask_chunk": str(CHUNK_TOKENS), "cached": str(cached_tokens)},
        ),
    )


def _square(info: MaskInfo, own: int) -> str:
    lost = info.right_pairs - own
    if not lost:
        return (
            f"Nothing is cached yet, so this is the causal triangle of any prompt, {own} pairs: "
            "move the slider, and a full block grows on its left."
        )
    return (
        f"The causal square that a model learned with would show the {own} pairs inside the chunk "
        f"and hide the {lost} with the cache: no error, and the prompt before the chunk forgotten."
    )


def _figure(info: MaskInfo) -> Spec:
    """Return the mask on an axis of the most keys, each block named above itself."""
    figure = mask_figure(info)
    spec = figure["layout"]
    spec["xaxis"] |= {
        "range": [-0.5, CACHED[-1] + CHUNK_TOKENS - 0.5],
        "tickvals": [*range(0, 32, 4)],
    }
    spec["xaxis"]["title"] = {**spec["xaxis"]["title"], "text": "key: position in the prompt"}
    spec["yaxis"]["title"] = {**spec["yaxis"]["title"], "text": "query: position"}
    above = {"yref": "paper", "yanchor": "bottom", "yshift": 8, "font": {"size": 13, "color": INK}}
    middle = info.cached_tokens + (CHUNK_TOKENS - 1) / 2
    spec["annotations"] = [label("this chunk", x=middle, y=1, **above)]
    if info.cached_tokens >= NARROWEST_LABEL:
        spec["annotations"].append(
            label("in the cache", x=(info.cached_tokens - 1) / 2, y=1, **above)
        )
    return figure


LOOK = Scene(
    slug="mask",
    headline="The mask: all of the cache, and a triangle",
    control=Control(
        key="before",
        label="Tokens in the cache before the chunk",
        options=CACHED,
        default=16,
        about=f"The chunk itself has {CHUNK_TOKENS} tokens.",
    ),
    show=look,
)
