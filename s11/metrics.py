"""What a run means to its users: TTFT, ITL, TPOT, stalls, throughput."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.results import Result


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of one run; None where there is nothing to measure.

    longest_stall_ms: the longest ITL that anyone saw.
    ttft_ms: TTFT of the longest prompt (the first of them).
    steps_over_target: steps longer than the ITL target.
    decode_tokens_per_s: decode tokens / makespan; a first token is not a decode token.
    prefill_tokens_per_s: prompt tokens / makespan.
    ttft_p50_ms ... tpot_p99_ms: over requests that got there, inverted CDF.
    itl_p50_ms, itl_p99_ms: over all tokens but the first ones, inverted CDF.
    preemptions: how often a request lost its KV blocks.
    cached_tokens: prompt tokens that the prefix cache held, of all admissions.
    computed_prefill_tokens: tokens that prefill steps computed, recomputed ones included.
    """

    longest_stall_ms: float | None
    ttft_ms: float | None
    steps_over_target: int
    decode_tokens_per_s: float | None
    prefill_tokens_per_s: float | None
    makespan_ms: float
    step_count: int
    itl_mean_ms: float | None
    itl_p50_ms: float | None
    itl_p99_ms: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None
    tpot_p99_ms: float | None
    finished_requests: int
    preemptions: int
    cached_tokens: int
    computed_prefill_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def percentile(
    values: NDArray[np.float64], share: Fraction, *, weights: NDArray[np.int64] | None = None
) -> float | None:  # (n,), (n,)
    """Return the smallest value whose cumulative share reaches `share` (inverted CDF).

    None where nothing has weight.

    Raises:
        ValueError: a share outside 0 < share <= 1.
    """
    if not 0 < share <= 1:
        raise ValueError(f"share: {share} is not a number above 0 to 1")
    weights = np.ones(len(values), dtype=np.int64) if weights is None else weights
    order = np.argsort(values, kind="stable")
    reached = np.cumsum(weights[order])
    if len(values) == 0 or reached[-1] == 0:
        return None
    needed = -(-int(reached[-1]) * share.numerator // share.denominator)
    return float(values[order[np.searchsorted(reached, needed)]])


def inter_token_gaps(result: Result) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return ITLs in ms and how many tokens saw each: (gaps,), (gaps,).

    A decode step ends the same gap for all who also had the decode step before: one row each.
    Then a row for every span's first decode, and for every token that came from a prefill after
    a preemption.
    """
    steps, spans = result.steps, result.spans
    decode = steps.decode_tokens > 0
    starts, ends = steps.start_ms[decode], steps.end_ms[decode]  # (decode steps,)
    durations = steps.duration_ms[decode]
    before = np.concatenate(([0.0], ends[:-1])) if len(ends) else ends  # users: a token at t = 0

    begun = np.flatnonzero(spans.decodes)
    first = spans.first_decode[begun]
    newcomers = np.bincount(first, minlength=len(ends))  # (decode steps,)
    gaps = [durations + (starts - before)]
    tokens = [steps.decode_tokens[decode] - newcomers]

    gaps.append(durations[first] + (starts[first] - spans.token_ms[begun]))
    resumed = np.flatnonzero(spans.request[1:] == spans.request[:-1]) + 1
    last = spans.first_decode[resumed - 1] + spans.decodes[resumed - 1] - 1
    last_ms = spans.token_ms[resumed - 1].copy()
    decoded = spans.decodes[resumed - 1] > 0
    last_ms[decoded] = ends[last[decoded]]
    gaps.append(spans.token_ms[resumed] - last_ms)
    tokens.append(np.ones(len(begun) + len(resumed), dtype=np.int64))
    return np.concatenate(gaps), np.concatenate(tokens)


def measure(result: Result, *, itl_target_ms: float) -> Metrics:
    """Return the figures of a run, its steps held against `itl_target_ms`."""
    steps, requests = result.steps, result.requests
    gaps_ms, tokens = inter_token_gaps(result)
    seen = gaps_ms[tokens > 0]
    gap_count = int(tokens.sum())
    decode_tokens = int(steps.decode_tokens.sum())
    prefill_tokens = int(result.prefilling.steps.prefill_tokens.sum())
    makespan_ms = _makespan_ms(result)
    ttft_ms = requests.first_token_ms - requests.arrival_ms  # (requests,)
    finished = ~np.isnan(requests.last_token_ms)  # (requests,)
    several = finished & (requests.output_tokens > 1)
    tpot_ms = (requests.last_token_ms - requests.first_token_ms)[several] / (
        requests.output_tokens[several] - 1
    )
    ttft_seen = ttft_ms[~np.isnan(ttft_ms)]
    half, most = Fraction(50, 100), Fraction(99, 100)
    return Metrics(
        longest_stall_ms=float(seen.max()) if len(seen) else None,
        ttft_ms=_longest_prompt_ttft_ms(result, ttft_ms),
        steps_over_target=int(np.count_nonzero(steps.duration_ms > itl_target_ms)),
        decode_tokens_per_s=1000 * decode_tokens / makespan_ms if makespan_ms else None,
        prefill_tokens_per_s=1000 * prefill_tokens / makespan_ms if makespan_ms else None,
        makespan_ms=makespan_ms,
        step_count=len(steps),
        itl_mean_ms=float(gaps_ms @ tokens) / gap_count if gap_count else None,
        itl_p50_ms=percentile(gaps_ms, half, weights=tokens),
        itl_p99_ms=percentile(gaps_ms, most, weights=tokens),
        ttft_p50_ms=percentile(ttft_seen, half),
        ttft_p99_ms=percentile(ttft_seen, most),
        tpot_p50_ms=percentile(tpot_ms, half),
        tpot_p99_ms=percentile(tpot_ms, most),
        finished_requests=int(np.count_nonzero(finished)),
        preemptions=len(result.preemptions),
        cached_tokens=int(result.admissions.cached_tokens.sum()),
        computed_prefill_tokens=prefill_tokens,
    )


def _makespan_ms(result: Result) -> float:
    """Return the time from the first step's start to the last one's end, on either worker."""
    workers = [result, *([result.prefill_worker] if result.prefill_worker else [])]
    ran = [worker.steps for worker in workers if len(worker.steps)]
    if not ran:
        return 0.0
    return float(max([t.end_ms[-1] for t in ran]) - min([t.start_ms[0] for t in ran]))


def _longest_prompt_ttft_ms(result: Result, ttft_ms: NDArray[np.float64]) -> float | None:
    if not len(result.requests):
        return None
    value = float(ttft_ms[np.argmax(result.requests.prompt_tokens)])
    return None if np.isnan(value) else value
