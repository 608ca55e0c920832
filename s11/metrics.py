"""What a run means to its users: TTFT, ITL, TPOT, stalls, throughput."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.request_metrics import TokenGaps, attained, request_metrics, token_gaps
from s11.results import Result

P50, P90, P99 = Fraction(50, 100), Fraction(90, 100), Fraction(99, 100)


@dataclass(frozen=True, slots=True, kw_only=True)
class Metrics:
    """The figures of one run; None where there is nothing to measure.

    longest_stall_ms: the longest ITL that anyone saw.
    ttft_ms: TTFT of the longest prompt (the first of them).
    steps_over_target: steps longer than the ITL target.
    decode_tokens_per_s: decode tokens / makespan; a first token is not a decode token.
    prefill_tokens_per_s: prompt tokens / makespan.
    output_tokens_per_s: decode tokens and first tokens / makespan.
    requests_per_s: requests that got all their tokens / makespan.
    goodput_per_s: requests that met every target (see `attained`) / makespan.
    slo_attainment: the share of all requests that met every target.
    stalled_share: the share of all requests that saw an ITL over its target.
    itl_p50_ms ... itl_p99_ms: over all tokens but the first ones, inverted CDF.
    ttft_p50_ms ... latency_p99_ms: over requests that got there, inverted CDF; a scheduling
        delay is from a request's arrival to its first step, a latency to its last token.
    preemptions: how often a request lost its KV blocks.
    cached_tokens: prompt tokens that the prefix cache held, of all admissions.
    computed_prefill_tokens: tokens that prefill steps computed, recomputed ones included.
    """

    longest_stall_ms: float | None
    ttft_ms: float | None
    steps_over_target: int
    decode_tokens_per_s: float | None
    prefill_tokens_per_s: float | None
    output_tokens_per_s: float | None
    requests_per_s: float | None
    goodput_per_s: float | None
    slo_attainment: float | None
    stalled_share: float | None
    makespan_ms: float
    step_count: int
    itl_mean_ms: float | None
    itl_p50_ms: float | None
    itl_p90_ms: float | None
    itl_p99_ms: float | None
    ttft_p50_ms: float | None
    ttft_p90_ms: float | None
    ttft_p99_ms: float | None
    tpot_p50_ms: float | None
    tpot_p90_ms: float | None
    tpot_p99_ms: float | None
    scheduling_delay_p50_ms: float | None
    scheduling_delay_p99_ms: float | None
    latency_p50_ms: float | None
    latency_p99_ms: float | None
    request_count: int
    finished_requests: int
    preemptions: int
    cached_tokens: int
    computed_prefill_tokens: int

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return asdict(self)


def percentiles(
    values: NDArray[np.float64],
    shares: Sequence[Fraction],
    *,
    weights: NDArray[np.int64] | None = None,
) -> list[float | None]:  # (n,), (shares,), (n,)
    """Return for each share the smallest value whose cumulative share reaches it (inverted CDF).

    None where nothing has weight.

    Raises:
        ValueError: a share outside 0 < share <= 1.
    """
    for share in shares:
        if not 0 < share <= 1:
            raise ValueError(f"share: {share} is not a number above 0 to 1")
    if weights is None:
        ordered, reached = np.sort(values), np.arange(1, len(values) + 1)
    else:
        order = np.argsort(values)
        ordered, reached = values[order], np.cumsum(weights[order])
    total = int(reached[-1]) if len(reached) else 0
    if not total:
        return [None] * len(shares)
    needed = [-(-total * share.numerator // share.denominator) for share in shares]
    return [float(ordered[at]) for at in np.searchsorted(reached, needed)]


def percentile(
    values: NDArray[np.float64], share: Fraction, *, weights: NDArray[np.int64] | None = None
) -> float | None:  # (n,), (n,)
    """Return the smallest value whose cumulative share reaches `share`, as `percentiles` does.

    Raises:
        ValueError: a share outside 0 < share <= 1.
    """
    return percentiles(values, (share,), weights=weights)[0]


def inter_token_gaps(
    result: Result, *, gaps: TokenGaps | None = None
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Return ITLs in ms and how many tokens saw each: (gaps,), (gaps,).

    A decode step ends the same gap for all who also had the decode step before: one row each.
    Then a row for every span's first decode, and for every token that came from a prefill after
    a preemption. gaps: the run's, where they are known already.
    """
    gaps = token_gaps(result) if gaps is None else gaps
    first = result.spans.first_decode[gaps.begun]
    newcomers = np.bincount(first, minlength=len(gaps.step_ms))  # (decode steps,)
    decode_tokens = result.steps.decode_tokens
    alike = decode_tokens[decode_tokens > 0] - newcomers
    ones = np.ones(len(gaps.begun) + len(gaps.resumed), dtype=np.int64)
    return (
        np.concatenate((gaps.step_ms, gaps.begun_ms, gaps.resumed_ms)),
        np.concatenate((alike, ones)),
    )


def measure(
    result: Result, *, itl_target_ms: float, ttft_target_ms: float | None = None
) -> Metrics:
    """Return the figures of a run, its steps and requests held against the targets.

    Raises:
        ValueError: a target out of range.
    """
    steps, requests = result.steps, result.requests
    gaps = token_gaps(result)
    gaps_ms, tokens = inter_token_gaps(result, gaps=gaps)
    each = request_metrics(result, gaps=gaps)
    met = attained(each, ttft_target_ms=ttft_target_ms, itl_target_ms=itl_target_ms)
    seen = gaps_ms[tokens > 0]
    gap_count = int(tokens.sum())
    decode_tokens = int(steps.decode_tokens.sum())
    prefill_tokens = int(result.prefilling.steps.prefill_tokens.sum())
    makespan_ms = _makespan_ms(result)
    itl_p50, itl_p90, itl_p99 = percentiles(gaps_ms, (P50, P90, P99), weights=tokens)
    ttft_p50, ttft_p90, ttft_p99 = _of_those_that_came(each.ttft_ms)
    tpot_p50, tpot_p90, tpot_p99 = _of_those_that_came(each.tpot_ms)
    delay_p50, _, delay_p99 = _of_those_that_came(each.scheduling_delay_ms)
    latency_p50, _, latency_p99 = _of_those_that_came(each.latency_ms)

    def per_s(amount: int) -> float | None:
        return 1000 * amount / makespan_ms if makespan_ms else None

    return Metrics(
        longest_stall_ms=float(seen.max()) if len(seen) else None,
        ttft_ms=_longest_prompt_ttft_ms(result, each.ttft_ms),
        steps_over_target=int(np.count_nonzero(steps.duration_ms > itl_target_ms)),
        decode_tokens_per_s=per_s(decode_tokens),
        prefill_tokens_per_s=per_s(prefill_tokens),
        output_tokens_per_s=per_s(decode_tokens + len(result.spans)),
        requests_per_s=per_s(int(np.count_nonzero(each.finished))),
        goodput_per_s=per_s(int(np.count_nonzero(met))),
        slo_attainment=float(met.mean()) if len(each) else None,
        stalled_share=float((each.longest_itl_ms > itl_target_ms).mean()) if len(each) else None,
        makespan_ms=makespan_ms,
        step_count=len(steps),
        itl_mean_ms=float(gaps_ms @ tokens) / gap_count if gap_count else None,
        itl_p50_ms=itl_p50,
        itl_p90_ms=itl_p90,
        itl_p99_ms=itl_p99,
        ttft_p50_ms=ttft_p50,
        ttft_p90_ms=ttft_p90,
        ttft_p99_ms=ttft_p99,
        tpot_p50_ms=tpot_p50,
        tpot_p90_ms=tpot_p90,
        tpot_p99_ms=tpot_p99,
        scheduling_delay_p50_ms=delay_p50,
        scheduling_delay_p99_ms=delay_p99,
        latency_p50_ms=latency_p50,
        latency_p99_ms=latency_p99,
        request_count=len(requests),
        finished_requests=int(np.count_nonzero(each.finished)),
        preemptions=len(result.preemptions),
        cached_tokens=int(result.admissions.cached_tokens.sum()),
        computed_prefill_tokens=prefill_tokens,
    )


def _of_those_that_came(values_ms: NDArray[np.float64]) -> list[float | None]:  # (requests,)
    """Return p50, p90 and p99 of the values that are there."""
    return percentiles(values_ms[~np.isnan(values_ms)], (P50, P90, P99))


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
