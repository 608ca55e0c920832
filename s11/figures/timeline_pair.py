"""Two states of a scenario in one picture: one timeline above the other, on the same axes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from s11.figures.theme import INK, MUTED, Spec, axis, bottom_legend, layout
from s11.figures.timeline_info import Axis, TimelineInfo
from s11.figures.timeline_steps import step_labels, step_lines, step_traces
from s11.figures.timeline_streams import Rows, stream_labels, stream_lines, stream_traces
from s11.metrics import Metrics
from s11.words import ms, times

SPARE = 1.04  # of the longer run: room for the last mark
HEIGHT = 720
STEPS_SHARE, STREAMS_SHARE, HEAD_SHARE = 0.185, 0.225, 0.075  # of the plot, for each state
FOOT_PX, NARROW_FOOT_PX = 66, 110  # a legend in one row, in four
NOTABLE = 1.05  # a factor below is no finding


@dataclass(frozen=True, slots=True, eq=False)
class PairSide:
    """One state: its short name, its timeline, and its figures."""

    name: str
    info: TimelineInfo
    metrics: Metrics


@dataclass(frozen=True, slots=True, eq=False)
class PairInfo:
    """Everything that the picture draws: two timelines with one length and one height."""

    title: str
    caption: list[str]  # what both states share
    upper: PairSide
    lower: PairSide
    upper_words: tuple[str, ...]  # what is the upper's own, then its figures
    lower_words: tuple[str, ...]


def pair_info(upper: PairSide, lower: PairSide) -> PairInfo:
    """Return what to draw of two states; both timelines must run by the same axis.

    Raises:
        ValueError: one runs by time, the other by step.
    """
    infos = (upper.info, lower.info)
    if infos[0].axis is not infos[1].axis:
        raise ValueError(f"axis: {infos[0].axis} above, {infos[1].axis} below; must be the same")
    end = max(_end(info) for info in infos)
    top_ms = max(info.top_ms for info in infos)
    sides = [
        replace(side, info=replace(side.info, right_end=end, top_ms=top_ms, ghost=None))
        for side in (upper, lower)
    ]
    shared = [line for line in infos[0].caption if line in infos[1].caption]
    own = [
        (*[line for line in side.info.caption if line not in shared], figures_words(side.metrics))
        for side in sides
    ]
    return PairInfo(
        title=_title(upper, lower),
        caption=shared,
        upper=sides[0],
        lower=sides[1],
        upper_words=own[0],
        lower_words=own[1],
    )


def figures_words(metrics: Metrics) -> str:
    """Return a state's headline figures as one line."""
    ttft = "never" if metrics.ttft_ms is None else ms(metrics.ttft_ms)
    return (
        f"{_stall_words(metrics)} · TTFT {ttft} · "
        f"{metrics.steps_over_target:,} of {metrics.step_count:,} steps over target · "
        f"{metrics.decode_tokens_per_s or 0:,.0f} tok/s"
    )


def pair_figure(info: PairInfo) -> Spec:
    """Return the Plotly spec: for each state its steps and its streams, the upper one first."""
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "timeline-pair",
            "names": [info.upper.name, info.lower.name],
            "longest_stall_ms": [
                info.upper.metrics.longest_stall_ms,
                info.lower.metrics.longest_stall_ms,
            ],
            "axis": str(info.upper.info.axis),
        },
        height=HEIGHT,
    )
    half = HEAD_SHARE + STEPS_SHARE + STREAMS_SHARE
    upper = _drawn(info.upper, info.upper_words, ("y", "y2"), 1.0)
    lower = _drawn(info.lower, info.lower_words, ("y3", "y4"), half)
    named = {trace.get("name") for trace in upper["data"]}
    for trace in lower["data"]:
        if trace.get("name") in named:
            trace["showlegend"] = False
    by_time = info.upper.info.axis is Axis.TIME
    spec |= {
        "barmode": "stack",
        "bargap": 0,
        "hovermode": "x unified",
        "showlegend": True,
        "legend": bottom_legend(),
        "xaxis": axis(
            range=[0, info.upper.info.right_end],
            anchor="y4",
            tickformat=",",
            unifiedhovertitle={"text": "at %{x:.1f} ms" if by_time else "after %{x} steps"},
        ),
        **upper["axes"],
        **lower["axes"],
        "shapes": [*upper["shapes"], *lower["shapes"]],
    }
    # The name of the axis that all share stands once, below.
    labels = [
        *(note for note in upper["labels"] if note["yref"] != "paper"),
        *lower["labels"],
    ]
    spec["annotations"] = [upper["short_head"], lower["short_head"], *labels]
    spec["margin"] = {**spec["margin"], "l": 86, "b": NARROW_FOOT_PX}
    spec["meta"]["wide"] = {
        "annotations": [upper["head"], lower["head"], *labels],
        "margin": {**spec["margin"], "b": FOOT_PX},
        "title": spec["title"],
    }
    names = f"<b>{info.upper.name}, {info.lower.name.lower()}</b>"
    shorter = spec["title"]["text"].replace(f"<b>{info.title}</b>", names)
    spec["title"] = {**spec["title"], "text": shorter}
    return {"data": [*upper["data"], *lower["data"]], "layout": spec}


def pair_alt(info: PairInfo) -> str:
    """Return the picture's numbers for those who cannot see it."""
    told = ". ".join(
        f"{side.name}: {', '.join(words)}"
        for side, words in ((info.upper, info.upper_words), (info.lower, info.lower_words))
    )
    return f"Two timelines on one axis: {info.title}. {' '.join(info.caption)}. {told}."


def pair_columns(info: PairInfo) -> Mapping[str, Sequence[object]]:
    """Return the figures of both states as columns: a row for each figure."""
    return figure_columns({side.name: side.metrics for side in (info.upper, info.lower)})


def figure_columns(runs: Mapping[str, Metrics]) -> Mapping[str, Sequence[object]]:
    """Return the figures of runs, by what each is called, as columns: a row for each figure."""
    names = {
        "longest_stall_ms": "longest stall (ms)",
        "ttft_ms": "TTFT (ms)",
        "steps_over_target": "steps over target",
        "step_count": "steps",
        "decode_tokens_per_s": "decode throughput (tokens/s)",
        "makespan_ms": "makespan (ms)",
    }
    return {
        "figure": list(names.values()),
        **{called: [getattr(run, name) for name in names] for called, run in runs.items()},
    }


def _stall_words(metrics: Metrics) -> str:
    return f"longest stall {ms(metrics.longest_stall_ms)}"


def _end(info: TimelineInfo) -> float:
    """Return where the last mark of a timeline stands, with room; its axis' end without marks."""
    steps = info.steps
    if not len(steps.left) or info.never_scheduled:
        return info.right_end
    return SPARE * float(steps.left[-1] + steps.width[-1])


def _title(upper: PairSide, lower: PairSide) -> str:
    this, other = upper.metrics.longest_stall_ms, lower.metrics.longest_stall_ms
    if not this or not other:
        return f"{upper.name} above, {lower.name.lower()} below"
    told = f"Longest stall {ms(this)} above, {ms(other)} below"
    larger, smaller = max(this, other), min(this, other)
    return f"{told}: {times(larger / smaller)}" if larger > NOTABLE * smaller else told


def _drawn(side: PairSide, words: Sequence[str], names: tuple[str, str], top: float) -> Spec:
    """Return one state's traces, lines, labels, heads and vertical axes, these called `names`."""
    info, rows = side.info, Rows(side.info)
    renamed = dict(zip(("y", "y2"), names, strict=True))

    def moved(mark: Spec, key: str) -> Spec:
        return {**mark, key: renamed.get(mark[key], mark[key])}

    steps_top = top - HEAD_SHARE
    streams_bottom = steps_top - STEPS_SHARE - STREAMS_SHARE
    axes = {
        "y": axis(
            range=[0, info.top_ms],
            domain=[steps_top - STEPS_SHARE, steps_top],
            title={"text": "step (ms)"},
            nticks=4,
            tickformat=",",
        ),
        "y2": axis(
            range=[rows.bottom, 1.0],
            domain=[max(0.0, streams_bottom), streams_bottom + 0.92 * STREAMS_SHARE],
            tickvals=rows.places,
            ticktext=rows.labels,
            showgrid=False,
            fixedrange=True,
        ),
    }
    return {
        "data": [
            moved(trace, "yaxis") for trace in (*step_traces(info), *stream_traces(info, rows))
        ],
        "shapes": [moved(line, "yref") for line in (*step_lines(info), *stream_lines(info, rows))],
        "labels": [
            moved(label, "yref") for label in (*step_labels(info), *stream_labels(info, rows))
        ],
        "head": _head(side.name, words, f"{names[0]} domain"),
        "short_head": _head(side.name, [_stall_words(side.metrics)], f"{names[0]} domain"),
        "axes": {renamed[name].replace("y", "yaxis"): spec for name, spec in axes.items()},
    }


def _head(name: str, words: Sequence[str], yref: str) -> Spec:
    told = " · ".join(words)
    return {
        "text": f'<b>{name}</b>  <span style="font-size:12px;color:{MUTED}">{told}</span>',
        "x": 0,
        "xref": "paper",
        "xanchor": "left",
        "xshift": -74,
        "y": 1,
        "yref": yref,
        "yanchor": "bottom",
        "yshift": 6,
        "showarrow": False,
        "font": {"size": 15, "color": INK},
    }
