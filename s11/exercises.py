"""An exercise as plain values: a task, numbers to predict, how they are judged, the solution."""

from __future__ import annotations

from dataclasses import dataclass

from s11.costs import LinearCost
from s11.quiz import Answer, PageLink


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
    how = "large" if typed > answer else "small"
    off = abs(typed - answer) / answer
    return Judged(False, f"too {how}, by {off:.0%} of the right value." if off >= 0.01
                  else f"a little too {how}.")  # fmt: skip


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
