"""The tour's page: the way through it, and one scene."""

from __future__ import annotations

from html import escape
from typing import Any
from urllib.parse import urlencode

import streamlit as st

from s11.learn_scene import Control, Link, Scene
from s11.learn_scenes import SCENES
from s11.ui import learn_state as state
from s11.ui.frame import chart, embedding
from s11.ui.numbers import numbers_fold

STYLE = """<style>
.tour{display:flex;flex-wrap:wrap;gap:.3rem;justify-content:center}
.tour a{display:inline-flex;align-items:center;justify-content:center;
min-width:2rem;height:2rem;padding:0 .35rem;border-radius:1rem;text-decoration:none;
color:light-dark(#005B8F,#8CCBF0);border:1px solid light-dark(#BFC9D4,#3C4856)}
.tour a:hover,.tour a:focus-visible{text-decoration:underline}
.tour a[aria-current]{background:light-dark(#005B8F,#8CCBF0);
color:light-dark(#FFFFFF,#0F141A);border-color:light-dark(#005B8F,#8CCBF0);font-weight:700}
.block-container:not(:has(.s11-slide)) h1{font-size:2.2rem}
.st-key-learn_words p{font-size:1.2rem;line-height:1.5}
.st-key-learn_words .presets{font-size:1rem}
@media (max-width:640px){
.block-container:not(:has(.s11-slide)) h1{font-size:1.5rem}
.st-key-learn_way{margin-top:.4rem}
.st-key-learn_words p{font-size:1.05rem}
.st-key-learn_way>:nth-child(2){order:-1;flex:1 0 100%}
.st-key-learn_way>:nth-child(3){margin-left:auto}
.tour{gap:.2rem;justify-content:space-between}
.tour a{min-width:1.75rem;height:1.75rem;padding:0 .2rem}
[class*="st-key-learn_chart"] .modebar-container{top:auto !important;bottom:30px}
}
</style>"""


def learn_page() -> None:
    """Lay the way through the tour and the scene that the link names."""
    st.html(STYLE)
    number = state.number()
    scene = SCENES[number - 1]
    state.enter(number)
    st.title(f"{number}. {scene.headline}", anchor=False)
    _way(number)
    _scene(scene, _chosen(scene.control))


def _way(number: int) -> None:
    """Lay the numbered links to all scenes between the buttons to the one before and after."""
    places = st.container(
        key="learn_way", horizontal=True, vertical_alignment="center", gap="small"
    )
    with places:
        _turn("Previous", number - 1, "Left", ":material/arrow_back:")
        st.html(_numbers(number))
        _turn("Next", number + 1, "Right", ":material/arrow_forward:")


def _turn(label: str, to: int, key: str, icon: str) -> None:
    st.button(
        label,
        on_click=state.go_to,
        args=(to,),
        disabled=not 1 <= to <= len(SCENES),
        shortcut=key,
        icon=icon,
        key=f"learn_{label.lower()}",
    )


def _numbers(current: int) -> str:
    links = []
    for number, scene in enumerate(SCENES, start=1):
        here = ' aria-current="step"' if number == current else ""
        link = urlencode(state.link_parameters(number) | embedding())
        links.append(
            f'<a href="?{escape(link)}" target="_self"{here} '
            f'title="{escape(scene.headline)}" '
            f'aria-label="Scene {number}: {escape(scene.headline)}">{number}</a>'
        )
    return f'<nav class="tour" aria-label="Scenes">{"".join(links)}</nav>'


def _chosen(control: Control) -> Any:
    """Lay the scene's control and return what it says."""
    if control.slides:
        return st.select_slider(
            control.label,
            options=control.options,
            value=control.default,
            key=control.key,
            bind="query-params",
            help=control.about,
        )
    chosen = st.segmented_control(
        control.label,
        options=control.options,
        default=control.default,
        required=True,
        key=control.key,
        bind="query-params",
        help=control.about,
    )
    return chosen or control.default


def _scene(scene: Scene, chosen: Any) -> None:
    """Lay the picture, what it says in numbers, and where it leads."""
    shown = scene.show(chosen)
    # A chart for each scene. In one for all, two turns in quick succession would never end:
    # Plotly.react plots anew, and reacts again, whenever the file name in its settings differs.
    chart(
        shown.spec,
        key=f"learn_chart_{scene.slug}",
        alt=shown.alt,
        filename=f"s11-learn-{scene.slug}",
    )
    with st.container(key="learn_words"):
        st.markdown(" ".join(shown.sentences))
        st.html(_link(shown.link))
    numbers_fold(
        scene.headline,
        shown.columns,
        shown.spec,
        page="Learn",
        key=f"learn_{scene.slug}_table",
        filename=f"s11-learn-{scene.slug}",
    )


def _link(link: Link) -> str:
    address = f"./{link.page}" + (f"?{urlencode(link.parameters)}" if link.parameters else "")
    return (
        f'<nav class="presets" aria-label="The full page"><a href="{escape(address)}" '
        f'target="_self">{escape(link.label)}</a></nav>'
    )
