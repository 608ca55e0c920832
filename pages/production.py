"""In production: what engines call our knobs, commands to copy, and myths with live figures."""

import streamlit as st

from s11.ui.frame import begin_page, preset_links, show_link_notes
from s11.ui.production_page import production_page, style
from s11.ui.production_state import LINK_CHECKS, PRESETS

begin_page()
style()
st.title("In production: flags, commands, myths")
show_link_notes("production", LINK_CHECKS)
preset_links(PRESETS)
production_page()
