"""Mask & positions: why a prompt may be cut into chunks, and how an engine gets it wrong."""

import streamlit as st

from s11.ui.frame import begin_page, show_link_notes
from s11.ui.mask_controls import LINK_CHECKS
from s11.ui.mask_panels import bugs_panel, mask_lesson_panel, same_bits_panel, style

begin_page(headline_figures=False)
style()
st.title("Mask & positions: chunking changes nothing")
show_link_notes("mask", LINK_CHECKS)
mask = mask_lesson_panel()
same_bits = st.container()
bugs_panel(mask)
with same_bits:  # last, since its rows take longest: nobody waits for the pictures below it
    same_bits_panel()
