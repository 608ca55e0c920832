"""Fit the constants of dense products and elementwise operators on measured kernels.

Run alone it prints the error tables: python -m scripts.calibrate_linear MEASURED_DIR
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import pandas as pd
from numpy.typing import NDArray
from scipy.optimize import least_squares

from s11.catalog import GPUS, Model, gpu_of_measured
from s11.costs.gemm import GemmConstants, gemm_ms
from s11.costs.linear_operators import ElementwiseConstants, elementwise_ms, layer_linear_ms

Array: TypeAlias = NDArray[np.float64]
Bounds: TypeAlias = dict[str, tuple[float, float, float]]  # name -> start, lowest, highest
Predict: TypeAlias = Callable[[pd.DataFrame, str, Any], Array]

WEIGHT_COPIES = 6  # the harness behind gemm.csv runs six layers of the same shape in turn
LOSS_SCALE = 0.1  # residuals beyond 10% count less than squared
AT_BOUND = 1e-5  # of the range: a constant so near its bound is at it
# Half of the L2 where it is two partitions that each keep a copy (NVIDIA, A100 whitepaper).
L2_RESIDENT_SHARE = {"a100-80": 0.5, "h100": 0.5}
PRODUCT_BOUNDS: Bounds = {
    "compute_efficiency": (0.85, 0.3, 1.0),
    "memory_efficiency": (0.8, 0.3, 0.95),
    "launch_ms": (0.003, 0.0005, 0.02),
    "roofline_exponent": (3.0, 1.2, 12.0),
    "flops_per_l2_byte": (80.0, 20.0, 400.0),
}
TILE_BOUNDS: Bounds = {"tile_ms": (0.002, 0.0, 0.02)}
WAVE_BOUNDS: Bounds = {"wave_quantisation": (0.7, 0.0, 1.0)}
THROTTLE_BOUNDS: Bounds = {"throttle": (0.1, 0.0, 0.6)}
QUANTISE_BOUNDS: Bounds = {"quantise_ms_per_row": (5e-6, 0.0, 5e-5)}
HOPPER_FP8_BOUNDS: Bounds = {
    "quantise_efficiency": (0.8, 0.2, 1.0),
    "partial_tile_rows": (4.0, 0.0, 20.0),
}
# What the data do not tell apart from the rest is left out of a fit, so that none has more than
# eight constants: these stand for it.
NO_TILE, WHOLE_WAVES, NO_THROTTLE = {"tile_ms": 0.0}, {"wave_quantisation": 1.0}, {"throttle": 0.0}
ELEMENTWISE_LAUNCH_MS = 0.0065  # five kernels; each of three GPUs, fitted freely, says 6 to 7 us
ELEMENTWISE_BOUNDS: Bounds = {
    "memory_efficiency": (0.6, 0.1, 1.0),
    "row_efficiency": (0.5, 0.05, 2.0),
    "exponent": (2.0, 1.0, 8.0),
    "l2_speed": (1.3, 1.0, 4.0),
}


def predict_gemm(rows: pd.DataFrame, gpu: str, constants: GemmConstants) -> Array:
    m, n, k = (rows[name].to_numpy() for name in ("m", "n", "k"))
    predicted: Array = gemm_ms(
        m,
        n,
        k,
        gpu=GPUS[gpu],
        constants=constants,
        fp8=rows.dtype.iloc[0] == "fp8",
        weight_copies=WEIGHT_COPIES,
    )
    return predicted


def model_of(row: Any) -> Model:
    return Model(
        name="measured",
        title="measured",
        layers=1,
        hidden=int(row.hidden),
        ffn=int(row.ffn),
        heads=int(row.heads),
        kv_heads=int(row.kv_heads),
        head_dim=int(row.hidden) // int(row.heads),
        gated=bool(row.gated),
        vocab=int(row.vocab),
        tied_embeddings=False,
        max_positions=4096,
    )


SHAPE = ["hidden", "ffn", "heads", "kv_heads", "gated", "vocab", "tp"]


def _by_model(rows: pd.DataFrame, predict: Callable[[Array, Model, int], Array]) -> Array:
    predicted = np.empty(len(rows))
    for places in rows.reset_index(drop=True).groupby(SHAPE).indices.values():
        row = rows.iloc[places[0]]
        tokens = rows.tokens.to_numpy()[places]
        predicted[places] = predict(tokens, model_of(row), int(row.tp))
    return predicted


def predict_layer_linear(rows: pd.DataFrame, gpu: str, constants: GemmConstants) -> Array:
    return _by_model(
        rows,
        lambda tokens, model, size: layer_linear_ms(
            tokens,
            model=model,
            tensor_parallel=size,
            gpu=GPUS[gpu],
            constants=constants,
            fp8=False,
        ),
    )


def predict_elementwise(rows: pd.DataFrame, gpu: str, constants: ElementwiseConstants) -> Array:
    return _by_model(
        rows,
        lambda tokens, model, size: elementwise_ms(
            tokens, model=model, tensor_parallel=size, gpu=GPUS[gpu], constants=constants
        ),
    )


def fit_kernel(
    rows: pd.DataFrame,
    measured_ms: Array,
    gpu: str,
    *,
    kind: type[Any],
    predict: Predict,
    bounds: Bounds,
    fixed: dict[str, float],
) -> dict[str, float]:
    """Least squares of log(predicted / measured), robust, from one fixed start."""
    start, low, high = (np.array(side) for side in zip(*bounds.values(), strict=True))
    scale = np.where(start > 0, start, high)

    def constants(point: Array) -> dict[str, float]:
        return fixed | dict(zip(bounds, map(float, point), strict=True))

    def residuals(point: Array) -> Array:
        return np.asarray(np.log(predict(rows, gpu, kind(**constants(point))) / measured_ms))

    solution = least_squares(
        residuals,
        start,
        bounds=(low, high),
        x_scale=scale,
        diff_step=[1e-4] * len(bounds),
        loss="soft_l1",
        f_scale=LOSS_SCALE,
        max_nfev=60,
    )
    settled = np.where(solution.x - low < AT_BOUND * (high - low), low, solution.x)
    settled = np.where(high - solution.x < AT_BOUND * (high - low), high, settled)
    return {name: float(f"{value:.6g}") for name, value in constants(settled).items()}


def relative_errors(
    rows: pd.DataFrame,
    measured_ms: Array,
    gpu: str,
    *,
    kind: type[Any],
    predict: Predict,
    constants: dict[str, float],
) -> Array:
    return np.asarray(predict(rows, gpu, kind(**constants)) / measured_ms - 1)


def tasks(measured: Path) -> Iterator[dict[str, Any]]:
    """Every fit: what it is called, its rows, and what to fit."""
    gemm = pd.read_csv(measured / "gemm.csv")
    for (name, dtype), rows in gemm.groupby(["gpu", "dtype"]):
        gpu = gpu_of_measured(str(name))
        fixed = {"l2_resident_share": L2_RESIDENT_SHARE.get(gpu, 1.0)}
        hopper = GPUS[gpu].family == "hopper"
        if dtype == "fp8" and hopper:
            bounds = PRODUCT_BOUNDS | QUANTISE_BOUNDS | HOPPER_FP8_BOUNDS
            fixed = fixed | NO_TILE | WHOLE_WAVES | NO_THROTTLE
        elif dtype == "fp8":
            bounds = PRODUCT_BOUNDS | TILE_BOUNDS | WAVE_BOUNDS | QUANTISE_BOUNDS
            fixed = fixed | NO_THROTTLE
        else:
            bounds = PRODUCT_BOUNDS | TILE_BOUNDS | WAVE_BOUNDS | THROTTLE_BOUNDS
            fixed = fixed | {"fine_tiles": float(hopper)}
        yield {
            "kernel": "gemm",
            "precision": "fp8" if dtype == "fp8" else "bf16",
            "gpu": gpu,
            "rows": rows,
            "measured_ms": rows.latency_ms.to_numpy(),
            "halves": ["n", "k"],
            "fit": {"kind": GemmConstants, "predict": predict_gemm},
            "space": {"bounds": bounds, "fixed": fixed},
        }
    layers = pd.read_csv(measured / "layer_linear.csv")
    for name, rows in layers.groupby("gpu"):
        gpu = gpu_of_measured(str(name))
        fixed = {"l2_resident_share": L2_RESIDENT_SHARE.get(gpu, 1.0)}
        common = {"gpu": gpu, "rows": rows, "halves": ["model"]}
        yield common | {
            "kernel": "layer_linear",
            "precision": "bf16",
            "measured_ms": rows.gemm_ms_per_layer.to_numpy(),
            "fit": {"kind": GemmConstants, "predict": predict_layer_linear},
            "space": {
                "bounds": PRODUCT_BOUNDS,
                "fixed": fixed | NO_TILE | WHOLE_WAVES | NO_THROTTLE,
            },
        }
        yield common | {
            "kernel": "elementwise",
            "precision": None,
            "measured_ms": rows.elementwise_ms_per_layer.to_numpy(),
            "fit": {"kind": ElementwiseConstants, "predict": predict_elementwise},
            "space": {
                "bounds": ELEMENTWISE_BOUNDS,
                "fixed": fixed | {"launch_ms": ELEMENTWISE_LAUNCH_MS},
            },
        }


def fit(measured: Path) -> dict[str, Any]:
    """Return {gpu: {"gemm": {precision: …}, "layer_linear": …, "elementwise": …}}."""
    fitted: dict[str, Any] = {}
    for task in tasks(measured):
        rows, measured_ms, gpu = task["rows"], task["measured_ms"], task["gpu"]
        constants = fit_kernel(rows, measured_ms, gpu, **task["fit"], **task["space"])
        errors = relative_errors(rows, measured_ms, gpu, **task["fit"], constants=constants)
        entry = constants | {
            "points": len(rows),
            "mean_abs_error_pct": round(float(np.abs(errors).mean() * 100), 2),
        }
        kernels = fitted.setdefault(gpu, {})
        if task["precision"]:
            kernels.setdefault(task["kernel"], {})[task["precision"]] = entry
        else:
            kernels[task["kernel"]] = entry
    return fitted


def leave_out(task: dict[str, Any]) -> float:
    """Mean absolute error in % on each half of the shapes (or models), fitted on the other."""
    rows, measured_ms, gpu = task["rows"], task["measured_ms"], task["gpu"]
    shape = rows.groupby(task["halves"]).ngroup().to_numpy()
    errors = np.empty(len(rows))
    for half in (0, 1):
        out = shape % 2 == half
        constants = fit_kernel(rows[~out], measured_ms[~out], gpu, **task["fit"], **task["space"])
        errors[out] = relative_errors(
            rows[out], measured_ms[out], gpu, **task["fit"], constants=constants
        )
    return float(np.abs(errors).mean() * 100)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("measured", type=Path)
    for task in tasks(parser.parse_args().measured):
        rows, measured_ms, gpu = task["rows"], task["measured_ms"], task["gpu"]
        constants = fit_kernel(rows, measured_ms, gpu, **task["fit"], **task["space"])
        errors = relative_errors(rows, measured_ms, gpu, **task["fit"], constants=constants) * 100
        print(
            f"{task['kernel']} {task['precision'] or ''} {gpu}: {len(rows)} points, "
            f"mean |error| {np.abs(errors).mean():.2f}%, bias {errors.mean():+.2f}%, "
            f"p90 {np.quantile(np.abs(errors), 0.9):.1f}%, left out {leave_out(task):.2f}%"
        )
        print("   ", {name: float(f"{value:.3g}") for name, value in constants.items()})
        sizes = rows.m if "m" in rows else rows.tokens
        by_rows = pd.Series(np.abs(errors)).groupby(sizes.to_numpy()).mean()
        bias = pd.Series(errors).groupby(sizes.to_numpy()).mean()
        print("   ", " ".join(f"{m}:{by_rows[m]:.1f}({bias[m]:+.1f})" for m in by_rows.index))


if __name__ == "__main__":
    main()
