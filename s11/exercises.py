"""An exercise as plain values: a task, numbers to predict, how they are judged, the solution."""

from __future__ import annotations

import contextlib
import math
import re
from dataclasses import dataclass

from s11.costs import LinearCost
from s11.quiz import Answer, PageLink
from s11.words import quoted

MOST_TYPED = 1_000_000_000
TIMES_FROM, MANY_TIMES = 10, 1_000
SEPARATED = re.compile(r"[+-]?\d{1,3}(,\d{3})+(\.\d*)?")


@dataclass(frozen=True, slots=True)
class Slip:
    """A value that comes out where something is forgotten, and what that is."""

    value: float
    says: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Quantity:
    """One number to predict.

    name: its name in the session.
    label: what it is called, without its unit.
    unit: its unit; "ms" takes fractions, anything else is counted in whole ones.
    answer: the right value.
    tolerance: how far off a right prediction may be, as a share of the answer.
    never_above: what is wrong with any value above the answer; "" where it is tolerated too.
    slips: values that are known to come out wrong.
    """

    name: str
    label: str
    unit: str
    answer: float
    tolerance: float = 0.0
    never_above: str = ""
    slips: tuple[Slip, ...] = ()

    @property
    def counted(self) -> bool:
        """Whether it is a whole number."""
        return self.unit != "ms"

    def near(self, value: float, typed: float) -> bool:
        """Return whether a typed number is a value, within the tolerance."""
        return abs(typed - value) <= self.tolerance * abs(value)


@dataclass(frozen=True, slots=True)
class Judged:
    """Whether a prediction is right, and what to say to it."""

    right: bool
    sentence: str


@dataclass(frozen=True, slots=True)
class Choice:
    """A question with a few answers beside the numbers."""

    label: str
    answers: tuple[Answer, ...]


@dataclass(frozen=True, slots=True)
class Line:
    """One step of a worked solution: why, and the arithmetic."""

    says: str
    arithmetic: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Exercise:
    """One exercise with its present numbers.

    task: what is asked, with the numbers.
    look_for: what to watch on the page that `start` opens.
    start: a link that opens the exercise's state in the app.
    worked: the solution, line by line.
    moral: what it teaches, with the numbers.
    """

    name: str
    title: str
    task: str
    look_for: str
    start: PageLink
    quantities: tuple[Quantity, ...]
    choice: Choice | None = None
    worked: tuple[Line, ...]
    moral: str


def typed_number(quantity: Quantity, text: str) -> float | None:
    """Return the number that was typed for a quantity, None where nothing was.

    Thousands may be separated, as they are on the page: 2,488; so may a power of ten be: 1e9.

    Raises:
        ValueError: no number of its kind from 0 to 1,000,000,000, in one sentence.
    """
    told = text.strip()
    if not told:
        return None
    value = math.nan
    with contextlib.suppress(ValueError):
        value = float(told.replace(",", "") if SEPARATED.fullmatch(told) else told)
    if not 0 <= value <= MOST_TYPED or (quantity.counted and not value.is_integer()):
        kind = "whole number" if quantity.counted else "number"
        raise ValueError(
            f"{quantity.label}: {quoted(told)} is not a {kind} from 0 to {MOST_TYPED:,}"
        )
    return value


def judge(quantity: Quantity, typed: float) -> Judged:
    """Judge a prediction without giving the answer away where it is wrong."""
    answer = quantity.answer
    above = bool(quantity.never_above) and typed > answer
    if quantity.near(answer, typed) and not above:
        exact = typed == answer
        told = shown(answer, quantity.unit)
        return Judged(True, f"{told}." if exact else f"near enough to {told}.")
    for slip in quantity.slips:
        if quantity.near(slip.value, typed) and not quantity.near(answer, slip.value):
            return Judged(False, slip.says)
    if above and quantity.near(answer, typed):
        return Judged(False, quantity.never_above)
    if not answer:
        return Judged(False, "too many.")
    return Judged(False, _how_far_off(answer, typed))


def _how_far_off(answer: float, typed: float) -> str:
    how, factor = "large" if typed > answer else "small", typed / answer
    if factor > MANY_TIMES:
        return "more than a thousand times too large."
    if factor >= TIMES_FROM:
        return f"too large: about {factor:,.0f} times the right value."
    off = abs(typed - answer) / answer
    if off >= 0.01:
        return f"too {how}, by {off:.0%} of the right value."
    return f"a little too {how}."


def shown(value: float, unit: str) -> str:
    """Return a value with its unit: 2,488 tokens, 49.984 ms."""
    if unit == "ms":
        return f"{decimals(value)} ms"
    return f"{round(value):,} {unit.removesuffix('s') if value == 1 else unit}"


def step_formula(cost: LinearCost) -> str:
    """Return what a step takes, as it is written in a task."""
    return (
        f"{cost.fixed_ms:g} ms + {cost.prefill_ms_per_token:g} ms · prompt tokens + "
        f"{cost.decode_ms_per_token:g} ms · decodes"
    )


def decimals(value: float) -> str:
    """Return a number with at most three decimals, without zeros at its end."""
    return f"{value:,.3f}".rstrip("0").rstrip(".")
