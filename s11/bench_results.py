"""What a real server's users saw: the JSON of `vllm bench serve --save-detailed`."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TOKENS, require_int, require_ms
from s11.workload import Request, Workload

MAX_JSON_CHARACTERS = 20_000_000
MAX_BRACKETS = 1_000_000  # what holds memory out of proportion to its text
MAX_BENCH_REQUESTS = 200_000
MAX_RUNS = 1_000
SPACE = re.compile(r"[ \t\r\n]*")
LONGEST_WAIT_S = 86_400.0  # the client itself gives up after six hours
LONGEST_RUN_S = 30 * 86_400.0
ARRAYS = ("input_lens", "output_lens", "ttfts", "itls")

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class BenchHead:
    """What was run; None where the file does not tell.

    request_rate_per_s: infinite where all requests were sent at once.
    max_concurrency: most requests under way; None where there was no limit.
    run, runs: which of the file's runs this is, from 1, and how many there are.
    """

    date: str | None
    backend: str | None
    model_id: str | None
    request_rate_per_s: float | None
    burstiness: float | None
    max_concurrency: int | None
    run: int
    runs: int


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class BenchResults:
    """The requests that succeeded, in the file's order, as their client saw them.

    itl_ms: gaps between what the client received, all requests in one; those of row i are
        itl_ms[itl_offset[i] : itl_offset[i + 1]]. A message may hold several tokens, so that
        there may be fewer gaps than output tokens − 1.
    arrival_ms: when each was sent, from the first; None where the file does not tell.
    failed: requests that gave an error or no token; they have no row.
    """

    head: BenchHead
    request: Ints  # (requests,) place in the file, from 0
    prompt_tokens: Ints  # (requests,)
    output_tokens: Ints  # (requests,)
    ttft_ms: Floats  # (requests,)
    itl_ms: Floats  # (gaps,)
    itl_offset: Ints  # (requests + 1,)
    arrival_ms: Floats | None  # (requests,)
    failed: int

    def __len__(self) -> int:
        return len(self.request)


def read_bench_results(text: str, *, run: int | None = None) -> BenchResults:
    """Return one run in the text of a result file.

    With --append-result a file holds several objects: `run` picks one, counted from 1; without
    it, the last. Source of the format: vLLM, vllm/benchmarks/serve.py and
    lib/endpoint_request_func.py (times in seconds; a failed request has 0 output tokens).

    Raises:
        ValueError: a text too long or not JSON, an array that is missing, of another length or
            with a value out of range, no request that succeeded.
    """
    found = _objects(text)
    run = len(found) if run is None else require_int("run", run, 1, len(found))
    data = found[run - 1]
    if not isinstance(data, dict):
        raise ValueError(f"benchmark: run {run:,} is not a JSON object (allowed: one for each run)")
    head = _head(data, run, len(found))
    arrays = {name: _array(data, name) for name in ARRAYS}
    requests = len(arrays["input_lens"])
    for name in ("errors", "start_times"):
        if data.get(name) is not None:
            arrays[name] = _array(data, name)
    for name, array in arrays.items():
        if len(array) != requests:
            raise ValueError(
                f"{name}: {len(array):,} values (allowed: {requests:,}, as many as input_lens)"
            )
    kept = _succeeded(arrays["output_lens"], arrays.get("errors"))
    if not kept:
        raise ValueError(f"errors: none of {requests:,} requests succeeded (allowed: 1 or more)")
    itls = [_gaps_ms(arrays["itls"][row], row) for row in kept]
    rows = np.array(kept, dtype=np.int64)
    return BenchResults(
        head=head,
        request=rows,
        prompt_tokens=_counts(arrays["input_lens"], "input_lens", kept),
        output_tokens=_counts(arrays["output_lens"], "output_lens", kept),
        ttft_ms=_ttfts_ms(arrays["ttfts"], kept),
        itl_ms=np.concatenate(itls),
        itl_offset=np.cumsum([0, *map(len, itls)], dtype=np.int64),
        arrival_ms=_arrivals_ms(arrays["start_times"], kept) if "start_times" in arrays else None,
        failed=requests - len(kept),
    )


def to_workload(results: BenchResults, *, arrival_ms: Sequence[float] | None = None) -> Workload:
    """Return the same requests for the simulator, named by their place in the file.

    arrival_ms: when each is sent, (requests,); None for the times in the file. Where clients
    waited for answers (max_concurrency), those times hang on the measured server's own speed.

    Raises:
        ValueError: times that neither the file nor the caller gives, or not one a request.
    """
    times: Sequence[float] | Floats | None = (
        results.arrival_ms if arrival_ms is None else arrival_ms
    )
    if times is None:
        raise ValueError(
            "start_times: missing, so it is not known when each request was sent (allowed: a file "
            "of a newer vLLM, or arrivals from its request rate or concurrency)"
        )
    if len(times) != len(results):
        raise ValueError(
            f"arrival_ms: {len(times):,} times (allowed: {len(results):,}, one a request)"
        )
    return Workload(
        requests=tuple(
            Request(
                request_id=str(number),
                arrival_ms=float(time_ms),
                prompt_tokens=prompt_tokens,
                output_tokens=output_tokens,
            )
            for number, time_ms, prompt_tokens, output_tokens in zip(
                results.request.tolist(),
                times,
                results.prompt_tokens.tolist(),
                results.output_tokens.tolist(),
                strict=True,
            )
        )
    )


def _objects(text: str) -> list[Any]:
    """Return the JSON values in a text, one after another with nothing but space between."""
    if len(text) > MAX_JSON_CHARACTERS:
        raise ValueError(
            f"benchmark: a text of {len(text):,} characters is too long "
            f"(allowed: up to {MAX_JSON_CHARACTERS:,})"
        )
    brackets = text.count("[") + text.count("{")
    if brackets > MAX_BRACKETS:
        raise ValueError(f"benchmark: {brackets:,} lists and objects (allowed: {MAX_BRACKETS:,})")
    text = text.removeprefix("\ufeff")
    decoder = json.JSONDecoder()
    found: list[Any] = []
    at = 0
    try:
        while (at := _past_space(text, at)) < len(text):
            if len(found) == MAX_RUNS:
                raise ValueError(f"more than {MAX_RUNS:,} runs")
            value, at = decoder.raw_decode(text, at)
            found.append(value)
    except RecursionError:
        raise ValueError(
            "benchmark: lists and objects stand too deep within each other (allowed: the JSON of "
            "vllm bench serve --save-detailed)"
        ) from None
    except ValueError as error:
        reason = str(error).splitlines()[0][:100]
        raise ValueError(
            f"benchmark: not JSON text, one object for each of up to {MAX_RUNS:,} runs ({reason})"
        ) from error
    if not found:
        raise ValueError("benchmark: empty (allowed: the JSON of vllm bench serve --save-detailed)")
    return found


def _past_space(text: str, at: int) -> int:
    space = SPACE.match(text, at)
    return space.end() if space else at


def _head(data: dict[str, Any], run: int, runs: int) -> BenchHead:
    rate, burstiness = data.get("request_rate"), data.get("burstiness")
    concurrency = data.get("max_concurrency")
    if rate is not None and rate != "inf" and rate != math.inf:
        rate = require_ms("request_rate", rate, 0, 1e6, above=True)
    if burstiness is not None:
        burstiness = require_ms("burstiness", burstiness, 0, 1e6, above=True)
    if concurrency is not None:
        concurrency = require_int("max_concurrency", concurrency, 1, MAX_TOKENS)
    return BenchHead(
        date=_text(data, "date"),
        backend=_text(data, "backend") or _text(data, "endpoint_type"),
        model_id=_text(data, "model_id"),
        request_rate_per_s=None if rate is None else float(rate),
        burstiness=burstiness,
        max_concurrency=concurrency,
        run=run,
        runs=runs,
    )


def _text(data: dict[str, Any], name: str) -> str | None:
    value = data.get(name)
    if value is None or (isinstance(value, str) and len(value) <= 500):
        return value
    raise ValueError(f"{name}: not a text of up to 500 characters")


def _array(data: dict[str, Any], name: str) -> list[Any]:
    value = data.get(name)
    if value is None:
        raise ValueError(f"{name}: missing (allowed: a file that was saved with --save-detailed)")
    if not isinstance(value, list):
        raise ValueError(f"{name}: not a list (allowed: a value for each request)")
    if len(value) > MAX_BENCH_REQUESTS:
        raise ValueError(f"{name}: {len(value):,} values (allowed: up to {MAX_BENCH_REQUESTS:,})")
    return value


def _succeeded(output_lens: list[Any], errors: list[Any] | None) -> list[int]:
    """Return the places of the requests without an error and with a token."""
    for row, error in enumerate(errors or ()):
        if error is not None and not isinstance(error, str):
            raise ValueError(
                f"errors: request {row:,}: not a text (allowed: empty if it succeeded)"
            )
    for row, tokens in enumerate(output_lens):
        require_int(f"output_lens: request {row:,}", tokens, 0, MAX_TOKENS)
    return [
        row
        for row, tokens in enumerate(output_lens)
        if tokens > 0 and not (errors is not None and errors[row])
    ]


def _counts(values: list[Any], name: str, kept: list[int]) -> Ints:  # (requests,)
    return np.array(
        [require_int(f"{name}: request {row:,}", values[row], 1, MAX_TOKENS) for row in kept],
        dtype=np.int64,
    )


def _ttfts_ms(seconds: list[Any], kept: list[int]) -> Floats:  # (requests,)
    ttfts = [
        require_ms(f"ttfts: request {row:,}", seconds[row], 0, LONGEST_WAIT_S, above=True)
        for row in kept
    ]
    return 1000.0 * np.array(ttfts, dtype=np.float64)


def _gaps_ms(seconds: Any, row: int) -> Floats:  # (gaps of the request,)
    if not isinstance(seconds, list):
        raise ValueError(f"itls: request {row:,}: not a list (allowed: seconds of each gap)")
    plain = {float, int}.issuperset(map(type, seconds))
    if plain and all(0 <= gap <= LONGEST_WAIT_S for gap in seconds):
        return 1000.0 * np.array(seconds, dtype=np.float64)
    for gap in seconds:
        require_ms(f"itls: request {row:,}", gap, 0, LONGEST_WAIT_S)
    raise AssertionError("a gap out of range is refused")


def _arrivals_ms(start_times: list[Any], kept: list[int]) -> Floats:  # (requests,)
    """Return times from the first; the client's clock starts anywhere."""
    starts = np.array(
        [require_ms(f"start_times: request {row:,}", start_times[row], -1e12, 1e12) for row in kept]
    )
    from_first = starts - starts.min()  # (requests,)
    if from_first.max() > LONGEST_RUN_S:
        row = kept[int(from_first.argmax())]
        raise ValueError(
            f"start_times: request {row:,} was sent {from_first.max():,.0f} s after the first "
            f"(allowed: up to {LONGEST_RUN_S:,.0f} s)"
        )
    return np.asarray(1000.0 * from_first)
