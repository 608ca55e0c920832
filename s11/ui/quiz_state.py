"""The quiz as it stands in this session: first attempts, latest answers, which questions show."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import streamlit as st

from s11.quiz import Answer, Question, Score
from s11.quiz_questions import questions
from s11.ui.link_checks import one_of

FIRST, LATEST, UNCHOSEN, ROUND = "quiz_first", "quiz_latest", "quiz_unchosen", "quiz_round"
ALL = "all"
VIEW_KEY = "question"
VIEWS = (ALL, "1", "2", "3", "4", "5", "6")


def shown() -> tuple[tuple[int, Question], ...]:
    """Return the questions to show, with their numbers from 1."""
    numbered = tuple(enumerate(questions(), start=1))
    view = st.session_state.get(VIEW_KEY) or ALL
    return tuple([each for each in numbered if view in (ALL, str(each[0]))])


def radio_key(question: Question) -> str:
    """Return the key of a question's radios; every start gives new ones, with nothing chosen."""
    return f"quiz_{question.name}_{st.session_state.get(ROUND, 0)}"


def take(question: Question) -> None:
    """Take the chosen answer (a button's callback); the first one counts."""
    text = st.session_state.get(radio_key(question))
    st.session_state[UNCHOSEN] = question.name if question.answer(text) is None else None
    if question.answer(text) is None:
        return
    st.session_state.setdefault(FIRST, {}).setdefault(question.name, text)
    st.session_state.setdefault(LATEST, {})[question.name] = text


def start_again() -> None:
    """Forget all answers (a button's callback)."""
    for key in (FIRST, LATEST, UNCHOSEN):
        st.session_state.pop(key, None)
    st.session_state[ROUND] = st.session_state.get(ROUND, 0) + 1


def first_answer(question: Question) -> Answer | None:
    """Return the answer that counts; None where there is none yet."""
    return question.answer(st.session_state.get(FIRST, {}).get(question.name))


def latest_answer(question: Question) -> Answer | None:
    """Return the answer that was checked last; None where there is none yet."""
    return question.answer(st.session_state.get(LATEST, {}).get(question.name))


def was_left_unchosen(question: Question) -> bool:
    """Return whether the last thing asked for was to check this question without an answer."""
    return bool(st.session_state.get(UNCHOSEN) == question.name)


def score() -> Score:
    """Return how it goes."""
    return Score.of(questions(), st.session_state.get(FIRST, {}))


LINK_CHECKS: dict[str, Callable[[str], Any]] = {VIEW_KEY: one_of(*VIEWS)}
