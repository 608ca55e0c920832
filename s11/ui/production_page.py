"""The production page's parts in their order."""

from __future__ import annotations

import streamlit as st

from s11.ui import production_state as state
from s11.ui.frame import picture_control, show_refusal
from s11.ui.machine import calibration_note
from s11.ui.production_commands import command_controls, commands
from s11.ui.production_knobs import knob_filters, knob_table
from s11.ui.production_myths import myths

STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
.block-container h3{font-size:1.15rem;padding:1rem 0 0}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
.block-container h3{font-size:1.05rem}
[class*="st-key-myth_"] .modebar-container{top:auto !important;bottom:48px}
[class*="st-key-myth_flops"] .modebar-container,
[class*="st-key-myth_mixing"] .modebar-container{top:30px !important;bottom:auto}
}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def production_page() -> None:
    """Lay the table of flags, the commands, and the myths."""
    st.header("Flags of five engines", anchor="flags")
    knob_filters()
    knob_table()
    st.header("Copy the command", anchor="commands")
    command_controls()
    try:
        on = state.machine()
    except ValueError as error:
        show_refusal(error)
        return
    commands(on)
    st.header("Four myths, and what is true", anchor="myths")
    st.markdown(
        f"On the model and GPU chosen above. :small[{calibration_note(on)} Simulated, "
        f"{state.STREAMS} streams with 1,024 tokens of context each unless said otherwise.]"
    )
    myths(on)
    picture_control()
