"""Compare schedulers: two to four of them on one load and one time axis."""

import streamlit as st

from s11.ui.compare_link import LINK_CHECKS
from s11.ui.compare_panels import comparison
from s11.ui.frame import begin_page, show_link_notes

begin_page(headline_figures=False)
st.title("Schedulers side by side: same load, same clock")
show_link_notes("compare", LINK_CHECKS)
comparison()
