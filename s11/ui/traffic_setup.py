"""What a run of the traffic page depends on, as one small frozen value: the caches' key.

It names its traffic (a preset and a seed, or a file by its digest) instead of holding
thousands of requests, and makes the experiment from it when it is run.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Self

from s11.arrivals import ClosedLoopArrivals, GammaArrivals, PoissonArrivals
from s11.catalog import Deployment
from s11.costs import AnyCost, LinearCost, RooflineCost
from s11.costs.host import HOST_OF_POLICY
from s11.experiment import Experiment
from s11.plan import EngineLimits
from s11.presets import TITLES
from s11.traffic import Traffic
from s11.traffic_presets import TRAFFIC_PRESETS
from s11.workload import Workload

MOST_REQUESTS = 20_000
MAX_STEPS = 500_000


@dataclass(frozen=True, slots=True, kw_only=True)
class DrawnTraffic:
    """Requests drawn from a preset's lengths, at a rate."""

    preset: str
    rate_per_s: float
    burstiness: float
    request_count: int
    seed: int

    def shortened(self, most: int) -> DrawnTraffic:
        """Return its first requests; those of a seed are the same however many are drawn."""
        return replace(self, request_count=min(self.request_count, most))

    def traffic(self) -> Traffic:
        """Return its description; a burstiness of 1 is a Poisson process."""
        arrivals: PoissonArrivals | GammaArrivals = PoissonArrivals(rate_per_s=self.rate_per_s)
        if self.burstiness != 1:
            arrivals = GammaArrivals(rate_per_s=self.rate_per_s, burstiness=self.burstiness)
        return TRAFFIC_PRESETS[self.preset].traffic(
            request_count=self.request_count, arrivals=arrivals, seed=self.seed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoopTraffic:
    """Requests drawn from a preset's lengths, sent by clients who wait for their answers.

    think_ms: from the end of an answer to that client's next request.
    """

    preset: str
    clients: int
    think_ms: float
    request_count: int
    seed: int

    def shortened(self, most: int) -> ClosedLoopTraffic:
        """Return its first requests; those of a seed are the same however many are drawn."""
        return replace(self, request_count=min(self.request_count, most))

    def traffic(self) -> Traffic:
        """Return its description."""
        arrivals = ClosedLoopArrivals(clients=self.clients, think_ms=self.think_ms)
        return TRAFFIC_PRESETS[self.preset].traffic(
            request_count=self.request_count, arrivals=arrivals, seed=self.seed
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class TracePart:
    """A part of a trace file.

    begin_s, end_s: from the file's first request, in its own time.
    first: at most so many requests.
    time_scale: 0.5 is twice as fast.
    """

    begin_s: float = 0.0
    end_s: float = math.inf
    first: int = MOST_REQUESTS
    time_scale: float = 1.0

    def __post_init__(self) -> None:
        if not self.begin_s < self.end_s:
            raise ValueError(
                f"window: {self.begin_s:g} s to {self.end_s:g} s ends before it begins "
                "(allowed: an end after the begin)"
            )

    def shortened(self, most: int) -> Self:
        """Return its first requests."""
        return replace(self, first=min(self.first, most))


@dataclass(frozen=True, slots=True, kw_only=True)
class UploadedTrace(TracePart):
    """A part of an uploaded file, known by its digest."""

    digest: str


@dataclass(frozen=True, slots=True, kw_only=True)
class SampleTrace(TracePart):
    """A part of a sample that s11 ships, known by its file's name."""

    name: str


Source = DrawnTraffic | ClosedLoopTraffic | UploadedTrace | SampleTrace


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """A scheduler and its chunk size; None where it takes prompts whole."""

    policy: str
    chunk_tokens: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Setup:
    """Traffic on a scheduler and a machine; `machine` is None for the chapter's cost."""

    source: Source
    side: Side
    most_running: int
    prefix_caching: bool
    machine: Deployment | None
    ttft_target_ms: float
    itl_target_ms: float

    @property
    def run_key(self) -> Setup:
        """Return what the schedule depends on: targets matter to SLO-adaptive alone."""
        own = self.itl_target_ms if self.side.policy == "slo_adaptive" else 50.0
        return replace(self, ttft_target_ms=1.0, itl_target_ms=own)

    def experiment(self, workload: Workload) -> Experiment:
        """Return the experiment on its requests, memory aside.

        Raises:
            ValueError: values that do not go together.
        """
        return Experiment(
            workload=workload,
            policy=self.side.policy,
            limits=limits_of(
                self.side, most_running=self.most_running, prefix_caching=self.prefix_caching
            ),
            cost=self._cost(),
            itl_target_ms=self.itl_target_ms,
            ttft_target_ms=self.ttft_target_ms,
        )

    def _cost(self) -> AnyCost:
        if self.machine is None:
            return LinearCost()
        return _roofline(self.machine, HOST_OF_POLICY.get(self.side.policy, "vllm"))


@lru_cache(maxsize=8)
def _roofline(machine: Deployment, engine: str) -> RooflineCost:
    """Return one cost model for all runs on a machine: it keeps what it has worked out."""
    return RooflineCost(deployment=machine, engine=engine)


def limits_of(side: Side, *, most_running: int, prefix_caching: bool) -> EngineLimits:
    """Return the engine's limits; a chunk size bounds a whole step, decodes included.

    SGLang counts a step's prompt tokens alone, so its decodes are beside the chunk.
    """
    limits = EngineLimits(max_seqs=most_running, prefix_caching=prefix_caching)
    if side.chunk_tokens is None:
        return limits
    budget = None if side.policy == "sglang" else side.chunk_tokens
    return replace(limits, chunk_tokens=side.chunk_tokens, token_budget=budget)


def side_label(side: Side) -> str:
    """Return what a side is called: its scheduler, and its chunk size where it cuts."""
    title = TITLES[side.policy]
    return title if side.chunk_tokens is None else f"{title} {side.chunk_tokens:,}"
