"""A measured benchmark sent again: who sends what and when, and what to hold against what."""

from __future__ import annotations

import heapq
import math
import random
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from s11.bench_results import BenchResults, to_workload
from s11.overlay import Overlay, overlay, overlay_run
from s11.results import Result
from s11.validation.serving import LEAST_PAUSE_MS, MOST_PAUSE_MS
from s11.words import count, ms
from s11.workload import Workload

SEED = 11

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class Replay:
    """The benchmark's requests for the simulator, and how they are sent, in a sentence.

    closed_loop: clients wait for answers, so that arrivals hang on the simulated speed.
    """

    workload: Workload
    closed_loop: bool
    sentence: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LaidOver:
    """TTFTs and ITLs of both sides, over the requests that ended in the simulation.

    ttft, itl: None where a side has none.
    unfinished: requests that did not end there; they are left out of both sides.
    """

    ttft: Overlay | None
    itl: Overlay | None
    requests: int
    unfinished: int


def replay(results: BenchResults) -> Replay:
    """Return the requests as the benchmark's client sent them.

    Where it let only so many requests be under way, and they were: that many clients, each
    sending its next request shortly after its last one ends. Otherwise at the times in the
    file; without those, at its request rate.
    """
    limit, arrivals = results.head.max_concurrency, results.arrival_ms
    if limit is not None and min(len(results) - 1, _most_under_way(results)) >= limit:
        return _clients(results, limit)
    if arrivals is not None:
        last = f"over {ms(float(arrivals.max()))}"
        limited = "" if limit is None else f" Its limit of {limit:,} under way was never reached."
        return Replay(
            workload=to_workload(results),
            closed_loop=False,
            sentence=f"Arrivals are replayed at the file's start_times, {last} (open loop)."
            + limited,
        )
    return _at_rate(results)


def first_requests(results: BenchResults, most: int) -> BenchResults:
    """Return the first `most` requests in the order of their arrival, or else of the file."""
    if len(results) <= most:
        return results
    order = np.arange(len(results))
    if results.arrival_ms is not None:
        order = np.argsort(results.arrival_ms, kind="stable")
    return of_rows(results, np.sort(order[:most]))


def of_rows(results: BenchResults, rows: Ints) -> BenchResults:
    """Return some of the requests, by their rows; arrivals count from the first of them."""
    begins, ends = results.itl_offset[rows], results.itl_offset[rows + 1]
    gaps = [results.itl_ms[begin:end] for begin, end in zip(begins, ends, strict=True)]
    arrivals = results.arrival_ms
    if arrivals is not None and len(rows):
        arrivals = arrivals[rows] - arrivals[rows].min()
    return replace(
        results,
        request=results.request[rows],
        prompt_tokens=results.prompt_tokens[rows],
        output_tokens=results.output_tokens[rows],
        ttft_ms=results.ttft_ms[rows],
        itl_ms=np.concatenate([np.empty(0), *gaps]),
        itl_offset=np.concatenate(([0], np.cumsum(ends - begins))).astype(np.int64),
        arrival_ms=arrivals,
    )


def lay_over(results: BenchResults, result: Result) -> LaidOver:
    """Return the benchmark's latencies and the simulation's, of the same requests.

    Raises:
        ValueError: no request that ended in the simulation.
    """
    requests = result.requests
    ended = ~np.isnan(requests.last_token_ms)  # (requests,)
    if ended.all():
        ttft, itl = overlay_run(results, result)
        return LaidOver(ttft=ttft, itl=itl, requests=len(results), unfinished=0)
    if not ended.any():
        raise ValueError(
            "requests: none of them ends in the simulation, so there is nothing to lay over "
            "(allowed: a machine with room for their KV)"
        )
    row_of = {str(number): row for row, number in enumerate(results.request.tolist())}
    rows = np.flatnonzero(ended)
    measured = of_rows(
        results, np.sort(np.array([row_of[requests.request_id[row]] for row in rows.tolist()]))
    )
    gaps_ms = np.concatenate([np.diff(result.token_times_ms(row)) for row in rows.tolist()])
    ttft_ms = (requests.first_token_ms - requests.arrival_ms)[ended]
    both = len(measured.itl_ms) and len(gaps_ms)
    return LaidOver(
        ttft=overlay(measured.ttft_ms, ttft_ms, name="TTFT"),
        itl=overlay(measured.itl_ms, gaps_ms, name="ITL") if both else None,
        requests=len(rows),
        unfinished=int(np.count_nonzero(~ended)),
    )


def _durations_ms(results: BenchResults) -> Floats:  # (requests,)
    """Return how long each request was under way."""
    reached = np.concatenate(([0.0], np.cumsum(results.itl_ms)))
    return results.ttft_ms + reached[results.itl_offset[1:]] - reached[results.itl_offset[:-1]]


def _most_under_way(results: BenchResults) -> float:
    """Return the most requests that were under way at one time; endless where nothing tells."""
    starts = results.arrival_ms
    if starts is None:
        return math.inf
    times = np.concatenate((starts, starts + _durations_ms(results)))
    change = np.repeat((1, -1), len(results))
    return int(np.cumsum(change[np.lexsort((change, times))]).max())  # ends before starts


def _clients(results: BenchResults, clients: int) -> Replay:
    """Return a closed loop: a request goes to the client that was free first when measured."""
    order = np.arange(len(results))
    if results.arrival_ms is not None:
        order = np.argsort(results.arrival_ms, kind="stable")
    requests = to_workload(results, arrival_ms=[0.0] * len(results)).requests
    durations_ms, draw = _durations_ms(results), random.Random(SEED)
    free: list[tuple[float, int, str | None]] = [(0.0, client, None) for client in range(clients)]
    sent = []
    for row in order.tolist():
        free_ms, client, before = free[0]
        request = requests[row]
        if before is not None:
            pause_ms = draw.uniform(LEAST_PAUSE_MS, MOST_PAUSE_MS)
            request = replace(request, after=before, arrival_ms=pause_ms)
        sent.append(request)
        heapq.heapreplace(free, (free_ms + durations_ms[row], client, request.request_id))
    return Replay(
        workload=Workload(requests=tuple(sent)),
        closed_loop=True,
        sentence=f"max_concurrency is {clients:,}: {count(clients, 'client')} in a closed loop, "
        f"each sending its next request {LEAST_PAUSE_MS:g} to {MOST_PAUSE_MS:g} ms after its last "
        "one ends. The file's start_times, which hang on the measured server's speed, are not "
        "used.",
    )


def _at_rate(results: BenchResults) -> Replay:
    """Return arrivals at the file's request rate, drawn as the client draws them.

    Source: vLLM, vllm/benchmarks/serve.py (gaps of a gamma distribution).
    """
    rate, shape = results.head.request_rate_per_s, results.head.burstiness or 1.0
    if rate is None or math.isinf(rate):
        why = "and no request rate" if rate is None else "and its request rate is endless"
        return Replay(
            workload=to_workload(results, arrival_ms=[0.0] * len(results)),
            closed_loop=True,
            sentence=f"The file has no start_times, {why}: {count(len(results), 'client')} send "
            "one request each, all at once.",
        )
    draw, now_ms = random.Random(SEED), 0.0
    arrivals = []
    for _ in range(len(results)):
        arrivals.append(now_ms)
        now_ms += draw.gammavariate(shape, 1000.0 / (rate * shape))
    return Replay(
        workload=to_workload(results, arrival_ms=arrivals),
        closed_loop=False,
        sentence=f"The file has no start_times: arrivals are drawn anew at its request rate, "
        f"{rate:g} requests/s, so bursts fall elsewhere than in the measured run.",
    )
