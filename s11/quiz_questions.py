"""The six questions, in the order in which they are asked."""

from __future__ import annotations

from functools import cache

from s11.quiz import Question
from s11.quiz_attention import positions_question, sight_question
from s11.quiz_schedule import no_help_question, starvation_question
from s11.quiz_trade_off import metrics_question, size_question


@cache
def questions() -> tuple[Question, ...]:
    """Return the questions; the runs that their feedback quotes are made once."""
    return (
        starvation_question(),
        sight_question(),
        positions_question(),
        metrics_question(),
        size_question(),
        no_help_question(),
    )
