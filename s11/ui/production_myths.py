"""The production page's myths: each with one control, a live figure, and what is true."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from s11.catalog import Deployment
from s11.figures import myths_flops as flops_figures
from s11.figures import myths_itl as itl_figures
from s11.figures import myths_mixing as mixing_figures
from s11.figures import myths_smaller as smaller_figures
from s11.figures.theme import Spec
from s11.myths_flops import prefill_work
from s11.myths_itl import gaps_both
from s11.myths_mixing import Load, ways
from s11.myths_smaller import sizes_tried
from s11.ui import production_state as state
from s11.ui.frame import chart
from s11.ui.numbers import numbers_fold
from s11.ui.production_state import DEFAULTS, LONG_PROMPT, PROMPT, STREAMS

NAMES = {
    "flops": "FLOPs, reads and time",
    "mean": "gaps",
    "smaller": "chunk sizes",
    "mixing": "three ways",
}
"""By myth, what its numbers are called."""


def myths(on: Deployment) -> None:
    """Lay the four myths on the chosen machine."""
    _flops(on)
    _mean(on)
    _smaller(on)
    _mixing(on)


def _flops(on: Deployment) -> None:
    _claim("flops", "“Chunking adds FLOPs”")
    _stops("flops_chunk", "Chunk size of a long prompt (tokens)", state.FLOPS_CHUNKS)
    prompt = state.prompt_tokens(on, LONG_PROMPT)
    chunk = min(prompt, int(state.value_of("flops_chunk")))
    whole, cut = (
        prefill_work(on, prompt_tokens=prompt, chunk_tokens=size) for size in (prompt, chunk)
    )
    _shown(
        "flops",
        flops_figures.flops_figure(whole, cut, on),
        alt=flops_figures.flops_alt(whole, cut, on),
        words=flops_figures.flops_words(whole, cut, on),
        columns=flops_figures.flops_columns(whole, cut),
    )


def _mean(on: Deployment) -> None:
    _claim("mean", "“Chunking improves the mean ITL”")
    _stops("mean_chunk", "Chunk size beside the streams (tokens)", state.MEAN_CHUNKS)
    prompt = state.prompt_tokens(on, PROMPT)
    both = gaps_both(
        state.cost(on),
        prompt_tokens=prompt,
        chunk_tokens=min(prompt, int(state.value_of("mean_chunk"))),
        streaming_users=STREAMS,
    )
    _shown(
        "mean",
        itl_figures.itl_figure(both, on),
        alt=itl_figures.itl_alt(both, on),
        words=itl_figures.itl_words(both),
        columns=itl_figures.itl_columns(both),
    )


def _smaller(on: Deployment) -> None:
    _claim("smaller", "“Smaller chunks are always smoother”")
    _stops("small_chunk", "Chunk size to look at (tokens)", state.SMALL_CHUNKS)
    chunk = int(state.value_of("small_chunk"))
    tried = sizes_tried(
        state.cost(on), prompt_tokens=state.prompt_tokens(on, PROMPT), streaming_users=STREAMS
    )
    _shown(
        "smaller",
        smaller_figures.smaller_figure(tried, on, chunk_tokens=chunk),
        alt=smaller_figures.smaller_alt(tried, on),
        words=smaller_figures.smaller_words(tried, chunk_tokens=chunk),
        columns=smaller_figures.smaller_columns(tried),
    )


def _mixing(on: Deployment) -> None:
    _claim("mixing", "“Mixing prefill and decode is always best”")
    st.pills(
        "Load",
        options=[str(load) for load in Load],
        default=DEFAULTS["mix_load"],
        key="mix_load",
        bind="query-params",
        required=True,
        help="All prompts of a load arrive at once. KV memory is not limited here.",
    )
    told = ways(
        state.cost(on),
        Load(state.value_of("mix_load")),
        most_prompt_tokens=on.model.max_positions,
        kv_bytes_per_token=on.model.kv_bytes_per_token(),
    )
    _shown(
        "mixing",
        mixing_figures.mixing_figure(told, on),
        alt=mixing_figures.mixing_alt(told, on),
        words=mixing_figures.mixing_words(told),
        columns=mixing_figures.mixing_columns(told),
    )


def _claim(anchor: str, claim: str) -> None:
    st.subheader(claim, anchor=anchor)


def _shown(
    name: str, spec: Spec, *, alt: str, words: str, columns: Mapping[str, Sequence[Any]]
) -> None:
    """Lay a myth's picture, what is true, and its numbers."""
    chart(spec, key=f"myth_{name}", alt=alt, filename=f"s11-myth-{name}")
    st.markdown(f"**What is true.** {words}")
    numbers_fold(
        NAMES[name],
        columns,
        spec,
        page="in production",
        key=f"myth_{name}_table",
        filename=f"s11-myth-{name}",
    )


def _stops(key: str, label: str, stops: tuple[int, ...]) -> None:
    st.select_slider(
        label,
        options=stops,
        value=DEFAULTS[key],
        key=key,
        bind="query-params",
        help="Arrow keys move it.",
    )
