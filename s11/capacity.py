"""How much traffic a setting carries: the highest request rate that holds its targets.

The definition is Sarathi-Serve's: the most requests per second at which the P99 TBT is within
its target and the median scheduling delay within two seconds (Agrawal et al., OSDI 2024,
section 5, "Capacity").

A finite run shows overload only in so far as its queue has time to grow. Of N requests sent at
a rate R above what is served, C, the one in the middle waits N/2 * (1/C - 1/R); so a median
within D holds up to R = C / (1 - 2 D C / N). For an answer within a share p of the truth a run
needs N = 2 D C / p requests (`requests_needed`): 200 for each request per second, at 2 s and 2%.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from s11.capacity_points import CapacityTargets, RatePoint, at_rate, rate_point
from s11.checks import require_ms
from s11.experiment import Experiment
from s11.simulator import DEFAULT_MAX_STEPS

__all__ = [
    "Capacity",
    "CapacityTargets",
    "RatePoint",
    "at_rate",
    "capacity_of",
    "highest_rate",
    "rate_point",
    "requests_needed",
    "tried_rates",
]

LOWEST_RATE_PER_S, HIGHEST_RATE_PER_S = 1e-3, 1e5

Make = Callable[[float], Experiment]
"""A request rate per second in, the experiment at that rate out: the same requests at each."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Capacity:
    """What a search found.

    points: all tried rates, in the order in which they were tried.
    highest: the highest tried rate below every one that fails; None: the lowest fails too.
    failing: the lowest tried rate that fails; None: the highest allowed rate holds.
    """

    targets: CapacityTargets
    relative_precision: float
    points: tuple[RatePoint, ...]
    highest: RatePoint | None
    failing: RatePoint | None

    @property
    def highest_per_s(self) -> float | None:
        """The highest rate that holds, None where none does."""
        return None if self.highest is None else self.highest.rate_per_s

    @property
    def requests_needed(self) -> int:
        """How many requests show the highest rate to within the precision."""
        rate_per_s = self.highest_per_s or 0.0
        return requests_needed(rate_per_s, self.targets, relative_precision=self.relative_precision)


def requests_needed(
    rate_per_s: float, targets: CapacityTargets, *, relative_precision: float = 0.02
) -> int:
    """Return how many requests show an overload of `relative_precision` beyond a rate."""
    delay_s = targets.scheduling_delay_p50_ms / 1000.0
    return math.ceil(2 * delay_s * rate_per_s / relative_precision)


def tried_rates(
    make: Make,
    targets: CapacityTargets,
    *,
    low_per_s: float = 0.05,
    high_per_s: float = 1_000.0,
    first_per_s: float | None = None,
    relative_precision: float = 0.02,
    max_steps: int = DEFAULT_MAX_STEPS,
    known: Iterable[RatePoint] = (),
) -> Iterator[RatePoint]:
    """Yield each rate as it is tried: doublings or halves for a bracket, then bisection.

    make: gives the same requests at every rate (same seed, times scaled), so that rates are
        compared and not draws.
    low_per_s, high_per_s: rates beyond them are not tried.
    first_per_s: where to begin; the middle of the two in octaves where it is not given.
    known: points of the same requests from a search with other targets. They narrow the
        bracket and are yielded first, judged anew.

    Raises:
        ValueError: rates or a precision out of range.
    """
    low_per_s = require_ms("low_per_s", low_per_s, LOWEST_RATE_PER_S, HIGHEST_RATE_PER_S)
    high_per_s = require_ms("high_per_s", high_per_s, low_per_s, HIGHEST_RATE_PER_S)
    if first_per_s is None:
        first_per_s = math.sqrt(low_per_s * high_per_s)
    first_per_s = require_ms("first_per_s", first_per_s, low_per_s, high_per_s)
    precision = require_ms("relative_precision", relative_precision, 1e-4, 1)

    points = [point.judged(targets) for point in known]
    yield from points
    while True:
        holding, failing = _bracket(points)
        if holding is None and failing is None:
            rate_per_s = first_per_s
        elif holding is None and failing is not None:
            if failing.rate_per_s <= low_per_s:
                return
            rate_per_s = max(failing.rate_per_s / 2, low_per_s)
        elif holding is not None and failing is None:
            if holding.rate_per_s >= high_per_s:
                return
            rate_per_s = min(holding.rate_per_s * 2, high_per_s)
        elif holding is not None and failing is not None:
            if failing.rate_per_s <= holding.rate_per_s * (1 + precision):
                return
            rate_per_s = math.sqrt(holding.rate_per_s * failing.rate_per_s)
        points.append(rate_point(make(rate_per_s), rate_per_s, targets, max_steps=max_steps))
        yield points[-1]


def capacity_of(
    points: Sequence[RatePoint], targets: CapacityTargets, *, relative_precision: float = 0.02
) -> Capacity:
    """Return what tried rates show, however many of them there are."""
    judged = tuple([point.judged(targets) for point in points])
    holding, failing = _bracket(judged)
    return Capacity(
        targets=targets,
        relative_precision=relative_precision,
        points=judged,
        highest=holding,
        failing=failing,
    )


def highest_rate(
    make: Make,
    targets: CapacityTargets,
    *,
    progress: Callable[[RatePoint], None] | None = None,
    relative_precision: float = 0.02,
    **search: Any,
) -> Capacity:
    """Return the highest rate that holds the targets, by bisection; see `tried_rates`.

    What is returned was simulated and holds, and a rate at most `relative_precision` above it
    was simulated and does not. Chance in the requests makes holding not quite monotone: still
    higher rates may hold here and there, and other seeds give other answers. Closed-loop
    clients have no rate to search.

    Raises:
        ValueError: rates or a precision out of range, or what `make` refuses.
    """
    points = []
    for point in tried_rates(make, targets, relative_precision=relative_precision, **search):
        points.append(point)
        if progress:
            progress(point)
    return capacity_of(points, targets, relative_precision=relative_precision)


def _bracket(points: Sequence[RatePoint]) -> tuple[RatePoint | None, RatePoint | None]:
    """Return the highest rate that holds below the lowest that fails, and the latter."""

    def rate_per_s(point: RatePoint) -> float:
        return point.rate_per_s

    failing = min([p for p in points if not p.holds], key=rate_per_s, default=None)
    below = math.inf if failing is None else failing.rate_per_s
    holding = [p for p in points if p.holds and p.rate_per_s < below]
    return max(holding, key=rate_per_s, default=None), failing
