"""Your measurements: a cost model fitted to them, a benchmark laid over its simulation."""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.measurements_panels import measurements_page
from s11.ui.measurements_state import LINK_CHECKS

begin_page()
st.title("Your measurements: fit, and lay over")
show_link_notes("measurements", LINK_CHECKS)
measurements_page()
