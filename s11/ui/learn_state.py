"""The tour's state: which scene, and what its control says; both stand in the link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.learn_scenes import SCENES
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole

SCENE, ENTERED = "scene", "learn_entered"
CONTROLS = {each.control.key for each in SCENES}

LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    SCENE: whole(1, len(SCENES)),
    **{
        scene.control.key: one_of(*[str(option) for option in scene.control.options])
        for scene in SCENES
    },
    "picture": one_of(*PICTURE_FORMATS),
}


def number() -> int:
    """Return the scene's number in the link, from 1; the first where it has none."""
    return int(st.query_params.get(SCENE, "1"))


def enter(scene: int) -> None:
    """Take note of the scene that is shown; one that is turned to has its control as it comes.

    What the link says of the control stays; a value that the session keeps of an earlier visit
    goes. To be called before the control is laid.
    """
    if st.session_state.get(ENTERED, scene) != scene:
        for key in CONTROLS:
            st.session_state.pop(key, None)
    st.session_state[ENTERED] = scene


def link_parameters(scene: int) -> dict[str, str]:
    """Return the parameters of a scene's link: its control as it comes, all else as it is."""
    kept = {name: text for name, text in st.query_params.items() if name not in CONTROLS}
    return {SCENE: str(scene)} | {name: text for name, text in kept.items() if name != SCENE}


def go_to(scene: int) -> None:
    """Turn to a scene (a button's callback): its control as it comes, all else as it is.

    Both in one change of the link, so that the browser's way back has one stop for each scene.
    """
    for key in CONTROLS & set(st.query_params):
        st.session_state.pop(key, None)  # a value that is kept would write itself into the link
    st.query_params.from_dict(link_parameters(scene))
