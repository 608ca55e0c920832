"""The traffic page's worst stalls, each a link to the steps around it."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from html import escape
from urllib.parse import urlencode

import streamlit as st

from s11.figures.traffic_look import TrafficRun, run_names
from s11.ui import traffic_state as state
from s11.ui.frame import plain
from s11.ui.traffic_kept import Kept
from s11.ui.traffic_state import STALLS
from s11.ui.traffic_time import look_at
from s11.words import count, ms
from s11.worst_stalls import WorstStall, stories_around, worst_stalls

BEFORE, AFTER = 3, 2

_found: Kept[tuple[WorstStall, ...]] = Kept(size_of=lambda _: 1, most=64)


def stalls(runs: Sequence[TrafficRun], keys: Sequence[object]) -> None:
    """Lay both sides' longest stalls as tables, and the steps around the chosen one.

    keys: by which the runs' stalls are kept.
    """
    st.header("The worst stalls", anchor="stalls")
    found = {
        side: _found.get(key, partial(worst_stalls, ran.result, ran.experiment, count=STALLS))
        for side, ran, key in zip("AB", runs, keys, strict=True)
    }
    names = [f"{side}{rank}" for side, rows in found.items() for rank in range(1, len(rows) + 1)]
    if not names:
        st.markdown("Nobody waited for a next token: no request got a second one.")
        return
    if st.session_state.get("stall", names[0]) not in names:
        st.session_state["stall"] = names[0]
    tables_place = st.container()
    chosen = st.pills(
        "The steps around stall",
        options=names,
        default=names[0],
        required=True,
        key="stall",
        bind="query-params",
        help="A1 is A's longest; each table's links say the same, and can be copied.",
    )
    for (side, rows), label in zip(found.items(), run_names(runs), strict=True):
        with tables_place:
            st.markdown(f"**{plain(label)}**")
            if rows:
                st.html(_table(side, rows, chosen))
            else:
                st.markdown("Nobody waited for a next token.")
    side, rank = chosen[0], int(chosen[1:])
    ran = runs["AB".index(side)]
    _around(chosen, ran, found[side][rank - 1])


def _table(side: str, rows: Sequence[WorstStall], chosen: str) -> str:
    """Return the table; a file's link would find no file, so it has none."""
    lines = []
    for rank, row in enumerate(rows, start=1):
        name = f"{side}{rank}"
        told = name
        if not state.is_uploaded():
            address = urlencode({**st.query_params.to_dict(), "stall": name})
            told = f'<a href="?{escape(address)}#stalls" target="_self">{name}</a>'
        cells = (
            told,
            ms(row.duration_ms),
            f"{row.start_ms / 1000:,.2f} s",
            f"{row.seen_by:,}",
            f"{row.prefill_tokens:,}",
            f"{row.decode_tokens:,}",
            escape(_begun(row.reason)),
        )
        here = " aria-current=true" if name == chosen else ""
        lines.append(f"<tr{here}>{''.join(f'<td>{cell}</td>' for cell in cells)}</tr>")
    heads = ("Stall", "Wait", "From", "Seen by", "Prefill tokens", "Decodes", "Why")
    head = "".join(f'<th scope="col">{text}</th>' for text in heads)
    return (
        f'<table class="stalls"><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table>"
    )


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:]


def _around(name: str, ran: TrafficRun, stall: WorstStall) -> None:
    """Tell what the engine saw in the steps around a stall."""
    stories = stories_around(ran.experiment, ran.result, stall.step, before=BEFORE, after=AFTER)
    st.markdown(f"**{name}.** {plain(_begun(stall.sentence))}.")
    st.button(
        "Show it in the run over time",
        icon=":material/zoom_in:",
        key="traffic_stall_look",
        on_click=look_at,
        args=(stall.start_ms, stall.end_ms),
    )
    spanned = count(stall.last_step - stall.first_step + 1, "step")
    st.caption(f"It spans {spanned}; of them the longest is marked, with the steps around it.")
    for story in stories:
        mark = ":material/hourglass_top: **" if story.number == stall.step + 1 else ""
        lines = "".join(f"\n  - {plain(line)}" for line in story.lines)
        st.markdown(f"- {mark}{plain(story.head)}{'**' if mark else ''}{lines}")
