"""An online softmax block by block: the largest score so far, and the sum so far."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import plain_axis, projected, scene_layout
from s11.figures.theme import DECODE, FIXED, INK, PREFILL, STALL, Spec
from s11.words import count

Floats = NDArray[np.float32]

HEIGHT, WIDE_HEIGHT = 430, 470
DOMAINS = ((0.56, 0.93), (0.0, 0.35))
HEADS = ("scores, and the largest so far", "sum of the weights so far")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class SoftmaxInfo:
    """One query's scores in blocks of keys, and what is kept after each.

    largest, denominator: after each block; a denominator is relative to its largest score.
    rescaled: how often a larger score was met, and what was summed was made smaller.
    difference: of the output from that of one softmax over all keys, largest over dimensions.
    """

    scores: Floats  # (keys,)
    block_tokens: int
    largest: Floats  # (blocks,)
    denominator: Floats  # (blocks,)
    rescaled: int
    difference: float

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        return f"{count(len(self.largest), 'block')} of {self.block_tokens}, one softmax"


def softmax_figure(info: SoftmaxInfo) -> Spec:
    """Return the Plotly spec of the two panels."""
    keys = len(info.scores)
    spec = scene_layout(
        title=info.title,
        caption=[f"one query over {keys} keys of the small decoder, float32", "computed by s11"],
        meta={
            "figure": "learn-softmax",
            "block_tokens": info.block_tokens,
            "denominator": float(info.denominator[-1]),
            "difference": info.difference,
        },
        height=HEIGHT,
    )
    low, high = float(info.scores.min()), float(info.scores.max())
    spec["xaxis"] = plain_axis(
        range=[-2, keys + 1],
        dtick=64,
        anchor="y2",
        title={"text": "key: position in the prompt (tokens)"},
    )
    spec["yaxis"] = plain_axis(
        range=[low - 0.3, high + 0.3], domain=list(DOMAINS[0]), nticks=4, title={"text": "score"}
    )
    spec["yaxis2"] = plain_axis(
        range=[0, 1.1 * float(info.denominator.max())],
        domain=list(DOMAINS[1]),
        nticks=4,
        title={"text": "sum"},
    )
    spec["annotations"] = [
        {
            "text": f"<b>{text}</b>",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": domain[1],
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 13, "color": INK},
        }
        for text, domain in zip(HEADS, DOMAINS, strict=True)
    ]
    return projected({"data": _traces(info), "layout": spec}, height=WIDE_HEIGHT)


def _traces(info: SoftmaxInfo) -> list[Spec]:
    keys, blocks = len(info.scores), len(info.largest)
    ends = np.minimum(np.arange(1, blocks + 1) * info.block_tokens, keys)
    edges = np.concatenate(([0], ends))
    return [
        {
            "type": "scatter",
            "mode": "markers",
            "name": "score of a key",
            "x": np.arange(keys),
            "y": info.scores,
            "marker": {"size": 4, "color": FIXED, "line": {"width": 0}},
            "hovertemplate": "key %{x}: score %{y:.2f}<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "lines",
            "name": "largest so far",
            "x": edges,
            "y": np.append(info.largest, info.largest[-1]),
            "line": {"color": STALL, "width": 3, "shape": "hv"},
            "hovertemplate": "after key %{x}: largest %{y:.2f}<extra></extra>",
        },
        {
            "type": "bar",
            "name": "sum so far",
            "yaxis": "y2",
            "x": edges[:-1],
            "offset": 0,
            "y": info.denominator,
            "width": np.diff(edges),
            "marker": {
                "color": DECODE,
                "line": {"color": PREFILL, "width": 0},
                "pattern": {
                    "shape": "/",
                    "fgcolor": "#FFFFFF",
                    "size": 5,
                    "solidity": 0.2,
                    "fillmode": "overlay",
                },
            },
            "hovertemplate": "block from key %{x}: sum %{y:.2f}<extra></extra>",
        },
    ]


def softmax_alt(info: SoftmaxInfo) -> str:
    """Return the panels' numbers for those who cannot see them."""
    told = "; ".join(
        f"after block {block}: largest {largest:.2f}, denominator {total:.2f}"
        for block, (largest, total) in enumerate(
            zip(info.largest.tolist(), info.denominator.tolist(), strict=True), start=1
        )
    )
    return (
        f"Online softmax over {len(info.scores)} keys: {info.title}. {told}. The output differs "
        f"from one softmax over all keys by at most {info.difference:.1e}."
    )
