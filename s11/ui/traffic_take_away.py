"""What leaves the traffic page: tables, runs as files, and the commands that give the same."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from s11 import __version__
from s11.chrome_trace import chrome_trace
from s11.chrome_window import trace_window
from s11.export_tables import Columns, table
from s11.exports import to_csv, to_parquet
from s11.figures.theme import Spec
from s11.figures.traffic_look import TrafficRun, run_names
from s11.ui import traffic_state as state
from s11.ui.frame import picture_control, plain
from s11.ui.numbers import numbers_fold
from s11.ui.traffic_command import export_command, simulate_command
from s11.ui.traffic_setup import Setup
from s11.ui.traffic_upload import uploaded

MOST_FILE_STEPS = 200_000
MOST_EVENTS = 200_000


def numbers(name: str, columns: Mapping[str, Sequence[Any]], spec: Spec) -> None:
    """Lay a picture's numbers as a table, and what can be taken away, behind a fold."""
    numbers_fold(
        name,
        columns,
        spec,
        page="traffic",
        key=f"traffic_{name.replace(' ', '_')}_table",
        filename=f"s11-traffic-{name.replace(' ', '-')}",
    )


def take_away(runs: Sequence[TrafficRun], setups: Sequence[Setup]) -> None:
    """Lay both runs as commands and as files."""
    st.header("Take it with you", anchor="take-away")
    name = "TRACE"
    if state.is_trace() and not state.is_uploaded():
        st.markdown("The commands read the sample's file, which can be saved above.")
    if state.is_uploaded():
        name = uploaded().trace.name
        st.markdown(
            "A link to this page carries all settings, but not the uploaded file: who opens it "
            "uploads the same file, or runs these commands beside it."
        )
    commands = [simulate_command(setup, trace_name=name) for setup in setups]
    for label, command in zip(run_names(runs), commands, strict=True):
        st.markdown(f"**{plain(label)}**, the same on the command line:")
        st.code(command, language="bash", wrap_lines=True)

    def report() -> str:
        from s11.figures.report import report_pieces  # loads plotly.js

        return "".join(report_pieces(runs, version=__version__, commands=commands))

    st.download_button(
        "Report of both as HTML",
        data=report,
        file_name="s11-traffic.html",
        mime="text/html",
        on_click="ignore",
        icon=":material/html:",
        key="traffic_report",
        help="One file with the pictures, figures, parameters and commands; opens anywhere.",
    )
    for side, run, setup in zip("ab", runs, setups, strict=True):
        _files(side, run, setup, trace_name=name)
    picture_control()


def _files(side: str, run: TrafficRun, setup: Setup, *, trace_name: str) -> None:
    """Lay a run's files; what is folded away is not made."""
    fold = st.expander(
        f"{side.upper()} as files: requests, steps, Chrome trace",
        icon=":material/download:",
        on_change="rerun",
        key=f"traffic_files_{side}",
    )
    if not fold.open:
        return
    with fold:
        places = st.columns(3)
        for place, table_name in zip(places, ("requests", "steps"), strict=False):
            steps = len(run.result.steps) if table_name == "steps" else 0
            if steps > MOST_FILE_STEPS:
                place.markdown(
                    f"{steps:,} steps are more than this page writes ({MOST_FILE_STEPS:,}): "
                    "`python -m s11 export` does."
                )
                continue
            for ending, mime, write in (
                ("csv", "text/csv", to_csv),
                ("parquet", "application/vnd.apache.parquet", to_parquet),
            ):
                place.download_button(
                    f"{table_name.capitalize()} as {'CSV' if ending == 'csv' else 'Parquet'}",
                    data=partial(_written, write, run, table_name),
                    file_name=f"s11-{side}-{table_name}.{ending}",
                    mime=mime,
                    on_click="ignore",
                    icon=":material/table:",
                    key=f"traffic_{side}_{table_name}_{ending}",
                )
        window = trace_window(run.experiment, run.result, most_events=MOST_EVENTS)
        places[2].download_button(
            "Chrome trace (Perfetto)",
            data=lambda: "".join(chrome_trace(run.experiment, run.result, window)),
            file_name=f"s11-{side}-trace.json",
            mime="application/json",
            on_click="ignore",
            icon=":material/timeline:",
            key=f"traffic_{side}_chrome",
            help="Opens in ui.perfetto.dev and in chrome://tracing.",
        )
        if window.left_out:
            places[2].caption(f"{_begun(window.left_out)}.")
        st.caption("All of it, whatever its size, on the command line:")
        for format_name, ending in (("chrome", "trace.json"), ("parquet", "steps.parquet")):
            told = export_command(
                setup,
                format_name=format_name,
                output=f"s11-{side}-{ending}",
                trace_name=trace_name,
            )
            st.code(told, language="bash", wrap_lines=True)


def _written(
    write: Callable[[Columns], str | bytes], run: TrafficRun, table_name: str
) -> str | bytes:
    return write(table(table_name, run.experiment, run.result, run.metrics))


def _begun(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:].removesuffix(".")
