"""s11: a simulator of chunked prefill in LLM serving.

from s11 import Experiment, chapter_scenario, measure, simulate

experiment = Experiment(workload=chapter_scenario(prompt_tokens=32_768))
result = simulate(experiment)
metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
metrics.longest_stall_ms, metrics.ttft_ms, result.steps.to_pandas()
"""

from __future__ import annotations

from s11.costs import LinearCost
from s11.experiment import Experiment
from s11.largest_chunk import largest_chunk_within_target
from s11.metrics import Metrics, measure
from s11.plan import EngineLimits
from s11.results import Result
from s11.simulator import simulate
from s11.sweeps import sweep_chunk_sizes
from s11.workload import Request, Workload, chapter_scenario, poisson_workload

__version__ = "0.1.0"

__all__ = [
    "EngineLimits",
    "Experiment",
    "LinearCost",
    "Metrics",
    "Request",
    "Result",
    "Workload",
    "chapter_scenario",
    "largest_chunk_within_target",
    "measure",
    "poisson_workload",
    "simulate",
    "sweep_chunk_sizes",
]
