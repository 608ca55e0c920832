"""What a query parameter's text may be, before a control sees it.

Each check takes the text and raises ValueError with a sentence where the control cannot hold it.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from s11.checks import require_choice, require_int

MOST_DIGITS = 12


def whole(low: int, high: int) -> Callable[[str], Any]:
    """Return a check for a whole number from `low` to `high`, in ASCII digits alone."""

    def check(text: str) -> int:
        digits = text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
        return require_int("value", int(text) if digits else text, low, high)

    return check


def one_of(*choices: str) -> Callable[[str], Any]:
    """Return a check for one of some texts."""
    return lambda text: require_choice("value", text, choices)
