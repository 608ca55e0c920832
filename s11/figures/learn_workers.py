"""One worker that does both, above two that share the work: their steps on one clock."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.figures.learn_look import label, plain_axis, projected, scene_layout
from s11.figures.theme import DECODE, HAND_OVER, INK, PAPER, PREFILL, Spec
from s11.words import ms

Floats = NDArray[np.float64]

HEIGHT, WIDE_HEIGHT = 400, 440
ROWS = ("one worker", "prefill worker", "network", "decode worker")


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorkerSteps:
    """The steps of one worker, those with a slice of the prompt apart from the others."""

    start_ms: Floats  # (steps,)
    duration_ms: Floats  # (steps,)
    prefill: NDArray[np.bool_]  # (steps,)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class WorkersInfo:
    """The chapter's load on one worker in chunks, and on two.

    travel_ms: when the KV sets out, and when it has arrived.
    """

    one: WorkerSteps
    prefill: WorkerSteps
    decode: WorkerSteps
    travel_ms: tuple[float, float]
    one_stall_ms: float
    one_ttft_ms: float
    two_stall_ms: float
    two_ttft_ms: float
    caption: tuple[str, ...]

    @property
    def title(self) -> str:
        """The finding, in about 40 characters."""
        return f"Longest gap: {ms(self.one_stall_ms)} → {ms(self.two_stall_ms)}"


def workers_figure(info: WorkersInfo) -> Spec:
    """Return the Plotly spec of the workers' steps."""
    spec = scene_layout(
        title=info.title,
        caption=list(info.caption),
        meta={
            "figure": "learn-workers",
            "one_stall_ms": info.one_stall_ms,
            "two_stall_ms": info.two_stall_ms,
            "two_ttft_ms": info.two_ttft_ms,
        },
        height=HEIGHT,
    )
    workers = (info.one, info.prefill, info.decode)
    end_ms = 1.04 * max(float((each.start_ms + each.duration_ms)[-1]) for each in workers)
    spec |= {
        "barmode": "overlay",
        "xaxis": plain_axis(range=[0, end_ms], title={"text": "time (ms)"}),
        "yaxis": plain_axis(
            range=[len(ROWS) - 0.4, -0.6],
            tickvals=list(range(len(ROWS))),
            ticktext=list(ROWS),
            showgrid=False,
        ),
        "annotations": [
            label(
                f"KV travels {ms(info.travel_ms[1] - info.travel_ms[0])}",
                x=info.travel_ms[0],
                y=2,
                xanchor="right",
                xshift=-6,
            )
        ],
    }
    spec["margin"] = {**spec["margin"], "l": 104}
    return projected({"data": _traces(info), "layout": spec}, height=WIDE_HEIGHT)


def _traces(info: WorkersInfo) -> list[Spec]:
    rows = ((0, info.one), (1, info.prefill), (3, info.decode))
    pattern = {"shape": "/", "fgcolor": PAPER, "size": 5, "solidity": 0.25, "fillmode": "overlay"}
    kinds: list[tuple[str, bool, Spec]] = [
        ("step with a slice of the prompt", True, {"color": PREFILL}),
        ("decodes alone", False, {"color": DECODE, "pattern": pattern}),
    ]
    traces = []
    for name, prefill, look in kinds:
        chosen = [(row, each, each.prefill == prefill) for row, each in rows]
        traces.append(
            _bars(
                name,
                np.concatenate([each.start_ms[mine] for _, each, mine in chosen]),
                np.concatenate([each.duration_ms[mine] for _, each, mine in chosen]),
                np.concatenate([np.full(int(mine.sum()), row) for row, _, mine in chosen]),
                look,
            )
        )
    left, right = info.travel_ms
    cross = {"shape": "x", "fgcolor": INK, "size": 6, "solidity": 0.2, "fillmode": "overlay"}
    way = {"color": HAND_OVER, "pattern": cross}
    return [*traces, _bars("KV on its way", [left], [right - left], [2], way)]


def _bars(name: str, left: object, width: object, row: object, look: Spec) -> Spec:
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "base": left,
        "x": width,
        "y": row,
        "width": 0.62,
        "marker": {**look, "line": {"color": PAPER, "width": 1}},
        "hovertemplate": f"{name}: %{{x:,.1f}} ms<extra></extra>",
    }


def workers_alt(info: WorkersInfo) -> str:
    """Return the workers' numbers for those who cannot see them."""
    return (
        f"Steps over time, on one worker and on two. {info.title}. {' '.join(info.caption)}. First "
        f"token after {ms(info.one_ttft_ms)} on one, {ms(info.two_ttft_ms)} on two, the KV's way "
        f"of {ms(info.travel_ms[1] - info.travel_ms[0])} included."
    )
