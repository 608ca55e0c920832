"""One order of a queue: who gets tokens when, and who waits for the long prompt's pass."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import plain_axis, projected, scene_layout
from s11.figures.theme import DECODE, PAPER, PREFILL, STALL, Spec
from s11.words import ms

Floats = NDArray[np.float64]

HEIGHT, WIDE_HEIGHT = 420, 460


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QueueRow:
    """One request: its prefill, its tokens, and its longest wait for one of them.

    wait_ms: (start, end), from its arrival or a token to its next token.
    """

    name: str
    prefill_left_ms: Floats  # (steps,)
    prefill_width_ms: Floats  # (steps,)
    tokens_ms: Floats  # (tokens,)
    wait_ms: tuple[float, float]

    @property
    def longest_ms(self) -> float:
        """How long it waits at most."""
        return self.wait_ms[1] - self.wait_ms[0]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class QueueInfo:
    """A queue in one order; the first row is the long prompt.

    pass_ms: how long the step takes that carries the long prompt.
    """

    order: str
    rows: tuple[QueueRow, ...]
    pass_ms: float
    target_ms: float
    end_ms: float
    caption: tuple[str, ...]

    @property
    def longest(self) -> QueueRow:
        """Who waits longest, the long prompt aside."""
        return max(self.rows[1:], key=lambda row: row.longest_ms)

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        return f"{self.order}: a wait of {ms(self.longest.longest_ms)}"


def queue_figure(info: QueueInfo) -> Spec:
    """Return the Plotly spec of the queue."""
    spec = scene_layout(
        title=info.title,
        caption=list(info.caption),
        meta={
            "figure": "learn-orders",
            "order": info.order,
            "longest_ms": info.longest.longest_ms,
            "pass_ms": info.pass_ms,
        },
        height=HEIGHT,
    )
    names = [row.name for row in info.rows]
    spec |= {
        "barmode": "overlay",
        "xaxis": plain_axis(range=[0, info.end_ms], title={"text": "time (ms)"}),
        "yaxis": plain_axis(
            range=[len(names) - 0.4, -0.6],
            tickvals=list(range(len(names))),
            ticktext=names,
            showgrid=False,
        ),
    }
    spec["margin"] = {**spec["margin"], "l": 86}
    return projected({"data": _traces(info), "layout": spec}, height=WIDE_HEIGHT)


def _traces(info: QueueInfo) -> list[Spec]:
    waits = [
        (place, row)
        for place, row in enumerate(info.rows)
        if place and row.longest_ms > info.target_ms
    ]
    tokens = [(place, at) for place, row in enumerate(info.rows) for at in row.tokens_ms.tolist()]
    prefill = [
        (place, left, width)
        for place, row in enumerate(info.rows)
        for left, width in zip(row.prefill_left_ms, row.prefill_width_ms, strict=True)
    ]
    return [
        {
            "type": "bar",
            "orientation": "h",
            "name": f"waits over {ms(info.target_ms)}",
            "base": [row.wait_ms[0] for _, row in waits],
            "x": [row.longest_ms for _, row in waits],
            "y": [place for place, _ in waits],
            "width": 0.66,
            "marker": {
                "color": "rgba(213,94,0,0.16)",
                "line": {"width": 0},
                "pattern": {"shape": "/", "fgcolor": STALL, "size": 8, "solidity": 0.12},
            },
            "hovertemplate": "waits %{x:,.1f} ms<extra></extra>",
        },
        {
            "type": "bar",
            "orientation": "h",
            "name": "its prompt is computed",
            "base": [left for _, left, _ in prefill],
            "x": [width for _, _, width in prefill],
            "y": [place for place, _, _ in prefill],
            "width": 0.66,
            "marker": {"color": PREFILL, "line": {"color": PAPER, "width": 1}},
            "hovertemplate": "its prompt: %{x:,.1f} ms<extra></extra>",
        },
        {
            "type": "scatter",
            "mode": "markers",
            "name": "token",
            "x": [at for _, at in tokens],
            "y": [place for place, _ in tokens],
            "marker": {"symbol": "line-ns", "size": 15, "line": {"color": DECODE, "width": 2.5}},
            "hovertemplate": "token at %{x:,.1f} ms<extra></extra>",
        },
    ]


def queue_alt(info: QueueInfo) -> str:
    """Return the queue's numbers for those who cannot see it."""
    rows = "; ".join(
        f"{row.name}: {len(row.tokens_ms)} tokens, longest wait {ms(row.longest_ms)}"
        for row in info.rows
    )
    return (
        f"Six requests over time. {info.title}. {' '.join(info.caption)}. The step with the long "
        f"prompt takes {ms(info.pass_ms)}. {rows}."
    )
