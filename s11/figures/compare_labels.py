"""What is written into the comparison: engines, chunk numbers, stalls, waits."""

from __future__ import annotations

from html import escape

import numpy as np

from s11.figures.compare_info import CompareInfo, stall_words
from s11.figures.compare_places import KNOBS, BandPlaces, placed_rows
from s11.figures.compare_rows import Pass, RequestRow, Span
from s11.figures.theme import INK, MUTED, PAPER, STALL_TEXT, Spec
from s11.figures.timeline_streams import ON_PREFILL
from s11.words import count, ms

LEFT_MARGIN = 92
DIGIT_ROOM = 0.024  # of the axis, for a digit at 390 px
WORDS_ROOM = 0.19  # "32 chunks" at 390 px
STAR_ROOM = 0.025
STALL_ROOM = 0.1  # "594 ms" at 390 px
TTFT_ROOM = 0.28  # "TTFT 2,153 ms" at 390 px
NOTE_ROOM = 0.03
MOST_TEXTS = 400


def titles(info: CompareInfo, where: list[BandPlaces]) -> list[Spec]:
    """Name each engine, its longest stall, and under them its knobs."""
    found = []
    for band, place in zip(info.bands, where, strict=True):
        stall = band.longest_stall_ms
        over = stall is not None and stall > info.itl_target_ms
        colour, sign = (STALL_TEXT, "▲ ") if over else (MUTED, "")
        style = f"color:{colour};font-size:12px"
        told = f'<span style="{style}">{sign}{stall_words(info, band)}</span>'
        name = f"<b>{escape(band.label, quote=False)}</b>"
        found.append(_head(f"{name}  {told}", place.title, INK, 14))
        found.append(_head(band.knobs, place.knobs, MUTED, 12))
    return found


def _head(text: str, y: float, colour: str, size: int) -> Spec:
    return {
        "text": text,
        "xref": "paper",
        "yref": "y",
        "x": 0,
        "y": y,
        "xanchor": "left",
        "yanchor": "middle",
        "xshift": 12 - LEFT_MARGIN,
        "showarrow": False,
        "align": "left",
        "font": {"size": size, "color": colour},
        "bgcolor": PAPER,
        "borderpad": 0,
        "height": KNOBS - 2,
    }


def words(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Return the chunks' numbers, where there is room for them, one trace of letters."""
    found: list[tuple[float, float, str]] = []
    for row, y in placed_rows(info, where):
        taken = _stall_label_at(info, row)
        for part in row.passes:
            found += [
                (x / unit_ms, y, text)
                for x, text in _chunk_words(info, part)
                if taken is None or abs(x - taken) > 0.6 * STALL_ROOM * info.end_ms
            ]
    if not found:
        return []
    x, y_, text = (list(column) for column in zip(*found[:MOST_TEXTS], strict=True))
    return [
        {
            "type": "scatter",
            "mode": "text",
            "showlegend": False,
            "x": x,
            "y": y_,
            "text": text,
            "textfont": {"size": 11, "color": ON_PREFILL},
            "hoverinfo": "skip",
        }
    ]


def _chunk_words(info: CompareInfo, part: Pass) -> list[tuple[float, str]]:
    """Number a pass's chunks; where they are too narrow, say how many they are."""
    left, width = part.left_ms, part.width_ms
    start_ms, span_ms = float(left[0]), float(left[-1] + width[-1] - left[0])
    star_ms = STAR_ROOM * info.end_ms  # the first token's star covers the end of the last chunk
    if part.chunks == 1:
        text = count(part.tokens, "token")
        free_ms = span_ms - star_ms
        text = text if free_ms >= WORDS_ROOM * len(text) / 9 * info.end_ms else "1"
        narrow = free_ms < DIGIT_ROOM * info.end_ms
        return [] if narrow else [(start_ms + free_ms / 2, text)]
    room = DIGIT_ROOM * len(str(part.chunks)) * info.end_ms
    if not part.merged and float(np.median(width)) >= room:
        free = width.copy()
        free[-1] -= star_ms
        numbered = zip((left + free / 2).tolist(), free.tolist(), strict=True)
        return [
            (middle, str(number))
            for number, (middle, wide) in enumerate(numbered, start=1)
            if wide >= room
        ]
    if span_ms >= WORDS_ROOM * info.end_ms:
        return [(start_ms + span_ms / 2, f"{part.chunks:,} chunks")]
    return []


def stall_labels(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Name the longest wait of each row in ms, where its bar has room."""
    labels = []
    for row, y in placed_rows(info, where):
        at_ms, longest = _stall_label_at(info, row), _longest(row)
        if at_ms is not None and longest is not None:
            text = f"<b>{ms(longest.end_ms - longest.start_ms)}</b>"
            labels.append(_label(text, at_ms / unit_ms, y, STALL_TEXT))
    return labels


def _longest(row: RequestRow) -> Span | None:
    return max(row.stalls, key=lambda span: span.end_ms - span.start_ms, default=None)


def _stall_label_at(info: CompareInfo, row: RequestRow) -> float | None:
    """Return where a row's longest wait is named: beside its chunks, else upon them."""
    longest = _longest(row)
    if longest is None or longest.end_ms - longest.start_ms < STALL_ROOM * info.end_ms:
        return None
    free = _free_part(row, longest)
    if free.end_ms - free.start_ms < STALL_ROOM * info.end_ms:
        free = longest
    return (free.start_ms + free.end_ms) / 2


def ttft_labels(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Name the TTFT of who queued long, on the line of its wait."""
    labels = []
    for row, y in placed_rows(info, where):
        for span in row.queued if row.first_token_ms is not None else ():
            if span.end_ms - span.start_ms >= TTFT_ROOM * info.end_ms:
                text = f"TTFT {ms((row.first_token_ms or 0.0) - span.start_ms)}"
                middle = (span.start_ms + span.end_ms) / 2
                labels.append(_label(text, middle / unit_ms, y, INK))
    return labels


def _free_part(row: RequestRow, stall: Span) -> Span:
    """Return the longest part of a stall that no chunk covers."""
    chunks = sorted(
        (left, left + width)
        for part in row.passes
        for left, width in zip(part.left_ms.tolist(), part.width_ms.tolist(), strict=True)
        if left < stall.end_ms and left + width > stall.start_ms
    )
    parts, at = [], stall.start_ms
    for left, right in chunks:
        parts.append(Span(at, max(at, left)))
        at = max(at, right)
    parts.append(Span(at, max(at, stall.end_ms)))
    return max(parts, key=lambda span: span.end_ms - span.start_ms)


def notes(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Say of whom is never served, why."""
    labels = []
    for row, y in placed_rows(info, where):
        if row.note:
            start_ms = row.queued[0].start_ms if row.queued else 0.0
            at = min(start_ms, info.end_ms / 2) + NOTE_ROOM * info.end_ms
            label = _label(f"<b>{row.note}</b>", at / unit_ms, y, STALL_TEXT)
            labels.append(label | {"xanchor": "left"})
    return labels


def _label(text: str, x: float, y: float, colour: str) -> Spec:
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "x",
        "yref": "y",
        "showarrow": False,
        "font": {"size": 11, "color": colour},
        "bgcolor": PAPER,
        "borderpad": 0,
        "height": 14,
    }


def axis_label(info: CompareInfo) -> Spec:
    """Name the axis in the column of the row names, level with its ticks."""
    return {
        "text": "time (s)" if info.in_seconds else "time (ms)",
        "xref": "paper",
        "yref": "paper",
        "x": 0,
        "y": 0,
        "xanchor": "right",
        "yanchor": "top",
        "xshift": -12,
        "yshift": -2,
        "showarrow": False,
        "font": {"size": 12, "color": MUTED},
    }
