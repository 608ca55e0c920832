"""A run as text that other programs read: JSON and CSV."""

from __future__ import annotations

import csv
import io
import json
import math
from collections.abc import Mapping, Sequence
from typing import Any

from s11.experiment import Experiment
from s11.kv_pool import kv_pool
from s11.metrics import Metrics
from s11.results import Result

DECIMALS = 9  # a millionth of a nanosecond in ms: hides nothing, drops binary dust


def rounded(value: Any) -> Any:
    """Return `value` with floats rounded to `DECIMALS` places, and None for those without end."""
    if isinstance(value, float):
        return round(value, DECIMALS) if math.isfinite(value) else None
    if isinstance(value, Mapping):
        return {key: rounded(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [rounded(item) for item in value]
    return value


def to_json(experiment: Experiment, result: Result, metrics: Metrics) -> str:
    """Return a run as JSON: the experiment, its metrics, its steps, who never ran.

    Where its cost model names a machine, `kv_pool` is what that machine holds.
    """
    pool = kv_pool(experiment)
    machine = {} if pool is None else {"kv_pool": pool.to_dict()}
    columns = ("start_ms", "duration_ms", "prefill_tokens", "decode_tokens")
    rows = zip(*(getattr(result.steps, name).tolist() for name in columns), strict=True)
    return json.dumps(
        {
            "experiment": experiment.to_dict(),
            **machine,
            "metrics": rounded(metrics.to_dict()),
            "steps": [dict(zip(columns, rounded(row), strict=True)) for row in rows],
            "never_scheduled": list(result.never_scheduled),
            "never_scheduled_because": result.never_scheduled_because,
            "never_finished": list(result.never_finished),
            "rejected": list(result.rejected),
            "preempted": {str(step): ids for step, ids in result.preempted().items()},
            "cached": {str(step): hits for step, hits in result.cached().items()},
            "stopped_at_max_steps": result.stopped_at_max_steps,
        },
        indent=2,
    )


def to_csv(columns: Mapping[str, Sequence[Any]]) -> str:
    """Return columns of one length as CSV with a header line."""
    out = io.StringIO()
    writer = csv.writer(out, lineterminator="\n")
    writer.writerow(columns)
    for row in zip(*columns.values(), strict=True):
        writer.writerow(["" if item is None else rounded(item) for item in row])
    return out.getvalue()


def steps_to_csv(result: Result) -> str:
    """Return the step table as CSV, a row per step, milliseconds and tokens."""
    return to_csv({name: column.tolist() for name, column in result.steps.columns().items()})
