"""How wrong each position's keys are: with absolute positions, and counted anew in each chunk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import plain_axis, projected, scene_layout
from s11.figures.theme import IDLE, INK, MUTED, PAPER, STALL, Spec
from s11.words import count

HEIGHT, WIDE_HEIGHT = 430, 470
DOMAINS = ((0.58, 0.93), (0.0, 0.35))
HEADS = ("positions in the prompt: 0, 1, 2, …", "positions from 0 in every chunk")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PositionsInfo:
    """|ΔK| by position, largest over layers, heads and dimensions, against the whole prompt.

    hidden_difference: how far the last token's hidden state is off with relative positions.
    most: the axes' end: no key can be further off.
    """

    chunk_tokens: int
    absolute: NDArray[np.float32]  # (positions,)
    relative: NDArray[np.float32]  # (positions,)
    hidden_difference: float
    most: float

    @property
    def prompt_tokens(self) -> int:
        """Tokens of the prompt."""
        return len(self.relative)

    @property
    def wrong(self) -> int:
        """At how many positions relative positions give another key."""
        return int(np.count_nonzero(self.relative))

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        if not self.wrong:
            return "One chunk: the bug hides"
        return f"Counted anew: {self.wrong} of {self.prompt_tokens} keys wrong"


def positions_figure(info: PositionsInfo) -> Spec:
    """Return the Plotly spec of the two panels."""
    spec = scene_layout(
        title=info.title,
        caption=[
            f"{info.prompt_tokens}-token prompt, chunks of {count(info.chunk_tokens, 'token')}",
            "largest |ΔK| of three layers (K: of order 1), s11",
        ],
        meta={
            "figure": "learn-positions",
            "chunk_tokens": info.chunk_tokens,
            "wrong": info.wrong,
            "largest": float(info.relative.max()),
        },
        height=HEIGHT,
    )
    spec |= {"bargap": 0, "showlegend": False}
    del spec["legend"]
    spec["xaxis"] = plain_axis(
        range=[-0.5, info.prompt_tokens - 0.5],
        dtick=64,
        anchor="y2",
        title={"text": "position in the prompt (tokens)"},
    )
    edges = range(info.chunk_tokens, info.prompt_tokens, info.chunk_tokens)
    for place, domain in enumerate(DOMAINS):
        number = str(place + 1) if place else ""
        spec[f"yaxis{number}"] = plain_axis(
            range=[0, info.most], domain=list(domain), nticks=4, title={"text": "|ΔK|"}
        )
    spec["shapes"] = [
        {
            "type": "line",
            "xref": "x",
            "yref": "paper",
            "x0": edge - 0.5,
            "x1": edge - 0.5,
            "y0": low,
            "y1": high,
            "line": {"color": MUTED, "width": 1.5, "dash": "dot"},
        }
        for edge in edges
        for low, high in DOMAINS
    ]
    spec["annotations"] = [_head(text, place) for place, text in enumerate(HEADS)]
    if not info.absolute.any():
        spec["annotations"].append(_zero(info))
    spec["margin"] = {**spec["margin"], "b": 56}
    panels = ((info.absolute, "y", IDLE), (info.relative, "y2", STALL))
    traces = [
        {
            "type": "bar",
            "y": values,
            "yaxis": y,
            "xaxis": "x",
            "marker": {
                "color": colour,
                "line": {"width": 0},
            },
            "hovertemplate": "position %{x}: |ΔK| = %{y:.2~g}<extra></extra>",
        }
        for values, y, colour in panels
    ]
    return projected({"data": traces, "layout": spec}, height=WIDE_HEIGHT)


def _head(text: str, panel: int) -> Spec:
    return {
        "text": f"<b>{text}</b>",
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "y": DOMAINS[panel][1],
        "yref": "paper",
        "yanchor": "bottom",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
    }


def _zero(info: PositionsInfo) -> Spec:
    return {
        "text": "0 everywhere: the same bits",
        "x": (info.prompt_tokens - 1) / 2,
        "xref": "x",
        "y": info.most / 2,
        "yref": "y",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
        "bgcolor": PAPER,
        "borderpad": 3,
    }


def positions_alt(info: PositionsInfo) -> str:
    """Return the panels' numbers for those who cannot see them."""
    return (
        f"Differences of keys by position, chunks of {count(info.chunk_tokens, 'token')}: with "
        f"absolute positions at most {float(info.absolute.max()):.2g}; counted anew in each chunk "
        f"{info.wrong} of {info.prompt_tokens} positions are wrong, by up to "
        f"{float(info.relative.max()):.2g}."
    )
