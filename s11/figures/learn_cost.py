"""What cutting a prompt costs: its first token's time by what it is made of, and keys re-read."""

from __future__ import annotations

from dataclasses import dataclass

from s11.figures.learn_look import plain_axis, projected, scene_layout
from s11.figures.theme import DECODE, FIXED, HAND_OVER, INK, PAPER, PREFILL, Spec
from s11.words import count, ms

HEIGHT, WIDE_HEIGHT = 450, 480
DOMAINS = ((0.56, 0.93), (0.0, 0.3))
PARTS = ("prompt's own work", "steps' fixed cost", "decodes that ride along")


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptCost:
    """What a prompt takes until its first token, cut in one way.

    reread_tokens: cached tokens whose keys its later chunks read again, summed.
    pairs: query-key pairs that its attention computes.
    """

    steps: int
    prefill_ms: float
    fixed_ms: float
    decode_ms: float
    ttft_ms: float
    reread_tokens: int
    pairs: int


@dataclass(frozen=True, slots=True, kw_only=True)
class CostInfo:
    """One prompt in chunks, against the same in one pass; the most of each is the axes' end."""

    chunk_tokens: int
    prompt_tokens: int
    streaming_users: int
    whole: PromptCost
    chunked: PromptCost
    most_ms: float
    most_reread: int
    formula: str

    @property
    def later_ms(self) -> float:
        """By how much the first token is later."""
        return self.chunked.ttft_ms - self.whole.ttft_ms

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        if self.chunked.steps == 1:
            return "One chunk: nothing is paid"
        return f"{count(self.chunked.steps, 'chunk')}: first token {ms(self.later_ms)} later"


def cost_figure(info: CostInfo) -> Spec:
    """Return the Plotly spec: two bars for the time, two for the keys."""
    spec = scene_layout(
        title=info.title,
        caption=[
            f"{info.prompt_tokens:,}-token prompt, {info.chunk_tokens:,}-token chunks, "
            f"{info.streaming_users} users",
            f"{info.formula}, s11",
        ],
        meta={
            "figure": "learn-cost",
            "chunk_tokens": info.chunk_tokens,
            "ttft_ms": info.chunked.ttft_ms,
            "reread_tokens": info.chunked.reread_tokens,
        },
        height=HEIGHT,
    )
    names = ["one pass", count(info.chunked.steps, "chunk")]
    spec |= {"barmode": "stack", "bargap": 0.3}
    ends = (1.04 * info.most_ms, 1.04 * info.most_reread)
    for place, (domain, end) in enumerate(zip(DOMAINS, ends, strict=True)):
        number = str(place + 1) if place else ""
        spec[f"xaxis{number}"] = plain_axis(
            range=[0, end], anchor=f"y{number}", tickformat="~s" if place else ",", nticks=6
        )
        spec[f"yaxis{number}"] = plain_axis(
            range=[1.6, -0.6],
            domain=list(domain),
            anchor=f"x{number}",
            tickvals=[0, 1],
            ticktext=names,
            showgrid=False,
        )
    spec["annotations"] = [
        _head("time to first token (ms)", 0),
        _head("cached keys read again (tokens)", 1),
    ]
    spec["margin"] = {**spec["margin"], "l": 86}
    return projected({"data": _traces(info), "layout": spec}, height=WIDE_HEIGHT)


def _traces(info: CostInfo) -> list[Spec]:
    both = (info.whole, info.chunked)
    overlay = {"size": 5, "solidity": 0.25, "fillmode": "overlay", "fgcolor": PAPER}
    parts: list[tuple[list[float], Spec]] = [
        ([each.prefill_ms for each in both], {"color": PREFILL}),
        (
            [each.fixed_ms for each in both],
            {"color": FIXED, "pattern": {**overlay, "shape": ".", "fgcolor": INK}},
        ),
        (
            [each.decode_ms for each in both],
            {"color": DECODE, "pattern": {**overlay, "shape": "/"}},
        ),
    ]
    bar: Spec = {"type": "bar", "orientation": "h", "y": [0, 1]}
    traces = [
        {
            **bar,
            "name": name,
            "x": values,
            "marker": {**look, "line": {"color": PAPER, "width": 1}},
            "hovertemplate": f"{name}: %{{x:,.1f}} ms<extra></extra>",
        }
        for name, (values, look) in zip(PARTS, parts, strict=True)
    ]
    keys = {
        **bar,
        "name": "keys read again",
        "x": [each.reread_tokens for each in both],
        "xaxis": "x2",
        "yaxis": "y2",
        "showlegend": False,
        "marker": {"color": HAND_OVER, "pattern": {**overlay, "shape": "x", "fgcolor": INK}},
        "hovertemplate": "%{x:,} cached tokens read again<extra></extra>",
    }
    return [*traces, keys]


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


def cost_alt(info: CostInfo) -> str:
    """Return the bars' numbers for those who cannot see them."""
    told = [
        f"{name}: TTFT {ms(each.ttft_ms)}, of it the prompt's own work {ms(each.prefill_ms)}, "
        f"fixed cost {ms(each.fixed_ms)}, decodes {ms(each.decode_ms)}; "
        f"{each.reread_tokens:,} cached tokens read again; {each.pairs:,} query-key pairs"
        for name, each in (("In one pass", info.whole), (info.title, info.chunked))
    ]
    return f"What cutting costs. {'. '.join(told)}."
