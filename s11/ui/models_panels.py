"""The trust page's panels: headline figures, pictures, errors, limits, papers, catalog, sources."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from s11.costs.constants import document as constants_document
from s11.exports import to_csv
from s11.figures.trust import error_figure, scatter_figure
from s11.figures.trust_info import gpu_title, point_columns, sentence, trust_alt, trust_info
from s11.figures.trust_tables import (
    as_markdown,
    error_columns,
    gpu_columns,
    headline_columns,
    model_columns,
    overhead_columns,
    published_columns,
)
from s11.figures.trust_words import (
    NOT_MODELLED,
    SARATHI_BASIS,
    basis_told,
    calibration,
    gap_told,
    modelled,
    overhead_told,
    sarathi_told,
    serving_told,
)
from s11.ui import models_state as state
from s11.ui.frame import chart, picture_control
from s11.ui.models_controls import quantity_control
from s11.validation.leave_out import leave_out
from s11.validation.published import SARATHI, SARATHI_SERVE
from s11.validation.snapshot import snapshot

DOMAIN = r"https?://(?:www\.)?([^/]+)"
STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
.block-container h3{font-size:1.1rem;padding:.75rem 0 .25rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-trust"] .modebar-container{top:80px !important}
}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def headline() -> None:
    """Lay the errors in short: whole serving runs, and kernels by GPU."""
    found = snapshot()
    runs = {row.quantity: row for row in found.rows if row.group == "vllm"}
    places = st.container(key="pair_trust").columns(4)
    for place, (title, name) in zip(
        places,
        (
            ("TPOT", "mean_tpot_ms"),
            ("Latency", "latency_ms"),
            ("TTFT", "mean_ttft_ms"),
        ),
        strict=False,
    ):
        row = runs[name]
        place.metric(
            f"{title} error",
            f"{row.median_abs_error_pct:.1f}%",
            delta=f"p90 {row.p90_abs_error_pct:.1f}%, {row.points:,} runs",
            delta_color="off",
            delta_arrow="off",
            border=True,
            help="Median of the absolute error of the mean that a benchmark's client reports, over "
            f"whole vLLM runs on {gpu_title(row.gpu)} whose KV cache is not exhausted.",
        )
    kernels = [
        row.mean_abs_error_pct
        for row in found.rows
        if row.file != "end_to_end.csv" and row.group == "all"
    ]
    places[3].metric(
        "Kernel errors",
        f"{min(kernels):.0f}–{max(kernels):.0f}%",
        delta=f"means of {len(kernels)} tables",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="Mean absolute error of single kernels: the best and the worst of a measured table "
        "on one GPU.",
    )
    columns = headline_columns(found, leave_out())
    st.dataframe(columns, hide_index=True, width="stretch", height="content")
    st.markdown(f":small[{basis_told(found, leave_out())}]")


def pictures() -> None:
    """Lay the control, predicted against measured, and how far off by size."""
    st.header("Predicted against measured", anchor="scatter")
    quantity_control()
    info = trust_info(snapshot(), state.quantity())
    left, right = st.columns(2)
    alt = trust_alt(info)
    with left:
        chart(scatter_figure(info), key="trust-scatter", alt=alt, filename="s11-trust")
    with right:
        chart(error_figure(info), key="trust-errors", alt=alt, filename="s11-trust-errors")
    st.markdown(sentence(info))
    _table("The drawn points as a table", point_columns(info), "s11-trust-points.csv", "points")
    picture_control()


def errors() -> None:
    """Lay every row of the validation."""
    st.header("All errors", anchor="errors")
    columns = error_columns(snapshot(), leave_out())
    st.dataframe(columns, hide_index=True, width="stretch")
    _download("Errors as CSV", columns, "s11-errors.csv", "errors")
    st.markdown(
        ":small[Absolute percentage errors; the 90th percentile is of the inverted CDF; bias is "
        "the mean with its sign, above 0 where the model says too much; “left out” is the mean "
        "error on half of the shapes, fitted on the other half, and the other way round. All but "
        "that from your own tables: `python -m s11 validate DIR`.]"
    )
    for told in snapshot().left_out:
        st.markdown(f"- Left out: {told}")


def limits() -> None:
    """Lay what is modelled and what is not, and how serving runs are simulated."""
    st.header("What is modelled, and what is not", anchor="modelled")
    left, right = st.columns(2)
    left.markdown("**Modelled**\n" + "".join(f"\n- {line}" for line in modelled()))
    right.markdown("**Not modelled**\n" + "".join(f"\n- {line}" for line in NOT_MODELLED))
    st.markdown(calibration())
    with st.expander("How the serving runs are simulated", icon=":material/replay:"):
        st.markdown(serving_told())


def papers() -> None:
    """Lay the papers' figures beside ours, worked out now."""
    st.header("Against the papers", anchor="papers")
    rows, decodes = state.sarathi_rows()
    st.subheader("SARATHI: LLaMA-13B on one A6000")
    st.dataframe(
        published_columns((*rows, *decodes)), hide_index=True, width="stretch", height="content"
    )
    st.markdown(
        f"{sarathi_told(rows, decodes)} {SARATHI_BASIS} Source: [{SARATHI.title}]"
        f"({SARATHI.address})."
    )
    st.subheader("Sarathi-Serve: what chunking adds to a prefill, and what it takes away")
    st.markdown(as_markdown(overhead_columns(state.overheads())))
    st.markdown(f"{overhead_told(state.overheads())}")
    st.markdown(
        f"{gap_told(state.gap())} Source: [{SARATHI_SERVE.title}]({SARATHI_SERVE.address})."
    )


def catalog() -> None:
    """Lay the catalog's GPUs and models, each number with its source."""
    st.header("Catalog", anchor="catalog")
    for title, columns, filename, key in (
        ("GPUs: a datasheet's dense peaks", gpu_columns(), "s11-gpus.csv", "gpus"),
        ("Models: what their config.json says", model_columns(), "s11-models.csv", "models"),
    ):
        st.subheader(title)
        sources: dict[str, Any] = {
            name: st.column_config.LinkColumn(name, display_text=DOMAIN)
            for name in columns
            if name.startswith("source")
        }
        st.dataframe(columns, hide_index=True, width="stretch", column_config=sources)
        _download("As CSV", columns, filename, key)


def sources() -> None:
    """Lay where measurements, constants and published figures come from."""
    st.header("Sources", anchor="sources")
    constants = constants_document()
    own = [
        f"{gpu}: {entry['source']}" for gpu, entry in constants["gpus"].items() if "source" in entry
    ]
    lines = [
        *(f"Validated on {source}." for source in snapshot().sources),
        *(f"Fitted on {source}." for source in (*constants["sources"], *own)),
        *(f"[{paper.title}]({paper.address})." for paper in (SARATHI, SARATHI_SERVE)),
    ]
    st.markdown("\n".join(f"- {line.replace('..', '.')}" for line in lines))


def _table(title: str, columns: Mapping[str, list[object]], filename: str, key: str) -> None:
    fold = st.expander(title, icon=":material/table:", on_change="rerun", key=f"trust_{key}")
    if fold.open:
        with fold:
            st.dataframe(columns, hide_index=True, width="stretch")
            _download("As CSV", columns, filename, key)


def _download(label: str, columns: Mapping[str, list[object]], filename: str, key: str) -> None:
    st.download_button(
        label,
        data=lambda: to_csv(columns),
        file_name=filename,
        mime="text/csv",
        on_click="ignore",
        icon=":material/table:",
        key=f"trust_{key}_csv",
    )
