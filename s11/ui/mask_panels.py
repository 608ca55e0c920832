"""The mask page's three lessons: the mask, the same bits, the classic bugs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from time import monotonic
from typing import Any

import streamlit as st

from s11.attention import ChunkSizeCheck
from s11.exports import to_csv
from s11.figures.key_difference import key_difference_figure
from s11.figures.key_difference_info import (
    key_difference_alt,
    key_difference_columns,
    key_difference_info,
)
from s11.figures.mask import mask_figure
from s11.figures.mask_info import MaskInfo, mask_alt, mask_columns, mask_info
from s11.figures.mask_words import (
    LESSONS,
    NO_BUG_LESSON,
    hidden_from,
    hidden_from_sentence,
    mask_lesson,
    same_bits_lesson,
    verdict_sentence,
)
from s11.figures.theme import Spec
from s11.ui.frame import chart, picture_control
from s11.ui.mask_checks import MAX_CHUNKS, SameBitsRow, chunk_check, same_bits_rows
from s11.ui.mask_controls import (
    BUG_TOKENS,
    bug_controls,
    mask_controls,
    same_bits_controls,
    show_chunk_size,
)
from s11.ui.mask_table import table_columns, table_html

REDRAW_SECONDS = 0.15

# The camera button stands over the title on a phone; there it goes beside the lower axis title.
STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-mask"] .modebar-container,[class*="st-key-faulty-mask"] .modebar-container
{top:auto !important;bottom:58px}
[class*="st-key-key-difference"] .modebar-container{top:auto !important;bottom:100px}
}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def mask_lesson_panel() -> MaskInfo:
    """Show the right mask of one chunk; return it."""
    st.header("1. The mask: a rectangle and a triangle", anchor="the-mask")
    chunk_tokens, cached_tokens = mask_controls()
    info = mask_info(chunk_tokens=chunk_tokens, cached_tokens=cached_tokens)
    _mask_chart(info, key="mask", name="Mask", lesson=mask_lesson(info))
    picture_control()
    return info


def same_bits_panel() -> None:
    """Show the table of chunk sizes, computed from the cheapest row on."""
    st.header("2. The same bits at every chunk size", anchor="same-bits")
    prompt_tokens, own_size = same_bits_controls()
    lesson, table, below = st.empty(), st.empty(), st.container()
    rows = _computed(same_bits_rows(prompt_tokens=prompt_tokens, own_size=own_size), table)
    lesson.markdown(same_bits_lesson([row.check for row in rows if row.check is not None]))
    with below:
        st.markdown(
            ":small[An ulp is the step to the next float32 number. Near zero that step is tiny, so "
            "a harmless difference counts many of them: judge by |ΔK| and |ΔV|, pure numbers "
            "beside keys and values of order 1.]"
        )
        if left_out := [row for row in rows if row.out_of_bounds]:
            sizes = ", ".join(str(row.chunk_tokens) for row in left_out)
            st.info(
                f"This page computes at most {MAX_CHUNKS} chunks per chunk size. For chunks of "
                f"{sizes} run `python -m s11 verify --tokens {prompt_tokens} --chunk-tokens "
                f"{left_out[0].chunk_tokens}` yourself.",
                icon=":material/hourglass_disabled:",
            )
        _download("Table as CSV", table_columns(rows), "s11-same-bits.csv")


def bugs_panel(mask: MaskInfo) -> None:
    """Show what a classic bug does to the mask and to the keys."""
    st.header("3. Classic bugs, and how they show", anchor="bugs")
    fault, chunk_tokens, path = bug_controls()
    faulty = mask_info(
        chunk_tokens=mask.chunk_tokens, cached_tokens=mask.cached_tokens, fault=fault
    )
    check = chunk_check(prompt_tokens=BUG_TOKENS, chunk_tokens=chunk_tokens, fault=fault)
    info = key_difference_info(check, path=path)
    what = "**No bug.**" if fault is None else f"**{fault}.** {fault.description}"
    st.markdown(f"{what} **Seen here:** {info.finding} {verdict_sentence(check)}")
    mask_place, keys_place = st.columns([2, 3])
    with mask_place:
        _mask_chart(faulty, key="faulty-mask", name="Faulty mask" if fault else "Right mask")
    with keys_place:
        spec = key_difference_figure(info)
        file = "s11-key-difference"
        chart(spec, key="key-difference", alt=key_difference_alt(info), filename=file)
        columns = key_difference_columns(info)
        _take_away("|ΔK|", spec, columns, file, key="key_difference")
    if fault is None:
        st.markdown(NO_BUG_LESSON)
    else:
        st.markdown(f"**Why it matters.** {LESSONS[fault]}")
        hiding = hidden_from_sentence(fault, prompt_tokens=BUG_TOKENS)
        st.markdown(f"**How it shows.** {fault.symptom} {hiding}")
        _try_hiding_size(check)


def _try_hiding_size(check: ChunkSizeCheck) -> None:
    hidden = () if check.fault is None else hidden_from(check.fault, prompt_tokens=BUG_TOKENS)
    if hidden and check.chunk_tokens not in hidden:
        st.button(
            f"Try {hidden[0]}-token chunks: the bug hides",
            on_click=show_chunk_size,
            args=(hidden[0],),
            key="try_hidden",
            icon=":material/visibility_off:",
        )


def _computed(rows: list[SameBitsRow], table: Any) -> list[SameBitsRow]:
    """Compute the rows, few chunks first, and show those that are there whenever it takes long."""
    caption = f"Prompt of {rows[0].prompt_tokens} tokens, three layers, float32"
    drawn = monotonic()
    for at in sorted(range(len(rows)), key=lambda at: rows[at].chunks):
        row = rows[at]
        if row.out_of_bounds:
            continue
        if monotonic() - drawn > REDRAW_SECONDS:
            table.html(table_html(rows, caption=caption))
            drawn = monotonic()
        check = chunk_check(
            prompt_tokens=row.prompt_tokens, chunk_tokens=row.chunk_tokens, fault=None
        )
        rows[at] = replace(row, check=check)
    table.html(table_html(rows, caption=caption))
    return rows


def _mask_chart(info: MaskInfo, *, key: str, name: str, lesson: str = "") -> None:
    spec = mask_figure(info)
    chart(spec, key=key, alt=mask_alt(info), filename=f"s11-{key}")
    if lesson:
        st.markdown(lesson)
    _take_away(name, spec, mask_columns(info), f"s11-{key}", key=key)


def _take_away(
    name: str, spec: Spec, columns: Mapping[str, Sequence[Any]], file: str, *, key: str
) -> None:
    fold = st.expander(
        f"{name} as a table", icon=":material/table:", on_change="rerun", key=f"{key}_numbers"
    )
    if fold.open:
        fold.dataframe(columns, hide_index=True)

    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title=f"s11: {name}")

    with st.container(horizontal=True, gap="small"):
        _download(f"{name} as CSV", columns, f"{file}.csv")
        st.download_button(
            f"{name} as HTML",
            data=page,
            file_name=f"{file}.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )


def _download(label: str, columns: Mapping[str, Sequence[Any]], file: str) -> None:
    st.download_button(
        label,
        data=lambda: to_csv(columns),
        file_name=file,
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
    )
