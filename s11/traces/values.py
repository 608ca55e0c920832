"""The values of a trace's rows: times, counts, and the sentence where one is wrong.

Times are whole nanoseconds until they are subtracted, so that none loses a digit.
"""

from __future__ import annotations

import re
from datetime import date
from decimal import Decimal
from functools import lru_cache
from typing import Any, NoReturn

from s11.checks import MAX_TOKENS

NS_PER_S, NS_PER_MS = 1_000_000_000, 1_000_000
MAX_TIME_S = 4_000_000_000  # in nanoseconds less than 2^63
FIRST_YEAR, LAST_YEAR = 2000, 2099
MAX_NUMBER_CHARACTERS = 40
MAX_SHOWN_CHARACTERS = 40

_STAMP = re.compile(
    r"(\d{4}-\d\d-\d\d)[ T]([01]\d|2[0-3]):([0-5]\d):([0-5]\d)(?:\.(\d{1,9}))?"
    r"(?:Z|([+-])([01]\d|2[0-3]):?([0-5]\d))?",
    re.ASCII,
)
_NUMBER = re.compile(r"[+-]?(?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d{1,3})?", re.ASCII)


def refuse(row: int, column: str, value: object, allowed: str) -> NoReturn:
    """Refuse a value of a row.

    Raises:
        ValueError: always, with row, column, value and what is allowed.
    """
    text = value if isinstance(value, str) else _shown(value)
    if len(text) > MAX_SHOWN_CHARACTERS:
        text = f"{text[: MAX_SHOWN_CHARACTERS - 3]}..."
    shown = repr(text) if isinstance(value, str) else text
    raise ValueError(f"trace: row {row:,}, {column}: {shown} (allowed: {allowed})")


def stamp_ns(text: str, row: int, column: str) -> int:
    """Return a date and time of day in nanoseconds; without an offset it is UTC.

    Raises:
        ValueError: another form, a day that is not in the calendar, a year out of range.
    """
    found = _STAMP.fullmatch(text.strip())
    midnight = _midnight_ns(found[1]) if found else None
    if found is None or midnight is None:
        refuse(
            row,
            column,
            text,
            f"a time such as 2023-11-16 18:15:46.6805900, of the years {FIRST_YEAR} to {LAST_YEAR}",
        )
    _, hours, minutes, seconds, fraction, sign, offset_hours, offset_minutes = found.groups()
    second = 3600 * int(hours) + 60 * int(minutes) + int(seconds)
    if sign:
        offset = 3600 * int(offset_hours) + 60 * int(offset_minutes)
        second += offset if sign == "-" else -offset
    return midnight + second * NS_PER_S + int((fraction or "").ljust(9, "0"))


@lru_cache(maxsize=1_024)
def _midnight_ns(day: str) -> int | None:
    """Return when a day begins; None for a day that is not in the calendar or out of range."""
    try:
        found = date.fromisoformat(day)
    except ValueError:
        return None
    if not FIRST_YEAR <= found.year <= LAST_YEAR:
        return None
    return (found - date(1970, 1, 1)).days * 86_400 * NS_PER_S


def seconds_ns(text: str, row: int, column: str) -> int:
    """Return seconds in nanoseconds.

    Raises:
        ValueError: no number from 0 to `MAX_TIME_S`.
    """
    text = text.strip()
    if len(text) <= 10 and text.isascii() and text.isdigit():
        found: Decimal | int | None = int(text)
    else:
        found = _decimal(text)
    if found is None or not 0 <= found <= MAX_TIME_S:
        refuse(row, column, text, f"seconds from 0 to {MAX_TIME_S:,}")
    return int(found * NS_PER_S)


def milliseconds_ns(value: Any, row: int, column: str) -> int:
    """Return milliseconds, as JSON gives them, in nanoseconds.

    Raises:
        ValueError: no number from 0 to `MAX_TIME_S` seconds.
    """
    if type(value) not in (int, float) or not 0 <= value <= MAX_TIME_S * 1000:
        refuse(row, column, value, f"milliseconds from 0 to {MAX_TIME_S * 1000:,}")
    return value * NS_PER_MS if type(value) is int else round(value * NS_PER_MS)


def tokens(text: str, row: int, column: str) -> int:
    """Return a count of tokens; a whole number written as `374.0` is one.

    Raises:
        ValueError: no whole number from 0 to `MAX_TOKENS`.
    """
    if len(text) <= 8 and text.isascii() and text.isdigit():
        found: Decimal | int | None = int(text)
    else:
        found = _decimal(text.strip())
    if found is None or not 0 <= found <= MAX_TOKENS or found != int(found):
        refuse(row, column, text.strip(), f"a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return int(found)


def json_tokens(value: Any, row: int, column: str) -> int:
    """Return a count of tokens, as JSON gives it.

    Raises:
        ValueError: no whole number from 0 to `MAX_TOKENS`.
    """
    if type(value) is not int or not 0 <= value <= MAX_TOKENS:
        refuse(row, column, value, f"a whole number of tokens from 0 to {MAX_TOKENS:,}")
    return value


def _decimal(text: str) -> Decimal | None:
    """Return a number exactly as it is written, None where it is none of a bounded length."""
    if len(text) > MAX_NUMBER_CHARACTERS or not _NUMBER.fullmatch(text):
        return None
    return Decimal(text)


def _shown(value: object) -> str:
    if isinstance(value, dict | list):
        return "an object" if isinstance(value, dict) else "a list"
    try:
        return "null" if value is None else repr(value)
    except ValueError:  # an int of more digits than Python prints
        return "a number of thousands of digits"
