"""The timeline's lower row: the long prompts' chunks, and the users' streams under them.

Few and cheap marks: one bar trace for all chunks, one text trace for all words, and each kind
of line is one path, since every trace costs the browser some milliseconds at every change.
"""

from __future__ import annotations

import numpy as np

from s11.figures.theme import DECODE, GRID, INK, MUTED, PAPER, PREFILL, STALL, STALL_TEXT, Spec
from s11.figures.timeline_info import SHOWN_USERS, PromptRow, TimelineInfo
from s11.figures.timeline_marks import (
    LABEL_ROOM,
    MOST_TICKS,
    TICK_HALF,
    bars,
    label,
    merged,
    segments,
)
from s11.figures.timeline_pinned import pinned_rows, pinned_ticks, pinned_ttft
from s11.words import count, ms

FEW_TICKS = 120
NUMBER_ROOM = 0.045  # of the axis: two digits at 390 px
SHORT_WORDS_ROOM, LONG_WORDS_ROOM = 0.35, 0.85  # "16 chunks", "16 chunks of up to 512 tokens"
TTFT_DROP, FEWEST_ROWS = 0.85, 6
ON_PREFILL = "#1A1A1A"


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
        traces.append(bars([first] * users, [last - first] * users, rows.users, _BAND))
    if users and len(frozen.left):
        left, width = np.tile(frozen.left, users), np.tile(frozen.width, users)
        traces.append(bars(left, width, np.repeat(rows.users, len(frozen.left)), _FREEZE))
    begun = [
        (p, place) for p, place in zip(info.prompts, rows.prompts, strict=True) if len(p.chunk_left)
    ]
    if begun:
        drawn = [(*merged(p.chunk_left, p.chunk_width), place) for p, place in begun]
        places = [np.full(len(left), place) for left, _, place in drawn]
        left, width, y = (
            np.concatenate(parts)
            for parts in ([d[0] for d in drawn], [d[1] for d in drawn], places)
        )
        traces.append(bars(left, width, y, _CHUNK))
    sent = [
        (prompt.handed_over_from, (prompt.first_token or 0.0) - prompt.handed_over_from, place)
        for prompt, place in begun
        if prompt.handed_over_from is not None
    ]
    if sent:
        left, width, y = np.array(sent).T
        traces.append(bars(left, width, y, _TRAVEL))
    if info.pinned:
        traces += pinned_rows(info.pinned, prompt=rows.pinned_prompt, user=rows.pinned_user)
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
        *(pinned_ticks(info.pinned, rows.pinned_user, info.right_end) if info.pinned else []),
    ]


def stream_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    """Return the lower row's labels: each prompt's TTFT, and what froze."""
    return [
        *_ttft_labels(info, rows),
        *_travel_labels(info, rows),
        *_freeze_labels(info, rows),
        *(pinned_ttft(info.pinned, rows.pinned_prompt, info.right_end) if info.pinned else []),
    ]


_CHUNK: Spec = {
    "width": 0.8,
    "marker": {"color": PREFILL, "line": {"color": PAPER, "width": 1}},
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
            labels.append(label(f"<b>{text}</b>", middle, place, STALL_TEXT, seen_from=info.ends))
            continue
        span, side = first - prompt.arrival, {}
        if span > LABEL_ROOM * info.right_end:
            x = prompt.arrival + span / 2
        elif first < (1 - LABEL_ROOM) * info.right_end:
            x, side = first, {"xanchor": "left", "xshift": 10}
        else:
            x, side = prompt.arrival, {"xanchor": "right", "xshift": -8}
        text = f"TTFT {ms(prompt.ttft_ms)}"
        labels.append(label(text, x, place - TTFT_DROP, INK, seen_from=first) | side)
    return labels


def _travel_labels(info: TimelineInfo, rows: Rows) -> list[Spec]:
    return [
        label("KV travels", prompt.first_token, place, INK, seen_from=prompt.first_token)
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
    told = label(f"<b>{text}</b>", (left + right) / 2, middle, STALL_TEXT, seen_from=right)
    return [told | {"bordercolor": GRID, "borderpad": 3}]
