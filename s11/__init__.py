"""A simulator of chunked prefill in LLM serving.

An `Experiment` is a frozen description: a workload, a scheduler, its limits, and what a step
costs. `simulate` runs it and returns columnar tables; `measure` takes the figures from them.

```python
from s11 import Experiment, chapter_scenario, measure, simulate

experiment = Experiment(workload=chapter_scenario(prompt_tokens=32_768))
result = simulate(experiment)
metrics = measure(result, itl_target_ms=experiment.itl_target_ms)
metrics.longest_stall_ms, metrics.ttft_ms, result.steps.to_pandas()
```

Beside functions and classes there are five catalogs, dicts by name: `POLICIES` (schedulers),
`PRESETS` (engines as they come), `MODELS`, `GPUS`, and `TRAFFIC_PRESETS` (lengths of known
workloads). A name is loaded when it is first used, so that importing s11 costs next to nothing.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from s11.arrivals import ClosedLoopArrivals, GammaArrivals, PoissonArrivals
    from s11.capacity import Capacity, CapacityTargets, highest_rate
    from s11.catalog import GPUS, MODELS, Deployment, model_from_config
    from s11.costs import FittedCost, LinearCost, RooflineCost
    from s11.experiment import Experiment
    from s11.figures.notebook import draw_timeline
    from s11.kv_pool import in_its_memory
    from s11.largest_chunk import largest_chunk_within_target
    from s11.lengths import EmpiricalTokens, FixedTokens, LognormalTokens
    from s11.metrics import Metrics, measure
    from s11.plan import EngineLimits
    from s11.policies import POLICIES
    from s11.presets import PRESETS
    from s11.request_metrics import RequestMetrics
    from s11.request_metrics import request_metrics as measure_requests
    from s11.results import Result
    from s11.simulator import simulate
    from s11.sweep_grid import Grid
    from s11.sweep_grid import table as sweep_table
    from s11.sweep_outcomes import Outcome
    from s11.sweeps import SweepPoint, knee, sweep_chunk_sizes
    from s11.sweeps import run as run_experiments
    from s11.traces import Trace, read_trace
    from s11.traffic import Traffic
    from s11.traffic_presets import TRAFFIC_PRESETS
    from s11.workload import Request, Workload, chapter_scenario, poisson_workload

__version__ = "0.1.0"

__all__ = [  # noqa: RUF022  by subject: what is run, what it costs, what comes out
    "Experiment",
    "EngineLimits",
    "POLICIES",
    "PRESETS",
    "Workload",
    "Request",
    "chapter_scenario",
    "poisson_workload",
    "Traffic",
    "TRAFFIC_PRESETS",
    "PoissonArrivals",
    "GammaArrivals",
    "ClosedLoopArrivals",
    "FixedTokens",
    "LognormalTokens",
    "EmpiricalTokens",
    "Trace",
    "read_trace",
    "LinearCost",
    "RooflineCost",
    "FittedCost",
    "Deployment",
    "MODELS",
    "GPUS",
    "model_from_config",
    "in_its_memory",
    "simulate",
    "Result",
    "measure",
    "Metrics",
    "measure_requests",
    "RequestMetrics",
    "draw_timeline",
    "largest_chunk_within_target",
    "sweep_chunk_sizes",
    "SweepPoint",
    "knee",
    "Grid",
    "run_experiments",
    "Outcome",
    "sweep_table",
    "highest_rate",
    "CapacityTargets",
    "Capacity",
]

_HOMES = {
    "arrivals": ("ClosedLoopArrivals", "GammaArrivals", "PoissonArrivals"),
    "capacity": ("Capacity", "CapacityTargets", "highest_rate"),
    "catalog": ("GPUS", "MODELS", "Deployment", "model_from_config"),
    "costs": ("FittedCost", "LinearCost", "RooflineCost"),
    "experiment": ("Experiment",),
    "figures.notebook": ("draw_timeline",),
    "kv_pool": ("in_its_memory",),
    "largest_chunk": ("largest_chunk_within_target",),
    "lengths": ("EmpiricalTokens", "FixedTokens", "LognormalTokens"),
    "metrics": ("Metrics", "measure"),
    "plan": ("EngineLimits",),
    "policies": ("POLICIES",),
    "presets": ("PRESETS",),
    "request_metrics": ("RequestMetrics", "measure_requests"),
    "results": ("Result",),
    "simulator": ("simulate",),
    "sweep_grid": ("Grid", "sweep_table"),
    "sweep_outcomes": ("Outcome",),
    "sweeps": ("SweepPoint", "knee", "run_experiments", "sweep_chunk_sizes"),
    "traces": ("Trace", "read_trace"),
    "traffic": ("Traffic",),
    "traffic_presets": ("TRAFFIC_PRESETS",),
    "workload": ("Request", "Workload", "chapter_scenario", "poisson_workload"),
}
"""Which module has which public names; the imports above are for type checkers alone."""

_NAMES_AT_HOME = {
    "measure_requests": "request_metrics",  # as a module of s11 is called
    "run_experiments": "run",
    "sweep_table": "table",
}

_HOME_OF = {name: home for home, names in _HOMES.items() for name in names}


if not TYPE_CHECKING:  # a type checker would take every name for one that is there

    def __getattr__(name: str) -> object:
        if name not in _HOME_OF:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        home = import_module(f"{__name__}.{_HOME_OF[name]}")
        globals()[name] = value = getattr(home, _NAMES_AT_HOME.get(name, name))
        return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
