"""Traffic: thousands of requests on two schedulers, and the highest rate that holds targets."""

import streamlit as st

from s11.ui.frame import begin_page, preset_links, show_link_notes
from s11.ui.traffic_page import traffic_page
from s11.ui.traffic_state import LINK_CHECKS, PRESETS

begin_page()
st.title("Traffic: what chunking does to thousands of requests")
show_link_notes("traffic", LINK_CHECKS)
preset_links(PRESETS)
traffic_page()
