"""Errors of the fits on shapes that they have not seen, from the calibrations' own halves."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import groupby
from pathlib import Path

import numpy as np

from s11.costs import RooflineCost
from s11.validation.end_to_end import FILE
from s11.validation.leave_out import LeftOut, mean_pct
from scripts import calibrate_attention, calibrate_host, calibrate_linear

GEMM = "gemm.csv"
LINEAR = {  # kernel -> file, quantity, what is left out
    "gemm": (GEMM, "latency_ms", "every second shape of the weights"),
    "layer_linear": ("layer_linear.csv", "gemm_ms_per_layer", "every second model"),
    "elementwise": ("layer_linear.csv", "elementwise_ms_per_layer", "every second model"),
}


def left_out(measured: Path) -> list[LeftOut]:
    """Return every error; dense products also over both precisions."""
    linear = list(_linear(measured))
    products = [row for row in linear if row.file == GEMM]
    found = [row for row in linear if row.file != GEMM]
    for _, group in groupby(products, key=lambda row: row.gpu):
        of_gpu = list(group)
        mean = mean_pct(of_gpu)
        assert mean is not None
        points = sum(row.points for row in of_gpu)
        found.append(replace(of_gpu[0], group="all", points=points, mean_abs_error_pct=mean))
        found += of_gpu if len(of_gpu) > 1 else []
    found += _attention(measured)
    found += _hosts(measured)
    return sorted(found, key=lambda row: (row.file, row.gpu, row.quantity, row.group, row.what))


def _linear(measured: Path) -> Iterator[LeftOut]:
    for task in calibrate_linear.tasks(measured):
        file, quantity, what = LINEAR[task["kernel"]]
        yield LeftOut(
            file=file,
            gpu=task["gpu"],
            quantity=quantity,
            group=task["precision"] if file == GEMM else "all",
            what=what,
            points=len(task["rows"]),
            mean_abs_error_pct=calibrate_linear.leave_out(task),
        )


def _attention(measured: Path) -> Iterator[LeftOut]:
    for kernel, by_gpu in calibrate_attention.read_tables(measured).items():
        shape = "message size" if kernel == "all_reduce" else "head configuration"
        for gpu, rows in by_gpu.items():
            _, predict, _, _ = calibrate_attention.kernel_of(kernel, gpu)
            graded = calibrate_attention.graded(rows, predict)
            yield LeftOut(
                file=calibrate_attention.TABLES[kernel],
                gpu=gpu,
                quantity="latency_ms",
                group="0.05 ms and more" if kernel == "decode_attention" else "all",
                what=f"every second {shape}",
                points=len(graded),
                mean_abs_error_pct=calibrate_attention.leave_out_pct(rows, gpu, kernel),
            )


def _hosts(measured: Path) -> Iterator[LeftOut]:
    """Leave out all runs over so many GPUs, size by size."""
    for backend in calibrate_host.ENGINES:
        runs = calibrate_host.Runs(measured, backend)
        sizes = np.unique(runs.tensor_parallel).tolist()
        for size in sizes if len(sizes) > 1 else []:
            out = runs.tensor_parallel == size
            host = calibrate_host.fitted(runs, ~out)
            costs = (one.cost for one in runs.experiments)
            (gpu,) = {cost.deployment.gpu for cost in costs if isinstance(cost, RooflineCost)}
            yield LeftOut(
                file=FILE,
                gpu=gpu,
                quantity="mean_tpot_ms",
                group=backend,
                what=f"the runs on {size} GPUs",
                points=int(out.sum()),
                mean_abs_error_pct=calibrate_host.error_pct(runs.log_ratios(host)[out]),
            )
