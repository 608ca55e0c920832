"""The simulator page's panels: figures, timeline, sentence, downloads."""

from __future__ import annotations

from typing import Literal

import streamlit as st

from s11 import exports
from s11.experiment import Experiment
from s11.explain import Explanation, Verdict, count, explain, ms, trade_off
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import timeline_info
from s11.metrics import Metrics
from s11.sweeps import SweepPoint, longest_prompt_tokens
from s11.ui.frame import PICTURE_FORMATS, chart
from s11.ui.runs import MAX_STEPS, Run, run
from s11.ui.simulator_controls import View


def panels(experiment: Experiment, view: View) -> None:
    """Show what the experiment gives."""
    this, whole = run(experiment), run(experiment.chunking_off())
    explanation = explain(experiment, this.result, this.metrics, whole=whole.metrics)
    _metrics(this.metrics, whole.metrics, compare=experiment.policy == "chunked")
    info = timeline_info(
        experiment,
        this.result,
        explanation,
        whole=whole.result,
        axis=view.axis,
        zoom_on_target=view.zoom_on_target,
    )
    spec = timeline_figure(info, metrics=this.metrics)
    chart(spec, key="timeline", alt=timeline_alt(info, this.metrics), filename="s11-timeline")
    _sentence(experiment, explanation)
    _take_away(experiment, this, spec)


def _metrics(metrics: Metrics, whole: Metrics, *, compare: bool) -> None:
    places = st.container(key="pair_figures").columns(4)

    def figure(
        place: int,
        label: str,
        value: str,
        change: str | None,
        *,
        more_is: Literal["good", "bad"],
    ) -> None:
        colour: Literal["normal", "inverse"] = "normal" if more_is == "good" else "inverse"
        places[place].metric(
            label,
            value,
            delta=(change or "as with chunking off") if compare else None,
            delta_color=colour if change else "off",
            delta_arrow="auto" if change else "off",
            delta_description="vs chunking off" if compare and change else None,
            border=True,
        )

    def difference(mine: float | None, other: float | None) -> float | None:
        return None if mine is None or other is None else mine - other

    def signed_ms(change: float | None) -> str | None:
        if not change:
            return None
        return f"{'+' if change > 0 else '-'}{ms(abs(change))}"

    stall = difference(metrics.longest_stall_ms, whole.longest_stall_ms)
    ttft = difference(metrics.ttft_ms, whole.ttft_ms)
    rate = difference(metrics.decode_tokens_per_s, whole.decode_tokens_per_s)
    over = metrics.steps_over_target - whole.steps_over_target
    figure(0, "Longest stall", ms(metrics.longest_stall_ms), signed_ms(stall), more_is="bad")
    ttft_text = ms(metrics.ttft_ms) if metrics.ttft_ms is not None else "never"
    figure(1, "TTFT, long prompt", ttft_text, signed_ms(ttft), more_is="bad")
    figure(
        2,
        "Steps over target",
        f"{metrics.steps_over_target:,}",
        f"{over:+,}" if over else None,
        more_is="bad",
    )
    figure(
        3,
        "Decode throughput",
        f"{metrics.decode_tokens_per_s or 0:,.0f} tok/s",
        f"{rate:+,.0f} tok/s" if rate else None,
        more_is="good",
    )


def _sentence(experiment: Experiment, explanation: Explanation) -> None:
    st.markdown(f"**{explanation.headline}.** {explanation.sentence}")
    if explanation.verdict is Verdict.STOPPED:
        st.warning(
            f"This page runs at most {count(MAX_STEPS, 'step')} of a scenario; "
            "the pictures and figures show the part that was run.",
            icon=":material/hourglass_disabled:",
        )
    chunk = experiment.limits.chunk_tokens
    if experiment.policy != "chunked" or not chunk:
        return
    prompt_tokens = longest_prompt_tokens(experiment)
    shown = min(chunk, prompt_tokens)
    smaller = _point(experiment, shown // 2) if shown > 1 else None
    larger = _point(experiment, min(shown * 2, prompt_tokens)) if shown < prompt_tokens else None
    st.caption(trade_off(smaller, larger))


def _point(experiment: Experiment, chunk_tokens: int) -> SweepPoint | None:
    there = run(experiment.with_chunk_tokens(chunk_tokens))
    if there.result.stopped_at_max_steps or there.result.never_scheduled:
        return None
    metrics = there.metrics
    return SweepPoint(
        chunk_tokens=chunk_tokens,
        itl_p99_ms=metrics.itl_p99_ms,
        longest_stall_ms=metrics.longest_stall_ms,
        ttft_ms=metrics.ttft_ms,
        prefill_tokens_per_s=metrics.prefill_tokens_per_s,
        steps_over_target=metrics.steps_over_target,
        step_count=metrics.step_count,
    )


def _take_away(experiment: Experiment, this: Run, spec: dict[str, object]) -> None:
    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title="s11: step timeline")

    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        st.segmented_control(
            "The camera button above the chart saves",
            options=PICTURE_FORMATS,
            default=PICTURE_FORMATS[0],
            required=True,
            key="picture",
            bind="query-params",
        )
        st.download_button(
            "Steps as CSV",
            data=lambda: exports.steps_to_csv(this.result),
            file_name="s11-steps.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/table:",
        )
        st.download_button(
            "Run as JSON",
            data=lambda: exports.to_json(experiment, this.result, this.metrics),
            file_name="s11-run.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/data_object:",
        )
        st.download_button(
            "Picture as HTML",
            data=page,
            file_name="s11-timeline.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )
    with st.expander("The numbers as a table"):
        rows = min(len(this.result.steps), 1_000)
        if rows < len(this.result.steps):
            st.caption(f"The first {rows:,} of {len(this.result.steps):,} steps; the CSV has all.")
        columns = this.result.steps.columns().items()
        st.dataframe({name: column[:rows] for name, column in columns}, hide_index=False)
