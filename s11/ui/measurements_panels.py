"""The measurements page's panels: a fitted cost model, and how far to trust it."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from html import escape
from typing import Any
from urllib.parse import urlencode

import numpy as np
import streamlit as st

from s11.costs.fitted import FittedCost
from s11.costs.least_squares import Fit
from s11.costs.measurements import Measurements
from s11.exports import to_csv
from s11.figures.fitted import fit_alt, fit_figure
from s11.figures.fitted_info import fit_info, shape_sentence
from s11.figures.fitted_residuals import residuals_alt, residuals_figure
from s11.ui import measurements_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.measurements_controls import part_control, steps_source
from s11.ui.measurements_overlay import overlay_part
from s11.ui.measurements_state import Part, Steps
from s11.words import count

MOST_TABLE_ROWS = 5_000
LINK_NAMES = ("fixed", "prefill", "decode", "attended")  # the simulator's, in the order of terms
MOST_LINK_MS = 1_000.0  # that the simulator's controls hold
SHOWN_TERMS = (  # label, and of how many the second line tells
    ("Every step", 0),
    ("A prefill token", 1_000),
    ("A decode token", 100),
    ("A cached token", 100_000),
)
STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-measured"] .modebar-container{top:auto !important;bottom:14px}
}
@media (min-width:641px){
.st-key-pair_measured_figures [data-testid="stColumn"]{
min-width:calc(33% - 1rem);flex:1 1 calc(33% - 1rem)}
}
</style>"""


def measurements_page() -> None:
    """Lay the part that is chosen."""
    st.html(STYLE)
    part_control()
    if state.part() is Part.FIT:
        fit_part()
    else:
        overlay_part()


def fit_part() -> None:
    """Lay the first part: measured steps, the cost model fitted to them, what it misses."""
    steps_source()
    steps = state.steps()
    _whose(steps)
    if steps.fit is None or steps.measurements is None:
        show_refusal(steps.refusal)
        return
    fitted, measurements = steps.fit, steps.measurements
    _figures(fitted)
    info = fit_info(measurements, fitted, source=_source(steps))
    st.markdown(_sentence(fitted))
    st.markdown(shape_sentence(info))
    for warning in fitted.warnings:
        st.warning(warning, icon=":material/warning:")
    left, right = st.columns(2)
    with left:
        chart(fit_figure(info), key="measured-fit", alt=fit_alt(info), filename="s11-fit")
    with right:
        chart(
            residuals_figure(info),
            key="measured-residuals",
            alt=residuals_alt(info),
            filename="s11-fit-errors",
        )
    left, right = st.columns(2)
    with left:
        _worst(measurements, fitted)
    with right:
        _use_it(steps, fitted.cost)
    _take_away(measurements, fitted)


def _whose(steps: Steps) -> None:
    if steps.made_up:
        st.info(
            "Shown is a **made-up sample**, no measurement of any machine. Upload or paste your "
            "own rows; they stay in this browser session and go into no link.",
            icon=":material/science:",
        )
    else:
        shown = "Shown" if steps.fit is not None else "Not shown"
        rows = "" if steps.measurements is None else f", {count(len(steps.measurements), 'row')}"
        st.markdown(
            f"{shown}: `{steps.name}`{rows}. It stays in this session and goes into no link."
        )


def _source(steps: Steps) -> str:
    return f"{steps.name}, no measurement" if steps.made_up else steps.name


def _figures(fitted: Fit) -> None:
    places = st.container(key="pair_measured_figures")
    columns = places.columns(6)
    for place, (label, many), term in zip(columns, SHOWN_TERMS, fitted.cost.terms, strict=False):
        place.metric(
            label,
            f"{plain(term.ms, 3)} ms",
            delta=f"{plain(many * term.ms, 3)} ms per {many:,}" if many else "fixed time",
            delta_color="off",
            delta_arrow="off",
            border=True,
        )
    columns[4].metric(
        "Error, these rows",
        f"{fitted.mean_abs_error_pct:.1f}%",
        delta=f"P90 {fitted.p90_abs_error_pct:.1f}%",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="Mean of |predicted − measured| / measured over the rows that were fitted (median "
        f"{fitted.median_abs_error_pct:.1f}%).",
    )
    columns[5].metric(
        "Error, left out",
        f"{fitted.leave_out_error_pct:.1f}%",
        delta=f"in {count(fitted.folds, 'group')}",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="The mean error again, but every setting (prefill, decode and cached tokens) is left "
        "out of a fit once and predicted by it: what to expect of steps that were not measured.",
    )


def _sentence(fitted: Fit) -> str:
    fixed, prefill, decode, context = [plain(term.ms, 3) for term in fitted.cost.terms]
    return (
        f"**step = {fixed} + {prefill} · prefill + {decode} · decode + {context} · cached tokens, "
        f"in ms.** From {count(fitted.rows, 'row')} at {count(fitted.settings, 'setting')}; expect "
        f"it to miss a step that was not measured by about **{fitted.leave_out_error_pct:.1f}%**, "
        "near the sizes that were."
    )


def _worst(measurements: Measurements, fitted: Fit) -> None:
    st.header("The rows that it misses most", anchor="worst")
    at = [int(np.searchsorted(measurements.file_row, row.file_row)) for row in fitted.worst]
    st.dataframe(
        {
            "row": [row.file_row for row in fitted.worst],
            "prefill": measurements.prefill_tokens[at],
            "decode": measurements.decode_tokens[at],
            "cached": measurements.context_tokens[at],
            "measured (ms)": [round(row.duration_ms, 3) for row in fitted.worst],
            "predicted (ms)": [round(row.predicted_ms, 3) for row in fitted.worst],
            "error (%)": [round(row.error_pct, 1) for row in fitted.worst],
        },
        hide_index=True,
    )
    st.markdown(":small[Rows as a spreadsheet counts them; the header is row 1.]")


def _use_it(steps: Steps, cost: FittedCost) -> None:
    st.header("Use it", anchor="use")
    address = simulator_link(cost)
    if address is None:
        st.markdown(
            f"The simulator page takes no coefficient above {MOST_LINK_MS:,.0f} ms; use the "
            "command line."
        )
    else:
        st.html(
            f'<nav class="presets"><a href="{escape(address)}" target="_self">'
            "Open the simulator with this cost</a></nav>"
        )
    st.markdown("The same on the command line:")
    name = shlex.quote("FILE.csv" if steps.name == "pasted rows" else steps.name)
    st.code(
        f"python -m s11 simulate --cost fitted --measurements {name}",
        language="bash",
        wrap_lines=True,
    )


def simulator_link(cost: FittedCost) -> str | None:
    """Return the simulator's link with the coefficients; None where its controls end."""
    values = [term.ms for term in cost.terms]
    if max(values) > MOST_LINK_MS:
        return None
    texts = [plain(value, 6).replace(",", "") for value in values]
    return "./?" + urlencode(dict(zip(LINK_NAMES, texts, strict=True)))


def plain(value: float, digits: int) -> str:
    """Return a number with so many digits that tell, and no exponent: 0.0000119."""
    shown = np.format_float_positional(
        value, precision=digits, unique=False, fractional=False, trim="-"
    )
    whole, point, rest = shown.partition(".")
    return f"{int(whole):,}{point}{rest}"


def _take_away(measurements: Measurements, fitted: Fit) -> None:
    fold = st.popover(
        "Take it with you: pictures, CSV",
        icon=":material/download:",
        on_change="rerun",
        key="measured_take_away",
    )
    numbers = st.expander(
        "The numbers as a table", icon=":material/table:", on_change="rerun", key="measured_table"
    )
    if fold.open:
        with fold:
            picture_control()
            st.download_button(
                "Rows as CSV",
                data=lambda: to_csv(_columns(measurements, fitted, len(measurements))),
                file_name="s11-fit.csv",
                mime="text/csv",
                on_click="ignore",
                icon=":material/table:",
            )
    if numbers.open:
        with numbers:
            st.dataframe(_columns(measurements, fitted, MOST_TABLE_ROWS), hide_index=True)
            if len(measurements) > MOST_TABLE_ROWS:
                st.markdown(f":small[The first {MOST_TABLE_ROWS:,} rows; the CSV has all.]")


def _columns(measurements: Measurements, fitted: Fit, most: int) -> dict[str, Sequence[Any]]:
    error_pct = -100.0 * fitted.residuals_ms / measurements.duration_ms
    columns = {
        "row": measurements.file_row,
        "prefill_tokens": measurements.prefill_tokens,
        "decode_tokens": measurements.decode_tokens,
        "context_tokens": measurements.context_tokens,
        "measured_ms": measurements.duration_ms,
        "predicted_ms": fitted.predicted_ms.round(4),
        "error_pct": error_pct.round(2),
    }
    return {name: column[:most].tolist() for name, column in columns.items()}
