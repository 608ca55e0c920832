"""Single-key shortcuts: what they are, and the switch that turns them off (WCAG 2.1.4).

Streamlit lets none of them act while the focus is in a field.
"""

from __future__ import annotations

from functools import cache
from pathlib import Path

import streamlit as st

_FOOTER = """<style>
.s11-keys{display:flex;flex-wrap:wrap;gap:.3rem .6rem;align-items:center;margin-top:1.5rem;
font-size:.875rem;color:light-dark(#5A6675,#A3AFBD)}
.s11-keys button{font:inherit;padding:.15rem .6rem;border-radius:1rem;cursor:pointer;
background:none;color:light-dark(#005B8F,#8CCBF0);border:1px solid light-dark(#BFC9D4,#3C4856)}
[data-s11-shortcuts="off"] .s11-keys-on,
:root:not([data-s11-shortcuts="off"]) .s11-keys-off{display:none}
@media print{.s11-keys{display:none}}
</style><div class="s11-keys" role="group" aria-label="Keyboard shortcuts">
<span class="s11-keys-on">Keys: <kbd>S</kbd> slide, <kbd>D</kbd> its colours,
<kbd>←</kbd> <kbd>→</kbd> scenes of the tour</span>
<span class="s11-keys-off">Single-key shortcuts are off in this tab.</span>
<button type="button" class="s11-keys-on" data-s11-shortcuts-to="off">Turn them off</button>
<button type="button" class="s11-keys-off" data-s11-shortcuts-to="on">Turn them on</button>
</div>"""


def keep_shortcuts() -> None:
    """Lay the script behind the shortcuts; to be called once a run, in app.py."""
    st.html(f"<script>{_script()}</script>", unsafe_allow_javascript=True)


def shortcuts_switch() -> None:
    """Lay what the keys are and their switch, below a page; the browser's tab remembers it."""
    st.html(_FOOTER)


@cache
def _script() -> str:
    return (Path(__file__).parent / "shortcuts.js").read_text(encoding="utf-8")
