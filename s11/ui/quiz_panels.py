"""The quiz page: the score, the questions as cards, what each answer is worth hearing."""

from __future__ import annotations

from html import escape

import streamlit as st

from s11.quiz import Question, Score
from s11.quiz_questions import questions
from s11.ui import quiz_state as state
from s11.ui.frame import plain
from s11.ui.page_links import page_links
from s11.ui.quiz_style import SHARED_CSS

SIGNS = {True: ("✓", "right"), False: ("✗", "wrong"), None: ("–", "open")}
STYLE = f"""<style>
{SHARED_CSS}
[class*="st-key-card_"] h2{{font-size:1.15rem;padding:0}}
[class*="st-key-card_"] [data-testid="stRadio"] p{{font-size:1rem}}
[class*="st-key-card_"] [data-testid="stRadio"]>label{{margin-bottom:.5rem}}
[class*="st-key-card_"] [data-testid="stRadio"] [role="radiogroup"]{{gap:.4rem}}
@media (min-width:641px){{
.st-key-single :is([data-testid="stRadio"],[data-testid="stAlert"]) p{{font-size:1.25rem}}
}}
.quiz-score{{font-size:1rem}}
.quiz-score ol{{list-style:none;display:flex;flex-wrap:wrap;gap:.35rem;padding:0;margin:.4rem 0 0}}
.quiz-score li{{margin:0;padding:.1rem .55rem;border-radius:1rem;font-size:.875rem;
border:1px solid light-dark(#8793A1,#6B7684)}}
.quiz-score li.right{{border:2px solid light-dark(#006B4F,#4FD0AA)}}
.quiz-score li.wrong{{border:2px dashed light-dark(#A14400,#FF9F68)}}
</style>"""


def style() -> None:
    """Lay the style rules of this page."""
    st.html(STYLE)


def quiz_page() -> None:
    """Show the score, then the questions, then what to look at again."""
    st.markdown(
        "Choose an answer, check it, and read why it is right or wrong; the figures are computed "
        "by the simulator as this page opens. Your first attempt counts, further ones are free. "
        "The score lives in this session alone and survives a visit to other pages; the links "
        "open beside it."
    )
    places = st.columns([5, 4, 2], vertical_alignment="bottom")
    with places[0]:
        st.html(score_html(state.score(), questions()))
    with places[1]:
        st.segmented_control(
            "Questions shown",
            options=state.VIEWS,
            default=state.ALL,
            required=True,
            key=state.VIEW_KEY,
            bind="query-params",
        )
    places[2].button(
        "Start again",
        on_click=state.start_again,
        disabled=not state.score().answered,
        icon=":material/restart_alt:",
        help="Forgets all answers and the score.",
    )
    cards = state.shown()
    if len(cards) == 1:
        with st.container(key="single").columns([7, 3])[0]:
            _card(*cards[0])
    else:
        for left in range(0, len(cards), 2):
            row = cards[left : left + 2]
            for place, (number, question) in zip(st.columns(2), row, strict=False):
                with place:
                    _card(number, question)
    _look_again()


def score_html(score: Score, asked: tuple[Question, ...]) -> str:
    """Return the score as a live region: a sentence, and a sign and a word for each question."""
    items = []
    for number, (question, first) in enumerate(zip(asked, score.firsts, strict=True), start=1):
        sign, word = SIGNS[first]
        items.append(
            f'<li class="{word}" title="{escape(question.title)}">{number} '
            f'<span aria-hidden="true">{sign}</span> {word}</li>'
        )
    return (
        f'<div class="quiz-score" role="status"><b>{escape(score.sentence)}</b>'
        f"<ol>{''.join(items)}</ol></div>"
    )


def _card(number: int, question: Question) -> None:
    with st.container(key=f"card_{question.name}"), st.form(f"form_{question.name}"):
        st.header(f"{number}. {question.title}", anchor=question.name)
        st.radio(
            question.asked,
            options=[answer.text for answer in question.answers],
            index=None,
            key=state.radio_key(question),
            persist_state="session",
        )
        st.form_submit_button(
            f"Check answer {number}",
            on_click=state.take,
            args=(question,),
            key=f"check_{question.name}",
            icon=":material/task_alt:",
        )
        _feedback(question)


def _feedback(question: Question) -> None:
    if state.was_left_unchosen(question):
        st.warning("Choose one of the four answers first.", icon=":material/touch_app:")
        return
    latest, first = state.latest_answer(question), state.first_answer(question)
    if latest is None or first is None:
        return
    chosen = plain(latest.text)
    if latest.right:
        again = "" if first is latest else " Your first attempt counts, and it was another one."
        st.success(
            f"**Right: “{chosen}”** {latest.feedback}{again}", icon=":material/check_circle:"
        )
    else:
        st.error(f"**Wrong: “{chosen}”** {latest.feedback}", icon=":material/cancel:")
    st.html(
        page_links(
            "See it",
            f"Where to see it: {question.title}",
            (question.scene_link, *question.shown_by),
        )
    )


def _look_again() -> None:
    score = state.score()
    if not score.finished:
        return
    missed = [
        question
        for question, first in zip(questions(), score.firsts, strict=True)
        if first is False
    ]
    st.markdown(f"**{score.sentence}**")
    if missed:
        st.html(
            page_links(
                "Worth another look",
                "Scenes of the questions that you missed",
                [question.scene_link for question in missed],
            )
        )
