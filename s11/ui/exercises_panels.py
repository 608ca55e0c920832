"""The exercises page: three tasks, each with its numbers, predictions, and worked solution."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from s11.exercises import Exercise
from s11.exercises_budget import budget_exercise
from s11.exercises_bug import bug_exercise, solve_bug
from s11.exercises_target import target_exercise
from s11.figures.exercises_budget import budget_alt, budget_columns, budget_figure, budget_steps
from s11.figures.exercises_bug import case_alt, case_figure
from s11.figures.exercises_target import target_alt, target_columns, target_curve, target_figure
from s11.figures.key_difference_info import (
    Path,
    key_difference_columns,
    key_difference_info,
)
from s11.figures.mask import mask_figure
from s11.figures.mask_info import mask_alt, mask_columns, mask_info
from s11.ui import exercises_state as state
from s11.ui.exercises_controls import case_control, other_numbers_button, stops_control
from s11.ui.exercises_predictions import predictions
from s11.ui.frame import chart, picture_control
from s11.ui.numbers import numbers_fold
from s11.ui.page_links import page_links
from s11.ui.quiz_style import SHARED_CSS

MASK_CHUNK, MASK_CACHED = 8, 24
PAGE = "exercises"
STYLE = f"""<style>
{SHARED_CSS}
.block-container h2{{font-size:1.4rem;padding:1rem 0 .25rem}}
[class*="st-key-work_"] ol code{{display:block;width:fit-content;margin:.1rem 0 .35rem}}
[class*="st-key-work_"] code{{white-space:normal;overflow-wrap:anywhere;
color:inherit;font-size:.95em}}
@media (max-width:640px){{
.block-container h2{{font-size:1.15rem}}
[class*="st-key-exercise-"] .modebar-container{{top:auto !important;bottom:54px}}
[class*="st-key-exercise-bug"] .modebar-container{{bottom:100px}}
}}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def exercises_page() -> None:
    """Show the three exercises."""
    st.markdown(
        "Read the task, predict, and check; the start link opens its numbers in the app. The "
        "solution behind the fold is worked out with the numbers that stand here: change them, "
        "and the exercise is a new one."
    )
    _target()
    _budget()
    _bug()
    picture_control()


def _target() -> None:
    header = st.container()
    _numbers_row(
        "target",
        lambda: stops_control("fit_prompt", "Prompt length (tokens)"),
        lambda: stops_control("fit_users", "Streaming users"),
        lambda: stops_control("fit_target", "ITL target (ms)"),
    )
    numbers = state.target_numbers()
    solution = state.target_solution(numbers)
    exercise = target_exercise(solution)
    _task(1, exercise, header)
    predictions(1, exercise, numbers)

    def picture() -> None:
        given = state.prediction(exercise.name, numbers)
        yours = state.typed_chunk(exercise, given)
        curve = target_curve(solution, state.target_sweep(numbers), yours)
        spec = target_figure(curve)
        chart(spec, key="exercise-target", alt=target_alt(curve), filename="s11-exercise-target")
        numbers_fold(
            "chunk sizes",
            target_columns(curve),
            spec,
            page=PAGE,
            key="exercise_target_table",
            filename="s11-exercise-target",
        )

    _solution(1, exercise, picture)


def _budget() -> None:
    header = st.container()
    _numbers_row(
        "budget",
        lambda: stops_control("cut_prompt", "Prompt length (tokens)"),
        lambda: stops_control("cut_users", "Streaming users"),
        lambda: stops_control("cut_budget", "Token budget (tokens per step)"),
    )
    numbers = state.budget_numbers()
    solution = state.budget_solution(numbers)
    exercise = budget_exercise(solution)
    _task(2, exercise, header)
    predictions(2, exercise, numbers)

    def picture() -> None:
        info = budget_steps(solution)
        spec = budget_figure(info)
        chart(spec, key="exercise-budget", alt=budget_alt(info), filename="s11-exercise-budget")
        numbers_fold(
            "steps",
            budget_columns(info),
            spec,
            page=PAGE,
            key="exercise_budget_table",
            filename="s11-exercise-budget",
        )

    _solution(2, exercise, picture)


def _bug() -> None:
    header = st.container()
    _numbers_row(
        "bug", case_control, lambda: stops_control("bug_size", "Chunk size (tokens)"), lambda: None
    )
    numbers = state.bug_numbers()
    check = state.bug_check(numbers)
    exercise = bug_exercise(solve_bug(numbers, check))
    _task(3, exercise, header)
    info = key_difference_info(check, path=Path.TILES)
    spec = case_figure(info, numbers.case)
    chart(
        spec,
        key="exercise-bug",
        alt=case_alt(info, numbers.case),
        filename=f"s11-exercise-bug-{numbers.case}",
    )
    numbers_fold(
        "|ΔK|",
        key_difference_columns(info),
        spec,
        page=PAGE,
        key="exercise_bug_table",
        filename="s11-exercise-bug",
    )
    predictions(3, exercise, numbers)

    def picture() -> None:
        mask = mask_info(chunk_tokens=MASK_CHUNK, cached_tokens=MASK_CACHED, fault=numbers.fault)
        drawn = mask_figure(mask)
        st.markdown(f"What the bug makes of a chunk of {MASK_CHUNK} after {MASK_CACHED} tokens:")
        chart(drawn, key="exercise-mask", alt=mask_alt(mask), filename="s11-exercise-mask")
        numbers_fold(
            "mask",
            mask_columns(mask),
            drawn,
            page=PAGE,
            key="exercise_mask_table",
            filename="s11-exercise-mask",
        )

    _solution(3, exercise, picture)


def _numbers_row(name: str, *controls: Callable[[], None]) -> None:
    """Lay an exercise's controls and the button that sets other numbers, above its task."""
    places = st.container(key=f"pair_{name}").columns([3, 3, 3, 2], vertical_alignment="bottom")
    for place, control in zip(places, controls, strict=False):
        with place:
            control()
    with places[-1]:
        other_numbers_button(name)


def _task(number: int, exercise: Exercise, header: st.delta_generator.DeltaGenerator) -> None:
    header.header(f"{number}. {exercise.title}", anchor=exercise.name)
    st.markdown(exercise.task)
    st.html(page_links("Start", f"Start of exercise {number}", [exercise.start]))
    st.markdown(f"**What to look for there:** {exercise.look_for}")


def _solution(number: int, exercise: Exercise, picture: Callable[[], None]) -> None:
    fold = st.expander(
        f"Worked solution of exercise {number}",
        icon=":material/lightbulb:",
        on_change="rerun",
        key=f"work_{exercise.name}_fold",
    )
    if not fold.open:
        return
    with fold:
        words_place, picture_place = st.columns([1, 1])
        with words_place.container(key=f"work_{exercise.name}"):
            if exercise.choice:
                right = next(answer for answer in exercise.choice.answers if answer.right)
                st.markdown(f"**{right.text}** {right.feedback}")
            lines = [f"1. {line.says}\n   `{line.arithmetic}`" for line in exercise.worked]
            st.markdown("\n".join(lines))
            st.markdown(f"**What it teaches.** {exercise.moral}")
        with picture_place:
            picture()
