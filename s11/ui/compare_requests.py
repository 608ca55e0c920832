"""The compare page's table of requests: rows as typed, and as a text in the link."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from s11.checks import require_int, require_ms
from s11.step_story import names
from s11.ui.link_checks import MOST_DIGITS
from s11.words import quoted
from s11.workload import Request, Workload

MOST_REQUESTS, MOST_LETTERS = 24, 3_000
MOST_NAME, MOST_PROMPT, MOST_OUTPUT, MOST_ARRIVAL_MS = 24, 1_000_000, 10_000, 600_000.0
FIELD, ROW = "~", "~~"

Row = Mapping[str, Any]


def row_of(request: Request) -> dict[str, Any]:
    """Return a request as a row of the table."""
    return {
        "name": request.request_id,
        "arrival_ms": request.arrival_ms,
        "prompt_tokens": request.prompt_tokens,
        "output_tokens": request.output_tokens,
        "shared_group": request.shared_group,
        "shared_tokens": request.shared_tokens or None,
    }


_NEEDED: dict[str, str] = {
    "name": f"name (1 to {MOST_NAME} letters)",
    "arrival_ms": f"arrival (0 to {MOST_ARRIVAL_MS:,.0f} ms)",
    "prompt_tokens": f"prompt (1 to {MOST_PROMPT:,} tokens)",
    "output_tokens": f"output (1 to {MOST_OUTPUT:,} tokens)",
}


def complete_rows(rows: Sequence[Row]) -> tuple[Row, ...]:
    """Return the rows in which nothing is missing."""
    return tuple([row for row in rows if not _lacking(row)])


def left_out(rows: Sequence[Row]) -> list[str]:
    """Say which rows are left out as something is missing in them, and what."""
    sentences = []
    for number, row in enumerate(rows, start=1):
        lacking = [_NEEDED[field] for field in _lacking(row)]
        if lacking:
            name = "" if _missing(row.get("name")) else str(row["name"]).strip()[:MOST_NAME]
            which = f"Row {number}" + (f" ({quoted(name)})" if name else "")
            verb = "is" if len(lacking) == 1 else "are"
            sentences.append(f"{which} is left out: {names(lacking)} {verb} missing.")
    return sentences


def _lacking(row: Row) -> list[str]:
    return [field for field in _NEEDED if _missing(row.get(field)) or row.get(field) == ""]


def requests_of(rows: Sequence[Row]) -> tuple[Request, ...]:
    """Return the requests that a table describes.

    Raises:
        ValueError: too many rows, or a row that is none, named with field, value and range.
    """
    require_int("requests", len(rows), 1, MOST_REQUESTS)
    return tuple([_request(row, number) for number, row in enumerate(rows, start=1)])


def _request(row: Row, number: int) -> Request:
    name = "" if _missing(row.get("name")) else str(row["name"]).strip()
    where = f"row {number}" + (f" ({name[:MOST_NAME]})" if name else "")
    if not 0 < len(name) <= MOST_NAME or FIELD in name:
        raise ValueError(
            f"{where}, name: {name[:40]!r} is not a text of 1 to {MOST_NAME} letters "
            f"without {FIELD}"
        )
    group = None if _missing(row.get("shared_group")) else str(row["shared_group"]).strip()
    if group and (len(group) > MOST_NAME or FIELD in group):
        raise ValueError(
            f"{where}, shared_group: {group[:40]!r} is not a text of at most {MOST_NAME} letters "
            f"without {FIELD}"
        )
    try:
        prompt_tokens = require_int("prompt_tokens", _number(row, "prompt_tokens"), 1, MOST_PROMPT)
        shared = _number(row, "shared_tokens") or 0
        return Request(
            request_id=name,
            arrival_ms=require_ms("arrival_ms", _number(row, "arrival_ms"), 0, MOST_ARRIVAL_MS),
            prompt_tokens=prompt_tokens,
            output_tokens=require_int(
                "output_tokens", _number(row, "output_tokens"), 1, MOST_OUTPUT
            ),
            shared_group=group or None,
            shared_tokens=require_int("shared_tokens", shared, 0, prompt_tokens),
        )
    except ValueError as error:
        raise ValueError(f"{where}, {error}") from None


def _missing(value: object) -> bool:
    if value is None or (isinstance(value, float) and math.isnan(value)):
        return True
    try:
        return bool(value != value)
    except TypeError:  # pandas' NA compares to NA
        return True


def _number(row: Row, field: str) -> Any:
    """Return a cell's number, a whole one as such: an editor hands floats over."""
    value = row.get(field)
    if _missing(value):
        return None
    if isinstance(value, float) and value.is_integer() and field != "arrival_ms":
        return int(value)
    return value


def requests_text(requests: Sequence[Request]) -> str:
    """Return a table of requests: `name~arrival~prompt~output~group~shared`, parted by `~~`."""
    rows = []
    for request in requests:
        fields = [request.request_id, f"{request.arrival_ms:.10g}"]
        fields += [str(request.prompt_tokens), str(request.output_tokens)]
        if request.shared_group is not None:
            fields += [request.shared_group, str(request.shared_tokens)]
        rows.append(FIELD.join(fields))
    return ROW.join(rows)


def requests_from(text: str) -> tuple[Request, ...]:
    """Return the requests that a text describes.

    Raises:
        ValueError: too long, a row with another number of fields, a value out of range.
    """
    if len(text) > MOST_LETTERS:
        raise ValueError(f"value: {len(text):,} letters are more than {MOST_LETTERS:,}")
    rows: list[dict[str, Any]] = []
    for number, row in enumerate(text.split(ROW), start=1):
        fields = row.split(FIELD)
        if len(fields) not in (4, 6):
            raise ValueError(
                f"value: row {number} has {len(fields)} fields (allowed: "
                "name~arrival~prompt~output, or these and ~group~shared)"
            )
        names = ("name", "arrival_ms", "prompt_tokens", "output_tokens", "shared_group")
        found: dict[str, Any] = dict(zip(names, fields[:5], strict=False))
        found["shared_tokens"] = fields[5] if len(fields) == 6 else None
        for name in ("prompt_tokens", "output_tokens", "shared_tokens"):
            found[name] = whole_or_text(found[name])
        found["arrival_ms"] = float_or_text(found["arrival_ms"])
        rows.append(found)
    requests = requests_of(rows)
    Workload(requests=requests)  # refuses a name that is given twice
    return requests


def whole_or_text(text: str | None) -> Any:
    """Return a text's number where it is whole, in ASCII digits alone; else the text."""
    digits = text is not None and text.isascii() and text.isdigit() and len(text) <= MOST_DIGITS
    return int(text) if digits and text is not None else text


def float_or_text(text: str) -> Any:
    """Return a text's number; else the text."""
    try:
        return float(text)
    except ValueError:
        return text
