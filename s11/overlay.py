"""Two distributions of latencies laid over each other: what was measured, what was simulated."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from s11.bench_results import BenchResults
from s11.metrics import inter_token_gaps, percentile
from s11.results import Result
from s11.words import count, ms, times

PERCENTS = tuple(range(1, 100))
TOLERANCE_PCT = 15.0
MOST_FACTOR = 1e9  # beyond, one side took no time at all

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Distribution:
    """Latencies in order, each value once: `share[i]` of all are `value_ms[i]` or less."""

    value_ms: Floats  # (values,) strictly rising
    tokens: Ints  # (values,) how many there are of each
    share: Floats  # (values,) the last is 1
    median_ms: float
    p99_ms: float

    def shares_at(self, value_ms: Floats) -> Floats:  # (n,) -> (n,)
        """Return the share that is each value or less."""
        at = np.searchsorted(self.value_ms, value_ms, side="right")
        return np.concatenate(([0.0], self.share))[at]

    def at_percents(self, percents: tuple[int, ...] = PERCENTS) -> Floats:  # (percents,)
        """Return the percentiles of the inverted CDF, as `s11.metrics.percentile` does."""
        reached = np.cumsum(self.tokens)
        needed = [-(-int(reached[-1]) * percent // 100) for percent in percents]
        return self.value_ms[np.searchsorted(reached, needed)]


@dataclass(frozen=True, slots=True, kw_only=True)
class LargestGap:
    """Where the CDFs are farthest apart (the Kolmogorov–Smirnov distance, 0 to 1)."""

    distance: float
    value_ms: float
    measured_share: float
    simulated_share: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Parting:
    """A run of percentiles at which the simulated value is off by more than the tolerance.

    Values are those at the first and at the last percentile. Every one of the run is off on
    the same side: `longer` where the simulated values are too long. factor: the longer over the
    shorter value, the largest of the run; None where a shorter one is next to nothing.
    """

    first_percent: int
    last_percent: int
    longer: bool
    measured_ms: tuple[float, float]
    simulated_ms: tuple[float, float]
    factor: float | None

    @property
    def factor_told(self) -> str:
        """Return the factor in words, such as "up to 1.5×"; empty where there is none."""
        if self.factor is None:
            return ""
        return f"{'up to ' if self.last_percent > self.first_percent else ''}{times(self.factor)}"


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Overlay:
    """Two distributions, and how they differ; a ratio is simulated / measured.

    name: what the values are, such as "ITL" or "TTFT".
    median_ratio, p99_ratio: None where the measured one is 0.
    partings: where they part, from the lowest percentile to the highest; empty if nowhere.
    sentence: all of this in words.
    """

    name: str
    measured: Distribution
    simulated: Distribution
    median_ratio: float | None
    p99_ratio: float | None
    largest_gap: LargestGap
    tolerance_pct: float
    measured_ms: Floats  # (99,) at PERCENTS
    simulated_ms: Floats  # (99,) at PERCENTS
    partings: tuple[Parting, ...]
    sentence: str


def overlay(
    measured: Floats,
    simulated: Floats,
    *,
    name: str,
    measured_weights: Ints | None = None,
    simulated_weights: Ints | None = None,
    tolerance_pct: float = TOLERANCE_PCT,
) -> Overlay:  # (n,), (m,); (n,), (m,)
    """Return two sets of latencies in ms, laid over each other.

    Weights are how many tokens saw each value; None for one each.

    Raises:
        ValueError: nothing on either side, a latency that is negative or no number, weights
            that do not go with the values, a tolerance out of range.
    """
    if not 0 < tolerance_pct <= 1000:
        raise ValueError(f"tolerance_pct: {tolerance_pct} is not a number above 0 to 1000")
    real = _distribution("measured", measured, measured_weights)
    model = _distribution("simulated", simulated, simulated_weights)
    real_ms, model_ms = real.at_percents(), model.at_percents()  # (99,), (99,)
    partings = _partings(real_ms, model_ms, tolerance_pct)
    return Overlay(
        name=name,
        measured=real,
        simulated=model,
        median_ratio=model.median_ms / real.median_ms if real.median_ms else None,
        p99_ratio=model.p99_ms / real.p99_ms if real.p99_ms else None,
        largest_gap=_largest_gap(real, model),
        tolerance_pct=tolerance_pct,
        measured_ms=real_ms,
        simulated_ms=model_ms,
        partings=partings,
        sentence=_sentence(name, real, model, partings, tolerance_pct),
    )


def overlay_run(results: BenchResults, result: Result) -> tuple[Overlay | None, Overlay | None]:
    """Return the TTFTs and the ITLs of a benchmark and of its simulation, laid over each other.

    None for a side of which there is nothing, as with one output token a request.
    """
    requests = result.requests
    ttft_ms = requests.first_token_ms - requests.arrival_ms  # (requests,)
    ttft_ms = ttft_ms[~np.isnan(ttft_ms)]
    gaps_ms, tokens = inter_token_gaps(result)
    ttft = itl = None
    if len(ttft_ms):
        ttft = overlay(results.ttft_ms, ttft_ms, name="TTFT")
    if len(results.itl_ms) and tokens.any():
        itl = overlay(results.itl_ms, gaps_ms, name="ITL", simulated_weights=tokens)
    return ttft, itl


def _distribution(field: str, values: Floats, weights: Ints | None) -> Distribution:
    values = np.asarray(values, dtype=np.float64)
    tokens = np.ones(len(values), dtype=np.int64) if weights is None else np.asarray(weights)
    if tokens.shape != values.shape or values.ndim != 1 or tokens.dtype.kind not in "iu":
        raise ValueError(f"{field}: the weights are not a whole number for each value")
    if (tokens < 0).any():
        raise ValueError(f"{field}: a weight of {tokens.min()} (allowed: 0 or more)")
    values, tokens = values[tokens > 0], tokens[tokens > 0]
    if not len(values):
        raise ValueError(f"{field}: no latency to lay over the other (allowed: 1 or more)")
    if not np.isfinite(values).all() or (values < 0).any():
        raise ValueError(f"{field}: a latency that is negative or no number (allowed: 0 or more)")
    distinct, place = np.unique(values, return_inverse=True)
    counts = np.zeros(len(distinct), dtype=np.int64)
    np.add.at(counts, place, tokens.astype(np.int64))
    reached = np.cumsum(counts)
    return Distribution(
        value_ms=distinct,
        tokens=counts,
        share=reached / reached[-1],
        median_ms=percentile(distinct, Fraction(1, 2), weights=counts) or 0.0,
        p99_ms=percentile(distinct, Fraction(99, 100), weights=counts) or 0.0,
    )


def _largest_gap(real: Distribution, model: Distribution) -> LargestGap:
    """Return it: both CDFs are steps, so that it stands at a value of either."""
    values = np.union1d(real.value_ms, model.value_ms)
    real_share, model_share = real.shares_at(values), model.shares_at(values)
    distances = np.abs(real_share - model_share)
    at = int(distances.argmax())
    return LargestGap(
        distance=float(distances[at]),
        value_ms=float(values[at]),
        measured_share=float(real_share[at]),
        simulated_share=float(model_share[at]),
    )


def _partings(real_ms: Floats, model_ms: Floats, tolerance_pct: float) -> tuple[Parting, ...]:
    apart = np.abs(model_ms - real_ms) > tolerance_pct / 100.0 * real_ms  # (99,)
    side = np.where(apart, np.sign(model_ms - real_ms), 0.0)  # (99,)
    begins = np.flatnonzero(np.diff(side, prepend=0.0))
    ends = np.append(begins, len(side))[1:]
    return tuple(
        Parting(
            first_percent=PERCENTS[begin],
            last_percent=PERCENTS[end - 1],
            longer=bool(side[begin] > 0),
            measured_ms=(float(real_ms[begin]), float(real_ms[end - 1])),
            simulated_ms=(float(model_ms[begin]), float(model_ms[end - 1])),
            factor=_factor(real_ms[begin:end], model_ms[begin:end]),
        )
        for begin, end in zip(begins.tolist(), ends.tolist(), strict=True)
        if side[begin]
    )


def _factor(real_ms: Floats, model_ms: Floats) -> float | None:  # (percents,), (percents,)
    small, large = np.minimum(real_ms, model_ms), np.maximum(real_ms, model_ms)
    if (small <= large / MOST_FACTOR).any():
        return None
    return float((large / small).max())


def _sentence(
    name: str,
    real: Distribution,
    model: Distribution,
    partings: tuple[Parting, ...],
    tolerance_pct: float,
) -> str:
    """Return where they agree and where they part, with the median and P99 of both."""
    figures = (
        f"median {name} {ms(model.median_ms)} against {ms(real.median_ms)} measured, "
        f"P99 {ms(model.p99_ms)} against {ms(real.p99_ms)}"
    )
    within = f"{tolerance_pct:g}%"
    if not partings:
        return (
            f"The simulated {name}s keep within {within} of the measured ones at every percentile "
            f"from P1 to P99: {figures}."
        )
    agreeing = len(PERCENTS) - sum(p.last_percent - p.first_percent + 1 for p in partings)
    where = f"The simulated {name}s keep within {within} of the measured ones "
    if agreeing == 0:
        where = f"The simulated {name}s are more than {within} off at every percentile"
    elif len(partings) == 1 and partings[0].last_percent == PERCENTS[-1]:
        where += f"up to P{partings[0].first_percent - 1}"
    elif len(partings) == 1 and partings[0].first_percent == PERCENTS[0]:
        where += f"from P{partings[0].last_percent + 1} on"
    else:
        where += f"at {agreeing} of {len(PERCENTS)} percentiles"
    widest = sorted(partings, key=lambda p: p.first_percent - p.last_percent)[:2]
    told = _told(sorted(widest, key=lambda p: p.first_percent))
    more = f" (and in {count(len(partings) - 2, 'more place')})" if len(partings) > 2 else ""
    return f"{where}; {told}{more}: {figures}."


def _told(partings: list[Parting]) -> str:
    """Return one or two partings in words, each with its largest factor."""
    told: list[str] = []
    side = ""
    for parting in partings:
        first, last = parting.first_percent, parting.last_percent
        place = f"at P{first}" if first == last else f"from P{first} to P{last}"
        factor = f" ({parting.factor_told})" if parting.factor_told else ""
        before, side = side, "longer" if parting.longer else "shorter"
        told.append(f"{place}{factor}" if side == before else f"{side} {place}{factor}")
    return f"they are {' and '.join(told)}"
