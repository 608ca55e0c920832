"""Check yourself: six questions on chunked prefill, each answer met with figures."""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.quiz_panels import quiz_page, style
from s11.ui.quiz_state import LINK_CHECKS

begin_page()
style()
st.title("Check yourself: six questions")
show_link_notes("quiz", LINK_CHECKS)
quiz_page()
