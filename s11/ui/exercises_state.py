"""The exercises as they stand: their numbers, what was predicted, and how it was judged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import streamlit as st

from s11.attention import ChunkSizeCheck
from s11.exercises import Exercise, typed_number
from s11.exercises_budget import BudgetNumbers, BudgetSolution, solve_budget
from s11.exercises_bug import CASES, PROMPT_TOKENS, BugNumbers
from s11.exercises_target import TargetNumbers, TargetSolution, solve_target, sweep_sizes
from s11.sweeps import SweepPoint
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of
from s11.ui.mask_checks import chunk_check

CHECKED = "exercises_checked"
STOPS: dict[str, tuple[int, ...]] = {
    "fit_prompt": (8_192, 16_384, 32_768, 65_536),
    "fit_users": (8, 24, 64, 96),
    "fit_target": (10, 20, 30, 50, 80, 120),
    "cut_prompt": (16_384, 32_768, 65_536),
    "cut_users": (8, 32, 128, 256, 448),
    "cut_budget": (512, 1_024, 2_048, 4_096, 8_192),
    "bug_size": (48, 64, 96, 100, 128),
}
"""By control, its stops: any of them together make a sound exercise."""

SETS: dict[str, tuple[dict[str, Any], ...]] = {
    "target": (
        {"fit_prompt": 32_768, "fit_users": 24, "fit_target": 50},
        {"fit_prompt": 16_384, "fit_users": 64, "fit_target": 30},
        {"fit_prompt": 65_536, "fit_users": 8, "fit_target": 80},
        {"fit_prompt": 8_192, "fit_users": 96, "fit_target": 20},
    ),
    "budget": (
        {"cut_prompt": 32_768, "cut_users": 128, "cut_budget": 512},
        {"cut_prompt": 65_536, "cut_users": 256, "cut_budget": 2_048},
        {"cut_prompt": 16_384, "cut_users": 32, "cut_budget": 1_024},
        {"cut_prompt": 65_536, "cut_users": 448, "cut_budget": 8_192},
    ),
    "bug": (
        {"bug_case": "A", "bug_size": 100},
        {"bug_case": "B", "bug_size": 48},
        {"bug_case": "C", "bug_size": 64},
        {"bug_case": "D", "bug_size": 96},
    ),
}
"""By exercise, numbers to do it again with; the first are those that it opens with."""

DEFAULTS: dict[str, Any] = {key: value for sets in SETS.values() for key, value in sets[0].items()}


@dataclass(frozen=True, slots=True)
class Prediction:
    """What was typed for an exercise with certain numbers; "" and None where nothing was."""

    numbers: object
    typed: dict[str, str]
    choice: str | None


def value_of(key: str) -> Any:
    """Return a control's value, its default where it has none yet."""
    value = st.session_state.get(key)
    return DEFAULTS[key] if value is None else value


def target_numbers() -> TargetNumbers:
    """Return the first exercise's numbers."""
    return TargetNumbers(
        prompt_tokens=int(value_of("fit_prompt")),
        users=int(value_of("fit_users")),
        target_ms=float(value_of("fit_target")),
    )


def budget_numbers() -> BudgetNumbers:
    """Return the second exercise's numbers."""
    return BudgetNumbers(
        prompt_tokens=int(value_of("cut_prompt")),
        users=int(value_of("cut_users")),
        budget_tokens=int(value_of("cut_budget")),
    )


def bug_numbers() -> BugNumbers:
    """Return the third exercise's numbers."""
    return BugNumbers(case=str(value_of("bug_case")), chunk_tokens=int(value_of("bug_size")))


@lru_cache(maxsize=128)
def target_solution(numbers: TargetNumbers) -> TargetSolution:
    """Return the first exercise's solution, once for all sessions."""
    return solve_target(numbers)


@lru_cache(maxsize=32)
def target_sweep(numbers: TargetNumbers) -> tuple[SweepPoint, ...]:
    """Return the first exercise's curve, once for all sessions."""
    return sweep_sizes(target_solution(numbers))


@lru_cache(maxsize=128)
def budget_solution(numbers: BudgetNumbers) -> BudgetSolution:
    """Return the second exercise's solution, once for all sessions."""
    return solve_budget(numbers)


def bug_check(numbers: BugNumbers) -> ChunkSizeCheck:
    """Return the check of the third exercise's bug, once for all sessions."""
    return chunk_check(
        prompt_tokens=PROMPT_TOKENS, chunk_tokens=numbers.chunk_tokens, fault=numbers.fault
    )


def other_numbers(name: str) -> None:
    """Set an exercise's next numbers (a button's callback)."""
    sets = SETS[name]
    now = {key: value_of(key) for key in sets[0]}
    at = sets.index(now) if now in sets else -1
    for key, value in sets[(at + 1) % len(sets)].items():
        st.session_state[key] = value


def input_key(exercise: Exercise, quantity: str, numbers: object) -> str:
    """Return the key of one field: other numbers give an empty one."""
    return f"guess {exercise.name} {quantity} {numbers}"


def take(exercise: Exercise, numbers: object) -> None:
    """Take what is typed into an exercise's fields (a button's callback)."""

    def typed(name: str) -> Any:
        return st.session_state.get(input_key(exercise, name, numbers))

    st.session_state.setdefault(CHECKED, {})[exercise.name] = Prediction(
        numbers=numbers,
        typed={quantity.name: typed(quantity.name) or "" for quantity in exercise.quantities},
        choice=typed("choice") if exercise.choice else None,
    )


def prediction(name: str, numbers: object) -> Prediction | None:
    """Return what was checked last; None where that was with other numbers."""
    found: Prediction | None = st.session_state.get(CHECKED, {}).get(name)
    return found if found is not None and found.numbers == numbers else None


def typed_chunk(exercise: Exercise, given: Prediction | None) -> int | None:
    """Return the chunk size that was predicted, None where none was that can be one."""
    chunk = next(each for each in exercise.quantities if each.name == "chunk")
    try:
        typed = typed_number(chunk, given.typed.get("chunk", "")) if given else None
    except ValueError:
        return None
    return None if typed is None else int(typed)


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    **{key: one_of(*map(str, stops)) for key, stops in STOPS.items()},
    "bug_case": one_of(*CASES),
    "picture": one_of(*PICTURE_FORMATS),
}
