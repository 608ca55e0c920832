"""Result files of `vllm bench serve` as traces: what was sent when, and how long it was."""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from s11.arrivals import GammaArrivals
from s11.bench_results import MAX_JSON_CHARACTERS, BenchResults, read_bench_results
from s11.traces.trace import Trace
from s11.words import count

NAME, TITLE = "vllm bench", "vllm bench serve"
KEYS = ("input_lens", "output_lens", "ttfts", "itls", "start_times", "request_throughput")
DRAWN_SEED = 0


def read_bench(text_blocks: Iterator[bytes], *, name: str) -> Trace:
    """Return the requests that succeeded, of the file's last run.

    The whole text is needed at once, and is bounded for it. Without start_times, arrivals are
    drawn at the file's request rate (and burstiness), which the trace's note tells.

    Raises:
        ValueError: no result of vllm bench, or one that tells no arrivals.
    """
    text = _text(text_blocks)
    if not any(f'"{key}"' in text for key in KEYS):
        raise UnknownFormatError
    results = read_bench_results(text)
    arrival_ms, note = _arrivals_ms(results)
    order = np.argsort(arrival_ms, kind="stable")
    times_ms = arrival_ms[order] - arrival_ms[order[0]]
    backwards = int(np.count_nonzero(arrival_ms < np.maximum.accumulate(arrival_ms)))
    return Trace(
        format=NAME,
        title=TITLE,
        name=name,
        arrival_ms=times_ms,
        prompt_tokens=results.prompt_tokens[order],
        output_tokens=results.output_tokens[order],
        hash_ids=None,
        rows_read=len(results) + results.failed,
        zero_output_rows=results.failed,
        out_of_order_rows=backwards,
        note=note,
    )


class UnknownFormatError(ValueError):
    """The text is no result of `vllm bench`; what reads all formats says which there are."""


def _text(text_blocks: Iterator[bytes]) -> str:
    data = bytearray()
    for block in text_blocks:
        data += block
        if len(data) > MAX_JSON_CHARACTERS:
            raise ValueError(
                f"trace: a JSON text of more than {MAX_JSON_CHARACTERS:,} bytes is too long for a "
                "result of vllm bench (allowed: up to them)"
            )
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        row = error.object[: error.start].count(b"\n") + 1
        raise ValueError(
            f"trace: row {row:,} holds a byte that is no UTF-8 (allowed: text in UTF-8)"
        ) from None


def _arrivals_ms(results: BenchResults) -> tuple[NDArray[np.float64], str]:
    """Return when each request was sent, and what there is to say about it."""
    head = results.head
    runs = f"It is the last of {count(head.runs, 'run')} in the file." if head.runs > 1 else ""
    if results.arrival_ms is not None:
        limited = (
            ""
            if head.max_concurrency is None
            else f"Its client let at most {head.max_concurrency:,} be under way, so that arrivals "
            "are without the time a request waited for that."
        )
        return results.arrival_ms, " ".join(part for part in (runs, limited) if part)
    rate = head.request_rate_per_s
    if rate is None:
        raise ValueError(
            "start_times: missing, and request_rate too, so that it is not known when each "
            "request was sent (allowed: a file of a newer vLLM, or one with its request_rate)"
        )
    if rate == math.inf:
        note = "It has no start_times; its request_rate is inf, so all are sent at once."
        return np.zeros(len(results)), f"{runs} {note}".strip()
    burstiness = 1.0 if head.burstiness is None else head.burstiness
    drawn = GammaArrivals(rate_per_s=rate, burstiness=burstiness)
    note = (
        f"It has no start_times: arrivals are drawn at its request_rate of {rate:g} per second "
        f"and a burstiness of {burstiness:g}, not recorded."
    )
    generator = np.random.Generator(np.random.PCG64(DRAWN_SEED))
    return drawn.times_ms(generator, len(results)), f"{runs} {note}".strip()
