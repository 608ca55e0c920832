"""Trace files in memory: short names for what the tests write."""

import gzip
import io
import json
from typing import Any

from s11.traces import Trace, read_trace

AZURE = "TIMESTAMP,ContextTokens,GeneratedTokens"
BURSTGPT = "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type"


def read(text: str | bytes, **options: Any) -> Trace:
    data = text.encode() if isinstance(text, str) else text
    return read_trace(io.BytesIO(data), name="file", **options)


def azure(*rows: str) -> str:
    return "\n".join([AZURE, *rows]) + "\n"


def burstgpt(*rows: tuple[str, str, str]) -> str:
    """Rows of time, prompt and output."""
    told = [f"{time},ChatGPT,{prompt},{output},0,API log" for time, prompt, output in rows]
    return "\n".join([BURSTGPT, *told]) + "\n"


def each_second(count: int) -> str:
    """Requests at 0, 1, 2, … s; the prompt of each tells which it is."""
    return burstgpt(*[(str(n), str(n + 1), "1") for n in range(count)])


def mooncake(*rows: dict[str, Any]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def call(
    timestamp: Any = 0, input_length: Any = 600, output_length: Any = 5, **more: Any
) -> dict[str, Any]:
    return {
        "timestamp": timestamp,
        "input_length": input_length,
        "output_length": output_length,
        **more,
    }


def bench(**changes: Any) -> dict[str, Any]:
    """A result of `vllm bench serve` with two requests; None leaves a key out."""
    made: dict[str, Any] = {
        "backend": "vllm",
        "model_id": "made-up",
        "request_rate": 2.0,
        "burstiness": 1.0,
        "max_concurrency": None,
        "input_lens": [10, 20],
        "output_lens": [3, 2],
        "ttfts": [0.5, 0.25],
        "itls": [[0.1, 0.1], [0.1]],
        "start_times": [100.5, 102.0],
        "errors": ["", ""],
    }
    made |= changes
    return {key: value for key, value in made.items() if value is not None or key in KEPT_NULL}


KEPT_NULL = {"max_concurrency"}


def packed(text: str) -> bytes:
    return gzip.compress(text.encode())
