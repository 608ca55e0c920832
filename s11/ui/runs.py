"""Cached runs, bounded for a public deployment.

Results are frozen and their arrays are never written, so sessions share them without a copy.
The caches' keys are experiments; a restart of the server empties them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from s11.experiment import Experiment
from s11.kv_pool import in_its_memory
from s11.largest_chunk import largest_chunk_within_target
from s11.metrics import Metrics, measure
from s11.results import Result
from s11.simulator import simulate
from s11.ui.traffic_kept import Kept

MAX_STEPS = 20_000
# By their tables: 128 runs of MAX_STEPS would take 375 MB, where a host may have 700 in all; these
# take 70 MB at the most, or are 400 short ones.
MOST_KEPT_STEPS, RUN_COUNTS_FOR = 400_000, 1_000


@dataclass(frozen=True, slots=True, eq=False)
class Run:
    """A result and its figures."""

    result: Result
    metrics: Metrics


_runs: Kept[Run] = Kept(
    size_of=lambda kept: RUN_COUNTS_FOR + len(kept.result.steps), most=MOST_KEPT_STEPS
)


def run(experiment: Experiment) -> Run:
    """Return the run of an experiment in its machine's memory, cut at `MAX_STEPS` steps."""
    return _runs.get(experiment, lambda: _run(experiment))


def _run(experiment: Experiment) -> Run:
    result = simulate(in_its_memory(experiment), max_steps=MAX_STEPS)
    metrics = measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
    return Run(result, metrics)


@lru_cache(maxsize=256)
def largest_chunk(experiment: Experiment) -> int | None:
    """Return the largest chunk within the target; the experiment's own chunk is no matter."""
    return largest_chunk_within_target(experiment, max_steps=MAX_STEPS)
