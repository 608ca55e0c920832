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
    itl_p50_ms, itl_p99_ms: over all decode tokens, inverted CDF.
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
    """Return each step's ITL in ms and how many tokens saw it: (steps,), (steps,).

    Every policy here decodes every running request in every step, so the gap that a step's
    decode tokens end is the step's own duration.
    """
    return result.steps.duration_ms, result.steps.decode_tokens


def measure(result: Result, *, itl_target_ms: float) -> Metrics:
    """Return the figures of a run, its steps held against `itl_target_ms`."""
    steps, requests = result.steps, result.requests
    gaps_ms, tokens = inter_token_gaps(result)
    seen = gaps_ms[tokens > 0]
    decode_tokens = int(tokens.sum())
    makespan_ms = float(steps.end_ms[-1] - steps.start_ms[0]) if len(steps) else 0.0
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
        prefill_tokens_per_s=(
            1000 * int(steps.prefill_tokens.sum()) / makespan_ms if makespan_ms else None
        ),
        makespan_ms=makespan_ms,
        step_count=len(steps),
        itl_mean_ms=float(gaps_ms @ tokens) / decode_tokens if decode_tokens else None,
        itl_p50_ms=percentile(gaps_ms, half, weights=tokens),
        itl_p99_ms=percentile(gaps_ms, most, weights=tokens),
        ttft_p50_ms=percentile(ttft_seen, half),
        ttft_p99_ms=percentile(ttft_seen, most),
        tpot_p50_ms=percentile(tpot_ms, half),
        tpot_p99_ms=percentile(tpot_ms, most),
        finished_requests=int(np.count_nonzero(finished)),
    )


def _longest_prompt_ttft_ms(result: Result, ttft_ms: NDArray[np.float64]) -> float | None:
    if not len(result.requests):
        return None
    value = float(ttft_ms[np.argmax(result.requests.prompt_tokens)])
    return None if np.isnan(value) else value
