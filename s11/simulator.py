"""`simulate`: an experiment on its engine, or on the two of a disaggregated deployment."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from s11.checks import require_int
from s11.engine import Engine
from s11.experiment import Experiment
from s11.policies import DISAGGREGATED
from s11.results import Result
from s11.workload import Request

DEFAULT_MAX_STEPS = 50_000_000


def simulate(
    experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS, express: bool = True
) -> Result:
    """Run an experiment to its end, or to `max_steps` steps (of each worker).

    A request that arrives at time t is seen by the first step that starts at or after t. The
    run ends when every request is done or can never be scheduled, and the tail has passed.

    express: run plain stretches in the loop of `s11.express`. The tables are the same without
        it, and take longer.

    Raises:
        ValueError: `max_steps` out of range, or steps so short that the clock stands still.
    """
    max_steps = require_int("max_steps", max_steps, 1, DEFAULT_MAX_STEPS)
    if experiment.policy == DISAGGREGATED:
        return _two_workers(experiment, max_steps)
    workload = experiment.workload
    engine = Engine(
        experiment,
        max_steps,
        requests=workload.requests,
        streaming_users=workload.streaming_users,
        express=express,
    )
    if engine.users:
        engine.stream(workload.lead_in_steps)
    engine.start_clock()
    engine.serve()
    if engine.users and not engine.stopped:
        engine.stream(workload.tail_steps)
    return engine.result()


def _two_workers(experiment: Experiment, max_steps: int) -> Result:
    """Run the prefill worker, hand its KV over, and run the decode worker.

    The first token reaches its user when the KV has arrived. The users stream from the decode
    worker, which never sees a prompt.
    """
    workload, users = experiment.workload, experiment.workload.streaming_users
    lead_in = Engine(experiment, max_steps, requests=(), streaming_users=users)
    if users:
        lead_in.stream(workload.lead_in_steps)
    alone = tuple([replace(request, output_tokens=1) for request in workload.requests])
    prefill = Engine(
        experiment, max_steps, requests=alone, streaming_users=0, now_ms=lead_in.now_ms
    )
    prefill.start_clock()
    prefill.serve()
    prefilled = prefill.result()

    travel_ms = [experiment.hand_over.duration_ms(r.prompt_tokens) for r in workload.requests]
    handed_ms = prefilled.requests.first_token_ms + np.array(travel_ms)  # (requests,)
    order = np.argsort(handed_ms, kind="stable")  # those that never came last
    order = order[: np.count_nonzero(~np.isnan(handed_ms))]
    decode = Engine(
        experiment,
        max_steps,
        requests=tuple([workload.requests[row] for row in order]),
        streaming_users=users,
        handed_over=True,
    )
    if users:
        decode.stream(workload.lead_in_steps)
    decode.place_arrivals(handed_ms[order].tolist())
    decode.serve()
    if users and not decode.stopped:
        decode.stream(workload.tail_steps)
    return _joined(workload.requests, prefilled, decode.result(), order)


def _joined(
    requests: Sequence[Request], prefilled: Result, decoded: Result, order: NDArray[np.int64]
) -> Result:
    """Return both workers' runs as one; `order` holds the decode worker's rows' own rows."""
    first_token_ms, last_token_ms = (np.full(len(requests), math.nan) for _ in range(2))
    first_token_ms[order] = decoded.requests.arrival_ms
    last_token_ms[order] = decoded.requests.last_token_ms
    spans = decoded.spans
    seated = np.zeros(len(order), dtype=bool)
    seated[spans.request] = True
    waiting = np.flatnonzero(~seated)  # they have their first token and no seat yet
    rows = order[np.concatenate((spans.request, waiting))]
    by_row = np.argsort(rows, kind="stable")
    none = np.zeros(len(waiting), dtype=np.int64)
    token_ms = np.concatenate((spans.token_ms, decoded.requests.arrival_ms[waiting]))
    waits = set(decoded.never_scheduled)
    blocked = decoded.steps.blocked_request
    blocked = np.append(order, -1)[blocked]  # -1, nobody, finds itself at the end
    return replace(
        decoded,
        steps=replace(decoded.steps, blocked_request=blocked),
        requests=replace(
            prefilled.requests,
            output_tokens=np.array([r.output_tokens for r in requests], dtype=np.int64),
            first_token_ms=first_token_ms,
            last_token_ms=last_token_ms,
        ),
        admissions=replace(decoded.admissions, request=order[decoded.admissions.request]),
        spans=replace(
            spans,
            request=rows[by_row],
            token_ms=token_ms[by_row],
            first_decode=np.concatenate((spans.first_decode, none))[by_row],
            decodes=np.concatenate((spans.decodes, none))[by_row],
        ),
        never_scheduled=prefilled.never_scheduled,
        never_scheduled_because=prefilled.never_scheduled_because,
        never_finished=tuple([r.request_id for r in requests if r.request_id in waits]),
        rejected=prefilled.rejected,
        stopped_at_max_steps=decoded.stopped_at_max_steps or prefilled.stopped_at_max_steps,
        prefill_worker=prefilled,
    )
