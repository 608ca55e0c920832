"""Style rules that the quiz and the exercises share."""

ASIDE_CSS = (
    ".s11-aside{position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%);"
    "white-space:nowrap}"
)
"""Words for those who hear the page, out of others' sight."""

RADIO_CSS = (
    '[data-testid="stRadioOption"]:not([data-selected])>div>div:first-child'
    "{box-shadow:inset 0 0 0 1.5px light-dark(#6B7684,#A3AFBD)}"
)
"""An outline of 3:1 or more for what is not chosen."""

SHARED_CSS = ASIDE_CSS + RADIO_CSS
