"""The simulator: one long prompt among running streams, and what its chunk size does."""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.simulator_controls import preset_links, scenario_controls
from s11.ui.simulator_panels import simulator
from s11.ui.simulator_state import LINK_CHECKS

begin_page()
st.title("Chunked prefill: one long prompt, everyone's stream")
show_link_notes("simulator", LINK_CHECKS)
preset_links()
scenario_controls()
simulator()
