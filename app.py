"""s11: page configuration and navigation."""

import os

# The attention proof multiplies small matrices: a second BLAS thread gains nothing and, on busy
# cores, waits long. Read when NumPy is first imported.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

import streamlit as st

from s11.ui.accessible import accessible_frame
from s11.ui.frame import freeze_start_up_objects, page_frame
from s11.ui.guard import hide_error_details, run_guarded
from s11.ui.history import keep_history
from s11.ui.shortcuts import keep_shortcuts, shortcuts_switch

hide_error_details()
st.set_page_config(page_title="s11: chunked prefill", page_icon="assets/favicon.png", layout="wide")
page_frame()
accessible_frame()
keep_history()
keep_shortcuts()
# A page's address is its file's name: until this has run once, a server knows no other.
page = st.navigation(
    {
        "": [
            st.Page(
                "pages/simulator.py",
                title="Simulator",
                icon=":material/view_timeline:",
                default=True,
            ),
            st.Page("pages/learn.py", title="Learn", icon=":material/school:"),
        ],
        "Practise": [
            st.Page("pages/check_yourself.py", title="Check yourself", icon=":material/quiz:"),
            st.Page("pages/exercises.py", title="Exercises", icon=":material/edit_note:"),
        ],
        "Schedule": [
            st.Page(
                "pages/compare.py", title="Compare schedulers", icon=":material/compare_arrows:"
            ),
            st.Page("pages/traffic.py", title="Traffic", icon=":material/traffic:"),
            st.Page("pages/prefix.py", title="Prefix cache", icon=":material/account_tree:"),
        ],
        "Tune": [
            st.Page("pages/chunk_size.py", title="Chunk size", icon=":material/tune:"),
            st.Page("pages/production.py", title="In production", icon=":material/dns:"),
            st.Page(
                "pages/measurements.py", title="Your measurements", icon=":material/upload_file:"
            ),
        ],
        "Why it works": [
            st.Page("pages/piggybacking.py", title="Piggybacking", icon=":material/hub:"),
            st.Page("pages/mask.py", title="Mask & positions", icon=":material/grid_on:"),
            st.Page("pages/models.py", title="Models & trust", icon=":material/verified:"),
        ],
    },
    position="top",
)
st.set_page_config(page_title=f"{page.title} · s11")
freeze_start_up_objects()
run_guarded(page)
shortcuts_switch()
