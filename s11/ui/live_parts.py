"""The parts of the simulator page that follow the chunk slider without the server.

Besides the chart (`live_chart`): the figures above it, the words below it, and what holds the
slider's stops. Each is a small component; the last one tells the others which stop to show.
Where the chart cannot change in place, Streamlit's own elements stand in for all of them.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import streamlit as st

from s11.ui.headlines import lay_headline
from s11.ui.live_chart import can_change_in_place
from s11.ui.simulator_picture import Picture
from s11.ui.simulator_stops import Stops
from s11.ui.simulator_words import lay_words
from s11.words import count

HERE = Path(__file__).parent
CHART_KEY = "timeline_live"


@st.cache_resource(max_entries=4)
def _component(name: str, script: str) -> Any:
    return st.components.v2.component(
        name,
        html=f'<div class="{name}"></div>',
        js=(HERE / script).read_text(encoding="utf-8"),
        css=(HERE / "live_texts.css").read_text(encoding="utf-8"),
        isolate_styles=False,
    )


def figures_above(shown: Picture) -> None:
    """Lay the four figures above the chart."""
    if can_change_in_place(CHART_KEY):
        with st.container(key="live_figures"):
            told = {"headlines": [headline.to_dict() for headline in shown.headlines]}
            _texts(shown, key="figures", told=told)
        return
    places = st.container(key="pair_figures").columns(4)
    for place, headline in zip(places, shown.headlines, strict=True):
        with place:
            lay_headline(headline)


def words_below(shown: Picture) -> None:
    """Lay the sentence below the chart, and what goes with it."""
    if can_change_in_place(CHART_KEY):
        _texts(shown, key="words", told={"words": shown.words.to_dict()})
    else:
        lay_words(shown.words)


def hold_stops(stops: Stops) -> None:
    """Send the slider's stops."""
    _component("s11_stops", "slider_stops.js")(key="stops", data=stops.packed)


def what_follows_on_release(stops: Stops) -> str:
    """Say which chunk sizes are drawn only when the slider is let go, "" where none."""
    if not stops.left_out:
        return ""
    return (
        f"While the slider is dragged, pictures of chunks of {count(stops.left_out[-1], 'token')} "
        "and less would take too many steps; they are drawn when it is let go."
    )


def _texts(shown: Picture, *, key: str, told: dict[str, Any]) -> None:
    meta = shown.spec["layout"]["meta"]
    _component("s11_texts", "live_texts.js")(
        key=key,
        data={"scenario": meta["scenario"], "chunk": meta["chunk_tokens"], **told},
    )
