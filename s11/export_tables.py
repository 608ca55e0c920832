"""A run's tables as they leave the program: steps, slices, requests, metrics.

Names and reasons stand for the codes of the result's own columns. Steps and slices tell their
worker: `engine`, or `prefill` and `decode` of a disaggregated deployment.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.checks import require_choice
from s11.experiment import Experiment
from s11.metrics import Metrics
from s11.request_metrics import attained, request_metrics
from s11.results import REASONS, Result, StepTable

Columns = Mapping[str, Sequence[Any] | NDArray[Any]]
"""Columns of one length by name; a value that is missing is None or NaN."""

TABLES = ("steps", "slices", "requests", "metrics")


def table(name: str, experiment: Experiment, result: Result, metrics: Metrics) -> Columns:
    """Return one of `TABLES` as columns by name.

    Raises:
        ValueError: another name.
    """
    require_choice("table", name, TABLES)
    if name == "steps":
        return steps_table(result)
    if name == "slices":
        return slices_table(result)
    if name == "requests":
        return requests_table(experiment, result)
    figures = metrics.to_dict().items()
    return {key: np.array([math.nan if value is None else value]) for key, value in figures}


def workers(result: Result) -> list[tuple[str, Result]]:
    """Return the engines of a run with their names, the one that prefills first."""
    if result.prefill_worker is None:
        return [("engine", result)]
    return [("prefill", result.prefill_worker), ("decode", result)]


def steps_table(result: Result) -> Columns:
    """Return a row per step of each worker: the step table's columns, then `step`, from 0."""
    ids = result.requests.request_id
    each = workers(result)
    columns: dict[str, Any] = {
        field.name: _joined([getattr(worker.steps, field.name) for _, worker in each])
        for field in fields(StepTable)
    }
    columns["blocked_request"] = _named(columns["blocked_request"], ids)
    columns["blocked_by"] = _reasons(columns["blocked_by"])
    columns["step"] = _joined([np.arange(len(worker.steps)) for _, worker in each])
    columns["worker"] = _joined([np.repeat(name, len(worker.steps)) for name, worker in each])
    return columns


def slices_table(result: Result) -> Columns:
    """Return a row per prefill slice, in the order of the steps."""
    ids = result.requests.request_id
    name, worker = workers(result)[0]
    slices = worker.slices
    return {
        "step": slices.step,
        "start_ms": worker.steps.start_ms[slices.step],
        "end_ms": worker.steps.end_ms[slices.step],
        "request_id": _named(slices.request, ids),
        "start_token": slices.start_token,
        "tokens": slices.tokens,
        "wanted_tokens": slices.wanted_tokens,
        "limited_by": _reasons(slices.limited_by),
        "worker": np.repeat(name, len(slices)),
    }


def requests_table(experiment: Experiment, result: Result) -> Columns:
    """Return a row per request: what it asked for, what it saw, whether that met the targets."""
    requests, count = result.requests, len(result.requests)
    metrics = request_metrics(result)
    met = attained(
        metrics,
        ttft_target_ms=experiment.ttft_target_ms,
        itl_target_ms=experiment.itl_target_ms,
    )
    admissions = result.prefilling.admissions
    cached = np.bincount(admissions.request, admissions.cached_tokens, minlength=count)
    return {
        **requests.columns(),
        **metrics.columns(),
        "meets_targets": met,
        "preemptions": np.bincount(result.preemptions.request, minlength=count),
        "cached_tokens": cached.astype(np.int64),
        "outcome": list(outcomes(result)),
    }


def outcomes(result: Result) -> Iterator[str]:
    """Yield what became of each request, in the table's order."""
    told = dict.fromkeys(result.rejected, "refused on arrival")
    told |= dict.fromkeys(result.never_scheduled, "never scheduled")
    told |= dict.fromkeys(result.never_finished, "never finished")
    requests = result.requests
    finished = ~np.isnan(requests.last_token_ms)  # (requests,)
    sent = ~np.isnan(requests.arrival_ms)  # (requests,)
    for name, ended, came in zip(
        requests.request_id, finished.tolist(), sent.tolist(), strict=True
    ):
        yield "finished" if ended else told.get(name, "cut with the run" if came else "never sent")


def _joined(parts: Sequence[NDArray[Any]]) -> NDArray[Any]:
    return parts[0] if len(parts) == 1 else np.concatenate(parts)


def _named(rows: NDArray[np.int64], ids: Sequence[str]) -> list[str | None]:
    """Return the ids of rows of the request table; None for -1."""
    return [ids[row] if row >= 0 else None for row in rows.tolist()]


def _reasons(codes: NDArray[np.int64]) -> list[str | None]:
    reasons = [None if reason is None else str(reason) for reason in REASONS]
    return [reasons[code] for code in codes.tolist()]
