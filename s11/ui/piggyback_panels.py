"""The piggybacking page's panels: figures, sentences, pictures, numbers."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from s11.catalog import Deployment
from s11.exports import to_csv
from s11.figures import piggyback_words as words
from s11.figures.piggyback_curve import curve_alt, curve_figure
from s11.figures.piggyback_looks import machine_line
from s11.figures.piggyback_many import many_alt, many_figure
from s11.figures.piggyback_ride import fine_ms, ride_alt, ride_figure
from s11.figures.piggyback_share import share_alt, share_figure
from s11.figures.piggyback_tables import (
    Columns,
    curve_columns,
    is_sarathis,
    many_columns,
    ride_columns,
    sarathi_columns,
    share_columns,
    tiles_columns,
)
from s11.figures.piggyback_tiles import tiles_alt, tiles_figure
from s11.piggyback import (
    MOST_CONTEXT_TOKENS,
    MOST_TOKENS,
    StepCurve,
    tile_steps,
)
from s11.piggyback_rides import Ride
from s11.ui import piggyback_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.machine import calibration_note
from s11.ui.piggyback_controls import (
    edge_control,
    scale_control,
    step_controls,
)
from s11.ui.simulator_link import simulator_link
from s11.words import count, times

STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-piggyback"] .modebar-container{top:auto !important;bottom:70px}
[class*="st-key-piggyback-curve"] .modebar-container{bottom:108px}
[class*="st-key-piggyback-ride"] .modebar-container,
[class*="st-key-piggyback-share"] .modebar-container{bottom:89px}
}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def piggyback_page() -> None:
    """Lay the controls and all that they give."""
    step_controls()
    try:
        chosen = state.deployment()
    except ValueError as error:
        show_refusal(error)
        return
    curve, told = state.step_curve(chosen), state.riding(chosen)
    st.markdown(f":small[**{machine_line(chosen)}.** {calibration_note(chosen)}]")
    _too_much_kv(chosen)
    _metrics(curve, told)
    simulator_link("Open this in the simulator, step by step", state.in_the_simulator(chosen))
    _step(curve, chosen)
    _ride(curve, told, chosen)
    _share(chosen)
    picture_control()
    st.markdown(
        f":small[A step's time is the roofline cost model's, with the "
        f"engine's own time on the host (vLLM). Steps of up to {MOST_TOKENS:,} prefill tokens and "
        f"contexts of up to {MOST_CONTEXT_TOKENS:,} are computed here.]"
    )


def _too_much_kv(chosen: Deployment) -> None:
    held, room = state.held_tokens(), state.capacity(chosen).kv_tokens
    if held > room:
        st.warning(
            f"This step holds {held:,} tokens of KV, and the pool of this machine {room:,}: the "
            "times stand, but an engine would not let so many in.",
            icon=":material/memory:",
        )


def _metrics(curve: StepCurve, told: Ride) -> None:
    places = st.container(key="pair_piggyback_figures").columns(4)
    turn = curve.turning_tokens
    places[0].metric(
        "Turning point",
        "never" if turn is None else count(turn, "token"),
        border=True,
        help="Tokens in a step from which the linear operators' arithmetic takes longer than "
        "the read of their weights and activations.",
    )
    places[1].metric(
        "A decode aboard",
        "nothing" if told.factor is None else fine_ms(told.aboard_ms),
        border=True,
        help="By how much one decode lengthens the prefill step.",
    )
    places[2].metric(
        "A decode alone",
        fine_ms(told.alone_ms),
        border=True,
        help="The step of these decodes without prefill, shared out among them.",
    )
    places[3].metric(
        "Cheaper aboard",
        "all of it" if told.factor is None else times(told.factor),
        border=True,
        help="A decode alone over a decode aboard.",
    )


def _step(curve: StepCurve, chosen: Deployment) -> None:
    st.header("A step's time as its tokens grow", anchor="step")
    chunk = int(state.value_of("piggy_chunk"))
    whole_place, close_place = st.columns([5, 4])
    with whole_place:
        scale_control()
        logarithmic = state.scale() is state.Scale.LOG
        chart(
            curve_figure(curve, chosen, chunk_tokens=chunk, logarithmic=logarithmic),
            key="piggyback-curve",
            alt=curve_alt(curve, chosen, chunk_tokens=chunk),
            filename="s11-piggyback-step",
        )
    with close_place:
        edge_control()
        edge = int(state.value_of("edge"))
        steps = tile_steps(chosen, edge)
        chart(
            tiles_figure(steps, chosen, edge_tokens=edge),
            key="piggyback-tiles",
            alt=tiles_alt(steps, chosen, edge_tokens=edge),
            filename="s11-piggyback-tiles",
        )
    st.markdown(words.turning(curve, chosen))
    st.markdown(words.tiles(steps, chosen, edge_tokens=edge))
    _table("curve", "The step's time as a table", lambda: curve_columns(curve))
    _table("tiles", "The tile steps as a table", lambda: tiles_columns(steps))


def _ride(curve: StepCurve, told: Ride, chosen: Deployment) -> None:
    st.header("What decodes add", anchor="ride")
    three_place, many_place = st.columns([5, 4])
    with three_place:
        chart(
            ride_figure(told, chosen),
            key="piggyback-ride",
            alt=ride_alt(told, chosen),
            filename="s11-piggyback-decodes",
        )
    many = state.riding_by_decodes(chosen)
    with many_place:
        chart(
            many_figure(many, chosen, decodes=told.decodes),
            key="piggyback-many",
            alt=many_alt(many, chosen),
            filename="s11-piggyback-by-decodes",
        )
    st.markdown(words.riding(told))
    other = state.other_precision(chosen)
    there = (state.step_curve(other), state.riding(other))
    st.markdown(words.otherwise((curve, told), there, precision=other.precision))
    if is_sarathis(chosen):
        st.markdown(
            "**SARATHI's own figures beside ours.** The paper (arXiv:2308.16369) sets 1,021 "
            "prefill tokens with 3 decodes against 1,024 prefill tokens, and counts linear "
            "operators and attention alone; the picture above sets the same prefill with and "
            "without decodes, and counts everything."
        )
        st.dataframe(sarathi_columns(chosen), hide_index=True, height="content")
    _table("ride", "The three steps as a table", lambda: ride_columns(told))
    _table("many", "A decode's cost by their number as a table", lambda: many_columns(many))


def _share(chosen: Deployment) -> None:
    chunk, decodes = state.shares(chosen)
    sizes = {
        "chunk_tokens": int(state.value_of("piggy_chunk")),
        "decode_tokens": int(state.value_of("decodes")),
    }
    st.header("Attention's share at long context", anchor="share")
    chart(
        share_figure(chunk, decodes, chosen, **sizes),
        key="piggyback-share",
        alt=share_alt(chunk, decodes, chosen, **sizes),
        filename="s11-piggyback-attention",
    )
    st.markdown(words.share(chunk, decodes, **sizes))
    _table("share", "The shares as a table", lambda: share_columns(chunk, decodes))


def _table(name: str, label: str, columns: Callable[[], Columns]) -> None:
    fold = st.expander(
        label, icon=":material/table:", on_change="rerun", key=f"piggyback_{name}_table"
    )
    if fold.open:
        with fold:
            shown = columns()
            st.dataframe(shown, hide_index=True)
            st.download_button(
                "CSV",
                data=lambda: to_csv(shown),
                file_name=f"s11-piggyback-{name}.csv",
                mime="text/csv",
                on_click="ignore",
                icon=":material/download:",
                key=f"piggyback_{name}_csv",
            )
