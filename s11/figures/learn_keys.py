"""The same prompt's keys twice: computed in one pass, and chunk by chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import plain_axis, projected, scene_layout
from s11.figures.theme import INK, Spec
from s11.words import count

HEIGHT, WIDE_HEIGHT = 420, 460
LIMIT = 3.0  # of the colours; keys are of order 1
SCALE = [[0, "#0072B2"], [0.5, "#FFFFFF"], [1, "#E69F00"]]
DOMAINS = ((0.56, 0.94), (0.0, 0.38))


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class KeysInfo:
    """Keys of one head, dimension by position, in one pass and in chunks.

    differing: of all keys and values of all layers, how many have other bits.
    plain_difference: the largest difference where rows are multiplied as they come.
    """

    whole: NDArray[np.float32]  # (dimensions, positions)
    chunked: NDArray[np.float32]  # (dimensions, positions)
    chunk_tokens: int
    chunks: int
    numbers: int
    differing: int
    plain_difference: float
    layers: int

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return int(self.whole.shape[1])

    @property
    def sizes(self) -> str:
        """How the prompt was cut."""
        up_to = "up to " if self.prompt_tokens % self.chunk_tokens else ""
        return f"{count(self.chunks, 'chunk')} of {up_to}{self.chunk_tokens}"

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        if self.differing:
            return f"{count(self.differing, 'number')} differ"
        return f"{count(self.chunks, 'chunk')}: the same bits as one pass"


def keys_figure(info: KeysInfo) -> Spec:
    """Return the Plotly spec of the two pictures, one above the other."""
    spec = scene_layout(
        title=info.title,
        caption=[
            f"{info.prompt_tokens}-token prompt, decoder of {info.layers} layers, float32",
            "colour: a key's value; all bits compared by s11",
        ],
        meta={
            "figure": "learn-keys",
            "chunk_tokens": info.chunk_tokens,
            "chunks": info.chunks,
            "differing": info.differing,
        },
        height=HEIGHT,
    )
    rows = info.whole.shape[0]
    spec["xaxis"] = plain_axis(
        range=[-0.5, info.prompt_tokens - 0.5],
        showgrid=False,
        dtick=32,
        anchor="y2",
        title={"text": "position in the prompt (tokens)"},
    )
    for name, domain in zip(("yaxis", "yaxis2"), DOMAINS, strict=True):
        spec[name] = plain_axis(
            range=[rows - 0.5, -0.5], domain=list(domain), showgrid=False, tickvals=[]
        )
    spec["shapes"] = [_cuts(info)] if info.chunks > 1 else []
    spec["annotations"] = [
        _head("computed in one pass", 1),
        _head(f"computed in {info.sizes}", 2),
    ]
    spec["showlegend"] = False
    del spec["legend"]
    spec["margin"] = {**spec["margin"], "l": 16, "b": 56}
    panels = [(info.whole, "y"), (info.chunked, "y2")]
    traces = [
        {
            "type": "heatmap",
            "z": values,
            "zmin": -LIMIT,
            "zmax": LIMIT,
            "colorscale": SCALE,
            "showscale": False,
            "xaxis": "x",
            "yaxis": y,
            "hovertemplate": "position %{x}, dimension %{y}: %{z:.6f}<extra></extra>",
        }
        for values, y in panels
    ]
    return projected({"data": traces, "layout": spec}, height=WIDE_HEIGHT)


def _cuts(info: KeysInfo) -> Spec:
    """Draw all ends of chunks as one path."""
    edges = range(info.chunk_tokens, info.prompt_tokens, info.chunk_tokens)
    path = "".join(
        f"M{edge - 0.5},{-0.5}L{edge - 0.5},{info.whole.shape[0] - 0.5}" for edge in edges
    )
    line = {"color": INK, "width": 2 if info.chunks <= 20 else 1}
    return {"type": "path", "path": path, "xref": "x", "yref": "y2", "line": line}


def _head(text: str, panel: int) -> Spec:
    return {
        "text": f"<b>{text}</b>",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": DOMAINS[panel - 1][1],
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
    }


def keys_alt(info: KeysInfo) -> str:
    """Return the pictures' numbers for those who cannot see them."""
    return (
        f"Keys of a {info.prompt_tokens}-token prompt, in one pass and in {info.sizes}: "
        f"{info.differing:,} of {info.numbers:,} keys and values differ in any bit."
    )
