"""Every chunk size as a point: what the streams wait against what the prompt waits."""

from __future__ import annotations

import math
from dataclasses import dataclass

from s11.figures.chunk_size_info import log_axis
from s11.figures.learn_look import label, plain_axis, projected, scene_layout
from s11.figures.theme import IDLE, INK, PREFILL, STALL_TEXT, Spec
from s11.sweeps import SweepPoint
from s11.words import count, ms

HEIGHT, WIDE_HEIGHT = 430, 480


@dataclass(frozen=True, slots=True, kw_only=True)
class ChoiceInfo:
    """Chunk sizes on one machine, the knee among them, and the largest within the target.

    targets_ms: the lowest and the highest that can be chosen: the axes hold both.
    """

    points: tuple[SweepPoint, ...]
    knee: SweepPoint | None
    largest: SweepPoint | None
    target_ms: float
    targets_ms: tuple[float, float]
    caption: tuple[str, ...]

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        if self.largest is None:
            return f"No chunk stays within {ms(self.target_ms)}"
        return f"Within {ms(self.target_ms)}: up to {count(self.largest.chunk_tokens, 'token')}"


def choice_figure(info: ChoiceInfo) -> Spec:
    """Return the Plotly spec: one curve, the target's line, the knee, the chosen size."""
    spec = scene_layout(
        title=info.title,
        caption=list(info.caption),
        meta={
            "figure": "learn-choice",
            "target_ms": info.target_ms,
            "largest_chunk_tokens": info.largest.chunk_tokens if info.largest else None,
            "knee_tokens": info.knee.chunk_tokens if info.knee else None,
        },
        height=HEIGHT,
    )
    stalls = [point.longest_stall_ms or 0.0 for point in info.points]
    ttfts = [point.ttft_ms or 0.0 for point in info.points]
    spec |= {
        "xaxis": plain_axis(
            **log_axis(ttfts, most=9)
            | {"range": [math.log10(min(ttfts) / 1.6), math.log10(max(ttfts) * 1.12)]},
            title={"text": "time to first token of the prompt (ms)"},
        ),
        "yaxis": plain_axis(
            **log_axis([*stalls, *info.targets_ms]), title={"text": "longest stall (ms)"}
        ),
        "shapes": [
            {
                "type": "rect",
                "layer": "below",
                "xref": "paper",
                "yref": "y",
                "x0": 0,
                "x1": 1,
                "y0": 0.1,
                "y1": info.target_ms,
                "line": {"width": 0},
                "fillcolor": IDLE,
                "opacity": 0.12,
            },
            {
                "type": "line",
                "xref": "paper",
                "yref": "y",
                "x0": 0,
                "x1": 1,
                "y0": info.target_ms,
                "y1": info.target_ms,
                "line": {"color": STALL_TEXT, "width": 2, "dash": "dash"},
            },
        ],
        "annotations": [
            label(
                f"target {ms(info.target_ms)}",
                x=1,
                xref="paper",
                xanchor="right",
                y=math.log10(info.target_ms),
                yanchor="bottom",
                font={"size": 13, "color": STALL_TEXT},
            )
        ],
    }
    return projected({"data": _traces(info), "layout": spec}, height=WIDE_HEIGHT)


def _traces(info: ChoiceInfo) -> list[Spec]:
    last = info.points[-1].chunk_tokens
    named = [_is_named(point.chunk_tokens) or point.chunk_tokens == last for point in info.points]
    curve: Spec = {
        "type": "scatter",
        "mode": "lines+markers+text",
        "name": "chunk size (tokens)",
        "x": [point.ttft_ms for point in info.points],
        "y": [point.longest_stall_ms for point in info.points],
        "text": [
            f"{point.chunk_tokens:,}" if shown else ""
            for point, shown in zip(info.points, named, strict=True)
        ],
        "textposition": "bottom left",
        "customdata": [point.chunk_tokens for point in info.points],
        "line": {"color": PREFILL, "width": 3},
        "marker": {"size": 9, "color": PREFILL},
        "hovertemplate": "%{customdata:,} tokens: stall %{y:,.1f} ms, TTFT %{x:,.0f} ms"
        "<extra></extra>",
    }
    marked: list[tuple[str, SweepPoint | None, Spec]] = [
        ("knee", info.knee, {"symbol": "diamond-open", "size": 18, "color": INK}),
        ("largest within target", info.largest, {"symbol": "star", "size": 17, "color": INK}),
    ]
    stars: list[Spec] = [
        {
            "type": "scatter",
            "mode": "markers",
            "name": name,
            "x": [point.ttft_ms],
            "y": [point.longest_stall_ms],
            "marker": {**look, "line": {"width": 2.5, "color": INK}},
            "hovertemplate": f"{name}: {point.chunk_tokens:,} tokens<extra></extra>",
        }
        for name, point, look in marked
        if point is not None
    ]
    return [curve, *stars]


def _is_named(tokens: int) -> bool:
    """Return whether a size is a power of four: more names would run into each other."""
    return tokens & (tokens - 1) == 0 and tokens.bit_length() % 2 == 1


def choice_alt(info: ChoiceInfo) -> str:
    """Return the curve's numbers for those who cannot see it."""
    told = "; ".join(
        f"{count(point.chunk_tokens, 'token')}: stall {ms(point.longest_stall_ms)}, "
        f"TTFT {ms(point.ttft_ms)}"
        for point in info.points
    )
    knee = f" Knee at {count(info.knee.chunk_tokens, 'token')}." if info.knee else ""
    return f"Stall against TTFT by chunk size. {info.title}.{knee} {told}."
