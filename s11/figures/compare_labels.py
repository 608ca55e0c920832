"""What is written into the comparison: engines, chunk numbers, stalls, waits."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

import numpy as np

from s11.figures.compare_info import CompareInfo, stall_words
from s11.figures.compare_places import KNOBS, KNOBS_LINE, NOTE, ROW, BandPlaces, placed_rows
from s11.figures.compare_rows import Pass, RequestRow, Span
from s11.figures.compare_traces import cached_width_ms
from s11.figures.theme import INK, MUTED, PAPER, STALL_TEXT, Spec
from s11.words import count, ms

LEFT_MARGIN = 92
LETTER = 0.0225  # of the axis, of a label at 390 px
LEAST_STALL, LEAST_FREE = 0.1, 0.9  # of the axis; of a label's length
LEAST_DIGIT = 0.7  # of the room that a number would like
BOTH_SEEN = 1.5  # a bar this much longer than the label upon it is seen too
QUEUE_SEEN = 0.06  # of the axis: of a queue, beside the label upon it
NOTE_ROOM, END_GAP = 0.03, 0.012
MOST_TEXTS = 400


@dataclass(frozen=True, slots=True)
class Density:
    """How much room letters need, as shares of the axis, on one kind of screen.

    rgb: of the letters. A page's style rules find them by it, and show one density at a time.
    """

    rgb: str
    digit: float
    letter: float
    half_star: float
    shown: bool  # where there are no style rules, as in a picture that was saved


WIDE = Density("26, 26, 26", digit=0.0133, letter=0.0078, half_star=0.0087, shown=True)
NARROW = Density("26, 26, 27", digit=0.037, letter=0.021, half_star=0.0245, shown=False)
NARROW_PX = 900
CHUNK_CSS = (
    f"<style>@media (max-width:{NARROW_PX}px){{"
    f'.js-plotly-plot .textpoint text[style*="fill: rgb({WIDE.rgb})"]{{display:none}}'
    f'.js-plotly-plot .textpoint text[style*="fill: rgb({NARROW.rgb})"]'
    "{fill-opacity:1 !important}}</style>"
)
"""Shows the letters of the density that the screen has."""


def titles(info: CompareInfo, where: list[BandPlaces]) -> list[Spec]:
    """Name each engine, its longest stall, and under them its knobs."""
    found = []
    for band, place in zip(info.bands, where, strict=True):
        stall = band.longest_stall_ms
        over = stall is not None and stall > info.itl_target_ms
        colour, sign = (STALL_TEXT, "▲ ") if over else (MUTED, "")
        style = f"color:{colour};font-size:12px"
        told = f'<span style="{style}">{sign}{stall_words(band)}</span>'
        name = f"<b>{escape(band.label, quote=False)}</b>"
        found.append(_head(f"{name}  {told}", place.title, INK, 14))
        head = _head("<br>".join(band.knobs), place.knobs, MUTED, 12)
        found.append(head | {"height": KNOBS - 2 + KNOBS_LINE * (len(band.knobs) - 1)})
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
    """Return the chunks' numbers where there is room for them, a trace for each density."""
    traces = []
    for density in (WIDE, NARROW):
        found = [
            (x / unit_ms, y, text)
            for row, y in placed_rows(info, where)
            for part in row.passes
            for x, text in chunk_words(
                part,
                axis_ms=info.end_ms,
                density=density,
                starred=row.first_token_ms == float(part.left_ms[-1] + part.width_ms[-1]),
                covered_ms=max(
                    [
                        cached_width_ms(hit, info.end_ms)
                        for hit in row.cached
                        if hit.at_ms == float(part.left_ms[0])
                    ],
                    default=0.0,
                ),
            )
        ]
        if found:
            traces.append(_letters(found[:MOST_TEXTS], density))
    return traces


def _letters(found: list[tuple[float, float, str]], density: Density) -> Spec:
    x, y, text = (list(column) for column in zip(*found, strict=True))
    return {
        "type": "scatter",
        "mode": "text",
        "showlegend": False,
        "x": x,
        "y": y,
        "text": text,
        "textfont": {"size": 11, "color": f"rgba({density.rgb},{1 if density.shown else 0})"},
        "hoverinfo": "skip",
    }


def chunk_words(
    part: Pass, *, axis_ms: float, density: Density, starred: bool, covered_ms: float = 0.0
) -> list[tuple[float, str]]:
    """Number a pass's chunks; where they are too narrow, say how many they are.

    A star covers the end of the last chunk: its number stands left of it. A mark of the prefix
    cache covers the beginning of the first.
    """
    star_ms = density.half_star * axis_ms if starred else 0.0
    start_ms = float(part.left_ms[0]) + covered_ms
    free_ms = float(part.left_ms[-1] + part.width_ms[-1]) - start_ms - star_ms
    middle_ms = start_ms + free_ms / 2

    def fits(text: str) -> bool:
        return free_ms >= density.letter * len(text) * axis_ms

    digit_ms = density.digit * axis_ms
    if part.chunks == 1:
        text = count(part.tokens, "token")
        if fits(text):
            return [(middle_ms, text)]
        return [(middle_ms, "1")] if free_ms >= LEAST_DIGIT * digit_ms else []
    room_ms = digit_ms * len(str(part.chunks))
    if not part.merged and float(np.median(part.width_ms)) >= room_ms:
        numbered = []
        for number, (left, width) in enumerate(
            zip(part.left_ms.tolist(), part.width_ms.tolist(), strict=True), start=1
        ):
            own_ms = digit_ms * len(str(number))
            hidden_ms = covered_ms if number == 1 else 0.0
            free = width - hidden_ms - (star_ms if number == part.chunks else 0.0)
            if width - hidden_ms >= LEAST_DIGIT * own_ms:
                middle_ms = left + hidden_ms + max(free, LEAST_DIGIT * own_ms) / 2
                numbered.append((middle_ms, str(number)))
        return numbered
    for text in (count(part.chunks, "chunk"), f"×{part.chunks:,}"):
        if fits(text):
            return [(middle_ms, text)]
    return []


@dataclass(frozen=True, slots=True)
class RowLabel:
    """A label in a row: its text, where it stands, and whether it begins there."""

    text: str
    at_ms: float
    begins: bool = False


def stall_label(info: CompareInfo, row: RequestRow) -> RowLabel | None:
    """Return how long a row's longest stall is, where it covers no chunk, star or short bar.

    Within the stall, where it is free; else upon a long enough bar; else after the row's end.
    """
    longest = max(row.stalls, key=lambda span: span.end_ms - span.start_ms, default=None)
    if longest is None or longest.end_ms - longest.start_ms < LEAST_STALL * info.end_ms:
        return None
    text = ms(longest.end_ms - longest.start_ms)
    room_ms = LETTER * len(text) * info.end_ms
    free = _free_part(row, longest, NARROW.half_star * info.end_ms)
    if free.end_ms - free.start_ms >= LEAST_FREE * room_ms:
        return RowLabel(text, (free.start_ms + free.end_ms) / 2)
    for span in row.preempted:
        long = span.end_ms - span.start_ms >= BOTH_SEEN * room_ms
        if long and longest.start_ms <= span.start_ms < longest.end_ms:
            return RowLabel(text, (span.start_ms + span.end_ms) / 2)
    return _after(info, row, f"stall {text}")


def _after(info: CompareInfo, row: RequestRow, text: str) -> RowLabel | None:
    """Return a label behind a row's last mark, None where it has no room there."""
    at_ms = row.last_ms + END_GAP * info.end_ms
    if row.note or at_ms + LETTER * len(text) * info.end_ms > (1 + END_GAP) * info.end_ms:
        return None
    return RowLabel(text, at_ms, begins=True)


def row_labels(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Name in each row its longest stall, a long wait in the queue, and a cached prefix."""
    labels = []
    for row, y in placed_rows(info, where):
        stall, queue = stall_label(info, row), ttft_label(info, row)
        cached = cached_label(info, row)
        if stall and cached and stall.begins:
            both = _after(info, row, f"{stall.text} · {cached.text}")
            stall, cached = both or stall, None
        for label, colour in ((stall, STALL_TEXT), (queue, INK), (cached, MUTED)):
            if label:
                text = escape(label.text, quote=False)
                text = f"<b>{text}</b>" if colour == STALL_TEXT else text
                spec = _label(text, label.at_ms / unit_ms, y, colour)
                labels.append(spec | ({"xanchor": "left"} if label.begins else {}))
    return labels


def ttft_label(info: CompareInfo, row: RequestRow) -> RowLabel | None:
    """Return the TTFT of who queued long, upon the line of its wait, which is seen too."""
    if row.first_token_ms is None:
        return None
    for span in row.queued:
        text = f"TTFT {ms(row.first_token_ms - span.start_ms)}"
        if span.end_ms - span.start_ms >= (LETTER * len(text) + QUEUE_SEEN) * info.end_ms:
            return RowLabel(text, (span.start_ms + span.end_ms) / 2)
    return None


def cached_label(info: CompareInfo, row: RequestRow) -> RowLabel | None:
    """Return how many tokens a row found in the prefix cache, behind its end."""
    tokens = sum([hit.tokens for hit in row.cached])
    return _after(info, row, f"{tokens:,} cached") if tokens else None


def _free_part(row: RequestRow, stall: Span, star_ms: float) -> Span:
    """Return the longest part of a stall that no chunk, star or other bar covers."""
    chunks = [
        (left, left + width)
        for part in row.passes
        for left, width in zip(part.left_ms.tolist(), part.width_ms.tolist(), strict=True)
    ]
    star = (
        [] if row.first_token_ms is None else [(row.first_token_ms, row.first_token_ms + star_ms)]
    )
    bars = sorted(
        (left, right)
        for left, right in (*chunks, *row.preempted, *row.hand_over, *star)
        if left < stall.end_ms and right > stall.start_ms
    )
    parts, at = [], stall.start_ms
    for left, right in bars:
        parts.append(Span(at, max(at, left)))
        at = max(at, right)
    parts.append(Span(at, max(at, stall.end_ms)))
    return max(parts, key=lambda span: span.end_ms - span.start_ms)


def notes(info: CompareInfo, where: list[BandPlaces], unit_ms: float) -> list[Spec]:
    """Say of whom is never served, why: under its marks, where it has more than a queue."""
    labels = []
    for row, y in placed_rows(info, where):
        if row.note is None:
            continue
        start_ms = row.queued[0].start_ms if row.queued else 0.0
        least_ms = max(0.0, info.end_ms * (1 - LETTER * len(row.note)))
        at = min(start_ms + NOTE_ROOM * info.end_ms, least_ms) / unit_ms
        below = (ROW + NOTE) / 2 - 2 if row.note_below else 0.0
        label = _label(f"<b>{escape(row.note, quote=False)}</b>", at, y + below, STALL_TEXT)
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
