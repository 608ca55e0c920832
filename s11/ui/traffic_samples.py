"""The made-up sample traces, one of each format, for those who have no file of their own."""

from __future__ import annotations

from functools import lru_cache

import streamlit as st

from s11.traces import SAMPLES, Trace, read_trace, sample_path
from s11.ui.frame import plain

TITLES = {
    "Azure": "made-up-azure.csv",
    "BurstGPT": "made-up-burstgpt.csv",
    "Mooncake": "made-up-mooncake.jsonl",
    "vllm bench": "made-up-bench.json",
}
MIME = {"csv": "text/csv", "json": "application/json", "jsonl": "application/jsonl"}
DEFAULT = "Azure"
KEY = "sample"


@lru_cache(maxsize=len(SAMPLES))
def sample_trace(name: str) -> Trace:
    """Return a sample by its file's name.

    Raises:
        ValueError: no sample of that name.
    """
    return read_trace(sample_path(name), name=name)


def sample_control() -> None:
    """Lay the choice of a sample, what was read of it, and the sample as a file."""
    left, right = st.columns([3, 2], vertical_alignment="bottom")
    with left:
        chosen = st.pills(
            "Format of the made-up sample",
            options=list(TITLES),
            default=DEFAULT,
            required=True,
            key=KEY,
            bind="query-params",
            help="One in each of the formats that this page reads; no server was recorded.",
        )
    name = TITLES[str(chosen)]
    with right:
        st.download_button(
            f"The sample as a file ({name})",
            data=sample_path(name).read_bytes,
            file_name=name,
            mime=MIME[name.rpartition(".")[2]],
            on_click="ignore",
            icon=":material/download:",
            key="traffic_sample_file",
        )
    st.markdown(f":small[{plain(told(sample_trace(name)))}]")


def told(trace: Trace) -> str:
    """Return what a trace's file held, and how long it lasts."""
    span_s = float(trace.arrival_ms[-1]) / 1000
    return f"{trace.name}: {trace.sentence()} It spans {span_s:,.4g} s."
