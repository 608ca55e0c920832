"""The chunk size page's second half: what to set, what its memory costs, numbers to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import streamlit as st

from s11.budgets import BUDGETS
from s11.catalog import Deployment, kv_tokens_of_budgets
from s11.figures.chunk_size_flags import (
    Settings,
    command,
    longest_sequence,
    longest_words,
    settings,
)
from s11.figures.chunk_size_info import (
    ChunkCurve,
    calibration_words,
    grain_words,
    short_caption,
    simulated_words,
)
from s11.figures.chunk_size_memory import (
    MemoryCost,
    memory_alt,
    memory_columns,
    memory_figure,
    memory_words,
)
from s11.figures.theme import Spec
from s11.presets import TITLES
from s11.tuning import MOST_SEATS, seats
from s11.ui import chunk_size_state as state
from s11.ui.chunk_size_controls import worked
from s11.ui.frame import chart, picture_control
from s11.ui.numbers import numbers_fold
from s11.ui.simulator_link import simulator_link, simulator_parameters
from s11.words import ms

MOST_PROMPT = state.BOUNDS["size_prompt"][1]


def flags(machine: Deployment, curve: ChunkCurve) -> Settings | None:
    """Show the engine's own command, and what its budget leaves of the KV memory."""
    size, why = _advised(curve)
    if size is None:
        st.markdown("Nothing to set: no chunk size runs here.")
        return None
    block = curve.block_size
    chosen = settings(
        machine,
        policy=curve.policy,
        chunk_tokens=size,
        prompt_tokens=curve.prompt_tokens,
        streaming_users=curve.streaming_users,
        user_context_tokens=int(state.value_of("size_context")),
        most_seats=MOST_SEATS,
        mixed=curve.mixed,
    )
    (left,) = kv_tokens_of_budgets(
        machine,
        [chosen.token_budget],
        block_size=block,
        max_seqs=seats(chosen.token_budget),
    )
    context, answer = int(state.value_of("size_context")), int(state.value_of("size_answer"))
    sequence = max(context, curve.prompt_tokens) + answer
    chosen = replace(
        chosen,
        longest_tokens=longest_sequence(
            machine, kv_tokens=left, needed_tokens=sequence, block_size=block
        ),
    )
    st.code(command(chosen), language="bash")
    words = [f"{size:,} is {why}."]
    if curve.policy in ("vllm_v1", "tensorrt_llm"):
        words.append(
            f"Budget {chosen.token_budget:,} = {size:,} for the prompt + "
            f"{curve.streaming_users} decodes."
        )
    if curve.policy == "chunked":
        words.append("The chapter's scheduler has no flags; this runs it on the command line.")
    needed = curve.streaming_users * context + curve.prompt_tokens
    words.append(
        f"It leaves {left:,} KV tokens; this load needs about {needed:,} (users' contexts and the "
        "prompt)."
    )
    words.append(longest_words(chosen, kv_tokens=left, needed_tokens=sequence))
    (more,) = kv_tokens_of_budgets(machine, [chosen.token_budget], block_size=block, max_seqs=1_024)
    if more < 0.98 * left:
        words.append(
            f"With 1,024 seats instead of {chosen.max_seqs:,} it would leave {more:,}: every row "
            "that can be sampled needs room for its logits."
        )
    st.markdown(" ".join(told for told in words if told))
    _simulator(chosen, curve)
    return chosen


def _advised(curve: ChunkCurve) -> tuple[int | None, str]:
    """Return the chunk size to set, and what it is."""
    best, target = curve.told, f"{curve.target_ms:g} ms"
    if curve.stands_still and best:
        return best.chunk_tokens, (
            f"where the sweep's longest stall is shortest, {ms(best.longest_stall_ms)}: the "
            "streams wait for the whole prompt, so there is no knee, and a smaller chunk does "
            "not shorten it"
        )
    if curve.largest and curve.any_chunk:
        return curve.largest, "the whole prompt, which meets the target in one step"
    if curve.largest:
        return curve.largest, f"the largest chunk within {target}, {grain_words(curve)}"
    if best is None:
        return None, ""
    return best.chunk_tokens, "where longest stall × TTFT is least, as no chunk meets the target"


def _simulator(chosen: Settings, curve: ChunkCurve) -> None:
    """Link to the same step by step."""
    counted = curve.policy in ("vllm_v1", "tensorrt_llm")
    parameters = simulator_parameters(
        chosen.machine,
        policy=TITLES[curve.policy],
        prompt=curve.prompt_tokens,
        users=curve.streaming_users,
        context=chosen.user_context_tokens,
        target=f"{curve.target_ms:g}",
        chunk=min(MOST_PROMPT, chosen.chunk_tokens),
        budget=chosen.token_budget if counted else None,
        seats=chosen.max_seqs,
        mixed=curve.mixed if curve.policy == "sglang" else None,
    )
    simulator_link("Open this in the simulator, step by step", parameters)


def memory(machine: Deployment, chosen: Settings | None) -> None:
    """Run a busy load under each budget, and show what the budgets' memory costs."""
    load, scheduler = state.busy_load(), state.policy()
    try:
        jobs = [
            (
                f"Budget of {budget:,} tokens",
                partial(state.budget_tried, machine, load, budget, BUDGETS[0], scheduler),
            )
            for budget in BUDGETS
        ]
        done = worked("memory", (machine, load, scheduler), jobs)
    except ValueError:
        st.markdown("No budget leaves room for the model on this machine.")
        return
    cost = MemoryCost(
        machine=short_caption(state.experiment(machine).cost.formula()),
        simulated=simulated_words(scheduler),
        calibration=calibration_words(machine),
        load=load,
        tried=tuple(done),
        planned=len(jobs),
        set_budget=chosen.token_budget if chosen else None,
    )
    spec = memory_figure(cost)
    chart(spec, key="size_memory", alt=memory_alt(cost), filename="s11-budgets")
    st.markdown(memory_words(cost))
    numbers("budgets", memory_columns(cost), spec)


def numbers(name: str, columns: Mapping[str, Sequence[Any]], spec: Spec) -> None:
    """Lay a picture's numbers as a table, and what can be taken away, behind a fold."""
    fold = numbers_fold(
        name, columns, spec, page="chunk size", key=f"size_{name}_table", filename=f"s11-{name}"
    )
    if fold and name == "sweep":
        with fold:
            picture_control()
