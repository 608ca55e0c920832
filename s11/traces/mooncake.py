"""Mooncake traces: a JSON object a line, with the ids of the prompt's 512-token blocks."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from s11.traces.collected import Collected
from s11.traces.values import json_tokens, milliseconds_ns, refuse
from s11.workload import HASH_BLOCK_TOKENS, MAX_HASH_ID

NAME, TITLE = "mooncake", "Mooncake trace"
NEEDED = ("timestamp", "input_length", "output_length")


def read_mooncake(lines: Iterator[tuple[int, str]], collected: Collected) -> bool:
    """Read rows until the file ends or enough are collected; return whether it ended.

    Source of the format: kvcache-ai/Mooncake, FAST25-release/README.md (times in ms).

    Raises:
        ValueError: a line that is not a JSON object, a value that is missing or out of range,
            a number of hash ids that does not go with the prompt.
    """
    for row, line in lines:
        data = _object(line, row)
        for name in NEEDED:
            if name not in data:
                raise ValueError(
                    f"trace: row {row:,}, {name}: missing (allowed: {', '.join(NEEDED)})"
                )
        prompt_tokens = json_tokens(data["input_length"], row, "input_length")
        if not collected.add(
            milliseconds_ns(data["timestamp"], row, "timestamp"),
            prompt_tokens,
            json_tokens(data["output_length"], row, "output_length"),
            _hash_ids(data.get("hash_ids"), prompt_tokens, row),
        ):
            return False
    return True


def _object(line: str, row: int) -> dict[str, Any]:
    try:
        data = json.loads(line)
    except RecursionError:
        raise ValueError(
            f"trace: row {row:,} nests lists and objects too deep (allowed: a JSON object a line)"
        ) from None
    except ValueError as error:  # a number of too many digits too
        reason = str(error).splitlines()[0][:80]
        raise ValueError(
            f"trace: row {row:,} is not JSON ({reason}) (allowed: a JSON object a line)"
        ) from None
    if not isinstance(data, dict):
        raise ValueError(f"trace: row {row:,} is no object (allowed: a JSON object a line)")
    return data


def _hash_ids(value: Any, prompt_tokens: int, row: int) -> list[int]:
    if value is None:
        return []
    if not isinstance(value, list):
        refuse(row, "hash_ids", value, "a list of whole numbers")
    needed = -(-prompt_tokens // HASH_BLOCK_TOKENS)
    if len(value) != needed:
        raise ValueError(
            f"trace: row {row:,}, hash_ids: {len(value):,} ids for an input_length of "
            f"{prompt_tokens:,} (allowed: {needed:,}, one for each begun {HASH_BLOCK_TOKENS} "
            "tokens)"
        )
    for one in value:
        if type(one) is not int or not 0 <= one <= MAX_HASH_ID:
            refuse(row, "hash_ids", one, f"whole numbers from 0 to {MAX_HASH_ID:,}")
    return value
