"""The tour's state: which scene, and what its control says; both stand in the link."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.learn_scenes import SCENES
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of, whole

SCENE = "scene"

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


def go_to(scene: int) -> None:
    """Turn to a scene (a button's callback): its control as it comes, all else as it is.

    Both in one change of the link, so that the browser's way back has one stop for each scene.
    """
    controls = {each.control.key for each in SCENES}
    for key in controls & set(st.query_params):
        st.session_state.pop(key, None)  # a value that is kept would write itself into the link
    kept = {name: text for name, text in st.query_params.items() if name not in controls}
    st.query_params.from_dict(kept | {SCENE: str(scene)})
