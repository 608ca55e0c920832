"""The traffic page's runs, shared by all sessions and bounded for a public deployment.

Results are frozen and their arrays are never written. What is kept is bounded by steps and
requests, not by entries: a run of 20,000 requests counts for what thirty small ones do.
"""

from __future__ import annotations

import math
import threading
from dataclasses import dataclass, replace

from s11.experiment import Experiment
from s11.figures.traffic_look import TrafficRun
from s11.kv_pool import within_memory
from s11.metrics import Metrics, measure
from s11.request_metrics import RequestMetrics, request_metrics
from s11.results import Result
from s11.simulator import simulate
from s11.traces import Trace
from s11.ui.traffic_kept import Kept
from s11.ui.traffic_samples import sample_trace
from s11.ui.traffic_setup import (
    MAX_STEPS,
    ClosedLoopTraffic,
    DrawnTraffic,
    SampleTrace,
    Setup,
    Source,
    UploadedTrace,
    side_label,
)
from s11.ui.traffic_upload import kept_trace
from s11.workload import Workload

MOST_KEPT_STEPS = 1_500_000
MOST_KEPT_REQUESTS = 60_000
A_REQUEST_IN_STEPS = 10  # what its rows take in memory, about
AT_ONCE = 2  # simulations; more would share the cores and all end late


@dataclass(frozen=True, slots=True, eq=False)
class _Simulated:
    experiment: Experiment
    result: Result
    requests: RequestMetrics

    @property
    def size(self) -> int:
        return len(self.result.steps) + A_REQUEST_IN_STEPS * len(self.result.requests)


turns = threading.BoundedSemaphore(AT_ONCE)
_workloads: Kept[Workload] = Kept(
    size_of=lambda workload: len(workload.requests), most=MOST_KEPT_REQUESTS
)
_simulated: Kept[_Simulated] = Kept(size_of=lambda ran: ran.size, most=MOST_KEPT_STEPS)
_figures: Kept[Metrics] = Kept(size_of=lambda metrics: 1, most=256)


def workload(source: Source) -> Workload:
    """Return the requests of some traffic.

    Raises:
        ValueError: lengths or rates out of range, a part of a file that holds no request.
    """
    return _workloads.get(source, lambda: _workload(source))


def _workload(source: Source) -> Workload:
    if isinstance(source, DrawnTraffic | ClosedLoopTraffic):
        return source.traffic().workload()
    return trace_of(source).workload()


def trace_of(source: UploadedTrace | SampleTrace) -> Trace:
    """Return the part of a trace that is asked for.

    Raises:
        ValueError: an uploaded file that is not kept any more, a part without a request.
    """
    if isinstance(source, SampleTrace):
        trace = sample_trace(source.name)
    else:
        trace = kept_trace(source.digest).trace
    window_s = (source.begin_s, source.end_s)
    return trace.select(
        window_s=None if window_s == (0.0, math.inf) else window_s,
        first=source.first,
        time_scale=source.time_scale,
    )


def request_count(source: Source) -> int:
    """Return how many requests some traffic has.

    Raises:
        ValueError: a file that is not kept any more, a part of it that holds no request.
    """
    if isinstance(source, DrawnTraffic | ClosedLoopTraffic):
        return source.request_count
    return len(trace_of(source))


def at_rate(source: Source, rate_per_s: float) -> Workload:
    """Return the same requests at another rate.

    Raises:
        ValueError: a rate out of range, a trace whose requests all come at once, clients who
            wait for their answers.
    """
    if isinstance(source, DrawnTraffic | ClosedLoopTraffic):
        return source.traffic().at_rate(rate_per_s).workload()
    return trace_of(source).at_rate(rate_per_s).workload()


def run(setup: Setup) -> TrafficRun:
    """Return the run of a side, cut at `MAX_STEPS` steps.

    Raises:
        ValueError: values that do not go together, a model that does not fit.
    """
    ran = _simulated.get(setup.run_key, lambda: _simulate(setup))
    itl_ms, ttft_ms = setup.itl_target_ms, setup.ttft_target_ms
    metrics = _figures.get(
        setup, lambda: measure(ran.result, itl_target_ms=itl_ms, ttft_target_ms=ttft_ms)
    )
    # Other targets may have been asked for when the schedule was made.
    experiment = replace(ran.experiment, itl_target_ms=itl_ms, ttft_target_ms=ttft_ms)
    return TrafficRun(
        label=side_label(setup.side),
        experiment=experiment,
        result=ran.result,
        metrics=metrics,
        per_request=ran.requests,
    )


def _simulate(setup: Setup) -> _Simulated:
    experiment = within_memory(setup.experiment(workload(setup.source)))
    with turns:
        result = simulate(experiment, max_steps=MAX_STEPS)
    return _Simulated(experiment, result, request_metrics(result))
