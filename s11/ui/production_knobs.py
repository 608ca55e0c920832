"""The production page's table: engines' flags, their defaults, and our knob of each."""

from __future__ import annotations

from html import escape

import streamlit as st

from s11.engine_knobs import ENGINE_KNOBS, ENGINES, EngineKnob, knob_columns
from s11.exports import to_csv
from s11.ui import production_state as state
from s11.ui.production_links import knob_address, set_value
from s11.ui.production_state import ALL_ENGINES, ALL_KNOBS, DEFAULTS, KNOB_TITLES, NOT_OURS

HEADS = ("Engine", "Flag", "Default", "What it does", "Our knob", "Source")
TABLE_CSS = """<style>
.knobs table{width:100%;border-collapse:collapse;font-size:.875rem;line-height:1.35}
.knobs th,.knobs td{text-align:left;vertical-align:top;padding:.45rem .6rem .45rem 0;
border-bottom:1px solid light-dark(#D5DCE4,#2E3946)}
.knobs th{font-weight:700}
.knobs code{white-space:nowrap;font-size:.8125rem;background:light-dark(#EEF2F6,#1B232D);
color:inherit;padding:.05rem .25rem;border-radius:.25rem}
.knobs small{display:block;color:light-dark(#5A6675,#A3AFBD);font-size:.8125rem}
.knobs a{color:light-dark(#005B8F,#8CCBF0)}
.knobs td:nth-child(1){white-space:nowrap}
.knobs td:nth-child(3),.knobs td:nth-child(5){min-width:8.5rem}
.knobs td:nth-child(4){min-width:13rem}
@media (max-width:1000px){
.knobs thead{position:absolute;clip-path:inset(50%);width:1px;height:1px;overflow:hidden}
.knobs table,.knobs tbody,.knobs tr,.knobs td{display:block}
.knobs tr{border-bottom:1px solid light-dark(#D5DCE4,#2E3946);padding:.6rem 0}
.knobs td{border:0;padding:.1rem 0}
.knobs td::before{content:attr(data-head) ": ";color:light-dark(#5A6675,#A3AFBD)}
.knobs td:nth-child(-n+2)::before,.knobs td:nth-child(4)::before{content:none}
.knobs code{white-space:normal;overflow-wrap:anywhere}
.knobs td:nth-child(1){font-weight:700}
.knobs small{display:inline}
.knobs small::before{content:" · "}
}
</style>"""


def knob_filters() -> None:
    """Lay the choice of engine and of knob."""
    _pills("of_engine", "Engine", (ALL_ENGINES, *ENGINES))
    _pills("of_knob", "Our knob", (ALL_KNOBS, *KNOB_TITLES.values(), NOT_OURS))


def knob_table() -> None:
    """Lay the rows that the filters leave, and all rows to take away."""
    rows = state.shown_knobs()
    if rows:
        st.html(TABLE_CSS + table_html(rows))
    else:
        st.markdown("This engine has no flag for that knob.")
    st.markdown(
        f":small[{len(rows)} of {len(ENGINE_KNOBS)} flags. Read in the engines' own sources and "
        "documents in November 2026; a default speaks for the version beside it. A link in *Our "
        "knob* opens the page where that knob is set.]"
    )
    st.download_button(
        "All flags as CSV",
        data=lambda: to_csv(knob_columns(ENGINE_KNOBS)),
        file_name="s11-engine-knobs.csv",
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
    )


def table_html(rows: tuple[EngineKnob, ...]) -> str:
    """Return the rows as an HTML table, which a phone shows as cards."""
    head = "".join(f'<th scope="col" role="columnheader">{name}</th>' for name in HEADS)
    body = "".join(_row_html(row) for row in rows)
    return (
        '<div class="knobs"><table role="table" aria-label="Flags of serving engines">'
        f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>'
        f'<tbody role="rowgroup">{body}</tbody></table></div>'
    )


def _row_html(row: EngineKnob) -> str:
    flag = f"<code>{escape(row.flag)}</code>"
    if row.also:
        flag += f" <code>{escape(row.also)}</code>"
    source = escape(row.source)
    if row.unverified:
        source += f"<small><b>Not verified:</b> {escape(row.unverified)}</small>"
    cells = (
        escape(row.engine),
        flag,
        f"{escape(row.default)}<small>{escape(row.version)}</small>",
        escape(row.meaning),
        _knob_html(row),
        source,
    )
    return (
        '<tr role="row">'
        + "".join(
            f'<td role="cell" data-head="{name}">{cell}</td>'
            for name, cell in zip(HEADS, cells, strict=True)
        )
        + "</tr>"
    )


def _knob_html(row: EngineKnob) -> str:
    note = f"<small>{escape(row.note)}</small>" if row.note else ""
    if row.knob is None:
        return f"not simulated{note}"
    title, address, value = KNOB_TITLES[row.knob].lower(), knob_address(row), set_value(row)
    title = title.replace("kv", "KV")
    if address is None or value is None:
        return f"{title}{note}"
    text = f"{value:,}" if not isinstance(value, bool) else "on" if value else "off"
    return f'<a href="{escape(address)}" target="_self">{title}: {text}</a>{note}'


def _pills(key: str, label: str, options: tuple[str, ...]) -> None:
    st.pills(
        label,
        options=options,
        default=DEFAULTS[key],
        key=key,
        bind="query-params",
        required=True,
    )
