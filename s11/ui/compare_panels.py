"""The compare page's panels: sentence, picture, table of metrics, steps, what can leave."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from s11 import exports
from s11.comparison import Comparison, compare
from s11.entries import Entry
from s11.figures.compare import compare_figure
from s11.figures.compare_info import compare_alt, compare_info
from s11.figures.compare_labels import CHUNK_CSS
from s11.figures.theme import Spec
from s11.metric_rows import EngineRun, why_not_compared
from s11.presets import ABOUT, PRESETS
from s11.results import Result
from s11.scenes import SCENES
from s11.step_story import StepStory, step_stories, story_text
from s11.ui import compare_state as state
from s11.ui.compare_controls import changes, engine_choice, scene_about, scene_links
from s11.ui.compare_requests import left_out
from s11.ui.compare_tables import LEFT_OUT, metrics_columns, metrics_html
from s11.ui.frame import chart, picture_control, plain, show_refusal
from s11.ui.runs import MAX_STEPS
from s11.words import count

MOST_STORIES = 500
STORY_HEIGHT = 76  # px: three lines


@dataclass(frozen=True, slots=True, eq=False)
class _Shown:
    runs: tuple[EngineRun, ...]
    comparison: Comparison
    spec: Spec


@st.fragment  # a change redraws this part, not the frame around it
def comparison() -> None:
    """Lay the scenes, the engines on one, and what became of everyone."""
    links, about = st.container(), st.container()
    engine_choice()
    changes()
    with links:  # only now it is known whether the table was edited
        scene_links()
    with about:
        scene_about()
    for sentence in left_out(state.asked().rows):
        st.warning(plain(sentence), icon=":material/edit_off:")
    refused = st.session_state.pop(state.REFUSED, None)
    if refused:
        st.error(plain(refused), icon=":material/error:")
    picture = st.container()
    shown = _shown(picture)
    if shown:
        _metrics(shown)
        _steps(shown)
        _notes(shown)
        _take_away(shown)
    state.write_link()


def _shown(place: DeltaGenerator) -> _Shown | None:
    """Run what the controls say and draw it; sentences where that cannot be."""
    asked = state.asked()
    try:
        common = asked.common()
    except ValueError as error:
        show_refusal(error, place)
        return None
    found = state.runs_of(asked.entries, common)
    for sentence in found.refused:
        place.warning(plain(sentence), icon=":material/block:")
    if not found.runs:
        place.info("Choose two to four schedulers.", icon=":material/compare_arrows:")
        return None
    told = compare(found.runs)
    info = compare_info(found.runs, told, scene=_scene_title())
    spec = compare_figure(info)
    with place:
        st.markdown(plain(told.lead) if len(found.runs) > 1 else "Choose a second scheduler.")
        alt = compare_alt(info, [run.metrics for run in found.runs])
        chart(spec, key="compare", alt=alt, filename="s11-schedulers")
        st.caption(
            "Point at a step, anywhere in a scheduler's band, to read what the engine saw in it "
            "and why each request got what it got."
        )
        if any(run.result.stopped_at_max_steps for run in found.runs):
            st.warning(
                f"This page runs at most {count(MAX_STEPS, 'step')} of each scheduler; "
                "the picture and the figures show the part that was run.",
                icon=":material/hourglass_disabled:",
            )
    return _Shown(found.runs, told, spec)


def _scene_title() -> str:
    """Return the scene's title, as changed where its load is no longer its own."""
    asked = state.asked()
    scene = SCENES[asked.scene]
    return scene.title if asked.has_its_load() else f"{scene.title}, edited"


def _metrics(shown: _Shown) -> None:
    st.html(CHUNK_CSS + metrics_html(shown.runs, shown.comparison.rows))
    for sentence in why_not_compared(shown.runs):
        st.caption(plain(sentence))
    lines = [
        f"- **{plain(run.label)}**: {plain(verdict)}"
        for run, verdict in zip(shown.runs, shown.comparison.verdicts, strict=True)
    ]
    st.markdown("\n".join(lines))
    for sentence in shown.comparison.identical:
        st.info(plain(sentence), icon=":material/equal:")


def _steps(shown: _Shown) -> None:
    """Lay every step's story as a table, one fold for each scheduler."""
    for number, run in enumerate(shown.runs):
        fold = st.expander(
            f"Every step of {run.label}",
            icon=":material/table_rows:",
            on_change="rerun",
            key=f"compare_steps_{number}",
        )
        if not fold.open:
            continue
        with fold:
            workers = [("", run.result)]
            if run.result.prefill_worker:
                workers = [
                    ("prefill worker", run.result.prefill_worker),
                    ("decode worker", run.result),
                ]
            for name, result in workers:
                _step_table(run, result, name, key=f"{number}{name[:1]}")


def _step_table(run: EngineRun, result: Result, name: str, *, key: str) -> None:
    steps = len(result.steps)
    if name:
        st.markdown(f"**{name}**")
    if steps > MOST_STORIES:
        st.caption(f"The first {MOST_STORIES:,} of {steps:,} steps; the CSV has all.")
    told = step_stories(run.experiment, result, range(min(steps, MOST_STORIES)))
    st.dataframe(
        _columns(told),
        hide_index=True,
        row_height=STORY_HEIGHT,
        key=f"compare_stories_{key}",
        column_config={
            "what the engine saw": st.column_config.TextColumn(width=640),
            "start (ms)": st.column_config.NumberColumn(format="%.1f"),
            "took (ms)": st.column_config.NumberColumn(format="%.1f"),
        },
        alt=f"Every step of {run.label} {name}",
    )
    st.download_button(
        "Steps as CSV",
        data=lambda: exports.to_csv(_columns(step_stories(run.experiment, result))),
        file_name=f"s11-steps-{_slug(run.label, name)}.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
        key=f"compare_csv_{key}",
    )


def _columns(told: Sequence[StepStory]) -> dict[str, list[object]]:
    return {
        "step": [story.number for story in told],
        "start (ms)": [story.start_ms for story in told],
        "took (ms)": [story.duration_ms for story in told],
        "prefill tokens": [story.prefill_tokens for story in told],
        "decode tokens": [story.decode_tokens for story in told],
        "what the engine saw": [story_text(story) for story in told],
    }


def _notes(shown: _Shown) -> None:
    """Say what each scheduler is, what of the real engine it leaves out, and who is alike."""
    fold = st.expander(
        "What these schedulers are, and what they leave out",
        icon=":material/info:",
        on_change="rerun",
        key="compare_notes",
    )
    if not fold.open:
        return
    entries: dict[str, Entry] = {entry.engine: entry for entry in state.asked().entries}
    lines = []
    for entry in entries.values():
        preset = PRESETS.get(entry.engine)
        speaks = f" Speaks for {preset.speaks_for}." if preset else ""
        lines.append(f"- **{entry.title}**: {ABOUT[entry.policy]}{speaks} {LEFT_OUT[entry.policy]}")
    with fold:
        st.markdown("\n".join(lines))
        st.markdown(
            "With KV blocks to spare and first come, first served, **Chunked and vLLM V1 give the "
            "same step table**: whoever runs ahead of a decode got at most as much as when it was "
            "admitted. They differ only in whom they preempt, as in the scene "
            f"[KV pressure](?scene={next(iter(SCENES))})."
        )


def _take_away(shown: _Shown) -> None:
    """Lay what can leave the page; what is folded away is not sent until it is opened."""

    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(shown.spec, title="s11: schedulers side by side")

    fold = st.popover(
        "Take it with you: picture, CSV, HTML",
        icon=":material/download:",
        on_change="rerun",
        key="compare_take_away",
    )
    if not fold.open:
        return
    with fold:
        picture_control()
        st.download_button(
            "Metrics as CSV",
            data=lambda: exports.to_csv(metrics_columns(shown.runs, shown.comparison.rows)),
            file_name="s11-schedulers.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/table:",
        )
        st.download_button(
            "Picture as HTML",
            data=page,
            file_name="s11-schedulers.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )


def _slug(*words: str) -> str:
    return re.sub(r"[^a-z0-9]+", "-", " ".join(words).lower()).strip("-")
