"""Fit the constants of attention and all-reduce on measured kernels.

Run alone it prints the error tables: python -m scripts.calibrate_attention MEASURED_DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from s11.catalog import GPUS, gpu_of_measured
from s11.costs.all_reduce import AllReduceConstants, all_reduce_ms
from s11.costs.attention_kernels import (
    DecodeAttentionConstants,
    PrefillAttentionConstants,
    decode_attention_ms,
    prefill_attention_ms,
)
from scripts.sarathi_a6000 import fit_a6000, rounded

Array: TypeAlias = NDArray[np.float64]
Constants: TypeAlias = dict[str, float]
Bounds: TypeAlias = dict[str, tuple[float, float, float]]  # name -> start, lowest, highest
Predict: TypeAlias = Callable[[pd.DataFrame, str, Constants], Array]

TABLES = {
    "prefill_attention": "prefill_attention.csv",
    "decode_attention": "decode_attention.csv",
    "all_reduce": "allreduce.csv",
}
HEAD_DIM = 128  # of every measured attention row
SHORT_DECODE_MS = 0.05  # below, launch jitter rules
SHORT_DECODE_WEIGHT = 0.4
LOSS_SCALE = 0.1  # residuals beyond 10% count less than squared

PREFILL_BOUNDS: Bounds = {
    "compute_share": (0.6, 0.05, 1.0),
    "tail_share": (0.8, 0.0, 2.0),
    "floor_ms": (0.01, 0.001, 0.1),
    "io_passes": (1.0, 0.0, 3.0),
    "write_passes": (1.0, 0.0, 6.0),
    "token_ns": (3.0, 0.0, 20.0),
}
DECODE_BOUNDS: Bounds = {
    "bandwidth_share": (0.85, 0.3, 1.0),
    "compute_share": (0.5, 0.05, 1.0),
    "floor_ms": (0.01, 0.001, 0.1),
    "split_ms": (0.005, 0.0, 0.05),
    "ramp_ms": (0.005, 0.0, 0.05),
    "block_us": (0.5, 0.0, 5.0),
    "l2_speed": (3.0, 1.0, 8.0),
}
ALL_REDUCE_BOUNDS: Bounds = {
    "latency_ms": (0.005, 0.001, 0.05),
    "latency_ms_per_gpu": (0.0002, 0.0, 0.01),
    "bandwidth_share": (0.3, 0.01, 1.0),
    "ring_latency_ms": (0.02, 0.0, 0.5),
    "ring_bandwidth_share": (0.3, 0.01, 1.0),
}


def prefill_ms(rows: pd.DataFrame, gpu: str, constants: Constants) -> Array:
    """Predict rows of prefill_attention.csv."""
    predicted: Array = prefill_attention_ms(
        _column(rows, "batch_size"),
        _column(rows, "prompt_tokens"),
        q_heads=_column(rows, "q_heads"),
        kv_heads=_column(rows, "kv_heads"),
        head_dim=HEAD_DIM,
        gpu=GPUS[gpu],
        constants=PrefillAttentionConstants(**constants),
    )
    return predicted


def decode_ms(rows: pd.DataFrame, gpu: str, constants: Constants) -> Array:
    """Predict rows of decode_attention.csv."""
    sequences = _column(rows, "batch_size")
    predicted: Array = decode_attention_ms(
        sequences,
        sequences * _column(rows, "context_tokens"),
        q_heads=_column(rows, "q_heads"),
        kv_heads=_column(rows, "kv_heads"),
        head_dim=HEAD_DIM,
        gpu=GPUS[gpu],
        constants=DecodeAttentionConstants(**constants),
        repeated=True,
    )
    return predicted


def reduce_ms(rows: pd.DataFrame, gpu: str, constants: Constants) -> Array:
    """Predict rows of allreduce.csv."""
    predicted: Array = all_reduce_ms(
        _column(rows, "message_bytes"),
        gpu=GPUS[gpu],
        num_gpus=_column(rows, "num_gpus"),
        constants=AllReduceConstants(**constants),
    )
    return predicted


def fit_rows(
    rows: pd.DataFrame, gpu: str, predict: Predict, bounds: Bounds, fixed: Constants
) -> Constants:
    """Return the constants that fit log(latency) best, `fixed` among them; deterministic."""
    measured_ms = _column(rows, "latency_ms")
    weights = np.ones_like(measured_ms)
    if predict is decode_ms:
        weights[measured_ms < SHORT_DECODE_MS] = SHORT_DECODE_WEIGHT
    free = {name: bound for name, bound in bounds.items() if name not in fixed}
    start, lowest, highest = (np.array(column) for column in zip(*free.values(), strict=True))

    def constants(values: Array) -> Constants:
        return dict(zip(free, values.tolist(), strict=True)) | fixed

    def residuals(values: Array) -> Array:
        logs: Array = np.log(predict(rows, gpu, constants(values)) / measured_ms)
        return weights * logs

    solved = least_squares(
        residuals,
        start,
        bounds=(lowest, highest),
        x_scale=np.maximum(start, 1e-3),
        loss="soft_l1",
        f_scale=LOSS_SCALE,
    )
    return {name: rounded(value) for name, value in constants(solved.x).items()}


def error_pct(rows: pd.DataFrame, gpu: str, predict: Predict, constants: Constants) -> Array:
    """Return the signed error of each row, in percent of the measured time."""
    measured_ms = _column(rows, "latency_ms")
    return 100 * (predict(rows, gpu, constants) / measured_ms - 1)


def graded(rows: pd.DataFrame, predict: Predict) -> pd.DataFrame:
    """Return the rows whose error counts: decode from SHORT_DECODE_MS, else all."""
    return rows[rows["latency_ms"] >= SHORT_DECODE_MS] if predict is decode_ms else rows


def kernel_of(kernel: str, gpu: str) -> tuple[str, Predict, Bounds, Constants]:
    """Return a kernel's table, prediction, bounds, and the constants that its code fixes."""
    # vLLM runs FlashAttention-3 on Hopper, FlashAttention-2 on Ampere and Ada.
    hopper = GPUS[gpu].family == "hopper"
    # FlashAttention-3 always may split, so its split_ms is part of floor_ms; and its padded
    # tiles never bound a measured row, so they get the share that a prompt's tiles reach.
    flash_3 = {"unsplit_multi_head": 0.0, "split_ms": 0.0, "compute_share": 0.7}
    return {
        "prefill_attention": (
            TABLES["prefill_attention"],
            prefill_ms,
            PREFILL_BOUNDS,
            {"splits_and_packs": float(hopper)},
        ),
        "decode_attention": (
            TABLES["decode_attention"],
            decode_ms,
            DECODE_BOUNDS,
            flash_3 if hopper else {"unsplit_multi_head": 1.0},
        ),
        # Over PCIe only two GPUs go peer-to-peer, so no row tells what a third would add.
        "all_reduce": (
            TABLES["all_reduce"],
            reduce_ms,
            ALL_REDUCE_BOUNDS,
            {} if GPUS[gpu].interconnect == "NVLink" else {"latency_ms_per_gpu": 0.0},
        ),
    }[kernel]


def read_tables(measured: Path) -> dict[str, dict[str, pd.DataFrame]]:
    """Return kernel -> catalog GPU -> its rows, of the tables that `measured` has."""
    tables: dict[str, dict[str, pd.DataFrame]] = {}
    for kernel, file in TABLES.items():
        if (measured / file).is_file():
            table = pd.read_csv(measured / file)
            names = table["gpu"].map(gpu_of_measured)
            tables[kernel] = {str(gpu): table[names == gpu] for gpu in sorted(set(names))}
    return tables


def fit(measured: Path) -> dict[str, Any]:
    """Return gpu -> kernel -> constants, points and mean absolute error, for all GPUs measured.

    "a6000" (with a "source" beside its kernels) is there wherever the A100's attention is.
    """
    fitted: dict[str, Any] = {}
    constants_of: dict[str, dict[str, Constants]] = {}
    for kernel, by_gpu in read_tables(measured).items():
        for gpu, rows in by_gpu.items():
            _, predict, bounds, fixed = kernel_of(kernel, gpu)
            constants = fit_rows(rows, gpu, predict, bounds, fixed)
            counted = graded(rows, predict)
            errors = np.abs(error_pct(counted, gpu, predict, constants))
            constants_of.setdefault(gpu, {})[kernel] = constants
            fitted.setdefault(gpu, {})[kernel] = {
                **constants,
                "points": len(counted),
                "mean_abs_error_pct": round(float(errors.mean()), 2),
            }
    a100 = constants_of.get("a100-80", {})
    if {"prefill_attention", "decode_attention"} <= a100.keys():
        fitted["a6000"] = fit_a6000(a100)
    return fitted


def leave_out_pct(rows: pd.DataFrame, gpu: str, kernel: str) -> float:
    """Return the mean absolute error on shapes that the fit has not seen, in percent.

    Every second head configuration (all-reduce: message size) is left out; then the others are.
    """
    _, predict, bounds, fixed = kernel_of(kernel, gpu)
    shape = ["message_bytes"] if kernel == "all_reduce" else ["q_heads", "kv_heads"]
    odd = rows.groupby(shape).ngroup().to_numpy() % 2 == 1
    errors = []
    for left_out in (odd, ~odd):
        constants = fit_rows(rows[~left_out], gpu, predict, bounds, fixed)
        counted = graded(rows[left_out], predict)
        errors.append(np.abs(error_pct(counted, gpu, predict, constants)))
    return float(np.concatenate(errors).mean())


def main() -> None:
    """Print the errors of each kernel and GPU: of the fit, by size, and on shapes left out."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path, help="a folder with the measured tables")
    tables = read_tables(parser.parse_args().measured)
    print(f"{'kernel':18} {'gpu':8} points   mean median    p90   bias  left out   small rows")
    for kernel, by_gpu in tables.items():
        for gpu, rows in by_gpu.items():
            _, predict, bounds, fixed = kernel_of(kernel, gpu)
            constants = fit_rows(rows, gpu, predict, bounds, fixed)
            counted = graded(rows, predict)
            errors = error_pct(counted, gpu, predict, constants)
            sizes = np.abs(errors)
            short = rows.drop(counted.index)
            beyond = (
                f"{np.abs(error_pct(short, gpu, predict, constants)).mean():5.1f}% of {len(short)}"
                if len(short)
                else ""
            )
            print(
                f"{kernel:18} {gpu:8} {len(counted):6} {sizes.mean():5.1f}%"
                f" {np.median(sizes):5.1f}% {np.quantile(sizes, 0.9):5.1f}% {errors.mean():+5.1f}%"
                f" {leave_out_pct(rows, gpu, kernel):8.1f}%   {beyond}"
            )


def _column(rows: pd.DataFrame, name: str) -> Array:
    return rows[name].to_numpy(dtype=np.float64)


if __name__ == "__main__":
    main()
