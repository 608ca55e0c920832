"""Prefix cache: what need not be computed again, and how that composes with chunking."""

import streamlit as st

from s11.ui.frame import begin_page, preset_links, show_link_notes
from s11.ui.prefix_panels import prefix_page, style
from s11.ui.prefix_state import LINK_CHECKS, PRESETS

begin_page()
style()
st.title("Prefix cache: the chunks that need not run")
show_link_notes("prefix", LINK_CHECKS)
preset_links(PRESETS)
prefix_page()
