"""Figures for a notebook: a Plotly figure from an experiment, in one call."""

from __future__ import annotations

from typing import TYPE_CHECKING

from s11.experiment import Experiment
from s11.explain import explain
from s11.figures.timeline import timeline_figure
from s11.figures.timeline_info import timeline_info
from s11.kv_pool import in_its_memory
from s11.metrics import Metrics, measure
from s11.results import Result
from s11.simulator import simulate

if TYPE_CHECKING:
    from plotly.graph_objects import Figure


def draw_timeline(experiment: Experiment, *, max_steps: int = 20_000) -> Figure:
    """Return the simulator page's timeline: steps above, the users' streams below.

    The run is in its machine's memory. Behind it stands the same experiment with chunking off.
    In a notebook the figure shows itself as a cell's last line; `.write_html(…)` keeps it.

    max_steps: of each of the two runs.

    Raises:
        ValueError: a model that does not fit its GPUs.
    """
    from plotly.graph_objects import Figure

    result, metrics = _run(experiment, max_steps)
    whole, whole_metrics = _run(experiment.chunking_off(), max_steps)
    told = explain(experiment, result, metrics, whole=whole_metrics)
    info = timeline_info(experiment, result, told, whole=whole)
    return Figure(timeline_figure(info, metrics=metrics))


def _run(experiment: Experiment, max_steps: int) -> tuple[Result, Metrics]:
    result = simulate(in_its_memory(experiment), max_steps=max_steps)
    return result, measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
