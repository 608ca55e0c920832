"""s11: page configuration and navigation."""

import streamlit as st

from s11.ui.frame import freeze_start_up_objects, page_frame

st.set_page_config(page_title="s11: chunked prefill", page_icon="assets/favicon.png", layout="wide")
page_frame()
page = st.navigation(
    [
        st.Page(
            "pages/simulator.py", title="Simulator", icon=":material/view_timeline:", default=True
        ),
        st.Page(
            "pages/mask_and_positions.py",
            title="Mask & positions",
            icon=":material/grid_on:",
            url_path="mask",
        ),
    ],
    position="top",
)
freeze_start_up_objects()
page.run()
