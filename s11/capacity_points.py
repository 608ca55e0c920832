"""One request rate: what it must hold, what it gave, and how the same requests come at another."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from s11.checks import require_int, require_ms
from s11.experiment import MAX_TARGET_MS, Experiment
from s11.kv_pool import in_its_memory
from s11.metrics import measure
from s11.results import Result
from s11.simulator import DEFAULT_MAX_STEPS, simulate
from s11.traces import Trace
from s11.traffic import Traffic
from s11.workload import Workload

MAX_DELAY_MS = 1e9


@dataclass(frozen=True, slots=True, kw_only=True)
class CapacityTargets:
    """What a rate must hold, both at once; a value at a target holds it.

    itl_p99_ms: of all tokens but the first ones (the P99 TBT).
    scheduling_delay_p50_ms: of all requests, from arrival to the first step; who never runs
        waits for ever.

    Raises:
        ValueError: a target out of range.
    """

    itl_p99_ms: float
    scheduling_delay_p50_ms: float = 2_000.0

    def __post_init__(self) -> None:
        for name, most in (
            ("itl_p99_ms", MAX_TARGET_MS),
            ("scheduling_delay_p50_ms", MAX_DELAY_MS),
        ):
            target = require_ms(name, getattr(self, name), 0, most, above=True)
            object.__setattr__(self, name, target)


@dataclass(frozen=True, slots=True, kw_only=True)
class RatePoint:
    """One tried rate and what it gave; None where there is nothing to measure.

    scheduling_delay_p50_ms: None where half of the requests never ran.
    goodput_per_s: rate x slo_attainment: how many of a second's requests meet the experiment's
        own ITL and TTFT targets.
    requests_per_s: requests that got all their tokens / makespan, which the last ones stretch.
    never_served: requests that hang for ever. rejected: requests refused on arrival.
    fails: the targets that do not hold, and "never_served" or "max_steps" (the run was cut, so
        what it shows is not all).
    """

    rate_per_s: float
    request_count: int
    itl_p99_ms: float | None
    scheduling_delay_p50_ms: float | None
    ttft_p50_ms: float | None
    ttft_p99_ms: float | None
    slo_attainment: float
    goodput_per_s: float
    requests_per_s: float | None
    never_served: int
    rejected: int
    stopped_at_max_steps: bool
    fails: tuple[str, ...] = ()

    @property
    def holds(self) -> bool:
        """Whether the rate holds its targets."""
        return not self.fails

    def judged(self, targets: CapacityTargets) -> RatePoint:
        """Return the same point held against targets."""
        fails = []
        if self.itl_p99_ms is not None and self.itl_p99_ms > targets.itl_p99_ms:
            fails.append("itl_p99_ms")
        delay_ms = self.scheduling_delay_p50_ms
        if delay_ms is None or delay_ms > targets.scheduling_delay_p50_ms:
            fails.append("scheduling_delay_p50_ms")
        if self.never_served:
            fails.append("never_served")
        if self.stopped_at_max_steps:
            fails.append("max_steps")
        return replace(self, fails=tuple(fails))

    def to_dict(self) -> dict[str, Any]:
        """Return the figures by name."""
        return {**asdict(self), "fails": list(self.fails), "holds": self.holds}


def rate_point(
    experiment: Experiment,
    rate_per_s: float,
    targets: CapacityTargets,
    *,
    max_steps: int = DEFAULT_MAX_STEPS,
) -> RatePoint:
    """Return what an experiment, whose requests come at a rate, gives, held against targets.

    Raises:
        ValueError: an experiment without requests, or steps so short that the clock stands still.
    """
    require_int("requests", len(experiment.workload.requests), 1, DEFAULT_MAX_STEPS)
    result = simulate(in_its_memory(experiment), max_steps=max_steps)
    metrics = measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
    attainment = metrics.slo_attainment or 0.0
    return RatePoint(
        rate_per_s=rate_per_s,
        request_count=metrics.request_count,
        itl_p99_ms=metrics.itl_p99_ms,
        scheduling_delay_p50_ms=_median_delay_ms(result),
        ttft_p50_ms=metrics.ttft_p50_ms,
        ttft_p99_ms=metrics.ttft_p99_ms,
        slo_attainment=attainment,
        goodput_per_s=rate_per_s * attainment,
        requests_per_s=metrics.requests_per_s,
        never_served=len(result.never_scheduled) + len(result.never_finished),
        rejected=len(result.rejected),
        stopped_at_max_steps=result.stopped_at_max_steps,
    ).judged(targets)


def _median_delay_ms(result: Result) -> float | None:
    """Return the median over all requests (inverted CDF), None where that one never ran."""
    requests = result.requests
    delays_ms = np.sort(requests.first_scheduled_ms - requests.arrival_ms)  # NaN come last
    median = float(delays_ms[(len(delays_ms) - 1) // 2])
    return None if math.isnan(median) else median


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentAtRate:
    """A function of the rate per second: the same experiment with its requests at that rate.

    It can be sent to another process.

    source: what made the requests; None where they are listed.
    """

    experiment: Experiment
    source: Trace | Traffic | None = None

    def __call__(self, rate_per_s: float) -> Experiment:
        """Return the experiment at a rate.

        Raises:
            ValueError: requests that have no rate, or a rate out of range.
        """
        workload = self.experiment.workload
        if self.source is None:
            return replace(self.experiment, workload=at_rate(workload, rate_per_s))
        requests = self.source.at_rate(rate_per_s).workload().requests
        return replace(self.experiment, workload=replace(workload, requests=requests))


def at_rate(workload: Workload, rate_per_s: float) -> Workload:
    """Return the same requests with their recorded arrivals drawn together or apart.

    A workload's own rate is (requests - 1) / (last arrival - first arrival).

    Raises:
        ValueError: fewer than two requests, all at once, or sent when others end.
    """
    rate_per_s = require_ms("rate_per_s", rate_per_s, 0, 1e6, above=True)
    requests = workload.requests
    if any(request.after is not None for request in requests):
        raise ValueError(
            "after: requests that are sent when another ends have no rate (allowed: arrival times)"
        )
    arrivals_ms = [request.arrival_ms for request in requests]
    if len(requests) < 2 or arrivals_ms[0] == arrivals_ms[-1]:
        raise ValueError(
            f"requests: {len(requests):,} arriving all at once have no rate "
            "(allowed: two or more at different times)"
        )
    own_per_s = 1000.0 * (len(requests) - 1) / (arrivals_ms[-1] - arrivals_ms[0])
    factor = own_per_s / rate_per_s
    return replace(
        workload,
        requests=tuple([replace(r, arrival_ms=r.arrival_ms * factor) for r in requests]),
    )
