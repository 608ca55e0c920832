"""Fit what an engine takes on the host: the share of whole runs' TPOT that kernels leave open.

Run alone it prints the errors: python -m scripts.calibrate_host MEASURED_DIR
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import least_squares

from s11.costs import RooflineCost
from s11.costs.host import HostOverhead
from s11.experiment import Experiment
from s11.simulator import simulate
from s11.validation.end_to_end import COLUMNS, FILE, serving_run
from s11.validation.serving import experiment_of, means
from s11.validation.tables import read_table

ENGINES = {"vllm": "vllm", "trtllm": "tensorrt-llm", "sglang": "sglang"}
START = (0.5, 0.02)  # ms a step, ms a sequence
MOST = (5.0, 0.2)
LOSS_SCALE = 0.05
STEP = 0.05  # of the differences that stand for slopes: TPOT moves in small jumps


class Runs:
    """One engine's measured runs whose KV pool is large enough, ready to be simulated."""

    def __init__(self, folder: Path, backend: str) -> None:
        table = read_table(folder / FILE, COLUMNS)
        chosen = table.where(np.asarray(table.texts("backend") == backend))
        runs = [serving_run(chosen, row) for row in range(chosen.rows)]
        experiments = [experiment_of(run) for run in runs]
        kept = [row for row, one in enumerate(experiments) if not means(simulate(one)).kv_exhausted]
        self.measured_ms = chosen.numbers("mean_tpot_ms")[kept]  # (runs,)
        self.tensor_parallel = np.array([runs[row].deployment.tensor_parallel for row in kept])
        self.experiments = [experiments[row] for row in kept]

    def log_ratios(self, host: Sequence[float]) -> NDArray[np.float64]:  # (runs,)
        """Return the logarithms of simulated over measured TPOT."""
        overhead = HostOverhead(step_ms=float(host[0]), sequence_ms=float(host[1]))
        simulated = [means(simulate(on_host(one, overhead))).tpot_ms for one in self.experiments]
        return np.log(np.array(simulated) / self.measured_ms)


def on_host(experiment: Experiment, overhead: HostOverhead) -> Experiment:
    """Return the experiment with another host, the kernels that are tabulated kept."""
    cost = experiment.cost
    assert isinstance(cost, RooflineCost)
    cost.kernels.host = overhead
    cost.kernels.forget_rows()
    return replace(experiment, cost=cost)


def fitted(runs: Runs, chosen: NDArray[np.bool_] | None = None) -> tuple[float, float]:
    """Return the host's milliseconds for a step and for a sequence, of some of the runs."""
    rows = np.ones(len(runs.experiments), dtype=bool) if chosen is None else chosen

    def residuals(host: NDArray[np.float64]) -> NDArray[np.float64]:
        return runs.log_ratios(host.tolist())[rows]

    found = least_squares(
        residuals,
        START,
        bounds=((0.0, 0.0), MOST),
        x_scale=START,
        diff_step=[STEP, STEP],
        loss="soft_l1",
        f_scale=LOSS_SCALE,
        xtol=1e-3,
        ftol=1e-3,
    )
    return float(found.x[0]), float(found.x[1])


def error_pct(log_ratios: NDArray[np.float64]) -> float:
    """Return the mean absolute error in percent."""
    return float(100 * np.abs(np.expm1(log_ratios)).mean())


def fit(folder: Path) -> dict[str, Any]:
    """Return the host constants of each engine that was measured."""
    hosts: dict[str, Any] = {}
    for backend, engine in ENGINES.items():
        runs = Runs(folder, backend)
        if not runs.experiments:
            continue
        step_ms, sequence_ms = fitted(runs)
        hosts[engine] = {
            "step_ms": step_ms,
            "sequence_ms": sequence_ms,
            "points": len(runs.experiments),
            "mean_abs_error_pct": round(error_pct(runs.log_ratios((step_ms, sequence_ms))), 2),
        }
    return hosts


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    folder = parser.parse_args().measured
    for backend in ENGINES:
        runs = Runs(folder, backend)
        if not runs.experiments:
            continue
        host = fitted(runs)
        print(f"{backend}: {host}, {error_pct(runs.log_ratios(host)):.2f}%")
        for size in np.unique(runs.tensor_parallel):
            out = runs.tensor_parallel == size
            if math.isclose(out.mean(), 1):
                continue
            other = fitted(runs, ~out)
            left = error_pct(runs.log_ratios(other)[out])
            print(f"  without TP {size}: {other}; on it {left:.2f}%")


if __name__ == "__main__":
    main()
