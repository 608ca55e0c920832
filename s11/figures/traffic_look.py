"""What the pictures of traffic share: how runs look, what they are of, and time axes."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from html import escape

from s11.experiment import Experiment
from s11.figures.chunk_size_info import short_caption
from s11.figures.theme import (
    DECODE,
    IDLE,
    INK,
    MUTED,
    PREEMPTED,
    PREFILL,
    STALL,
    Spec,
    bottom_legend,
    layout,
)
from s11.metrics import Metrics, measure
from s11.request_metrics import RequestMetrics, request_metrics
from s11.results import Result
from s11.words import count

SECONDS_FROM_MS = 10_000.0
LONGEST_NAME, LONGEST_NAME_OF_TWO = 48, 18  # letters in a row of a phone's legend, in half of one
LEGEND_ROW, BUTTONS_ROW = 19, 30  # px; a phone shows the chart's buttons under its legend
MOST_LARGE_LETTERS, SMALLER_TITLE = 37, 16  # of a title at 390 px


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TrafficRun:
    """One run of the traffic: what it is called, and what it gave."""

    label: str
    experiment: Experiment
    result: Result
    metrics: Metrics
    per_request: RequestMetrics

    @classmethod
    def of(cls, label: str, experiment: Experiment, result: Result) -> TrafficRun:
        """Return a run with its figures."""
        return cls(
            label=label,
            experiment=experiment,
            result=result,
            metrics=measure(
                result,
                itl_target_ms=experiment.itl_target_ms,
                ttft_target_ms=experiment.ttft_target_ms,
            ),
            per_request=request_metrics(result),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Look:
    """How one of several lines is told from the others, in colour and in grey."""

    colour: str
    dash: str
    symbol: str
    fill: str

    def line(self, width: float = 2.0) -> Spec:
        """Return the line's look."""
        return {"color": self.colour, "width": width, "dash": self.dash}


RUN_LOOKS = (
    Look(colour=STALL, dash="5px,3px", symbol="diamond", fill="rgba(213,94,0,0.22)"),
    Look(colour=DECODE, dash="solid", symbol="circle", fill="rgba(0,114,178,0.22)"),
)
"""Of the first run and of the second: dashed on solid, so that both are seen where they agree."""

LINE_LOOKS = tuple(
    [
        Look(colour=colour, dash=dash, symbol=symbol, fill="rgba(0,0,0,0)")
        for colour, dash, symbol in (
            (DECODE, "solid", "circle"),
            (STALL, "dash", "square"),
            (IDLE, "dot", "diamond"),
            (PREEMPTED, "dashdot", "triangle-up"),
            (PREFILL, "longdash", "star-square"),
            (INK, "longdashdot", "hexagon"),
            (MUTED, "2px,6px", "pentagon"),
        )
    ]
)
"""Of lines of a family, in their order; after the last they begin anew."""


def run_names(runs: Sequence[TrafficRun]) -> list[str]:
    """Return the names of the runs: A and B with their labels, or the only one's label."""
    if len(runs) == 1:
        return [runs[0].label]
    return [f"{letter}: {run.label}" for letter, run in zip("AB", runs, strict=True)]


def short_names(runs: Sequence[TrafficRun]) -> list[str]:
    """Return what the runs are called beside their numbers: A and B, or nothing for one."""
    return ["A", "B"][: len(runs)] if len(runs) > 1 else [""] * len(runs)


def traffic_caption(runs: Sequence[TrafficRun]) -> list[str]:
    """Return what a picture of these runs is of, in lines that fit a phone."""
    if not runs:
        return []
    names = run_names(runs) if len(runs) > 1 else [f"{runs[0].label}, simulated by s11"]
    joined = " · ".join(names)
    experiment = runs[0].experiment
    requests = len(experiment.workload.requests)
    parts = [count(requests, "request")]
    if experiment.workload.streaming_users:
        parts.append(count(experiment.workload.streaming_users, "streaming user"))
    formulas = list(dict.fromkeys([run.experiment.cost.formula() for run in runs]))
    loads = [f"{' beside '.join(parts)}, simulated by s11" if len(runs) > 1 else parts[0]]
    lines = [joined] if len(joined) <= 60 else names
    return [short_caption(line) for line in (*lines, *loads, *formulas)]


def legend_rows(names: Sequence[str]) -> int:
    """Return how many rows a legend of these names has on a phone: its columns are alike."""
    longest = max([len(name) for name in names], default=0)
    columns = 2 if longest <= LONGEST_NAME_OF_TWO else 1
    return max(1, -(-len(names) // columns))


def legend_name(name: str) -> str:
    """Return a name that a phone's legend can show whole, safe where Plotly reads HTML."""
    shown = name if len(name) <= LONGEST_NAME else f"{name[: LONGEST_NAME - 1]}…"
    return escape(shown, quote=False).replace("%{", "% {")


def head(*, title: str, caption: list[str], meta: Spec) -> Spec:
    """Return the layout that a picture of traffic starts from: its title fits a phone."""
    spec = layout(
        title=escape(title, quote=False),
        caption=[escape(line, quote=False) for line in caption],
        meta=meta,
        height=0,
    )
    if len(title) > MOST_LARGE_LETTERS:
        spec["title"]["font"]["size"] = SMALLER_TITLE
    return spec


def foot(names: Sequence[str], *, top: float, plot: float, axis_room: int) -> Spec:
    """Return height, lower margin and legend: the legend below the axis, clear of every mark.

    Args:
        names: that the legend shows; none: no legend.
        top: px above the plot.
        plot: px of the plot.
        axis_room: px below it for the axis' marks and title.
    """
    bottom = axis_room + LEGEND_ROW * legend_rows(names) * bool(names) + BUTTONS_ROW
    height = top + plot + bottom
    return {
        "height": height,
        "margin": {"t": top, "b": bottom, "l": 58, "r": 16},
        "showlegend": bool(names),
        "legend": {
            **bottom_legend(),
            "y": (bottom - axis_room) / height,
            "yanchor": "top",
        },
    }


def time_unit_ms(end_ms: float) -> float:
    """Return the unit of a time axis that ends there, in ms: a second, or one ms."""
    return 1000.0 if end_ms >= SECONDS_FROM_MS else 1.0


def check_runs(runs: Sequence[TrafficRun]) -> None:
    """Refuse what no picture can show: none, or more than two.

    Raises:
        ValueError: no run, or more than two.
    """
    if not 1 <= len(runs) <= len(RUN_LOOKS):
        raise ValueError(f"runs: {len(runs)} is not a number from 1 to {len(RUN_LOOKS)}")
