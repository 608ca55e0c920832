"""Piggybacking: why decodes ride along for next to nothing, on the chosen machine."""

import streamlit as st

from s11.ui.frame import begin_page, preset_links, show_link_notes
from s11.ui.piggyback_panels import piggyback_page, style
from s11.ui.piggyback_state import LINK_CHECKS, PRESETS

begin_page()
style()
st.title("Piggybacking: decodes ride along")
show_link_notes("piggybacking", LINK_CHECKS)
preset_links(PRESETS)
piggyback_page()
