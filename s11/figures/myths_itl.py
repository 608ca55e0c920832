"""“Chunking improves the mean ITL”: the gaps of every stream, whole and chunked, and the means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from s11.catalog import Deployment
from s11.figures.myths_smaller import STREAMS_WORDS
from s11.figures.piggyback_looks import SIMULATED, machine_line, nice_above
from s11.figures.theme import DECODE, INK, PAPER, PREFILL, STALL, Spec, axis, bottom_legend, layout
from s11.myths_itl import TOKENS_EACH, Gaps, GapsBoth
from s11.words import count, ms, times

HEIGHT = 430


def itl_title(both: GapsBoth) -> str:
    """Return the finding: by how much the mean moved, and the longest gap."""
    whole, cut = both.whole.metrics, both.chunked.metrics
    mean, longest = change(whole.itl_mean_ms, cut.itl_mean_ms), _longest_change(both)
    return f"Mean {mean}, longest gap {longest}"


def change(before: float | None, after: float | None) -> str:
    """Return a change in percent as people read it: −2.5%, +12%, 0%."""
    if not before or after is None:
        return "unknown"
    percent = 100 * (after / before - 1)
    if abs(percent) < 0.05:
        return "0%"
    text = f"{abs(percent):.1f}" if abs(percent) < 10 else f"{abs(percent):.0f}"
    return f"{'−' if percent < 0 else '+'}{text}%"


def _longest_change(both: GapsBoth) -> str:
    return change(both.whole.metrics.longest_stall_ms, both.chunked.metrics.longest_stall_ms)


def itl_figure(both: GapsBoth, machine: Deployment) -> Spec:
    """Return the Plotly spec: the gap before each token of a stream, two ways."""
    top = nice_above(1.12 * float(max(both.whole.gap_ms.max(), both.chunked.gap_ms.max())))
    spec = layout(
        title=itl_title(both),
        caption=[
            machine_line(machine),
            STREAMS_WORDS.format(
                prompt=count(both.prompt_tokens, "token"), users=both.streaming_users
            ),
            SIMULATED,
        ],
        meta={
            "figure": "myth-mean",
            "chunk_tokens": both.chunk_tokens,
            "mean_ms": [both.whole.metrics.itl_mean_ms, both.chunked.metrics.itl_mean_ms],
            "longest_ms": [
                both.whole.metrics.longest_stall_ms,
                both.chunked.metrics.longest_stall_ms,
            ],
        },
        height=HEIGHT,
    )
    spec |= {
        "showlegend": True,
        "legend": bottom_legend(),
        "hovermode": "x unified",
        "xaxis": axis(
            range=[0.5, TOKENS_EACH + 0.5],
            title={"text": "token of each stream"},
            nticks=6,
            unifiedhovertitle={"text": "token %{x}"},
        ),
        "yaxis": axis(range=[0, top], nticks=6, title={"text": "gap before it (ms)"}),
        "annotations": _notes(both, top),
    }
    spec["margin"] = {**spec["margin"], "b": 104}
    tokens = np.arange(1, TOKENS_EACH + 1, dtype=np.int16)
    return {
        "data": [
            _gaps(both.chunked, tokens, f"chunks of {both.chunk_tokens:,}", PREFILL, filled=True),
            _gaps(both.whole, tokens, "one piece", STALL, filled=False),
            _mean(both.chunked, "mean, chunks", DECODE, "dash"),
            _mean(both.whole, "mean, one piece", INK, "dot"),
        ],
        "layout": spec,
    }


def itl_words(both: GapsBoth) -> str:
    """Return what is true, with the figure's own numbers."""
    whole, cut = both.whole.metrics, both.chunked.metrics
    assert whole.itl_mean_ms is not None
    assert cut.itl_mean_ms is not None
    assert whole.longest_stall_ms is not None
    assert cut.longest_stall_ms is not None
    moved = change(whole.itl_mean_ms, cut.itl_mean_ms)
    moved = "does not move" if moved == "0%" else f"moves by {moved}"
    factor = whole.longest_stall_ms / cut.longest_stall_ms
    shorter = f", {times(factor)} shorter" if factor >= 1.05 else ""
    slowed = both.chunked.prefill_steps
    return (
        f"Over {TOKENS_EACH} tokens of each stream the mean gap {moved}: {ms(whole.itl_mean_ms)} "
        f"with the prompt in one piece, {ms(cut.itl_mean_ms)} in chunks. The streams wait for the "
        f"same prefill, so the area is much the same; its shape is not. The longest gap is "
        f"{ms(cut.longest_stall_ms)} instead of {ms(whole.longest_stall_ms)}{shorter}, and "
        f"{count(slowed, 'token')} of each stream {'is' if slowed == 1 else 'are'} slowed instead "
        "of 1. Look at the longest gap and at P99, not at the mean."
    )


def itl_alt(both: GapsBoth, machine: Deployment) -> str:
    """Return the picture's numbers for those who cannot see it."""
    told = "; ".join(
        f"{name}: mean {ms(gaps.metrics.itl_mean_ms)}, longest "
        f"{ms(gaps.metrics.longest_stall_ms)}, {count(gaps.prefill_steps, 'slowed token')}"
        for name, gaps in (
            ("one piece", both.whole),
            (f"chunks of {count(both.chunk_tokens, 'token')}", both.chunked),
        )
    )
    return (
        f"The gap before each of {TOKENS_EACH} tokens of {both.streaming_users} streams, "
        f"{machine_line(machine)}. {told}."
    )


def itl_columns(both: GapsBoth) -> Mapping[str, Sequence[Any]]:
    """Return the gap before each token, two ways."""
    return {
        "token": list(range(1, TOKENS_EACH + 1)),
        "one_piece_gap_ms": both.whole.gap_ms.round(4).tolist(),
        "chunked_gap_ms": both.chunked.gap_ms.round(4).tolist(),
    }


def _bare(value: float | None) -> str:
    return ms(value).removesuffix(" ms")


def _gaps(gaps: Gaps, tokens: Any, name: str, colour: str, *, filled: bool) -> Spec:
    fill: Spec = {}
    if filled:
        pattern = {"shape": "/", "size": 7, "solidity": 0.25, "fgcolor": INK, "bgcolor": colour}
        fill = {"fill": "tozeroy", "fillcolor": colour, "fillpattern": pattern}
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": tokens,
        "y": gaps.gap_ms.astype(np.float32),
        "line": {"color": colour, "width": 2.5, "shape": "hvh"},
        "hovertemplate": "%{y:,.1f} ms",
        **fill,
    }


def _mean(gaps: Gaps, name: str, colour: str, dash: str) -> Spec:
    mean_ms = gaps.metrics.itl_mean_ms
    return {
        "type": "scatter",
        "mode": "lines",
        "name": name,
        "x": [1, TOKENS_EACH],
        "y": [mean_ms, mean_ms],
        "line": {"color": colour, "width": 2.5, "dash": dash},
        "hoverinfo": "skip",
    }


def _notes(both: GapsBoth, top: float) -> list[Spec]:
    """Write each way's longest gap beside it, and the means above their lines."""
    first = int(np.argmax(both.whole.gap_ms)) + 1
    last = first + both.chunked.prefill_steps
    whole, cut = both.whole.metrics, both.chunked.metrics
    notes = [
        _note(first, whole.longest_stall_ms, f"one piece: {ms(whole.longest_stall_ms)}", top),
        {
            **_note(1, top, f"means: {_bare(whole.itl_mean_ms)} and {ms(cut.itl_mean_ms)}", top),
            "x": 1,
            "xref": "x domain",
            "xanchor": "right",
            "xshift": -4,
            "yanchor": "top",
        },
    ]
    if both.chunked.prefill_steps > 1 and last < 0.6 * TOKENS_EACH:
        text = f"chunks: {ms(cut.longest_stall_ms)}"
        notes.append(_note(last, cut.longest_stall_ms, text, top) | {"yanchor": "bottom"})
    return notes


def _note(x: int, y: float | None, text: str, top: float) -> Spec:
    return {
        "text": text,
        "x": x,
        "xref": "x",
        "xanchor": "left",
        "xshift": 6,
        "y": min(float(y or 0.0), 0.96 * top),
        "yref": "y",
        "yanchor": "middle",
        "showarrow": False,
        "bgcolor": PAPER,
        "borderpad": 1,
        "font": {"size": 13, "color": INK},
    }
