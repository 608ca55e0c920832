"""The compare page's controls: scenes, engines, the table of requests, the knobs.

What they hold is one value (`compare_state.asked`): each control shows its part of it, and
changes it when it is touched. So a control can be folded away, and nothing is lost.
"""

from __future__ import annotations

from dataclasses import replace
from html import escape
from typing import Any

import streamlit as st

from s11.entries import ENGINES, knob_words
from s11.presets import PRESETS
from s11.scenes import SCENES
from s11.ui import compare_state as state
from s11.ui.compare_knobs import knobs
from s11.ui.compare_link import MOST_ENTRIES, entry_from, entry_text
from s11.ui.compare_requests import (
    MOST_NAME,
    MOST_OUTPUT,
    MOST_PROMPT,
    MOST_REQUESTS,
)
from s11.ui.frame import plain

MOST_TYPED = 10**12  # exact in a browser, and far beyond any request


def scene_links() -> None:
    """Lay the scenes as links: each is a whole state, so it can be copied and sent too."""
    asked = state.asked()
    here = asked.scene if asked.is_its_scene() else None
    links = " ".join(
        f'<a href="?scene={escape(slug)}" target="_self"'
        f"{' aria-current=page' if slug == here else ''}>{escape(scene.title)}</a>"
        for slug, scene in SCENES.items()
    )
    st.html(f'<nav class="presets" aria-label="Scenes">Scenes: {links}</nav>')


def scene_about() -> None:
    """Say what happens in the scene, as long as nothing of it was changed."""
    asked = state.asked()
    scene = SCENES[asked.scene]
    if asked.is_its_scene():
        st.markdown(plain(scene.about))
    else:
        st.markdown(f"Edited from the scene [{plain(scene.title)}](?scene={asked.scene}).")


def engine_choice() -> None:
    """Lay the choice of two to four engines; their order is that of the picture."""
    asked = state.asked()
    chosen = [entry_text(entry) for entry in asked.entries]
    options = [*ENGINES, *(text for text in chosen if text not in ENGINES)]
    key = "compare_engines"
    st.session_state[key] = chosen

    def take() -> None:
        texts = st.session_state[key]
        state.change(replace(state.asked(), entries=tuple([entry_from(text) for text in texts])))

    st.multiselect(
        "Schedulers, 2 to 4: policies, and engines as they come",
        options=options,
        format_func=_option,
        max_selections=MOST_ENTRIES,
        key=key,
        on_change=take,
        placeholder="Choose 2 to 4",
        select_all=False,  # it would take the first four of the list without a word
    )


def _option(text: str) -> str:
    """Name an engine and all its own knobs; the browser tells options apart by their names."""
    entry = entry_from(text)
    own = [knob_words(knob, value) for knob, value in entry.changes]
    if entry.engine in PRESETS and not own:
        own = ["as it comes"]
    return ", ".join([entry.title, *own])


def changes() -> None:
    """Lay what changes the scene, each part when it is asked for."""
    open_parts = st.pills(
        "Change the scene",
        options=["requests", "knobs"],
        format_func=lambda part: {
            "requests": ":material/edit: Edit the requests",
            "knobs": ":material/tune: Knobs",
        }[part],
        selection_mode="multi",
        key="compare_changes",
        label_visibility="collapsed",
    )
    if "requests" in open_parts:
        _request_table()
    if "knobs" in open_parts:
        knobs()


def _request_table() -> None:
    """Lay the scene's requests as a table to edit."""
    key = f"compare_table_{st.session_state.get(state.LOADED, 0)}"
    if key not in st.session_state:  # an editor keeps changes against what it was first given
        st.session_state["compare_table_base"] = [dict(row) for row in state.asked().rows]
    edited = st.data_editor(
        _frame(st.session_state["compare_table_base"]),
        num_rows="dynamic",
        hide_index=True,
        key=key,
        column_config=_columns(),
        alt="The requests: name, arrival, prompt and output tokens, shared prefix",
    )
    st.caption(
        f"At most {MOST_REQUESTS} requests, with prompts of 1 to {MOST_PROMPT:,} and outputs of 1 "
        f"to {MOST_OUTPUT:,} tokens. Who shares a prefix names the same group; the rest of each "
        "prompt is its own."
    )
    rows = tuple(edited.to_dict("records"))
    if not _same(rows, state.asked().rows):
        state.change(replace(state.asked(), rows=rows))


def _frame(rows: list[dict[str, Any]]) -> Any:
    import pandas as pd

    frame = pd.DataFrame(rows, columns=list(_columns()))
    for name in ("prompt_tokens", "output_tokens", "shared_tokens"):
        frame[name] = frame[name].astype("Int64")
    return frame.astype({"name": "object", "arrival_ms": "Float64", "shared_group": "object"})


def _columns() -> dict[str, Any]:
    # What a cell may hold is said where it is read: an editor drops without a word what its own
    # columns forbid, and rows that lack what they require.
    def number(label: str, **options: Any) -> Any:
        return st.column_config.NumberColumn(
            label, min_value=-MOST_TYPED, max_value=MOST_TYPED, **options
        )

    return {
        "name": st.column_config.TextColumn("name", max_chars=MOST_NAME),
        "arrival_ms": number("arrival (ms)", default=0.0),
        "prompt_tokens": number("prompt (tokens)", step=1),
        "output_tokens": number("output (tokens)", step=1),
        "shared_group": st.column_config.TextColumn("shared prefix", max_chars=MOST_NAME),
        "shared_tokens": number("shared (tokens)", step=1),
    }


def _same(rows: Any, others: Any) -> bool:
    def plain(row: Any) -> dict[str, Any]:
        return {name: None if _is_missing(row.get(name)) else row.get(name) for name in _columns()}

    return [plain(row) for row in rows] == [plain(row) for row in others]


def _is_missing(value: Any) -> bool:
    import pandas as pd

    return bool(pd.isna(value)) or value == ""
