"""What every page shares: the frame around it, notes about its link, and its charts."""

from __future__ import annotations

import gc
import re
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import asdict
from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st
from streamlit.delta_generator import DeltaGenerator
from streamlit.errors import StreamlitAPIException
from streamlit.runtime.pages_manager import PagesManager

from s11.figures.slide import picture_size
from s11.figures.theme import Spec, dark_twin_css, picture_config
from s11.ui import slide
from s11.ui.live_chart import Zoomed, live_chart

PICTURE_FORMATS = ("PNG", "SVG")
MOST_NOTES = 6
NOTES_KEY = "link_notes"
MARKUP = re.compile(r"[\\`*{}\[\]<>#|~$]|(?<!\w)_|_(?!\w)|:(?=[\w/])")
"""What Markdown takes for more than itself; a colon before a word begins an icon or a colour."""


@st.cache_resource
def freeze_start_up_objects() -> bool:
    """Take what the start-up made out of the garbage collector's sight, once a server.

    A hosting service may not honour `[runner] postScriptGC = false`; then every collection
    has less to look at.
    """
    gc.collect()
    gc.freeze()
    return True


def begin_page(*, headline_figures: bool = True) -> None:
    """Make sure that a page runs inside the app, or as a slide; to be called first on every page.

    A server that has not run app.py yet takes the folder pages/ for an app of the older kind
    and runs a linked page by itself, without the frame: then begin anew, inside it.

    headline_figures: the page has a row of figures above its first picture.
    """
    if PagesManager.uses_pages_directory:
        PagesManager.uses_pages_directory = False
        st.rerun()
    slide.slide_mode(headline_figures=headline_figures)


def page_frame() -> None:
    """Lay the style rules that every page needs."""
    st.html(dark_twin_css() + _PAGE_CSS)


_PAGE_CSS = """<style>
.block-container{padding-top:3.75rem;padding-bottom:2rem;max-width:1280px}
.block-container h1{font-size:1.7rem;padding:.2rem 0}
[data-testid="stMetricValue"]{font-size:1.7rem}
.presets{display:flex;flex-wrap:wrap;gap:.4rem .5rem;align-items:center;font-size:.875rem}
.presets a{text-decoration:none;color:light-dark(#005B8F,#8CCBF0);
padding:.15rem .6rem;border-radius:1rem;
border:1px solid light-dark(#BFC9D4,#3C4856)}
.presets a[aria-current]{font-weight:700;border-width:2px}
.presets a:hover,.presets a:focus-visible{text-decoration:underline}
@media (max-width:640px){
.block-container{padding-left:.75rem;padding-right:.75rem}
.block-container h1{font-size:1.35rem}
[class*="st-key-pair"] [data-testid="stColumn"]{
min-width:calc(50% - .5rem);flex:1 1 calc(50% - .5rem)}
[class*="st-key-pair"] [data-testid="stHorizontalBlock"]{gap:.5rem}
[data-testid="stMetricValue"]{font-size:1.35rem}
[data-testid="stMetric"] [data-testid="stMetricDeltaDescription"]{display:none}
[class*="st-key-timeline"] .modebar-container{top:auto !important;bottom:60px}
[class*="st-key-compare_"] .modebar-container{top:auto !important;bottom:26px}
}
</style>"""


def link_notes(checks: dict[str, Callable[[str], Any]]) -> dict[str, str]:
    """Return a sentence for each query parameter of the link that is not usable, by its name.

    Args:
        checks: by parameter name, a function that raises ValueError (its sentence is shown)
            where the text is not a value that the control can hold.
    """
    notes = {}
    checks = slide.CHECKS | checks
    for name in st.query_params:
        if name.startswith("embed"):
            continue
        if name not in checks:
            notes[name] = f"{name[:40]}: this page has no such setting; it was left out."
            continue
        texts = st.query_params.get_all(name)
        if len(texts) > 1:
            notes[name] = f"{name}: given {len(texts)} times; the default is shown instead."
            continue
        try:
            checks[name](texts[0])
        except ValueError as error:
            reason = str(error).partition(": ")[2] or str(error)
            notes[name] = f"{name}: {reason}; the default is shown instead."
    return notes


def show_link_notes(page: str, checks: dict[str, Callable[[str], Any]]) -> None:
    """Take what cannot be used out of the page's link, and say so; to be called first.

    The controls would drop most of it without a word, but some numbers (1e400 for a whole
    one) end in a traceback inside Streamlit; so the page begins anew without them.
    """
    notes = link_notes(checks)
    if notes and _leave_out(notes):
        st.session_state[NOTES_KEY] = (page, [*notes.values()])
        st.rerun()
    about, told = st.session_state.get(NOTES_KEY) or (page, [])
    if about != page:  # another page's link, which is left behind
        del st.session_state[NOTES_KEY]
    elif told:
        lines = "".join(f"\n- {plain(note)}" for note in told[:MOST_NOTES])
        st.info(f"Parts of this link could not be used:\n{lines}", icon=":material/link_off:")


def _leave_out(names: Collection[str]) -> bool:
    """Take parameters out of the page's link; False where none could be."""
    before = st.query_params.to_dict()
    try:
        # All at once is one message to the browser; name by name, a thousand long ones are
        # hundreds of megabytes.
        st.query_params.from_dict({name: before[name] for name in before if name not in names})
    except StreamlitAPIException:  # a control holds one of those that stay
        for name in names:
            with suppress(StreamlitAPIException):
                del st.query_params[name]
    return st.query_params.to_dict() != before


def embedding() -> dict[str, str]:
    """Return what a link to this page itself needs where the page stands in a frame of another."""
    return {"embed": "true"} if st.context.is_embedded else {}


def link_row(
    lead: str,
    label: str,
    links: Mapping[str, Mapping[str, str]],
    about: Mapping[str, str] | None = None,
) -> str:
    """Return a row of links to states of this page, each whole, so that it can be copied too.

    links: by what a link is called, its parameters. about: by the same, what to say beside it.
    """
    anchors = []
    for name, parameters in links.items():
        parameters = {**parameters, **embedding()}
        told = f' title="{escape(about[name])}"' if about else ""
        anchors.append(
            f'<a href="?{escape(urlencode(parameters))}" target="_self"{told}>{escape(name)}</a>'
        )
    return f'<nav class="presets" aria-label="{label}">{lead}: {" ".join(anchors)}</nav>'


def preset_links(presets: Mapping[str, Mapping[str, str]]) -> None:
    """Lay the presets as links."""
    st.html(link_row("Try", "Presets", presets))


def plain(text: str) -> str:
    """Return text that Markdown shows as it is, and no browser takes for a link.

    A character of no width parts what would be an address.
    """
    for address in ("://", "www.", "@"):
        text = text.replace(address, f"{address[0]}\u200b{address[1:]}")
    return MARKUP.sub(r"\\\g<0>", text)


def show_refusal(refusal: object, place: DeltaGenerator | None = None) -> None:
    """Show why something cannot be done, as plain text: it may quote a link or a file."""
    (place or st).error(f"{plain(str(refusal))}.", icon=":material/error:")


def chart(
    spec: Spec,
    *,
    key: str,
    alt: str,
    filename: str,
    on_zoom: Callable[[Zoomed], None] | None = None,
) -> None:
    """Draw a figure, with its camera button and its numbers for those who cannot see it.

    on_zoom: called when somebody zoomed along x, where the chart changes in place.
    """
    config = picture_config(
        filename=filename,
        image_format=picture_format(),
        **asdict(picture_size(spec["layout"])),
    )
    height = spec["layout"]["height"]
    # A key of its own on a slide: the chart is then drawn anew, at the size of its new place.
    live_key = f"{key}_slide" if slide.scheme() else f"{key}_live"
    spec = slide.as_slide(spec, key=live_key)
    if live_chart(spec, key=live_key, alt=alt, config=config, on_zoom=on_zoom):
        return
    from s11.figures.drawn import Drawn

    st.plotly_chart(
        Drawn(spec),
        width="stretch",
        height=height,
        theme=None,
        key=key,
        alt=alt,
        config=config,
    )


def picture_control() -> None:
    """Lay the choice of what the charts' camera button saves."""
    st.segmented_control(
        "The chart's camera button saves",
        options=PICTURE_FORMATS,
        default=PICTURE_FORMATS[0],
        required=True,
        key="picture",
        bind="query-params",
    )


def picture_format() -> str:
    """Return the format that the camera button saves, as chosen below the chart."""
    chosen = st.session_state.get("picture") or st.query_params.get("picture")
    return chosen.lower() if chosen in PICTURE_FORMATS else PICTURE_FORMATS[0].lower()
