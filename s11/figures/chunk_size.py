"""Chunk size against stalls, TTFT and prefill throughput, on one machine."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from s11.figures.chunk_size_info import ChunkCurve, headline, log_axis, octaves
from s11.figures.theme import (
    DECODE,
    IDLE,
    INK,
    PREEMPTED,
    PREFILL,
    STALL,
    STALL_TEXT,
    Spec,
    axis,
    bottom_legend,
    layout,
)
from s11.sweeps import SweepPoint
from s11.words import count

HEIGHT, HEAD_PX = 668, 8
DOMAINS = ((0.53, 0.97), (0.28, 0.45), (0.0, 0.2))
HEADS = ("Streams: longest stall and P99 ITL (ms)", "TTFT of the prompt (ms)", "Prefill tokens/s")


def chunk_figure(curve: ChunkCurve) -> Spec:
    """Return the Plotly spec of a sweep: three panels over the same chunk sizes."""
    stopped = f"stopped after {len(curve.tried)} of {curve.planned} sizes"
    spec = layout(
        title=headline(curve),
        caption=[
            curve.machine,
            curve.simulated,
            curve.calibration,
            curve.load,
            *([stopped] if curve.partial else []),
        ],
        meta={
            "figure": "chunk-size",
            "largest_chunk_tokens": curve.largest,
            "knee_tokens": curve.balanced.chunk_tokens if curve.balanced else None,
            "target_ms": curve.target_ms,
            "sizes": [point.chunk_tokens for point in curve.points],
            "partial": curve.partial,
        },
        height=HEIGHT,
    )
    points = curve.points
    sizes = [tried.chunk_tokens for tried in curve.tried] or [64]
    last = max(curve.last_tokens, *sizes)
    marks, words = octaves(min(sizes), last, most=8)
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "x unified",
        "xaxis": axis(
            type="log",
            range=[math.log10(min(sizes) / 1.15), math.log10(last * 1.15)],
            tickvals=marks,
            ticktext=words,
            anchor="y3",
            title={"text": x_title(curve)},
            hoverformat=",d",
        ),
        "shapes": _shapes(curve),
        "annotations": _notes(curve),
    }
    waits = [value for p in points for value in (p.longest_stall_ms, p.itl_p99_ms) if value]
    ttfts = [p.ttft_ms for p in points if p.ttft_ms]
    most = max([p.prefill_tokens_per_s or 0.0 for p in points], default=1.0)
    axes: list[dict[str, Any]] = [
        log_axis([*waits, curve.target_ms]),
        log_axis(ttfts, most=4),
        {"range": [0, 1.08 * most or 1.0], "nticks": 4, "tickformat": "~s"},
    ]
    for place, (ends, changes) in enumerate(zip(DOMAINS, axes, strict=True)):
        name = f"yaxis{place + 1 if place else ''}"
        spec[name] = axis(domain=list(ends), fixedrange=True, **changes)
    spec["margin"] = {**spec["margin"], "t": spec["margin"]["t"] + HEAD_PX, "b": 100, "l": 58}
    return {"data": _traces(points), "layout": spec}


def x_title(curve: ChunkCurve) -> str:
    """Return the chunk size axis' title: what the engine calls it."""
    if curve.policy == "sglang":
        return "--chunked-prefill-size (tokens)"
    return "chunk size (tokens)"


def _traces(points: tuple[SweepPoint, ...]) -> list[Spec]:
    x = np.array([point.chunk_tokens for point in points], np.int32)

    def trace(attribute: str, name: str, y: str, **look: Any) -> Spec:
        values = [getattr(point, attribute) for point in points]
        return {
            "type": "scatter",
            "mode": "lines+markers",
            "name": name,
            "x": x,
            "y": np.array([math.nan if v is None else v for v in values], np.float32),
            "xaxis": "x",
            "yaxis": y,
            **look,
        }

    def look(colour: str, symbol: str, dash: str, size: int) -> Spec:
        return {
            "line": {"color": colour, "width": 2.5, "dash": dash},
            "marker": {"symbol": symbol, "size": size, "color": colour},
        }

    ms, rate = "%{y:,.1f} ms", "%{y:,.0f} tokens/s"
    return [
        trace("longest_stall_ms", "longest stall", "y", hovertemplate=ms,
              **look(STALL, "circle", "solid", 7)),
        trace("itl_p99_ms", "P99 ITL", "y", hovertemplate=ms,
              **look(DECODE, "diamond-open", "dot", 12) | {"mode": "markers"}),
        trace("ttft_ms", "TTFT", "y2", hovertemplate=ms,
              **look(PREEMPTED, "triangle-up", "dash", 8)),
        trace("prefill_tokens_per_s", "prefill tokens/s", "y3", hovertemplate=rate,
              **look(PREFILL, "square", "solid", 7)),
    ]  # fmt: skip


def _shapes(curve: ChunkCurve) -> list[Spec]:
    """Return the target's line and, in each panel, the region within it and the knee's line."""
    target = {"color": STALL_TEXT, "width": 2, "dash": "dash"}
    shapes: list[Spec] = [
        {
            "type": "line",
            "xref": "paper",
            "yref": "y",
            "x0": 0,
            "x1": 1,
            "y0": curve.target_ms,
            "y1": curve.target_ms,
            "line": target,
        }
    ]
    for y in ("y", "y2", "y3"):
        within: Spec = {"layer": "below", "xref": "x", "yref": f"{y} domain", "y0": 0, "y1": 1}
        if curve.largest is not None:
            edge = min(curve.largest, curve.last_tokens)
            fill = {"line": {"width": 0}, "fillcolor": IDLE, "opacity": 0.13}
            shapes.append({**within, "type": "rect", "x0": 1, "x1": edge, **fill})
            line: Spec = {"color": IDLE, "width": 2}
            shapes.append({**within, "type": "line", "x0": edge, "x1": edge, "line": line})
        if curve.balanced:
            at = curve.balanced.chunk_tokens
            line = {"color": INK, "width": 1.5, "dash": "dot"}
            shapes.append({**within, "type": "line", "x0": at, "x1": at, "line": line})
    return shapes


def _notes(curve: ChunkCurve) -> list[Spec]:
    notes: list[Spec] = [
        {
            "text": f"<b>{head}</b>",
            "x": 0,
            "xref": "paper",
            "xanchor": "left",
            "y": top,
            "yref": "paper",
            "yanchor": "bottom",
            "showarrow": False,
            "font": {"size": 12, "color": INK},
        }
        for head, (_, top) in zip(HEADS, DOMAINS, strict=True)
    ]
    if not curve.points:
        return notes
    first = curve.points[0].chunk_tokens
    span = math.log(max(curve.last_tokens / first, 1.01))
    near = curve.points[0].longest_stall_ms or 0.0
    above = near <= curve.target_ms  # the curve begins below the line: the words go above it
    notes.append(
        {
            "text": f"target {curve.target_ms:g} ms",
            "x": 0.01,
            "xref": "paper",
            "xanchor": "left",
            "y": math.log10(curve.target_ms),
            "yref": "y",
            "yanchor": "bottom" if above else "top",
            "showarrow": False,
            "font": {"size": 12, "color": STALL_TEXT},
        }
    )

    def beside(tokens: int, text: str, *, top: bool) -> Spec:
        left = math.log(max(tokens / first, 1.0)) / span > 0.62
        return {
            "text": text,
            "x": math.log10(tokens),
            "xref": "x",
            "xanchor": "right" if left else "left",
            "xshift": -5 if left else 5,
            "y": 1 if top else 0,
            "yref": "y domain",
            "yanchor": "top" if top else "bottom",
            "showarrow": False,
            "align": "right" if left else "left",
            "font": {"size": 12, "color": INK},
        }

    if curve.balanced:
        knee_at = curve.balanced.chunk_tokens
        notes.append(beside(knee_at, f"knee: {knee_at:,}", top=True))
    if curve.largest is not None:
        edge = min(curve.largest, curve.last_tokens)
        text = f"up to {count(edge, 'token')}<br>within {curve.target_ms:g} ms"
        notes.append(beside(edge, text, top=False))
    return notes
