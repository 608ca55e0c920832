"""Exercises: three tasks to work out by hand, checked, with live worked solutions."""

import streamlit as st

from s11.ui.exercises_panels import exercises_page, style
from s11.ui.exercises_state import LINK_CHECKS
from s11.ui.frame import begin_page, show_link_notes

begin_page()
style()
st.title("Exercises: predict, then check")
show_link_notes("exercises", LINK_CHECKS)
exercises_page()
