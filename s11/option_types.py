"""Argument types of the command line: each refuses with field, value and what is allowed."""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence

from s11.checks import require_choice, require_int, require_ms


class Whole:
    """A whole number in a range."""

    def __init__(self, field: str, low: int, high: int) -> None:
        self.field, self.low, self.high = field, low, high
        self.about = f"{low:,} to {high:,}"

    def __call__(self, text: str) -> int:
        """Return the number in a text.

        Raises:
            argparse.ArgumentTypeError: anything else.
        """
        try:
            value: object = int(text)
        except ValueError:
            value = text
        try:
            return require_int(self.field, value, self.low, self.high)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


class Number:
    """A finite number in a range."""

    def __init__(self, field: str, low: float, high: float, *, above: bool = False) -> None:
        self.field, self.low, self.high, self.above = field, low, high, above
        self.about = f"{'above ' if above else ''}{low:g} to {high:g}"

    def __call__(self, text: str) -> float:
        """Return the number in a text.

        Raises:
            argparse.ArgumentTypeError: anything else.
        """
        try:
            value: object = float(text)
        except ValueError:
            value = text
        try:
            return require_ms(self.field, value, self.low, self.high, above=self.above)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


class Choice:
    """One of some names."""

    def __init__(self, field: str, choices: Sequence[str]) -> None:
        self.field, self.choices = field, tuple(choices)
        self.about = ", ".join(self.choices)

    def __call__(self, text: str) -> str:
        """Return the name in a text.

        Raises:
            argparse.ArgumentTypeError: anything else.
        """
        try:
            return require_choice(self.field, text, self.choices)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error


class Window:
    """Two numbers, `A:B`, of which either may be left out: from the begin, to the end."""

    def __init__(self, field: str, high: float) -> None:
        self.field = field
        self._number = Number(field, 0, high)

    def __call__(self, text: str) -> tuple[float, float]:
        """Return the begin and the end in a text.

        Raises:
            argparse.ArgumentTypeError: anything else.
        """
        begin, sign, end = text.partition(":")
        if not sign:
            raise argparse.ArgumentTypeError(
                f"{self.field}: {text[:60]!r} is not A:B in numbers (allowed: such as 60:120, 60:)"
            )
        window = (
            self._number(begin) if begin else 0.0,
            self._number(end) if end else math.inf,
        )
        if window[0] >= window[1]:
            raise argparse.ArgumentTypeError(
                f"{self.field}: {text[:60]!r} ends before it begins (allowed: A:B with A below B)"
            )
        return window
