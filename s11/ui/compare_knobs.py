"""The compare page's knobs: those that all engines have in common, and each engine's own."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import streamlit as st

from s11.entries import SHORT_KNOBS, Entry, entry_labels
from s11.presets import FLAGS, PRESETS, READS, TITLES, flag, flag_words
from s11.ui import compare_state as state
from s11.ui.compare_link import (
    COMMON_KNOBS,
    COST_KEYS,
    KNOB_MOST,
    LEAST_TARGET_MS,
    MOST_COEFFICIENT_MS,
    MOST_TARGET_MS,
    OPTIONAL,
    OWN_KNOBS,
    SWITCHES,
    value_from,
    value_text,
)

KNOB_LABELS = {
    "token_budget": "Token budget (tokens per step)",
    "chunk_tokens": "Chunk cap (tokens)",
    "max_seqs": "Most running requests",
    "kv_blocks": "KV blocks",
    "block_size": "Block size (tokens)",
    "prefill_interval": "Prefill interval (steps)",
    "prefix_caching": "Prefix caching",
    "reserve_full_prompt": "Reserve full prompt",
    "chunking": "Chunking",
    "mixed": "Decodes ride along",
}
KNOB_HELP = {
    "token_budget": "Most tokens in one step, decodes included.",
    "chunk_tokens": "Most prompt tokens of one request in one step; for SGLang of a whole step.",
    "max_seqs": "Seats for requests that prefill or decode.",
    "kv_blocks": "Blocks in the pool; where it runs short, somebody is preempted.",
    "block_size": "Tokens in one KV block; SGLang and TensorRT-LLM also cut prompts to it.",
    "prefill_interval": "At most one step with prompt tokens in so many, while anyone decodes.",
    "prefix_caching": "Whether whole blocks are shared by requests with the same beginning.",
    "reserve_full_prompt": "Admit only where the whole prompt would fit in the free blocks.",
    "chunking": "Whether a prompt may be cut to what is left of the budget.",
    "mixed": "Whether decodes run beside the prompts of a step.",
}
PLACEHOLDERS = {"kv_blocks": "ample"}
AS_COMMON = "as common"
UNCHANGED = "It was left as it was."


def knobs() -> None:
    """Lay the knobs that all engines have in common, and each engine's own."""
    asked = state.asked()
    st.markdown("**All of them**: an engine as it comes keeps its own, KV blocks aside")
    places = st.columns(4)
    for number, knob in enumerate(COMMON_KNOBS):
        with places[number % 4]:
            _common(knob, getattr(asked.limits, knob))
    places = st.columns(4)
    with places[0]:
        _amount("itl_target_ms", "ITL target (ms)", asked.itl_target_ms, LEAST_TARGET_MS)
    for place, (name, label) in zip(
        places[1:],
        (
            ("fixed_ms", "Fixed cost of a step (ms)"),
            ("prefill_ms_per_token", "A prefill token (ms)"),
            ("decode_ms_per_token", "A decode token (ms)"),
        ),
        strict=True,
    ):
        with place:
            _amount(name, label, getattr(asked.cost, name), 0.0)
    st.markdown("**Its own**, where it differs")
    for place, (number, label) in zip(
        st.columns(max(2, len(asked.entries))),
        enumerate(entry_labels(asked.entries)),
        strict=False,
    ):
        with place:
            st.caption(f"**{label}**")
            _own(number, asked.entries[number])


def _common(knob: str, value: Any) -> None:
    key = f"compare_{SHORT_KNOBS[knob]}"
    st.session_state[key] = value

    def take() -> None:
        state.change(state.asked().with_limit(knob, st.session_state[key]))

    if knob in SWITCHES:
        st.toggle(KNOB_LABELS[knob], key=key, on_change=take, help=_help(knob))
        return
    st.number_input(
        KNOB_LABELS[knob],
        min_value=1,
        max_value=KNOB_MOST[knob],
        value=None if knob in OPTIONAL else 1,
        step=1,
        key=key,
        on_change=take,
        placeholder=PLACEHOLDERS.get(knob, "no limit"),
        help=_help(knob),
    )


def _amount(name: str, label: str, value: float, low: float) -> None:
    key = f"compare_{name}"
    high = MOST_TARGET_MS if name == "itl_target_ms" else MOST_COEFFICIENT_MS
    st.session_state[key] = value

    def take() -> None:
        asked, new = state.asked(), float(st.session_state[key])
        if name in COST_KEYS.values():
            try:
                state.change(replace(asked, cost=replace(asked.cost, **{name: new})))
            except ValueError as error:
                st.session_state[state.REFUSED] = f"{error}. {UNCHANGED}"
            return
        state.change(replace(asked, itl_target_ms=new))

    st.number_input(
        label,
        min_value=low,
        max_value=high,
        step={"decode_ms_per_token": 0.01, "prefill_ms_per_token": 0.001}.get(name, 1.0),
        format="%g",
        key=key,
        on_change=take,
    )


def _own(number: int, entry: Entry) -> None:
    """Lay an engine's own values of the knobs that it reads."""
    for knob in OWN_KNOBS:
        reads = knob in READS[entry.policy] or knob in ("prefix_caching", "prefill_interval")
        if reads or knob in dict(entry.changes):
            _own_knob(number, entry, knob)


def _own_knob(number: int, entry: Entry, knob: str) -> None:
    key = f"compare_own_{number}_{SHORT_KNOBS[knob]}"
    name = flag_words(entry.policy, knob)
    label = KNOB_LABELS[knob] + (f" {name}" if name else "")
    unset = unset_words(entry, knob)
    mine = dict(entry.changes)
    st.session_state[key] = _shown(mine[knob]) if knob in mine else ""

    def take() -> None:
        text = str(st.session_state[key]).strip()
        try:
            value = _read(knob, text)
        except ValueError as error:
            reason = str(error).partition(": ")[2]
            st.session_state[state.REFUSED] = f"{KNOB_LABELS[knob]}: {reason}. {UNCHANGED}"
            return
        asked = state.asked()
        now = asked.entries[number]
        new = now.without(knob) if value == AS_COMMON else now.changed(**{knob: value})  # type: ignore[arg-type]
        entries = [*asked.entries]
        entries[number] = new
        if len(set(entries)) < len(entries):
            same = "Two schedulers would be the same in all knobs."
            st.session_state[state.REFUSED] = f"{same} {UNCHANGED}"
            return
        state.change(replace(asked, entries=tuple(entries)))

    st.text_input(label, key=key, on_change=take, placeholder=unset, help=_choices(knob, unset))


def unset_words(entry: Entry, knob: str) -> str:
    """Return what an engine runs with where it is given no value of its own.

    An engine as it comes has its own, KV blocks aside; a policy has the common one.
    """
    if entry.engine not in PRESETS or knob == "kv_blocks":
        return AS_COMMON
    value = getattr(PRESETS[entry.engine].limits, knob)
    return f"{value:,}" if type(value) is int else value_text(value)


def _choices(knob: str, unset: str) -> str:
    empty = f"or empty: {unset}" if unset == AS_COMMON else f"or empty: its own, {unset}"
    if knob in SWITCHES:
        return f"{KNOB_HELP[knob]} on, off, {empty}."
    none = ", none for no limit" if knob in OPTIONAL else ""
    return f"{KNOB_HELP[knob]} 1 to {KNOB_MOST[knob]:,}{none}, {empty}."


def _shown(value: int | bool | None) -> str:
    return value_text(value)


def _read(knob: str, text: str) -> int | bool | str | None:
    return AS_COMMON if not text else value_from(knob, text.replace(",", ""))


def _help(knob: str) -> str:
    names = [
        f"{TITLES[policy]}: {flag_words(policy, knob)}" for policy in FLAGS if flag(policy, knob)
    ]
    return f"{KNOB_HELP[knob]} {'; '.join(names)}".strip()
