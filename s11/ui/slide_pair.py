"""One click, one picture of two states: chunking on above chunking off, or A above what is now."""

from __future__ import annotations

import streamlit as st

from s11.experiment import Experiment
from s11.explain import explain
from s11.figures.timeline_info import Axis, timeline_info
from s11.figures.timeline_pair import (
    PairInfo,
    PairSide,
    pair_alt,
    pair_columns,
    pair_figure,
    pair_info,
)
from s11.kv_pool import within_memory
from s11.policies import CHUNKING
from s11.ui import simulator_state as state
from s11.ui.frame import chart, show_refusal
from s11.ui.numbers import numbers_fold
from s11.ui.runs import run
from s11.ui.slide import scheme

FILENAME = "s11-pair"
# A dialog stands outside the app, whose scheme it does not know.
DARK_DIALOG = '<style>[role="dialog"]{color-scheme:dark}</style>'


def offer_pair(experiment: Experiment, pinned: Experiment | None = None) -> None:
    """Lay the button that opens the picture of two states, where there are two.

    Args:
        experiment: what is simulated now.
        pinned: a state to hold it against; without it, chunking on stands above off, and the
            scheduler must be one that has a chunk size.
    """
    if pinned is None and state.policy() not in CHUNKING:
        return
    clicked = st.button(
        "A/B picture",
        icon=":material/splitscreen:",
        key="pair_picture",
        help="The pinned A above what is set now, in one picture with one scale."
        if pinned
        else "Chunking on above chunking off, in one picture with one scale.",
    )
    if not clicked:
        return
    sides = (("Pinned A", pinned), ("Now", experiment))
    if pinned is None:
        chunked = experiment.with_chunk_tokens(int(state.value_of("chunk")))
        sides = (("Chunking on", chunked), ("Chunking off", chunked.chunking_off()))
    _shown(sides, state.view().axis)


@st.dialog("Two states, one scale", width="large", icon=":material/splitscreen:")
def _shown(sides: tuple[tuple[str, Experiment | None], ...], axis: Axis) -> None:
    """Show the picture, with its camera button, its numbers and what can be taken away."""
    if st.context.theme.type == "dark" and not scheme():
        st.html(DARK_DIALOG)
    try:
        upper, lower = (
            side(name, experiment, axis=axis) for name, experiment in sides if experiment
        )
    except ValueError as error:
        show_refusal(error)
        return
    told: PairInfo = pair_info(upper, lower)
    spec = pair_figure(told)
    chart(spec, key="timeline_pair", alt=pair_alt(told), filename=FILENAME)
    st.caption("The camera button saves it as PNG, 1920 × 1080; the fold below as one HTML file.")
    numbers_fold(
        "two states",
        pair_columns(told),
        spec,
        page="simulator",
        key="timeline_pair_numbers",
        filename=FILENAME,
    )


def side(name: str, experiment: Experiment, *, axis: Axis) -> PairSide:
    """Return one state of the picture.

    Raises:
        ValueError: a model that does not fit its machine.
    """
    pooled = within_memory(experiment)
    this, whole = run(experiment), run(experiment.chunking_off())
    told = explain(pooled, this.result, this.metrics, whole=whole.metrics)
    info = timeline_info(pooled, this.result, told, whole=whole.result, axis=axis)
    return PairSide(name=name, info=info, metrics=this.metrics)
