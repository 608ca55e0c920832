"""The fields for one's own predictions, and what is said to them."""

from __future__ import annotations

from dataclasses import dataclass

import streamlit as st

from s11.exercises import Exercise, Quantity, judge, typed_number
from s11.ui import exercises_state as state
from s11.ui.frame import plain

MOST_CHARACTERS = 30


@dataclass(frozen=True, slots=True)
class Told:
    """One line of feedback."""

    right: bool | None  # None: nothing typed, or nothing that can be judged
    sentence: str
    refused: bool = False


def predictions(number: int, exercise: Exercise, numbers: object) -> None:
    """Lay the fields in a form, and under them what is right and wrong about them."""
    with st.container(key=f"guess_{exercise.name}"), st.form(f"form_{exercise.name}"):
        places = st.columns(len(exercise.quantities), vertical_alignment="bottom")
        for place, quantity in zip(places, exercise.quantities, strict=True):
            with place:
                _field(exercise, quantity, numbers)
        if exercise.choice:
            st.radio(
                exercise.choice.label,
                options=[answer.text for answer in exercise.choice.answers],
                index=None,
                key=state.input_key(exercise, "choice", numbers),
                persist_state="session",
            )
        st.form_submit_button(
            f"Check exercise {number}",
            on_click=state.take,
            args=(exercise, numbers),
            key=f"check_{exercise.name}",
            icon=":material/task_alt:",
        )
        given = state.prediction(exercise.name, numbers)
        if given is not None:
            _say(told(exercise, given))


def told(exercise: Exercise, given: state.Prediction) -> list[Told]:
    """Return a line for each quantity and choice of an exercise."""
    lines = []
    for quantity in exercise.quantities:
        lines.append(_told(quantity, given.typed.get(quantity.name, "")))
    if exercise.choice:
        answers = exercise.choice.answers
        chosen = next((answer for answer in answers if answer.text == given.choice), None)
        if chosen is None:
            lines.append(Told(None, f"**{exercise.choice.label}** No choice yet."))
        else:
            word = "✓ Right." if chosen.right else "✗ Not yet."
            lines.append(
                Told(chosen.right, f"**{exercise.choice.label}** {word} {chosen.feedback}")
            )
    return lines


def _told(quantity: Quantity, text: str) -> Told:
    try:
        typed = typed_number(quantity, text)
    except ValueError as error:
        return Told(None, f"**{quantity.label}**: {plain(_reason(error))}.", refused=True)
    if typed is None:
        return Told(None, f"**{quantity.label}**: no prediction yet.")
    judged = judge(quantity, typed)
    word = "✓ right" if judged.right else "✗ not yet"
    return Told(judged.right, f"**{quantity.label}**: {word}, {judged.sentence}")


def _reason(error: ValueError) -> str:
    """Return a refusal without the field's name, which stands before it."""
    return str(error).partition(": ")[2]


def _say(lines: list[Told]) -> None:
    text = "\n".join(f"- {line.sentence}" for line in lines)
    if all(line.right for line in lines):
        st.success(text, icon=":material/check_circle:")
    elif all(line.right is None and not line.refused for line in lines):
        st.warning("Type a prediction first.", icon=":material/touch_app:")
    elif any(line.right is False for line in lines):
        st.error(text, icon=":material/cancel:")
    else:
        st.warning(text, icon=":material/pending:")


def _field(exercise: Exercise, quantity: Quantity, numbers: object) -> None:
    # A field of text: a number field keeps its last value when another is out of its range.
    st.text_input(
        f"{quantity.label} ({quantity.unit})",
        placeholder="your prediction",
        max_chars=MOST_CHARACTERS,
        key=state.input_key(exercise, quantity.name, numbers),
        persist_state="session",
    )
