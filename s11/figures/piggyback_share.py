"""Attention's share of a step as the context grows: of a chunk, and of decodes."""

from __future__ import annotations

import math

import numpy as np

from s11.catalog import Deployment
from s11.costs.breakdown import Floats
from s11.figures.piggyback_looks import (
    LEGEND_ENTRY,
    SIMULATED,
    Operator,
    foot,
    hovered,
    machine_line,
    operators,
)
from s11.figures.theme import INK, MUTED, PAPER, Spec, axis, bottom_legend, layout
from s11.piggyback import MOST_CONTEXT_TOKENS
from s11.piggyback_rides import LEAST_CONTEXT_TOKENS, AttentionShare
from s11.words import count

HEIGHT = 520
LEGEND_ABOVE = 10  # px: an area's patch is taller than a line
TICKS = [1024, 4096, 16384, 65536]
TICK_NAMES = ["1k", "4k", "16k", "64k"]
TOLD = (*TICKS, MOST_CONTEXT_TOKENS)
PANELS = ((0.0, 0.46), (0.54, 1.0))


def share_title(chunk: AttentionShare) -> str:
    """Return the finding."""
    if chunk.half_tokens is None:
        return f"Attention stays below half: {100 * chunk.attention.max():.0f}% at most"
    if chunk.half_tokens <= LEAST_CONTEXT_TOKENS:
        return f"Attention is over half from {chunk.half_tokens:,} tokens on"
    return f"Attention passes half at {chunk.half_tokens:,} tokens"


def share_figure(
    chunk: AttentionShare,
    decodes: AttentionShare,
    deployment: Deployment,
    *,
    chunk_tokens: int,
    decode_tokens: int,
) -> Spec:
    """Return the Plotly spec of the two panels, side by side on one scale."""
    spec = layout(
        title=share_title(chunk),
        caption=[machine_line(deployment), SIMULATED, "share of a step's time; log scale"],
        meta={
            "figure": "piggyback-share",
            "chunk_half_tokens": chunk.half_tokens,
            "decode_half_tokens": decodes.half_tokens,
        },
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": {**bottom_legend(), "entrywidth": LEGEND_ENTRY, "y": LEGEND_ABOVE / HEIGHT},
        "hovermode": "x unified",
        "yaxis": axis(
            range=[0, 100], ticksuffix="%", nticks=6, title={"text": "share of the step (%)"}
        ),
        "annotations": [
            *_notes(chunk, "x", 0, f"chunk of {count(chunk_tokens, 'token')}"),
            *_notes(decodes, "x2", 1, f"{count(decode_tokens, 'decode')} alone"),
        ],
        "shapes": [*_halves(chunk, "x"), *_halves(decodes, "x2")],
    }
    for name, domain, words in (
        ("xaxis", PANELS[0], "tokens before the chunk"),
        ("xaxis2", PANELS[1], "context of each decode"),
    ):
        spec[name] = axis(
            type="log",
            range=[math.log10(LEAST_CONTEXT_TOKENS), math.log10(MOST_CONTEXT_TOKENS)],
            domain=list(domain),
            anchor="y",
            tickvals=TICKS,
            ticktext=TICK_NAMES,
            tickangle=0,
            title={"text": words},
            **hovered("tokens of context"),
        )
    spec["margin"] = {
        **spec["margin"],
        "t": spec["margin"]["t"] + 26,
        "r": 22,
        "b": foot(legend_rows=3),
    }
    seen: set[str] = set()
    data: list[Spec] = []
    for share, xaxis in ((chunk, "x"), (decodes, "x2")):
        total_ms = share.parts.total_ms()
        for each in operators(share.parts):
            data.append(_area(each, share, total_ms, xaxis, shown=each.name not in seen))
            seen.add(each.name)
    return {"data": data, "layout": spec}


def share_alt(
    chunk: AttentionShare,
    decodes: AttentionShare,
    deployment: Deployment,
    *,
    chunk_tokens: int,
    decode_tokens: int,
) -> str:
    """Return the shares' numbers for those who cannot see them."""
    told = []
    for name, share in (
        (f"chunk of {count(chunk_tokens, 'token')}", chunk),
        (f"{count(decode_tokens, 'decode')} alone", decodes),
    ):
        at = [int(np.argmin(abs(share.context_tokens - tick))) for tick in TOLD]
        each = ", ".join(
            f"{100 * share.attention[place]:.0f}% at {context:,}"
            for place, context in zip(at, TOLD, strict=True)
        )
        half = "never" if share.half_tokens is None else f"from {share.half_tokens:,} tokens on"
        told.append(f"{name}: {each}; over half {half}")
    return f"Attention's share of a step, {machine_line(deployment)}. {'. '.join(told)}."


def _area(
    each: Operator, share: AttentionShare, total_ms: Floats, xaxis: str, *, shown: bool
) -> Spec:
    pattern = {"fillpattern": {**each.pattern, "bgcolor": each.colour}} if each.pattern else {}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": each.name,
        "legendgroup": each.name,
        "showlegend": shown,
        "x": share.context_tokens.astype(np.int32),
        "y": (100 * each.duration_ms / total_ms).astype(np.float32),
        "xaxis": xaxis,
        "stackgroup": xaxis,
        "line": {"color": each.colour, "width": 1},
        "fillcolor": each.colour,
        **pattern,
        "hovertemplate": "%{y:.1f}%",
    }


def _notes(share: AttentionShare, xaxis: str, panel: int, name: str) -> list[Spec]:
    left, right = PANELS[panel]
    notes: list[Spec] = [
        {
            "text": f"<b>{name}</b>",
            "x": (left + right) / 2,
            "xref": "paper",
            "xanchor": "center",
            "y": 1,
            "yref": "paper",
            "yanchor": "bottom",
            "yshift": 4,
            "showarrow": False,
            "font": {"size": 13, "color": INK},
        }
    ]
    if share.half_tokens and share.half_tokens > LEAST_CONTEXT_TOKENS:
        at = math.log10(share.half_tokens)
        middle = (math.log10(LEAST_CONTEXT_TOKENS) + math.log10(MOST_CONTEXT_TOKENS)) / 2
        notes.append(
            {
                "text": f"half at {share.half_tokens:,}",
                "x": at,
                "xref": xaxis,
                "xanchor": "left" if at < middle else "right",
                "xshift": 5 if at < middle else -5,
                "y": 6,
                "yref": "y",
                "yanchor": "bottom",
                "showarrow": False,
                "bgcolor": PAPER,
                "borderpad": 2,
                "font": {"size": 12, "color": INK},
            }
        )
    return notes


def _halves(share: AttentionShare, xaxis: str) -> list[Spec]:
    """Draw the line of one half, and where attention passes it."""
    line = {"color": INK, "width": 1.5, "dash": "dot"}
    shapes: list[Spec] = []
    if share.half_tokens and share.half_tokens > LEAST_CONTEXT_TOKENS:
        at = share.half_tokens
        shapes.append(
            {"type": "line", "xref": xaxis, "x0": at, "x1": at, "yref": "y", "y0": 0, "y1": 100}
            | {"line": line}
        )
    shapes.append(
        {"type": "line", "xref": f"{xaxis} domain", "x0": 0, "x1": 1, "yref": "y"}
        | {"y0": 50, "y1": 50, "line": {**line, "color": MUTED}}
    )
    return shapes
