"""The chunk size page's panels: figures, pictures, sentences, flags, numbers."""

from __future__ import annotations

from functools import partial

import streamlit as st

from s11.budgets import REQUESTS_PER_CLIENT
from s11.catalog import Deployment
from s11.figures.chunk_size import chunk_figure
from s11.figures.chunk_size_info import (
    ChunkCurve,
    chunk_curve,
    curve_alt,
    curve_columns,
    grain_words,
    host_stand_in,
    simulated_words,
)
from s11.figures.chunk_size_many import many_alt, many_columns, many_figure
from s11.figures.chunk_size_words import (
    across_words,
    finding,
    knee_words,
    no_knee,
    refused_words,
)
from s11.tuning import tuned_sizes
from s11.ui import chunk_size_state as state
from s11.ui.chunk_size_controls import (
    across_control,
    busy_controls,
    controls,
    worked,
)
from s11.ui.chunk_size_settings import flags, memory, numbers
from s11.ui.chunk_size_state import Across
from s11.ui.frame import chart, show_refusal
from s11.ui.machine import GPU_LABELS, calibration_note
from s11.words import ms

STYLE = """<style>
.block-container h2{font-size:1.4rem;padding:1rem 0 .5rem}
@media (max-width:640px){
.block-container h2{font-size:1.15rem}
[class*="st-key-size_"] .modebar-container{top:auto !important;bottom:26px}
[class*="st-key-size_many"] .modebar-container{bottom:52px}
}
</style>"""


def chunk_size_page() -> None:
    """Lay the controls and all that they give."""
    st.html(STYLE)
    controls()
    curve_place = st.container()
    st.header("The same on other machines", anchor="machines")
    across_control()
    across_place = st.container()
    st.header("What to set", anchor="flags")
    flags_place = st.container()
    st.header("What a larger budget costs in memory", anchor="memory")
    busy_controls()
    memory_place = st.container()
    machine, curve, chosen = None, None, None
    try:
        machine = state.deployment()
        with curve_place:
            curve = _curve(machine)
    except ValueError as error:
        show_refusal(error, curve_place)
    with flags_place:
        if machine is None or curve is None:
            st.markdown("No settings for a machine that cannot run this load.")
        else:
            chosen = flags(machine, curve)
    with across_place:
        if machine is None:
            st.markdown("Nothing to compare yet.")
        else:
            _across(machine)
    with memory_place:
        if machine is None:
            st.markdown("No budget to try yet.")
        else:
            memory(machine, chosen)
    st.caption(
        "This page is shared, so its work is bounded: prompts of up to 131,072 tokens, 255 users, "
        f"128 clients with {REQUESTS_PER_CLIENT} requests each. A sweep's run is cut at "
        f"{state.MAX_STEPS:,} steps, a busy load's at {state.MAX_BUSY_STEPS:,}; what was cut is "
        "marked in picture and table."
    )


def _curve(machine: Deployment) -> ChunkCurve:
    """Run the sweep, and show its figures, picture and sentences."""
    asked = state.experiment(machine)
    best = state.largest(asked)
    sizes = tuned_sizes(asked)
    figures_place, chart_place = st.container(), st.container()
    jobs = [(f"Chunks of {size:,} tokens", partial(state.tried, asked, size)) for size in sizes]
    done = worked("sweep", (asked, sizes), jobs)
    curve = chunk_curve(asked, machine, done, planned=len(sizes), largest=best)
    with figures_place:
        _figures(curve)
    spec = chunk_figure(curve)
    with chart_place:
        chart(spec, key="size_curve", alt=curve_alt(curve), filename="s11-chunk-size")
    for told in (finding(curve), knee_words(curve), refused_words(curve)):
        if told:
            st.markdown(told)
    notes = [calibration_note(machine)]
    stand_in = host_stand_in(curve.policy)
    if stand_in:
        notes.append(
            f"{state.value_of('size_engine')}'s own time on the host was not measured: "
            f"{stand_in}'s stands in, as both overlap it with the GPU."
        )
    longest = machine.model.max_positions
    if longest < curve.prompt_tokens:
        notes.append(f"{machine.model.title} was made for sequences of up to {longest:,} tokens.")
    if curve.policy in ("vllm_v1", "tensorrt_llm"):
        notes.append(
            "The chunk size here is what the prompt gets of a step: the token budget less one "
            f"token for each of the {curve.streaming_users} decodes."
        )
    st.markdown(f":small[{' '.join(notes)}]")
    numbers("sweep", curve_columns(curve), spec)
    return curve


def _figures(curve: ChunkCurve) -> None:
    places = st.container(key="pair_size_figures").columns(4)
    target = f"{curve.target_ms:g} ms"
    largest = "none" if curve.largest is None else f"{curve.largest:,} tokens"
    places[0].metric(
        "Largest chunk",
        "any" if curve.any_chunk else largest,
        delta=f"that meets {target}",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="No step and no gap between tokens exceeds the target; simulated, "
        f"{grain_words(curve)}.",
    )
    knee = curve.balanced
    places[1].metric(
        "Knee",
        "none" if knee is None else f"{knee.chunk_tokens:,} tokens",
        delta=no_knee(curve) or "least stall × TTFT",
        delta_color="off",
        delta_arrow="off",
        border=True,
        help="Where longest stall × TTFT is least in the sweep. None where larger chunks only "
        "gain, and where a smaller chunk does not shorten the stall.",
    )
    best = curve.told
    where = "at the knee" if knee or best is None else f"with {best.chunk_tokens:,} tokens"
    stall = None if best is None else best.longest_stall_ms
    ttft = None if best is None else best.ttft_ms
    for place, label, value in ((2, "Longest stall", stall), (3, "TTFT", ttft)):
        places[place].metric(
            label,
            ms(value),
            delta=where,
            delta_color="off",
            delta_arrow="off",
            border=True,
        )


def _across(chosen: Deployment) -> None:
    """Run the sweep on every machine of the row, and show the panels."""
    jobs = [(label, partial(state.machine_curve, label, make)) for label, make in state.compared()]
    asked = (state.value_of("across"), state.experiment(chosen))
    done = tuple(worked("across", asked, jobs))
    target_ms = float(state.value_of("size_target"))
    tp, precision = chosen.tensor_parallel, chosen.precision
    by_gpu = state.value_of("across") == Across.GPUS
    fixed = chosen.model.title if by_gpu else GPU_LABELS[chosen.gpu]
    ring = "no knee: decodes wait" if state.waiting() else "ring: knee"
    spec = many_figure(
        done,
        target_ms=target_ms,
        title=f"{fixed}: chunks within {target_ms:g} ms",
        caption=[
            simulated_words(state.policy()),
            f"{'1 GPU' if tp == 1 else f'{tp} GPUs'}, {precision}, prompt "
            f"{int(state.value_of('size_prompt')):,}, {int(state.value_of('size_users'))} users",
            f"green ● within, red × over the target; {ring}",
            "* not calibrated",
        ],
        planned=len(jobs),
    )
    chart(spec, key="size_many", alt=many_alt(done, target_ms=target_ms), filename="s11-machines")
    fits = {one.label: one.largest for one in done if not one.refused}
    unfit = [one for one in done if one.refused]
    st.markdown(across_words(fits, target_ms=target_ms, unfit=len(unfit)))
    told = [(one.label, one.refused or one.dropped) for one in done]
    reasons = [f"- **{label}**: {reason}." for label, reason in told if reason]
    if reasons:
        with st.expander(f"Why {len(reasons)} cannot run it, or not at all sizes"):
            st.markdown("\n".join(reasons))
    numbers("machines", many_columns(done), spec)
