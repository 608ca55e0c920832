"""Models & trust: how far off is it, measured, and on what does each number rest?"""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.models_panels import (
    catalog,
    errors,
    headline,
    limits,
    papers,
    pictures,
    sources,
    style,
)
from s11.ui.models_state import LINK_CHECKS

begin_page()
style()
st.title("Models & trust: how far off is it?")
show_link_notes("models", LINK_CHECKS)
headline()
pictures()
errors()
limits()
papers()
catalog()
sources()
