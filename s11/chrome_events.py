"""The events of a Chrome trace that tell an engine: its steps, its counters, its streams."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.chrome_window import TraceWindow
from s11.experiment import Experiment
from s11.exports import rounded
from s11.request_metrics import token_gaps
from s11.results import REASONS, Result
from s11.step_tables import running_requests
from s11.words import count

STEPS_THREAD, USERS_THREAD, FIRST_REQUEST_THREAD = 1, 2, 3
STEPS_A_BLOCK = 4_096

Event = dict[str, Any]
Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def named(pid: int, tid: int, what: str, name: str, *, order: int) -> Iterator[Event]:
    """Yield the name of a process or a thread, and its place among the others."""
    place = {"ph": "M", "pid": pid, "tid": tid, "ts": 0}
    yield place | {"name": f"{what}_name", "args": {"name": name}}
    yield place | {"name": f"{what}_sort_index", "args": {"sort_index": order}}


def complete(
    pid: int, tid: int, category: str, name: str, begin_us: int, end_us: int, args: Event
) -> Event:
    """Return something that lasts, from one edge to the other."""
    return {
        "ph": "X",
        "pid": pid,
        "tid": tid,
        "cat": category,
        "name": name,
        "ts": begin_us,
        "dur": end_us - begin_us,
        "args": args,
    }


def step_events(
    pid: int, experiment: Experiment, result: Result, worker: Result, window: TraceWindow
) -> Iterator[Event]:
    """Yield a worker's steps, its counters and its streaming users."""
    steps = worker.steps
    first = int(np.searchsorted(steps.end_ms, window.begin_ms, side="right"))
    last = int(np.searchsorted(steps.start_ms, window.end_ms, side="left"))
    yield from named(pid, STEPS_THREAD, "thread", "steps", order=STEPS_THREAD)
    for begin in range(first, last, STEPS_A_BLOCK):
        yield from _steps(pid, result, worker, begin, min(begin + STEPS_A_BLOCK, last), window)
    yield from _counters(pid, experiment, result, worker, window)
    if worker.streaming_users:
        yield from _streams(pid, experiment, worker, window)


def _steps(
    pid: int, result: Result, worker: Result, first: int, last: int, window: TraceWindow
) -> Iterator[Event]:
    ids = result.requests.request_id
    names = (
        "start_ms",
        "end_ms",
        "duration_ms",
        "prefill_tokens",
        "decode_tokens",
        "held_decodes",
        "waiting",
        "blocked_request",
        "blocked_by",
    )
    columns = [getattr(worker.steps, name)[first:last].tolist() for name in names]
    for step, row in enumerate(zip(*columns, strict=True), start=first):
        start_ms, end_ms, duration_ms, prefill, decode, held, waiting, blocked, why = row
        args = {
            "step": step,
            "duration_ms": rounded(duration_ms),
            "prefill_tokens": prefill,
            "decode_tokens": decode,
        }
        if held:
            args["held_decodes"] = held
        if waiting:
            args["waiting"] = waiting
        if blocked >= 0:
            args |= {"blocked_request": ids[blocked], "blocked_by": str(REASONS[why])}
        parts = [f"prefill {prefill:,}"] if prefill else []
        parts += [f"decode {decode:,}"] if decode else []
        yield complete(
            pid,
            STEPS_THREAD,
            "step",
            " + ".join(parts) or "empty",
            window.clipped_us(start_ms),
            window.clipped_us(end_ms),
            args,
        )


def _counters(
    pid: int, experiment: Experiment, result: Result, worker: Result, window: TraceWindow
) -> Iterator[Event]:
    """Yield what changes from step to step; between steps, what is left when one ends."""
    steps = worker.steps
    if not len(steps):
        return
    pauses = np.append(np.flatnonzero(steps.start_ms[1:] > steps.end_ms[:-1]), len(steps) - 1)
    times_ms = np.concatenate((steps.start_ms, steps.end_ms[pauses]))
    order = np.argsort(times_ms, kind="stable")
    running, waiting = _left_when_ending(result, worker, pauses)
    nothing = np.zeros(len(pauses), dtype=np.int64)
    held = np.where(running > 0, steps.kv_blocks[pauses], 0)

    def course(during: Ints, after: Ints) -> Ints:
        return np.concatenate((during, after))[order]

    series = {
        "requests": {
            "running": course(running_requests(worker), running),
            "waiting": course(steps.waiting, waiting),
        },
        "tokens in the step": {
            "prefill": course(steps.prefill_tokens, nothing),
            "decode": course(steps.decode_tokens, nothing),
        },
    }
    if experiment.limits.kv_blocks is not None:
        series["KV blocks"] = {"held": course(steps.kv_blocks, held)}
    for name, values in series.items():
        yield from _counter(pid, name, times_ms[order], values, window)


def _left_when_ending(result: Result, worker: Result, steps: Ints) -> tuple[Ints, Ints]:
    """Return who runs and who waits when these steps have ended: (steps,), (steps,)."""
    handed_over = result.prefill_worker is not None and worker is result
    requests = worker.requests
    came_ms = requests.first_token_ms if handed_over else requests.arrival_ms
    refused = np.isin(np.array(requests.request_id, dtype=object), worker.rejected)
    one_token = (requests.output_tokens == 1) & handed_over  # never the decode worker's
    came = np.sort(came_ms[~(np.isnan(came_ms) | refused | one_token)])
    last_ms = requests.last_token_ms[~one_token]
    done = np.sort(last_ms[~np.isnan(last_ms)])
    ends_ms = worker.steps.end_ms[steps]
    seated = np.searchsorted(np.sort(worker.admissions.step), steps, side="right")
    seated = seated - np.searchsorted(np.sort(worker.preemptions.step), steps, side="right")
    finished = np.searchsorted(done, ends_ms, side="right")
    arrived = np.searchsorted(came, ends_ms, side="right")
    return worker.streaming_users + seated - finished, arrived - seated


def _counter(
    pid: int, name: str, times_ms: Floats, values: dict[str, Ints], window: TraceWindow
) -> Iterator[Event]:
    """Yield a counter each time that it changes, and as it is when the window opens."""
    first = max(0, int(np.searchsorted(times_ms, window.begin_ms, side="right")) - 1)
    last = int(np.searchsorted(times_ms, window.end_ms, side="right"))
    changed = np.zeros(max(0, last - first), dtype=bool)
    changed[:1] = True
    for column in values.values():
        changed[1:] |= np.diff(column[first:last]) != 0
    rows = first + np.flatnonzero(changed)
    for begin in range(0, len(rows), STEPS_A_BLOCK):
        part = rows[begin : begin + STEPS_A_BLOCK]
        columns = [column[part].tolist() for column in values.values()]
        for time_ms, *row in zip(times_ms[part].tolist(), *columns, strict=True):
            yield {
                "ph": "C",
                "pid": pid,
                "tid": STEPS_THREAD,
                "name": name,
                "ts": window.clipped_us(time_ms),
                "args": dict(zip(values, row, strict=True)),
            }


def _streams(
    pid: int, experiment: Experiment, worker: Result, window: TraceWindow
) -> Iterator[Event]:
    """Yield the streaming users' waits for their next token, which all of them see alike."""
    users = count(worker.streaming_users, "streaming user")
    yield from named(pid, USERS_THREAD, "thread", users, order=USERS_THREAD)
    ends_ms = worker.decode_ends_ms()
    before_ms = np.concatenate(([0.0], ends_ms))[:-1]
    inside = np.flatnonzero((ends_ms > window.begin_ms) & (before_ms < window.end_ms))
    gaps_ms = token_gaps(worker).step_ms
    for row in inside.tolist():
        gap_ms = float(gaps_ms[row])
        stalled = gap_ms > experiment.itl_target_ms
        yield complete(
            pid,
            USERS_THREAD,
            "stream",
            "stall" if stalled else "next token",
            window.clipped_us(float(before_ms[row])),
            window.clipped_us(float(ends_ms[row])),
            {"itl_ms": rounded(gap_ms), "itl_target_ms": experiment.itl_target_ms},
        )
