"""The measurements page's controls: which part, whose file, which engine on which machine."""

from __future__ import annotations

import streamlit as st

from s11.costs.measurements import MAX_ROWS
from s11.sample_measurements import BENCHMARK_NAME, STEPS_NAME, sample_benchmark, sample_steps
from s11.ui import measurements_state as state
from s11.ui.machine import machine_pills
from s11.ui.measurements_state import BENCHMARK, DEFAULTS, ENGINES, STEPS, Part

ROUND = "measurements_round"  # a file picker is emptied by giving it another key

HOW_TO_LOG = (
    "How to log such rows from vLLM: time each engine step where the worker runs the model "
    "(`execute_model`, synchronised) and write **one row per step** with the prompt tokens "
    "scheduled in it, its decodes (requests that got one token), the cached tokens that they all "
    "attend to (the sum of `num_computed_tokens`), and its milliseconds. Vary all of them: decodes "
    "alone, chunks of several sizes, both together, short and long contexts."
)


def part_control() -> None:
    """Lay the dominant choice."""
    st.segmented_control(
        "What would you like to do with your measurements?",
        options=[str(part) for part in Part],
        default=DEFAULTS["part"],
        required=True,
        key="part",
        bind="query-params",
    )


def steps_source() -> None:
    """Lay where the measured steps come from."""
    left, right = st.columns([3, 2], vertical_alignment="top")
    with left:
        st.file_uploader(
            "Measured steps: a CSV with the columns prefill_tokens, decode_tokens, "
            f"context_tokens, duration_ms (up to {state.STEPS_MB} MB)",
            type=["csv", "txt"],
            key=_key("steps_file"),
            max_upload_size=state.STEPS_MB,
            on_change=_take_steps_file,
            help=f"Up to {MAX_ROWS:,} rows. Columns may stand in any order; others are left out.",
        )
    with right:
        with st.popover("Paste rows instead", icon=":material/content_paste:", width="stretch"):
            st.text_area(
                "CSV, with its header line",
                key=_key("steps_paste"),
                height=200,
                placeholder="prefill_tokens,decode_tokens,context_tokens,duration_ms\n512,24,24576,17.9",
                on_change=_take_paste,
            )
        _sample_buttons(STEPS, STEPS_NAME, "text/csv", sample_steps)
    st.markdown(f":small[{HOW_TO_LOG}]")


def benchmark_source() -> None:
    """Lay where the benchmark comes from, and which of its runs is meant."""
    left, right = st.columns([3, 2], vertical_alignment="top")
    with left:
        st.file_uploader(
            "Benchmark: the JSON of vllm bench serve --save-result --save-detailed "
            f"(up to {state.BENCHMARK_MB} MB)",
            type=["json", "jsonl"],
            key=_key("benchmark_file"),
            max_upload_size=state.BENCHMARK_MB,
            on_change=_take_benchmark_file,
            help=f"This page is shared by many: it replays the first {state.MOST_REQUESTS:,} "
            f"requests, for at most {state.MOST_STEPS:,} steps. Answers (generated_texts) are "
            "passed over, and may be left out of the file.",
        )
    with right:
        _sample_buttons(BENCHMARK, BENCHMARK_NAME, "application/json", sample_benchmark)
        results = state.benchmark().results
        if results is not None and results.head.runs > 1:
            st.number_input(
                f"Run (of {results.head.runs:,} in the file)",
                min_value=1,
                max_value=results.head.runs,
                value=results.head.run,
                key=_key("benchmark_run"),
                on_change=_take_run,
                help="--append-result writes one run after another; the last is taken first.",
            )


def machine_controls() -> None:
    """Lay the engine and the machine."""
    st.selectbox(
        "Engine, as it comes",
        options=list(ENGINES),
        index=list(ENGINES).index(DEFAULTS["bench_engine"]),
        key="bench_engine",
        bind="query-params",
        help="Scheduler, token budget and seats by default. The prefix cache is left out: a "
        "benchmark's prompts are taken to have nothing in common.",
    )
    machine_pills(state.MODEL_KEY, chapter=False)


def _sample_buttons(kept: str, name: str, mime: str, sample: object) -> None:
    own = st.session_state.get(kept) is not None
    if own:
        st.button(
            "Use the sample",
            key=f"{kept}_sample",
            icon=":material/undo:",
            on_click=_use_sample,
            args=(kept,),
            width="stretch",
        )
    st.download_button(
        f"The sample as a file ({name})",
        data=sample,  # type: ignore[arg-type]
        file_name=name,
        mime=mime,
        key=f"{kept}_download",
        on_click="ignore",
        icon=":material/download:",
        width="stretch",
    )


def _key(name: str) -> str:
    return f"{name}_{st.session_state.get(ROUND, 0)}"


def _use_sample(kept: str) -> None:
    st.session_state.pop(kept, None)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1


def _take_steps_file() -> None:
    file = st.session_state.get(_key("steps_file"))
    if file is None:
        st.session_state.pop(STEPS, None)
        return
    try:
        text = state.text_of(file, most_mb=state.STEPS_MB)
    except ValueError as error:
        name = state.plain_name(file.name)
        st.session_state[STEPS] = state.Steps(name=name, made_up=False, refusal=str(error))
    else:
        st.session_state[STEPS] = state.read_steps(file.name, text)


def _take_paste() -> None:
    text = st.session_state.get(_key("steps_paste")) or ""
    if text.strip():
        st.session_state[STEPS] = state.read_steps("pasted rows", text)
    else:
        st.session_state.pop(STEPS, None)


def _take_benchmark_file() -> None:
    file = st.session_state.get(_key("benchmark_file"))
    if file is None:
        st.session_state.pop(BENCHMARK, None)
        return
    try:
        text = state.text_of(file, most_mb=state.BENCHMARK_MB)
    except ValueError as error:
        name = state.plain_name(file.name)
        st.session_state[BENCHMARK] = state.Benchmark(name=name, made_up=False, refusal=str(error))
    else:
        st.session_state[BENCHMARK] = state.read_benchmark(file.name, text)


def _take_run() -> None:
    bench = state.benchmark()
    run = st.session_state.get(_key("benchmark_run"))
    if bench.text is not None and run is not None:
        st.session_state[BENCHMARK] = state.read_benchmark(bench.name, bench.text, run=int(run))
