"""What a visitor sees where our own code fails: a sentence and a way on, never a traceback."""

from __future__ import annotations

import logging

import streamlit as st
from streamlit.navigation.page import StreamlitPage

LOG = logging.getLogger("s11")


def hide_error_details() -> None:
    """Keep tracebacks to the server's log, also where a hosting service set the option otherwise.

    Streamlit Community Cloud forces `showErrorDetails = false`, which still shows the trace. What
    fails in a fragment or a callback is Streamlit's to show, by this option.
    """
    st.set_option("client.showErrorDetails", "none")


def run_guarded(page: StreamlitPage) -> None:
    """Run a page; where it fails, log the traceback and say so in its place."""
    try:
        page.run()
    except Exception:
        LOG.exception("%s: the page failed", page.title)
        st.error(
            "This page could not be finished: something in it failed, and the server has noted "
            f"what. [Open it anew with its defaults](./{page.url_path}), or choose another page.",
            icon=":material/error:",
        )
