"""Refusals at the edge: one sentence with the field, the value and the allowed range."""

from __future__ import annotations

import contextlib
import math
from numbers import Integral, Real
from typing import Any

import numpy as np

MAX_TOKENS = 16_777_216
MAX_USERS = 100_000
MAX_TIME_MS = 1e12


def require_int(field: str, value: object, low: int, high: int) -> int:
    """Return `value` when it is a whole number from `low` to `high`.

    Raises:
        ValueError: with field, value and allowed range.
    """
    whole = isinstance(value, Integral) and not isinstance(value, bool)  # NumPy's too
    if not whole or not low <= value <= high:  # type: ignore[operator]
        raise ValueError(f"{field}: {_shown(value)} is not a whole number from {low:,} to {high:,}")
    return int(value)  # type: ignore[call-overload, no-any-return]


def require_optional_int(field: str, value: object, low: int, high: int) -> int | None:
    """Return `value` when it is None (no limit) or a whole number from `low` to `high`.

    Raises:
        ValueError: with field, value and allowed range.
    """
    return None if value is None else require_int(field, value, low, high)


def require_ms(field: str, value: object, low: float, high: float, *, above: bool = False) -> float:
    """Return `value` as a float when it is a finite number from `low` to `high`.

    With `above`, `low` itself is refused.

    Raises:
        ValueError: with field, value and allowed range.
    """
    number = math.nan
    if isinstance(value, Real) and not isinstance(value, bool):
        with contextlib.suppress(OverflowError):  # an int beyond every float
            number = float(value)
    if not low <= number <= high or (above and number == low):
        lowest = f"above {low:g}" if above else f"from {low:g}"
        raise ValueError(f"{field}: {_shown(value)} is not a number {lowest} to {high:g}")
    return number


def require_choice(field: str, value: object, choices: tuple[str, ...]) -> str:
    """Return `value` when it is one of `choices`.

    Raises:
        ValueError: with field, value and the choices.
    """
    if not isinstance(value, str) or value not in choices:
        raise ValueError(f"{field}: {_shown(value)} is not one of {', '.join(choices)}")
    return value


def require_bool(field: str, value: object) -> bool:
    """Return `value` when it is True or False, NumPy's included.

    Raises:
        ValueError: with field and value.
    """
    if isinstance(value, bool | np.bool_):
        return bool(value)
    raise ValueError(f"{field}: {_shown(value)} is not true or false")


def require_keys(what: str, data: object, names: set[str]) -> dict[str, Any]:
    """Return `data` when it is an object all of whose keys are among `names`.

    Raises:
        ValueError: another kind of data, or the first key that is not known.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{what}: not an object with named values")
    for key in data:
        if key not in names:
            allowed = ", ".join(sorted(names))
            raise ValueError(f"{what}: {str(key)[:40]!r} is not a known key (allowed: {allowed})")
    return data


def _shown(value: object) -> str:
    try:
        text = repr(value)
    except ValueError:  # an int of more digits than Python prints
        text = "a number of thousands of digits"
    return text if len(text) <= 60 else text[:57] + "..."
