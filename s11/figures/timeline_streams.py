"""The timeline's lower row: the long prompts' chunks, and the users' streams under them.

Few and cheap marks: one bar trace for all chunks, one text trace for all words, and each kind
of line is one path, since every trace costs the browser some milliseconds at every change.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from s11.figures.theme import DECODE, GRID, INK, MUTED, PAPER, PREFILL, STALL, STALL_TEXT, Spec
from s11.figures.timeline_info import SHOWN_USERS, PromptRow, TimelineInfo
from s11.words import count, ms

MOST_CHUNK_BARS = 300
MOST_TICKS, FEW_TICKS = 240, 120
NUMBER_ROOM = 0.045  # of the axis: two digits at 390 px
LABEL_ROOM = 0.4  # of the axis: "TTFT 189 ms" at 390 px
SHORT_WORDS_ROOM, LONG_WORDS_ROOM = 0.35, 0.85  # "16 chunks", "16 chunks of up to 512 tokens"
TICK_WIDTH = 0.004  # of the axis
TICK_HALF, TTFT_DROP, FEWEST_ROWS = 0.34, 0.85, 6
ON_PREFILL = "#1A1A1A"

Point = tuple[float, float]


class Rows:
    """Where each row stands, from the top down, and what it is called."""

    def __init__(self, info: TimelineInfo) -> None:
        self.places: list[float] = []
        self.labels: list[str] = []
        self.prompts: list[float] = []
        self.users: list[float] = []
        self.pinned_prompt: float | None = None
        self.pinned_user: float | None = None
        at = 0.0
        for number in range(len(info.prompts)):
            self.prompts.append(at)
            self._add(at, "long prompt" if len(info.prompts) == 1 else f"prompt {number + 1}")
            at -= 1.8
        if info.folded_prompts:
            self._add(at, f"+ {info.folded_prompts:,} more")
            at -= 1.0
        for number in range(min(info.users, SHOWN_USERS)):
            self.users.append(at)
            self._add(at, f"user {number + 1}")
            at -= 1.0
        if info.users > SHOWN_USERS:
            self._add(at, f"+ {info.users - SHOWN_USERS:,} alike")
            at -= 1.0
        pinned = info.pinned
        if pinned and len(pinned.chunk_left):
            self.pinned_prompt = at
            self._add(at, "A: prompt")
            at -= 1.0
        if pinned and len(pinned.token_marks):
            self.pinned_user = at
            self._add(at, "A: user")
            at -= 1.0
        self.bottom = min(at + 0.3, -FEWEST_ROWS)

    def _add(self, place: float, label: str) -> None:
        self.places.append(place)
        self.labels.append(label)


def stream_traces(info: TimelineInfo, rows: Rows) -> list[Spec]:
    """Return the lower row's traces."""
    frozen, users = info.freezes, len(rows.users)
    traces = []
    if users and info.tokens_a_stream > MOST_TICKS:
        first, last = float(info.token_marks[0]), float(info.token_marks[-1])
        traces.append(_bars([first] * users, [last - first] * users, rows.users, _BAND))
    if users and len(frozen.left):
        left, width = np.tile(frozen.left, users), np.tile(frozen.width, users)
        traces.append(_bars(left, width, np.repeat(rows.users, len(frozen.left)), _FREEZE))
    begun = [
        (p, place) for p, place in zip(info.prompts, rows.prompts, strict=True) if len(p.chunk_left)
    ]
    if begun:
        drawn = [(*_merged(p.chunk_left, p.chunk_width), place) for p, place in begun]
        places = [np.full(len(left), place) for left, _, place in drawn]
        left, width, y = (
            np.concatenate(parts)
            for parts in ([d[0] for d in drawn], [d[1] for d in drawn], places)
        )
        traces.append(_bars(left, width, y, _CHUNK))
    sent = [
        (prompt.handed_over_from, (prompt.first_token or 0.0) - prompt.handed_over_from, place)
        for prompt, place in begun
        if prompt.handed_over_from is not None
    ]
    if sent:
        left, width, y = np.array(sent).T
        traces.append(_bars(left, width, y, _TRAVEL))
    pinned = info.pinned
    if pinned and rows.pinned_prompt is not None:
        left, width = _merged(pinned.chunk_left, pinned.chunk_width)
        traces.append(_bars(left, width, np.full(len(left), rows.pinned_prompt), _PINNED))
    if pinned and rows.pinned_user is not None and len(pinned.token_marks) > MOST_TICKS:
        first, last = float(pinned.token_marks[0]), float(pinned.token_marks[-1])
        traces.append(_bars([first], [last - first], [rows.pinned_user], _PINNED))
    words = _words(info, rows)
    if words:
        traces.append(_text(words))
    return traces


def stream_lines(info: TimelineInfo, rows: Rows) -> list[Spec]:
    """Return the lower row's lines: token ticks, TTFT spans, endless waits."""
    spans, waits = [], []
    for prompt, place in zip(info.prompts, rows.prompts, strict=True):
        if prompt.first_token is None:
            waits.append(((prompt.arrival, place), (info.right_end, place)))
            continue
        drop = place - TTFT_DROP
        spans.append(((prompt.arrival, drop), (prompt.first_token, drop)))
        spans.append(((prompt.arrival, drop - 0.3), (prompt.arrival, drop + 0.3)))
    ticks = []
    if info.tokens_a_stream <= MOST_TICKS:
        for place in rows.users:
            for at in info.token_marks.tolist():
                ticks.append(((at, place - TICK_HALF), (at, place + TICK_HALF)))
    tick_width = 2.5 if info.tokens_a_stream <= FEW_TICKS else 1.0
    return [
        *segments(ticks, yref="y2", line={"color": DECODE, "width": tick_width}),
        *segments(spans, yref="y2", line={"color": INK, "width": 1.5}),
        *segments(waits, yref="y2", line={"color": STALL, "width": 2.5, "dash": "dot"}),
        *segments(_pinned_ticks(info, rows), yref="y2", line={"color": INK, "width": 1.2}),
    ]


def _pinned_ticks(info: TimelineInfo, rows: Rows) -> list[tuple[Point, ...]]:
    """Return A's tokens: hollow, where the streams' own are filled."""
    pinned, place = info.pinned, rows.pinned_user
    if pinned is None or place is None or len(pinned.token_marks) > MOST_TICKS:
        return []
    half = TICK_WIDTH * info.right_end / 2
    low, high = place - TICK_HALF, place + TICK_HALF
    return [
        ((at - half, low), (at - half, high), (at + half, high), (at + half, low), (at - half, low))
        for at in pinned.token_marks.tolist()
    ]


def stream_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    """Return the lower row's labels: each prompt's TTFT, and what froze."""
    return [
        *_ttft_labels(info, rows),
        *_travel_labels(info, rows),
        *_freeze_labels(info, rows),
        *_pinned_labels(info, rows),
    ]


def segments(lines: Iterable[tuple[Point, ...]], *, yref: str, line: Spec) -> list[Spec]:
    """Return one path of several broken lines in data coordinates, none where there are none."""
    path = "".join("M" + "L".join(f"{x:.8g},{y:.8g}" for x, y in points) for points in lines)
    if not path:
        return []
    return [{"type": "path", "path": path, "xref": "x", "yref": yref, "line": line}]


_CHUNK: Spec = {
    "width": 0.8,
    "marker": {"color": PREFILL, "line": {"color": PAPER, "width": 1}},
}
_PINNED: Spec = {
    "width": 0.6,
    "marker": {"color": PAPER, "line": {"color": INK, "width": 1.2}},
}
_TRAVEL: Spec = {
    "width": 0.5,
    "marker": {
        "color": PAPER,
        "line": {"color": MUTED, "width": 1},
        "pattern": {"shape": "x", "fgcolor": MUTED, "size": 6, "solidity": 0.2},
    },
}
_FREEZE: Spec = {
    "width": 0.5,
    "marker": {
        "color": "rgba(213,94,0,0.16)",
        "line": {"width": 0},
        "pattern": {"shape": "/", "fgcolor": STALL, "size": 8, "solidity": 0.12},
    },
}
_BAND: Spec = {
    "width": 2 * TICK_HALF,
    "marker": {
        "color": "rgba(0,114,178,0.1)",
        "line": {"color": DECODE, "width": 1},
        "pattern": {
            "shape": "|",
            "fillmode": "overlay",
            "fgcolor": DECODE,
            "size": 5,
            "solidity": 0.3,
        },
    },
}


def _bars(left: Any, width: Any, place: Any, look: Spec) -> Spec:
    return {
        "type": "bar",
        "orientation": "h",
        "showlegend": False,
        "base": left,
        "x": width,
        "y": place,
        "hoverinfo": "skip",
        "xaxis": "x",
        "yaxis": "y2",
        **look,
    }


def _merged(left: np.ndarray, width: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the chunks' left edges and widths, all as one where they are very many."""
    if len(left) <= MOST_CHUNK_BARS:
        return left, width
    return left[:1], (left + width)[-1:] - left[:1]


def _words(info: TimelineInfo, rows: Rows) -> list[tuple[float, float, str, str, int]]:
    """Return (x, y, text, colour, size) of the chunk numbers and first-token stars."""
    words: list[tuple[float, float, str, str, int]] = []
    for prompt, place in zip(info.prompts, rows.prompts, strict=True):
        if len(prompt.chunk_left):
            words += [(x, place, text, ON_PREFILL, 12) for x, text in _chunk_words(info, prompt)]
        if prompt.first_token is not None:
            words.append((prompt.first_token, place - TTFT_DROP, "★", INK, 16))
    return words


def _chunk_words(info: TimelineInfo, prompt: PromptRow) -> list[tuple[float, str]]:
    """Number the chunks where each has room for its number; else say how many they are."""
    left, width, chunks = prompt.chunk_left, prompt.chunk_width, len(prompt.chunk_left)
    if chunks > 1 and float(width.max()) >= NUMBER_ROOM * info.right_end:
        middles = (left + width / 2).tolist()
        return [(middle, str(number)) for number, middle in enumerate(middles, start=1)]
    largest, span = int(prompt.chunk_tokens.max()), float(left[-1] + width[-1] - left[0])
    if span < SHORT_WORDS_ROOM * info.right_end:
        return []
    text = "the whole prompt" if chunks == 1 else f"{chunks:,} chunks"
    if chunks > 1 and span >= LONG_WORDS_ROOM * info.right_end:
        up_to = "up to " if int(prompt.chunk_tokens.min()) < largest else ""
        text += f" of {up_to}{count(largest, 'token')}"
    return [(float(left[0] + left[-1] + width[-1]) / 2, f"<b>{text}</b>")]


def _text(words: list[tuple[float, float, str, str, int]]) -> Spec:
    x, y, text, colours, sizes = (list(column) for column in zip(*words, strict=True))
    return {
        "type": "scatter",
        "mode": "text",
        "showlegend": False,
        "x": x,
        "y": y,
        "text": text,
        "textfont": {"size": sizes, "color": colours},
        "cliponaxis": False,
        "hoverinfo": "skip",
        "xaxis": "x",
        "yaxis": "y2",
    }


def _ttft_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    """Name each prompt's TTFT on its span, or beside it where the span is short."""
    labels = []
    for prompt, place in zip(info.prompts, rows.prompts, strict=True):
        first = prompt.first_token
        if first is None:
            text = "no first token yet"
            if info.never_scheduled:
                text = "no first token: waits for ever"
            middle = info.right_end / 2
            labels.append(_label(f"<b>{text}</b>", middle, place, STALL_TEXT, seen_from=info.ends))
            continue
        span, side = first - prompt.arrival, {}
        if span > LABEL_ROOM * info.right_end:
            x = prompt.arrival + span / 2
        elif first < (1 - LABEL_ROOM) * info.right_end:
            x, side = first, {"xanchor": "left", "xshift": 10}
        else:
            x, side = prompt.arrival, {"xanchor": "right", "xshift": -8}
        text = f"TTFT {ms(prompt.ttft_ms)}"
        labels.append(_label(text, x, place - TTFT_DROP, INK, seen_from=first) | side)
    return labels


def _pinned_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    pinned, place = info.pinned, rows.pinned_prompt
    if pinned is None or place is None or pinned.first_token is None:
        return []
    start, first = float(pinned.chunk_left[0]), pinned.first_token
    x, side = first, {"xanchor": "left", "xshift": 8}
    if first > (1 - LABEL_ROOM) * info.right_end:
        x, side = (start + first) / 2, {}
    return [_label(f"TTFT {ms(pinned.ttft_ms)}", x, place, INK, seen_from=first) | side]


def _travel_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    return [
        _label("KV travels", prompt.first_token, place, INK, seen_from=prompt.first_token)
        | {"xanchor": "left", "xshift": 8}
        for prompt, place in zip(info.prompts, rows.prompts, strict=True)
        if prompt.handed_over_from is not None and prompt.first_token is not None
    ]


def _freeze_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    frozen = info.freezes
    if not rows.users or not len(frozen.left):
        return []
    longest = ms(float(frozen.gap_ms.max()))
    left, right = float(frozen.left[0]), float((frozen.left + frozen.width)[-1])
    text = f"{len(frozen.left):,} freezes, up to {longest}"
    if len(frozen.left) == 1:
        wide = info.users > 1 and right - left > 0.6 * info.right_end
        text = f"{'every stream ' if wide else ''}frozen {longest}"
    middle = float(np.mean(rows.users))
    label = _label(f"<b>{text}</b>", (left + right) / 2, middle, STALL_TEXT, seen_from=right)
    return [label | {"bordercolor": GRID, "borderpad": 3}]


def _label(text: str, x: float, y: float, colour: str, *, seen_from: float) -> Spec:
    """Return a label; while the timeline plays, it is shown from `seen_from` on."""
    return {
        "name": f"from {seen_from:.8g}",
        "text": text,
        "x": x,
        "y": y,
        "xref": "x",
        "yref": "y2",
        "showarrow": False,
        "font": {"size": 13 if text.startswith("<b>") else 12, "color": colour},
        "bgcolor": PAPER,
        "borderpad": 1,
    }
