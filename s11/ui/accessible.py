"""Style rules that let everybody read and steer the page: contrast, and where the focus is."""

from __future__ import annotations

import streamlit as st

# Streamlit's captions have 4.2:1 on white, the colours of its code 2.6:1 and more; what is asked
# is 4.5:1. Its own marks of focus are a pale background or a line of 1 px here and there.
_CSS = """<style>
[data-testid="stCaptionContainer"]{
color:light-dark(#5A6675,#A3AFBD) !important;opacity:1 !important}
[data-testid="stCode"] .token{color:inherit !important}
a:focus-visible,button:focus-visible,summary:focus-visible,
main :is(div,span)[tabindex="0"]:focus-visible,
[data-testid="stNumberInputContainer"]:focus-within,
[data-testid="stTextInputRootElement"]:focus-within,
[data-testid="stTextAreaRootElement"]:focus-within,
main div:has(> input[role="combobox"]:focus-visible),
[data-testid="stSlider"] div:has(> div > input:focus-visible),
label:has(input:focus-visible){
outline:3px solid light-dark(#0072B2,#56B4E9) !important;outline-offset:2px}
</style>"""


def accessible_frame() -> None:
    """Lay the rules; to be called once a run, in app.py."""
    st.html(_CSS)
