"""What a run meant to each of its requests, and whether that met the targets."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from s11.checks import require_ms
from s11.experiment import MAX_TARGET_MS
from s11.results import Result

if TYPE_CHECKING:
    import pandas as pd

Bools = NDArray[np.bool_]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class RequestMetrics:
    """One row per request in the result's order; what never came is NaN.

    ttft_ms: arrival -> first token.
    scheduling_delay_ms: arrival -> start of the first step with a slice of it.
    longest_itl_ms: the request's stall, of the tokens that it got; NaN: fewer than two.
    tpot_ms: (last token - first token) / (output tokens - 1); NaN: one output token.
    latency_ms: arrival -> last token.
    finished: whether it got all its tokens.
    """

    ttft_ms: Floats  # (requests,)
    scheduling_delay_ms: Floats  # (requests,)
    longest_itl_ms: Floats  # (requests,)
    tpot_ms: Floats  # (requests,)
    latency_ms: Floats  # (requests,)
    finished: Bools  # (requests,)

    def __post_init__(self) -> None:
        """Make the columns read-only: results are shared."""
        for column in self.columns().values():
            column.flags.writeable = False

    def columns(self) -> dict[str, NDArray[Any]]:
        """Return the columns by name, in order."""
        return {f.name: getattr(self, f.name) for f in fields(self)}

    def to_pandas(self) -> pd.DataFrame:
        """Return the table as a pandas data frame, a column for each field."""
        import pandas as pd

        return pd.DataFrame(self.columns())

    def __len__(self) -> int:
        return len(self.finished)


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class TokenGaps:
    """Every wait for a next token in a run, those that many see alike once.

    A decode step ends `step_ms` for all who also had the decode step before (streaming users
    had a token at t = 0). `begun_ms` is from the first token of a span that decodes to the next,
    `resumed_ms` from the last token before a preemption to the first after it.
    """

    step_ms: Floats  # (decode steps,)
    begun: Ints  # (begun,) rows of the span table
    begun_ms: Floats  # (begun,)
    resumed: Ints  # (resumed,) rows of the span table
    resumed_ms: Floats  # (resumed,)


def token_gaps(result: Result) -> TokenGaps:
    """Return the ITLs of a run, in ms."""
    steps, spans = result.steps, result.spans
    decode = steps.decode_tokens > 0
    starts, ends = steps.start_ms[decode], steps.end_ms[decode]  # (decode steps,)
    durations = steps.duration_ms[decode]
    before = np.concatenate(([0.0], ends[:-1])) if len(ends) else ends

    begun = np.flatnonzero(spans.decodes)
    first = spans.first_decode[begun]
    resumed = np.flatnonzero(spans.request[1:] == spans.request[:-1]) + 1
    last = spans.first_decode[resumed - 1] + spans.decodes[resumed - 1] - 1
    last_ms = spans.token_ms[resumed - 1].copy()
    decoded = spans.decodes[resumed - 1] > 0
    last_ms[decoded] = ends[last[decoded]]
    # A step's duration is exact; the difference of two ends loses its last bits on a long clock.
    return TokenGaps(
        step_ms=durations + (starts - before),
        begun=begun,
        begun_ms=durations[first] + (starts[first] - spans.token_ms[begun]),
        resumed=resumed,
        resumed_ms=spans.token_ms[resumed] - last_ms,
    )


def request_metrics(result: Result, *, gaps: TokenGaps | None = None) -> RequestMetrics:
    """Return what each request saw; of a disaggregated deployment, on both workers.

    gaps: the run's, where they are known already.
    """
    requests = result.requests
    first_ms, last_ms = requests.first_token_ms, requests.last_token_ms
    later = requests.output_tokens - 1  # (requests,)
    several = later > 0
    tpot_ms = np.full(len(requests), np.nan)
    tpot_ms[several] = (last_ms - first_ms)[several] / later[several]
    return RequestMetrics(
        ttft_ms=first_ms - requests.arrival_ms,
        scheduling_delay_ms=requests.first_scheduled_ms - requests.arrival_ms,
        longest_itl_ms=_longest_itl_ms(result, token_gaps(result) if gaps is None else gaps),
        tpot_ms=tpot_ms,
        latency_ms=last_ms - requests.arrival_ms,
        finished=~np.isnan(last_ms),
    )


def attained(
    metrics: RequestMetrics, *, ttft_target_ms: float | None, itl_target_ms: float
) -> Bools:  # (requests,)
    """Return who got all its tokens, the first within its target and each later one within its.

    A request that is refused, never ends, or is cut with the run meets no target. A time at a
    target meets it. Without a TTFT target any first token will do.

    Raises:
        ValueError: a target out of range.
    """
    require_ms("itl_target_ms", itl_target_ms, 0, MAX_TARGET_MS, above=True)
    met: Bools = metrics.finished & ~(metrics.longest_itl_ms > itl_target_ms)
    if ttft_target_ms is not None:
        require_ms("ttft_target_ms", ttft_target_ms, 0, MAX_TARGET_MS, above=True)
        met &= metrics.ttft_ms <= ttft_target_ms
    return met


def _longest_itl_ms(result: Result, gaps: TokenGaps) -> Floats:  # (requests,)
    """Return the longest wait of each request, NaN where it had none."""
    spans = result.spans
    longest = np.full(len(result.requests), -np.inf)
    np.maximum.at(longest, spans.request[gaps.begun], gaps.begun_ms)
    np.maximum.at(longest, spans.request[gaps.resumed], gaps.resumed_ms)

    riding = np.flatnonzero(spans.decodes > 1)
    # In the order of their beginnings, so that what lies between two spans is short.
    riding = riding[np.argsort(spans.first_decode[riding], kind="stable")]
    if len(riding):
        begin = spans.first_decode[riding] + 1
        edges = np.column_stack((begin, begin + spans.decodes[riding] - 1)).ravel()
        within = np.maximum.reduceat(np.append(gaps.step_ms, -np.inf), edges)[::2]
        np.maximum.at(longest, spans.request[riding], within)
    longest[np.isneginf(longest)] = np.nan
    return longest
