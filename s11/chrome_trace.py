"""A run as a Chrome trace, which opens in Perfetto and in chrome://tracing.

A process for each engine, a thread for its steps, one for the streaming users and one for each
request. Format: "Trace Event Format", docs.google.com/document/d/1CvAClvFfyA5R-PhYUmn5OOQtYMH4h6I0nSsKchNAySU
"""  # noqa: E501

from __future__ import annotations

import json
from collections.abc import Iterator

from s11.chrome_events import Event, named, step_events
from s11.chrome_requests import request_events
from s11.chrome_window import TraceWindow, trace_window
from s11.experiment import Experiment
from s11.export_tables import workers
from s11.results import Result
from s11.words import count

EVENTS_A_PIECE = 2_048
TITLES = {"engine": "Engine", "prefill": "Prefill worker", "decode": "Decode worker"}


def chrome_trace(
    experiment: Experiment, result: Result, window: TraceWindow | None = None
) -> Iterator[str]:
    """Yield the JSON text of a run's trace in pieces, an event a line.

    Times are whole microseconds on the run's clock: edges are rounded, never durations, so that
    what lies within another still does.

    window: the part of the run to tell; all of it without.
    """
    window = window or trace_window(experiment, result)
    about = {
        "policy": experiment.policy,
        "cost": experiment.cost.formula(),
        "requests": count(len(result.requests), "request"),
        "left_out": window.left_out or "nothing",
    }
    yield f'{{"displayTimeUnit": "ms",\n"otherData": {json.dumps(about)},\n"traceEvents": ['
    encode = json.JSONEncoder(separators=(",", ":")).encode
    lines: list[str] = []
    begin = "\n"
    for event in trace_events(experiment, result, window):
        lines.append(encode(event))
        if len(lines) == EVENTS_A_PIECE:
            yield begin + ",\n".join(lines)
            begin = ",\n"
            lines.clear()
    yield begin + ",\n".join(lines) + "\n]}\n"


def trace_events(
    experiment: Experiment, result: Result, window: TraceWindow | None = None
) -> Iterator[Event]:
    """Yield the events of a run's trace; in a thread, what holds others comes before them."""
    window = window or trace_window(experiment, result)
    for pid, (name, worker) in enumerate(workers(result), start=1):
        yield from named(pid, 1, "process", f"{TITLES[name]}, {experiment.policy}", order=pid)
        yield from step_events(pid, experiment, result, worker, window)
        yield from request_events(pid, experiment, result, worker, window)
