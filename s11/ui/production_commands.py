"""The production page's commands: our knobs, and what each engine is started with."""

from __future__ import annotations

from typing import Any

import streamlit as st

from s11.catalog import Deployment
from s11.engine_commands import Launch, launch_command, remarks
from s11.engine_knobs import ENGINES
from s11.figures.piggyback_looks import machine_line
from s11.ui import production_state as state
from s11.ui.machine import machine_pills
from s11.ui.production_state import CACHING, DEFAULTS
from s11.ui.simulator_link import simulator_link, simulator_parameters
from s11.ui.simulator_state import MAX_BUDGET, MAX_PROMPT


def command_controls() -> None:
    """Lay the knobs that the commands are made from."""
    places = st.container(key="pair_production").columns([3, 3, 3, 3], vertical_alignment="bottom")
    with places[0]:
        _number("budget", "Token budget (tokens)", MAX_BUDGET, step=512,
                help="Most tokens in one step, decodes included.")  # fmt: skip
    with places[1]:
        _number("chunk", "Chunk cap (tokens)", MAX_PROMPT, step=256,
                help="Most prompt tokens of one request in one step; for SGLang and LMDeploy of "
                "a whole step.")  # fmt: skip
    with places[2]:
        _number("seats", "Seats (requests)", MAX_BUDGET, step=32,
                help="Most requests that run at once.")  # fmt: skip
    with places[3].popover("Model & GPU", icon=":material/memory:", width="stretch"):
        machine_pills(state.MODEL_KEY, chapter=False)
    with st.container(horizontal=True, vertical_alignment="bottom", gap="medium"):
        st.segmented_control(
            "Prefix caching",
            options=list(CACHING),
            default=DEFAULTS["prefix"],
            key="prefix",
            bind="query-params",
            required=True,
            help="Keep the KV of prompts, and skip what another prompt begins with alike.",
        )
        st.toggle(
            "Chunking",
            value=DEFAULTS["chunking"],
            key="chunking",
            bind="query-params",
            help="Off: prompts are taken whole.",
        )
        st.toggle(
            "Decodes ride along (SGLang)",
            value=DEFAULTS["mixed"],
            key="mixed",
            bind="query-params",
            help="SGLang's --enable-mixed-chunk: off, a step is prefill or decode.",
        )


def commands(on: Deployment) -> None:
    """Lay a command for each engine, with what it cannot say."""
    launch = state.launch(on)
    st.markdown(f":small[For **{machine_line(on)}**]")
    for first in range(0, len(ENGINES), 2):
        for place, engine in zip(st.columns(2), ENGINES[first : first + 2], strict=False):
            with place:
                _command(engine, launch)
    st.markdown(
        ":small[A knob that is left empty stays as the engine has it, and so is not in its "
        "command. What no flag of an engine does is said below it.]"
    )
    simulator_link("Open these settings in the simulator", _in_the_simulator(launch))


def _command(engine: str, launch: Launch) -> None:
    st.markdown(f"**{engine}**")
    st.code(launch_command(engine, launch), language="bash", wrap_lines=True)
    told = remarks(engine, launch)
    if told:
        st.markdown(f":small[{' '.join(told)}]")


def _in_the_simulator(launch: Launch) -> dict[str, str]:
    return simulator_parameters(
        launch.machine,
        budget=launch.token_budget,
        chunk=launch.chunk_tokens,
        seats=launch.max_seqs,
        chunking=None if launch.chunking else False,
        mixed=launch.mixed or None,
    )


def _number(key: str, label: str, most: int, **options: Any) -> None:
    st.number_input(
        label,
        min_value=1,
        max_value=most,
        value=DEFAULTS[key],
        placeholder="as it comes",
        key=key,
        bind="query-params",
        **options,
    )
