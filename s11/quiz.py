"""A quiz as plain values: questions, what each answer is worth hearing, links, the score."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from urllib.parse import urlencode

ANSWERS = 4
TOUR = {
    1: "One long prompt freezes every stream",
    2: "Reordering moves the wait, it cannot remove it",
    3: "Prefill can be cut anywhere",
    4: "Decodes first, the prompt gets what is left",
    5: "What it costs: a later first token",
    6: "Decodes ride along: the weights are read anyway",
    7: "The target picks the chunk size",
    8: "The mask: all of the cache, and a triangle",
    9: "Positions count from the prompt's start",
    10: "In production: engines as they come",
    11: "What comes next",
}
"""The headlines of the guided tour's scenes by number, as a link names them.

The tour stands above this module; a test holds them against its registry.
"""
SIMULATOR = ""
"""The address of the app's first page, below the app's own."""


@dataclass(frozen=True, slots=True)
class PageLink:
    """A link to a state of a page of the app.

    label: what stands on it.
    page: the page's address below the app's own; "" is the simulator.
    parameters: its query parameters.
    """

    label: str
    page: str
    parameters: tuple[tuple[str, str], ...] = ()

    @property
    def address(self) -> str:
        """The link's address, relative to any page of the app."""
        query = f"?{urlencode(self.parameters)}" if self.parameters else ""
        return f"./{self.page}{query}"


@dataclass(frozen=True, slots=True)
class Answer:
    """One of a question's answers, and what is said to those who choose it."""

    text: str
    feedback: str
    right: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Question:
    """One question.

    name: its name in a link and in the session.
    title: what it is about, in a few words.
    asked: the question itself.
    answers: four, one of them right, always in this order.
    scene: the number of the guided tour's scene that teaches it.
    shown_by: links to states of other pages that show the answer.

    Raises:
        ValueError: not four different answers, or not exactly one that is right.
    """

    name: str
    title: str
    asked: str
    answers: tuple[Answer, ...]
    scene: int
    shown_by: tuple[PageLink, ...]

    def __post_init__(self) -> None:
        if len({answer.text for answer in self.answers}) != ANSWERS:
            raise ValueError(f"answers: {self.name} has not {ANSWERS} different ones")
        if sum(answer.right for answer in self.answers) != 1:
            raise ValueError(f"answers: {self.name} has not exactly one that is right")

    @property
    def scene_link(self) -> PageLink:
        """The link to the tour's scene."""
        label = f"Tour, scene {self.scene}: {TOUR[self.scene]}"
        return PageLink(label, "learn", (("scene", str(self.scene)),))

    @property
    def right_answer(self) -> Answer:
        """The one that is right."""
        return next(answer for answer in self.answers if answer.right)

    def answer(self, text: str | None) -> Answer | None:
        """Return the answer with a text; None where there is none."""
        return next((answer for answer in self.answers if answer.text == text), None)


@dataclass(frozen=True, slots=True)
class Score:
    """How a quiz goes: for each question, whether its first answer was right.

    firsts: by question, in their order; None where it has no answer yet.
    """

    firsts: tuple[bool | None, ...]

    @classmethod
    def of(cls, questions: tuple[Question, ...], first_texts: Mapping[str, str]) -> Score:
        """Return the score of first answers, by question name; unknown ones count as none."""
        given = [question.answer(first_texts.get(question.name)) for question in questions]
        return cls(tuple([None if answer is None else answer.right for answer in given]))

    @property
    def answered(self) -> int:
        """Questions that have an answer."""
        return sum(first is not None for first in self.firsts)

    @property
    def right(self) -> int:
        """Questions whose first answer was right."""
        return sum(first is True for first in self.firsts)

    @property
    def finished(self) -> bool:
        """Whether every question has an answer."""
        return self.answered == len(self.firsts)

    @property
    def sentence(self) -> str:
        """The score in a sentence."""
        asked = len(self.firsts)
        if not self.answered:
            return f"None of the {asked} questions is answered yet."
        if self.finished:
            return f"All {asked} answered: {self.right} of {asked} right at the first attempt."
        return (
            f"{self.answered} of {asked} answered, {self.right} of them right at the first attempt."
        )
