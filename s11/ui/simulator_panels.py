"""The simulator page's panels: figures, timeline, sentence, downloads."""

from __future__ import annotations

import time
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from s11 import exports
from s11.costs import RooflineCost
from s11.experiment import Experiment
from s11.explain import explain
from s11.figures.theme import Spec
from s11.figures.timeline import timeline_alt, timeline_figure
from s11.figures.timeline_info import timeline_info
from s11.kv_pool import within_memory
from s11.machine_words import machine_words
from s11.presets import TITLES
from s11.sweeps import SweepPoint, longest_prompt_tokens
from s11.trade_off import trade_off
from s11.ui import simulator_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.production_link import production_link
from s11.ui.runs import MAX_STEPS, Run, run
from s11.ui.simulator_controls import chunk_controls
from s11.ui.slide_pair import offer_pair
from s11.verdict import Explanation, Verdict
from s11.words import count, ms

# Lets the server's other thread send the picture off by itself: the browser then draws it while
# the rest is still being made. On two cores the picture then stands 40 ms earlier, and the figures
# about as much later (benchmarks/ui.py).
FLUSH_S = 0.04
MOST_TABLE_ROWS = 1_000
ALIKE = ("vllm_v1", "tensorrt_llm", "slo_adaptive")  # often the same as the chapter's


@st.fragment  # a change redraws this part, not the frame around it
def simulator() -> None:
    """Lay the chunk size and what it gives.

    Once the controls hold values, the picture is sent before them: it is what the eye waits
    for, and the browser draws it while the rest is still on its way.
    """
    controls_place, figures_place, chart_place, words_place = (st.container() for _ in range(4))
    picture_first = state.is_known()
    if not picture_first:
        with controls_place:
            chunk_controls()
    try:
        shown = _shown(chart_place)
    except ValueError as error:
        show_refusal(error, chart_place)
        shown = None
    if shown:
        with figures_place:
            _metrics(shown)
    if picture_first:
        with controls_place:
            chunk_controls()
    if shown:
        with words_place:
            _sentence(shown.experiment, shown.explanation)
            _machine(shown.experiment)
            production_link()
            _take_away(shown.experiment, shown.this, shown.spec)


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    experiment: Experiment
    this: Run
    whole: Run
    explanation: Explanation
    spec: Spec

    @property
    def chunking(self) -> bool:
        return self.experiment.chunking


def _shown(chart_place: DeltaGenerator) -> _Shown:
    """Run what the controls say, draw the picture, and return what it was drawn from."""
    experiment, view = state.experiment(), state.view()
    pooled = within_memory(experiment)
    this, whole = run(experiment), run(experiment.chunking_off())
    explanation = explain(pooled, this.result, this.metrics, whole=whole.metrics)
    info = timeline_info(
        pooled,
        this.result,
        explanation,
        whole=whole.result,
        axis=view.axis,
        zoom_on_target=view.zoom_on_target,
    )
    spec = timeline_figure(info, metrics=this.metrics)
    with chart_place:
        alt = timeline_alt(info, this.metrics)
        chart(spec, key="timeline", alt=alt, filename="s11-timeline")
    time.sleep(FLUSH_S)
    return _Shown(experiment, this, whole, explanation, spec)


def _metrics(shown: _Shown) -> None:
    metrics, whole = shown.this.metrics, shown.whole.metrics
    never_whole = bool(shown.whole.result.never_scheduled)
    places = st.container(key="pair_figures").columns(4)

    def figure(
        place: int,
        label: str,
        value: str,
        change: str | None,
        *,
        more_is: Literal["good", "bad"],
        about: str,
        note: str | None = None,
    ) -> None:
        colour: Literal["normal", "inverse"] = "normal" if more_is == "good" else "inverse"
        told = change or "as with chunking off"
        if never_whole:  # nothing to compare with: that run never does the work
            told, change = "chunking off: never runs", None
        if note:
            told, change = note, None
        places[place].metric(
            label,
            value,
            delta=told if shown.chunking else None,
            delta_color=colour if change else "off",
            delta_arrow="auto" if change else "off",
            delta_description="vs chunking off" if shown.chunking and change else None,
            border=True,
            help=about,
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
    figure(
        0,
        "Longest stall",
        ms(metrics.longest_stall_ms),
        signed_ms(stall),
        more_is="bad",
        about="The longest gap between two tokens (inter-token latency, ITL) that a user sees.",
    )
    ttft_text = ms(metrics.ttft_ms)
    if metrics.ttft_ms is None:
        ttft_text = "not yet" if shown.this.result.stopped_at_max_steps else "never"
    figure(
        1,
        "TTFT, long prompt",
        ttft_text,
        signed_ms(ttft) or (None if metrics.ttft_ms else "+ more than shown"),
        more_is="bad",
        about="Time to first token: from the long prompt's arrival to its first token.",
    )
    figure(
        2,
        "Steps over target",
        f"{metrics.steps_over_target:,}",
        f"{over:+,}" if over else None,
        more_is="bad",
        about="Steps that take longer than the ITL target. Streams that stand still wait longer "
        "than any one step takes.",
        note="but streams stand still" if shown.this.result.steps.held_decodes.any() else None,
    )
    figure(
        3,
        "Decode throughput",
        f"{metrics.decode_tokens_per_s or 0:,.0f} tok/s",
        f"{rate:+,.0f} tok/s" if rate and abs(rate) >= 0.5 else None,
        more_is="good",
        about="The users' tokens over this run's own time, lead-in and tail included. A run in "
        "more steps gives them more tokens meanwhile; over hours the two would even out.",
    )


def _sentence(experiment: Experiment, explanation: Explanation) -> None:
    st.markdown(f"**{explanation.headline}.** {explanation.sentence}")
    if explanation.verdict is Verdict.STOPPED:
        st.warning(
            f"This page runs at most {count(MAX_STEPS, 'step')} of a scenario; "
            "the pictures and figures show the part that was run.",
            icon=":material/hourglass_disabled:",
        )
    if experiment.policy in ALIKE and _as_the_chapters(experiment):
        st.markdown(
            f":small[With this load {TITLES[experiment.policy]} does just what the chapter's "
            "scheduler does; [Compare schedulers](compare) shows where they part.]"
        )
    chunk = experiment.limits.chunk_tokens
    if not experiment.chunking or not chunk:
        return
    prompt_tokens = longest_prompt_tokens(experiment)
    shown = min(chunk, prompt_tokens)
    smaller = _point(experiment, shown // 2) if shown > 1 else None
    larger = _point(experiment, min(shown * 2, prompt_tokens)) if shown < prompt_tokens else None
    on_a_machine = isinstance(experiment.cost, RooflineCost)
    told = trade_off(
        smaller,
        larger,
        now=run(experiment).metrics,
        repeated="the reads of weights and prefix" if on_a_machine else "the fixed cost",
    )
    if told:
        st.markdown(f":small[{told}]")


def _machine(experiment: Experiment) -> None:
    """Say what the chosen machine's step times rest on, and how much KV it holds."""
    told = machine_words(experiment)
    if told:
        st.markdown(f":small[{told} How far off it is: [Models & trust](models).]")


def _as_the_chapters(experiment: Experiment) -> bool:
    """Return whether the chapter's scheduler gives the same steps under the same limits."""
    mine, its = run(experiment).result, run(replace(experiment, policy="chunked")).result
    return np.array_equal(mine.steps.end_ms, its.steps.end_ms)


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


def _take_away(experiment: Experiment, this: Run, spec: Spec) -> None:
    """Lay what can leave the page; what is folded away is not sent until it is opened."""

    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title="s11: step timeline")

    with st.container(horizontal=True, gap="small", vertical_alignment="center"):
        fold = st.popover(
            "Take it with you: picture, CSV, JSON, HTML",
            icon=":material/download:",
            on_change="rerun",
            key="take_away",
        )
        numbers = st.popover(
            "The numbers as a table", icon=":material/table:", on_change="rerun", key="table"
        )
        offer_pair(experiment)
    if fold.open:
        with fold:
            picture_control()
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
    if numbers.open:
        with numbers:
            _table(this)


def _table(this: Run) -> None:
    steps = len(this.result.steps)
    rows = min(steps, MOST_TABLE_ROWS)
    if rows < steps:
        st.caption(f"The first {rows:,} of {steps:,} steps; the CSV has all.")
    columns = this.result.steps.columns().items()
    st.dataframe({name: column[:rows] for name, column in columns}, hide_index=False)
