"""The chunk size page's second half: what to set, what its memory costs, numbers to take away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import streamlit as st

from s11.budgets import BUDGETS
from s11.catalog import Deployment, kv_tokens_of_budgets
from s11.exports import to_csv
from s11.figures.chunk_size_flags import Settings, command, settings
from s11.figures.chunk_size_info import ChunkCurve, calibration_words, short_caption
from s11.figures.chunk_size_memory import (
    MemoryCost,
    memory_alt,
    memory_columns,
    memory_figure,
    memory_words,
)
from s11.figures.theme import Spec
from s11.tuning import BLOCK_SIZES, MOST_SEATS, seats
from s11.ui import chunk_size_state as state
from s11.ui.chunk_size_controls import worked
from s11.ui.frame import chart, picture_control


def flags(machine: Deployment, curve: ChunkCurve) -> Settings | None:
    """Show the engine's own command, and what its budget leaves of the KV memory."""
    size, why = curve.largest, f"the largest chunk within {curve.target_ms:g} ms"
    if curve.any_chunk:
        why = "the whole prompt, which meets the target in one step"
    if size is None or curve.stands_still:
        if curve.knee is None:
            st.markdown("Nothing to set: no chunk size runs here.")
            return None
        size, why = (
            curve.knee.chunk_tokens,
            "where longest stall × TTFT is least, as no chunk meets the target",
        )
    block = BLOCK_SIZES[curve.policy]
    if curve.policy == "tensorrt_llm" and size < curve.prompt_tokens:
        size = max(block, size - size % block)
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
    st.code(command(chosen), language="bash")
    words = [f"{size:,} is {why}."]
    if curve.policy in ("vllm_v1", "tensorrt_llm"):
        words.append(
            f"Budget {chosen.token_budget:,} = {size:,} for the prompt + "
            f"{curve.streaming_users} decodes."
        )
    if curve.policy == "chunked":
        words.append("The chapter's scheduler has no flags; this runs it on the command line.")
    (left,) = kv_tokens_of_budgets(
        machine,
        [chosen.token_budget],
        block_size=block,
        max_seqs=seats(chosen.token_budget),
    )
    needed = curve.streaming_users * int(state.value_of("size_context")) + curve.prompt_tokens
    words.append(
        f"It leaves {left:,} KV tokens; this load needs about {needed:,} (users' contexts and the "
        "prompt)."
    )
    (more,) = kv_tokens_of_budgets(machine, [chosen.token_budget], block_size=block, max_seqs=1_024)
    if more < 0.98 * left:
        words.append(
            f"With 1,024 seats instead of {chosen.max_seqs:,} it would leave {more:,}: every row "
            "that can be sampled needs room for its logits."
        )
    st.markdown(" ".join(words))
    return chosen


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
        engine=f"{state.value_of('size_engine')} · {calibration_words(machine)}",
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
    fold = st.expander(
        f"The numbers as a table, and to take away: {name}",
        icon=":material/table:",
        on_change="rerun",
        key=f"size_{name}_table",
    )
    if not fold.open:
        return

    def page() -> str:
        from s11.figures.page import self_contained_html

        return self_contained_html(spec, title=f"s11: chunk size, {name}")

    with fold:
        st.dataframe(columns, hide_index=True)
        places = st.columns(2)
        places[0].download_button(
            f"{name.capitalize()} as CSV",
            data=lambda: to_csv(columns),
            file_name=f"s11-{name}.csv",
            mime="text/csv",
            on_click="ignore",
            icon=":material/table:",
        )
        places[1].download_button(
            f"{name.capitalize()} as HTML",
            data=page,
            file_name=f"s11-{name}.html",
            mime="text/html",
            on_click="ignore",
            icon=":material/html:",
        )
        if name == "sweep":
            picture_control()
