"""The step timeline and the users' streams, one figure with two rows on one axis."""

from __future__ import annotations

from s11.figures.theme import Spec, axis, bottom_legend, layout
from s11.figures.timeline_info import Axis, TimelineInfo
from s11.figures.timeline_steps import step_labels, step_lines, step_traces
from s11.figures.timeline_streams import Rows, stream_labels, stream_lines, stream_traces
from s11.metrics import Metrics
from s11.words import ms

STEPS_DOMAIN = (0.48, 1.0)
STREAMS_DOMAIN = (0.0, 0.43)
HEIGHT = 590


def timeline_figure(info: TimelineInfo, *, metrics: Metrics) -> Spec:
    """Return the Plotly spec of the timeline.

    Up to 300 steps are bars; more are stepped areas, and more than 1,000 are drawn by the
    longest step of every few, so that no spike is lost.
    """
    rows = Rows(info)
    traces = [
        *step_traces(info),
        *stream_traces(info, rows),
    ]
    spec = layout(
        title=info.title,
        caption=info.caption,
        meta={
            "figure": "timeline",
            "longest_stall_ms": metrics.longest_stall_ms,
            "ttft_ms": metrics.ttft_ms,
            "step_count": metrics.step_count,
            "axis": str(info.axis),
            "plays_until": info.ends,
        },
        height=HEIGHT,
    )
    spec |= {
        "uirevision": f"{info.axis} {info.scale_end:g} {info.top_ms:g}",  # keeps a zoom
        "barmode": "stack",
        "bargap": 0,
        "hovermode": "x unified",
        "showlegend": True,
        "legend": bottom_legend(),
        "xaxis": axis(
            range=[0, info.right_end],
            anchor="y2",
            tickformat=",",
            unifiedhovertitle={
                "text": "at %{x:.1f} ms" if info.axis is Axis.TIME else "after %{x} steps"
            },
        ),
        "yaxis": axis(
            range=[0, info.top_ms],
            domain=STEPS_DOMAIN,
            title={"text": "step duration (ms)"},
            rangemode="tozero",
            nticks=6,
            tickformat=",",
        ),
        "yaxis2": axis(
            range=[rows.bottom, 1.0],
            domain=STREAMS_DOMAIN,
            tickvals=rows.places,
            ticktext=rows.labels,
            showgrid=False,
            fixedrange=True,
        ),
        "shapes": [
            *step_lines(info),
            *stream_lines(info, rows),
        ],
        "annotations": [
            *step_labels(info),
            *stream_labels(info, rows),
        ],
    }
    spec["margin"] = {**spec["margin"], "l": 86, "b": 76}
    return {"data": traces, "layout": spec}


def timeline_alt(info: TimelineInfo, metrics: Metrics) -> str:
    """Return the timeline's numbers for those who cannot see it."""
    over = f"{metrics.steps_over_target:,} of {metrics.step_count:,} steps"
    return (
        f"Step timeline: {info.title}. {' '.join(info.caption)}. "
        f"Longest stall {ms(metrics.longest_stall_ms)}, TTFT {ms(metrics.ttft_ms)}, {over} over "
        f"the target of {ms(info.itl_target_ms)}."
    )
