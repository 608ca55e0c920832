"""A picture's numbers behind a fold: a table, and what can be taken away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from s11.exports import to_csv
from s11.figures.theme import Spec


def numbers_fold(
    name: str,
    columns: Mapping[str, Sequence[Any]],
    spec: Spec,
    *,
    page: str,
    key: str,
    filename: str,
) -> DeltaGenerator | None:
    """Lay the fold and return it, None where it is closed: then nothing is sent.

    name: what the picture is called. page: the page's name in the HTML file's title.
    """
    fold = st.expander(
        f"The numbers as a table, and to take away: {name}",
        icon=":material/table:",
        on_change="rerun",
        key=key,
    )
    if not fold.open:
        return None

    def picture() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title=f"s11: {page}, {name}")

    with fold:
        st.dataframe(columns, hide_index=True)
        places = st.columns(2)
        places[0].download_button(
            f"{name.capitalize()} as CSV",
            data=lambda: to_csv(columns),
            file_name=f"{filename}.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/table:",
        )
        places[1].download_button(
            f"{name.capitalize()} as HTML",
            data=picture,
            file_name=f"{filename}.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )
    return fold
