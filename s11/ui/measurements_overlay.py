"""The measurements page's second part: a benchmark laid over its simulation."""

from __future__ import annotations

import math

import streamlit as st

from s11.bench_results import BenchHead
from s11.catalog import Deployment
from s11.catalog.gpus import GIB
from s11.costs.constants import constants_of
from s11.exports import to_csv
from s11.figures.overlay import overlay_alt, overlay_figure
from s11.figures.overlay_info import SHOWN_PERCENTS, overlay_info, percentile_columns
from s11.overlay import PERCENTS, Overlay
from s11.presets import PRESETS
from s11.ui import machine
from s11.ui import measurements_state as state
from s11.ui.frame import chart, picture_control, show_refusal
from s11.ui.measurements_controls import benchmark_source, machine_controls
from s11.ui.measurements_state import Benchmark, Outcome
from s11.words import count, ms

CAPTION_ROOM = 60  # characters of a line at 390 px
LARGE_GPU_BYTES = 70 * GIB  # from there on vLLM takes the larger defaults


def overlay_part() -> None:
    """Lay a benchmark's latencies over those of the same requests, simulated."""
    benchmark_source()
    bench = state.benchmark()
    _whose(bench)
    machine_controls()
    if bench.results is None:
        show_refusal(bench.refusal)
        return
    try:
        deployment = machine.deployment(state.MODEL_KEY, chapter=False)
        assert deployment is not None
        _other_engine(deployment)
        with st.spinner("Simulating…"):
            found = state.outcome(bench, state.engine(), deployment)
    except ValueError as error:
        show_refusal(error)
        return
    overlays = [side for side in (found.laid.ttft, found.laid.itl) if side is not None]
    _figures(overlays)
    _limits_met(bench, found)
    for overlay in overlays:
        st.markdown(overlay.sentence)
    caption = _caption(bench, found, deployment)
    for place, overlay in zip(st.columns(max(1, len(overlays))), overlays, strict=False):
        info = overlay_info(overlay, caption=caption)
        with place:
            chart(
                overlay_figure(info),
                key=f"measured-{overlay.name.lower()}",
                alt=overlay_alt(info),
                filename=f"s11-{overlay.name.lower()}-overlay",
            )
    if found.laid.itl is None:
        st.markdown("There is no ITL on one of the sides: nothing decodes beyond its first token.")
    st.markdown(f":small[{_how(found, deployment)}]")
    _take_away(overlays)


def _whose(bench: Benchmark) -> None:
    if bench.made_up:
        st.info(
            "Shown is a **made-up sample** (a simulated schedule with noise and hiccups), no "
            "measurement of any machine. Upload your own benchmark; it stays in this browser "
            "session and goes into no link.",
            icon=":material/science:",
        )
    else:
        shown, told = "Not shown", ""
        if bench.results is not None:
            shown, told = "Shown", f" {_told(bench)}"
        st.markdown(
            f"{shown}: `{bench.name}`.{told} It stays in this session and goes into no link."
        )


def _told(bench: Benchmark) -> str:
    """Say what the file says of itself."""
    assert bench.results is not None
    head: BenchHead = bench.results.head
    told = [
        f"{name} `{state.plain_name(text, 80)}`"
        for name, text in (("model", head.model_id), ("backend", head.backend), ("of", head.date))
        if text
    ]
    rate = head.request_rate_per_s
    if rate is not None:
        told.append("all sent at once" if math.isinf(rate) else f"{rate:g} requests/s")
    if head.max_concurrency is not None:
        told.append(f"at most {head.max_concurrency:,} under way")
    told.append(f"{count(bench.all_requests, 'request')} that succeeded")
    if bench.results.failed:
        told.append(f"{bench.results.failed:,} that failed, left out")
    return f"It says: {', '.join(told)}."


def _other_engine(deployment: Deployment) -> None:
    """Say where the chosen engine comes with other defaults on the chosen GPU."""
    large = (PRESETS["vllm-16k"], PRESETS["vllm-8k"])
    small_gpu = deployment.hardware.memory_bytes < LARGE_GPU_BYTES
    if state.engine() in large and (small_gpu or deployment.gpu.startswith("a100")):
        st.markdown(
            f":small[These are vLLM's defaults for GPUs of 70 GiB or more, A100 excepted. On "
            f"{deployment.hardware.title} it comes as “{PRESETS['vllm-2k'].title}”, which also "
            "needs less memory beside the KV cache.]"
        )


def _figures(overlays: list[Overlay]) -> None:
    places = st.container(key="pair_measured_overlay").columns(4)
    figures = [
        (f"{overlay.name} {name}", simulated, measured)
        for overlay in overlays
        for name, simulated, measured in (
            ("median", overlay.simulated.median_ms, overlay.measured.median_ms),
            ("P99", overlay.simulated.p99_ms, overlay.measured.p99_ms),
        )
    ]
    for place, (label, simulated, measured) in zip(places, figures, strict=False):
        place.metric(
            f"{label}, simulated",
            ms(simulated),
            delta=f"measured: {ms(measured)}",
            delta_color="off",
            delta_arrow="off",
            border=True,
        )


def _limits_met(bench: Benchmark, found: Outcome) -> None:
    """Say what this page left out, for it is shared by many."""
    assert bench.results is not None
    if bench.all_requests > len(bench.results):
        st.warning(
            f"This page replays the first {len(bench.results):,} of {bench.all_requests:,} "
            "requests; both sides show those.",
            icon=":material/content_cut:",
        )
    if found.cut:
        st.warning(
            f"The simulation was cut at {found.steps:,} steps: both sides show the "
            f"{found.laid.requests:,} requests that had ended, not the other "
            f"{found.laid.unfinished:,}.",
            icon=":material/content_cut:",
        )
    elif found.laid.unfinished:
        pool = (found.kv_blocks or 0) * found.block_size
        st.warning(
            f"{count(found.laid.unfinished, 'request')} can never end on this machine (KV pool: "
            f"{pool:,} tokens); both sides show the other {found.laid.requests:,}.",
            icon=":material/block:",
        )


def _how(found: Outcome, deployment: Deployment) -> str:
    pool = ""
    if found.kv_blocks is not None:
        pool = f" KV pool: {found.kv_blocks * found.block_size:,} tokens."
    return (
        f"{found.replay.sentence} {count(found.steps, 'step')} simulated on {state.engine().title}"
        f" ({state.engine().speaks_for}), prefix cache left out.{pool} "
        f"{machine.calibration_note(deployment)} Neither the network nor HTTP is simulated, and "
        "a measured ITL is the gap between two messages, which may hold several tokens."
    )


def _caption(bench: Benchmark, found: Outcome, deployment: Deployment) -> list[str]:
    on = found.cost.formula().removesuffix(", roofline")
    if not constants_of(deployment.gpu, deployment.precision).calibrated:
        on += ", not calibrated"
    sent = "closed loop" if found.replay.closed_loop else "open loop"
    source = f"{bench.name}, no measurement" if bench.made_up else bench.name
    lines = (
        on,
        f"s11, as {state.engine().title}; {sent}",
        f"{source}; {count(found.laid.requests, 'request')}",
    )
    return [line if len(line) <= CAPTION_ROOM else f"{line[: CAPTION_ROOM - 1]}…" for line in lines]


def _take_away(overlays: list[Overlay]) -> None:
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
                "All percentiles as CSV",
                data=lambda: to_csv(percentile_columns(overlays, PERCENTS)),
                file_name="s11-overlay.csv",
                mime="text/csv",
                on_click="ignore",
                icon=":material/table:",
            )
    if numbers.open:
        with numbers:
            st.dataframe(percentile_columns(overlays, SHOWN_PERCENTS), hide_index=True)
