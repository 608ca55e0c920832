"""The simulator: one long prompt among running streams, and what its chunk size does."""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.simulator_controls import LINK_CHECKS, controls, preset_links
from s11.ui.simulator_panels import panels

begin_page()
st.title("Chunked prefill: one long prompt, everyone's stream")
show_link_notes("simulator", LINK_CHECKS)
preset_links()
try:
    experiment, view = controls()
except ValueError as error:
    st.error(f"{error}.", icon=":material/error:")
else:
    panels(experiment, view)
