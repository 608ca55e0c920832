"""Slide mode: a page as a slide, its picture and headline figures alone, white or dark.

The link says it (`slide=light` or `slide=dark`), beside the page's own parameters. Style rules
hide the controls, which stay and keep what they hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from s11.figures.slide import has_fixed_places, lowest_height, narrowest_width, on_slide
from s11.figures.theme import Spec
from s11.ui.link_checks import one_of
from s11.ui.slide_look import picture_css, slide_css

SLIDE = "slide"
LIGHT, DARK = "light", "dark"
CHECKS = {SLIDE: one_of(LIGHT, DARK)}
NO_SETTINGS = (SLIDE, "embed", "embed_options", "picture")
LONGEST_VALUE, MOST_SETTINGS = 24, 8
SWITCHED = {"true": "on", "false": "off"}

_FIRST, _FIGURES = "slide_first_picture", "slide_has_figures"
SWITCH_CSS = """<style>
[data-testid="stLayoutWrapper"]:has(>.st-key-slide_switch){position:relative;margin-bottom:-1rem}
.st-key-slide_switch{position:absolute;z-index:1;right:0;top:0;width:auto}
.st-key-slide_switch button{min-height:2rem;padding:.1rem .6rem}
.block-container h1{padding-right:6.5rem}
@media (max-width:640px){
.st-key-slide_switch button kbd{display:none}
.st-key-slide_switch button [data-testid="stMarkdownContainer"]{  /* unseen, still its name */
position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)}
.block-container h1{padding-right:2.75rem}
}
@media print{.st-key-slide_switch{display:none}}
</style>"""


def scheme() -> str | None:
    """Return the scheme of the slide that the link asks for; None for a page as ever."""
    asked = st.query_params.get(SLIDE)
    return asked if asked in (LIGHT, DARK) else None


def slide_mode(*, headline_figures: bool) -> None:
    """Lay the way into slide mode, or the slide's rules, its caption and the way back.

    headline_figures: the page has a row of figures above its first picture.
    """
    st.session_state.pop(_FIRST, None)
    st.session_state[_FIGURES] = headline_figures
    chosen = scheme()
    if chosen is None:
        st.html(SWITCH_CSS)
        with st.container(key="slide_switch"):
            st.button(
                "Slide",
                icon=":material/slideshow:",
                shortcut="S",
                key="slide_on",
                on_click=_show,
                args=(LIGHT,),
                help="This page as a slide: the picture, its figures and its link alone.",
            )
        return
    st.html(slide_css(dark=chosen == DARK))
    # One block here as on the page: what follows keeps its place, and is not laid anew.
    with st.container(key="slide_foot"):
        parameters = st.query_params.to_dict()
        st.html(caption_html(parameters, address=st.context.url or ""))
        if not st.context.is_embedded:
            _way_back(DARK if chosen == LIGHT else LIGHT)


def _way_back(other: str) -> None:
    with st.container(key="slide_back", horizontal=True, gap="small", width="content"):
        st.button(
            "Dark" if other == DARK else "White",
            shortcut="D",
            key="slide_other",
            on_click=_show,
            args=(other,),
        )
        st.button("Back", shortcut="Escape", key="slide_off", on_click=_show, args=(None,))


def _show(chosen: str | None) -> None:
    if chosen is None:
        st.query_params.pop(SLIDE, None)
    else:
        st.query_params[SLIDE] = chosen


def caption_html(parameters: Mapping[str, str], *, address: str) -> str:
    """Return a slide's caption: what its page was set to, and the link that opens it with controls.

    Args:
        parameters: of the slide's own link.
        address: the page's, without parameters.
    """
    kept = {name: text for name, text in parameters.items() if name not in NO_SETTINGS}
    home = address.count("/") == 2  # an origin alone
    link = address + ("/" if home else "") + (f"?{urlencode(kept)}" if kept else "")
    return (
        f'<div class="s11-slide" role="note" aria-label="Caption">'
        f"<p>s11, chunked prefill simulated. {escape(settings_words(kept))}</p>"
        f'<a href="{escape(link or "?")}" target="_blank" rel="noopener">{escape(link)}</a></div>'
    )


def settings_words(settings: Mapping[str, str]) -> str:
    """Return what a link sets, in words; values that are long are left to the link."""
    if not settings:
        return "Settings: all as the page comes."
    told = [
        f"{name.replace('_', ' ')} {SWITCHED.get(text, text)}"
        if len(text) <= LONGEST_VALUE
        else f"{name.replace('_', ' ')} as in the link"
        for name, text in settings.items()
    ]
    more = f", {len(told) - MOST_SETTINGS} more" if len(told) > MOST_SETTINGS else ""
    return f"Set: {', '.join(told[:MOST_SETTINGS])}{more}; the rest as the page comes."


def as_slide(spec: Spec, *, key: str) -> Spec:
    """Return a figure as the page shows it; on a slide, lay the rules that fit it there."""
    chosen = scheme()
    if chosen is None:
        return spec
    first = st.session_state.setdefault(_FIRST, key) == key
    layout: dict[str, Any] = spec["layout"]
    st.html(
        picture_css(
            key,
            fixed=has_fixed_places(layout),
            phone_px=layout["height"],
            lowest_px=lowest_height(layout),
            narrowest_px=narrowest_width(layout),
            first=first,
            below_figures=st.session_state.get(_FIGURES, False),
        )
    )
    return on_slide(spec, dark=chosen == DARK)
