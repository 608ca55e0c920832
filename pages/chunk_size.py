"""Chunk size: the largest that keeps every gap within a target, and what to set for it."""

import streamlit as st

from s11.ui.chunk_size_panels import chunk_size_page
from s11.ui.chunk_size_state import LINK_CHECKS, PRESETS
from s11.ui.frame import begin_page, preset_links, show_link_notes

begin_page()
st.title("Chunk size: what to set")
show_link_notes("chunk_size", LINK_CHECKS)
preset_links(PRESETS)
chunk_size_page()
