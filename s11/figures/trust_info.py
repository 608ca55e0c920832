"""Predicted against measured, quantity by quantity: what the trust page draws and says."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.catalog import GPUS, gpu_of_measured
from s11.validation.errors import ErrorRow
from s11.validation.snapshot import Points, Snapshot

BAND_PCT = 10.0
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Quantity:
    """What of which measured table; `group`: which of its rows, None for each group apart."""

    title: str
    file: str
    quantity: str
    group: str | None
    what: str


QUANTITIES = {
    quantity.title: quantity
    for quantity in (
        Quantity("TPOT", "end_to_end.csv", "mean_tpot_ms", None, "mean of a whole serving run"),
        Quantity(
            "Request latency", "end_to_end.csv", "latency_ms", None, "mean of a whole serving run"
        ),
        Quantity("TTFT", "end_to_end.csv", "mean_ttft_ms", None, "mean of a whole serving run"),
        Quantity("Dense products", "gemm.csv", "latency_ms", "all", "one product of a layer"),
        Quantity(
            "Prefill attention",
            "prefill_attention.csv",
            "latency_ms",
            "all",
            "whole prompts, a layer",
        ),
        Quantity(
            "Decode attention", "decode_attention.csv", "latency_ms", "all", "one step, one layer"
        ),
        Quantity(
            "Layer's products", "layer_linear.csv", "gemm_ms_per_layer", "all", "four of a layer"
        ),
        Quantity(
            "Layer's elementwise",
            "layer_linear.csv",
            "elementwise_ms_per_layer",
            "all",
            "norms, rotary, activation",
        ),
        Quantity("All-reduce", "allreduce.csv", "latency_ms", "all", "one, over 2 to 8 GPUs"),
    )
}
ENGINES = {"vllm": "vLLM", "trtllm": "TensorRT-LLM", "sglang": "SGLang"}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Series:
    """One GPU's points, and their errors over all rows, drawn or not."""

    name: str
    gpu: str  # of the catalog
    group: str
    measured: Floats  # (points,) ms
    predicted: Floats  # (points,) ms
    labels: tuple[str, ...]
    errors: ErrorRow

    @property
    def error_pct(self) -> Floats:  # (points,)
        """Return how far off each drawn point is, above 0 where the model says too much."""
        off: Floats = 100.0 * (self.predicted / self.measured - 1.0)
        return off


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrustInfo:
    """All series of one quantity, and the range that both axes share."""

    quantity: Quantity
    series: tuple[Series, ...]
    lowest_ms: float
    highest_ms: float
    constants_date: str

    @property
    def drawn(self) -> int:
        """Return how many points are drawn."""
        return sum(len(series.measured) for series in self.series)

    @property
    def total(self) -> int:
        """Return how many points the errors are of."""
        return sum(series.errors.points for series in self.series)

    @property
    def within_band(self) -> int:
        """Return how many of the drawn points are at most BAND_PCT off."""
        return sum(int((np.abs(s.error_pct) <= BAND_PCT).sum()) for s in self.series)


def gpu_title(measured_name: str) -> str:
    """Return a GPU's title in the catalog."""
    return GPUS[gpu_of_measured(measured_name)].title


def group_title(group: str) -> str:
    """Return a group of rows as people read it: "vLLM, KV exhausted"."""
    engine, comma, rest = group.partition(", ")
    return ENGINES.get(engine, engine) + comma + rest


def trust_info(snapshot: Snapshot, title: str) -> TrustInfo:
    """Return what to draw of one of QUANTITIES; no series where the snapshot has none."""
    quantity = QUANTITIES[title]
    rows = {(row.file, row.gpu, row.quantity, row.group): row for row in snapshot.rows}
    series = tuple(
        _series(points, rows[points.file, points.gpu, points.quantity, points.group])
        for points in snapshot.points
        if (points.file, points.quantity) == (quantity.file, quantity.quantity)
        and quantity.group in (None, points.group)
    )
    values = [array for one in series for array in (one.measured, one.predicted)]
    joined = np.concatenate(values) if values else np.array([1.0])
    return TrustInfo(
        quantity=quantity,
        series=series,
        lowest_ms=float(joined.min()) / 1.25,
        highest_ms=float(joined.max()) * 1.25,
        constants_date=snapshot.constants_date,
    )


def _series(points: Points, errors: ErrorRow) -> Series:
    gpu = gpu_of_measured(points.gpu)
    name = GPUS[gpu].title
    if points.group != "all":
        name += f", {group_title(points.group)}"
    if not points.calibrated:
        name += " (not calibrated)"
    return Series(
        name=name,
        gpu=gpu,
        group=points.group,
        measured=points.measured,
        predicted=points.predicted,
        labels=points.labels,
        errors=errors,
    )


def log_ticks(lowest: float, highest: float) -> tuple[list[float], list[str]]:
    """Return ticks of a logarithmic axis: powers of ten, with 2 and 5 on a short one."""
    first, last = math.floor(math.log10(lowest)), math.ceil(math.log10(highest))
    steps = (1, 2, 5) if math.log10(highest / lowest) <= 2.2 else (1,)
    values = [step * 10.0**power for power in range(first, last + 1) for step in steps]
    values = [value for value in values if lowest <= value <= highest]
    return values, [f"{value:,.0f}" if value >= 1 else f"{value:.6g}" for value in values]


def pct(value: float) -> str:
    """Return a percentage as people read it."""
    return f"{value:.1f}%"


def sentence(info: TrustInfo) -> str:
    """Return the quantity's errors in words, with their numbers."""
    if not info.series:
        return f"{info.quantity.title}: nothing was measured."
    told = [
        f"{series.name}: mean **{pct(series.errors.mean_abs_error_pct)}**, "
        f"median {pct(series.errors.median_abs_error_pct)}, "
        f"nine of ten within {pct(series.errors.p90_abs_error_pct)}, {_bias(series.errors)} "
        f"({series.errors.points:,} points)"
        for series in info.series
    ]
    drawn, rest = f"{info.drawn:,} points", ""
    if info.drawn < info.total:
        drawn += f" drawn (of {info.total:,}, thinned evenly over the measured times)"
        rest = "; the errors above are over all"
    lines = "".join(f"\n- {line}" for line in told)
    return (
        f"{info.quantity.title} ({info.quantity.what}), off by:\n{lines}\n\n"
        f"{info.within_band:,} of the {drawn} lie within ±{BAND_PCT:.0f}%{rest}."
    )


def _bias(errors: ErrorRow) -> str:
    if abs(errors.bias_pct) < 0.05:
        return "no bias"
    more = "much" if errors.bias_pct > 0 else "little"
    return f"on average {pct(abs(errors.bias_pct))} too {more}"


def trust_alt(info: TrustInfo) -> str:
    """Return the errors for those who cannot see the picture."""
    told = [
        f"{series.name}: mean absolute error {pct(series.errors.mean_abs_error_pct)}, median "
        f"{pct(series.errors.median_abs_error_pct)}, p90 {pct(series.errors.p90_abs_error_pct)}, "
        f"bias {series.errors.bias_pct:+.1f}%, {series.errors.points:,} points"
        for series in info.series
    ]
    return (
        f"{info.quantity.title}, predicted against measured. {'. '.join(told) or 'No points'}. "
        f"{info.within_band:,} of {info.drawn:,} points drawn lie within {BAND_PCT:.0f}%."
    )


def point_columns(info: TrustInfo) -> dict[str, list[object]]:
    """Return the drawn points as columns of one length."""
    columns: dict[str, list[object]] = {
        name: [] for name in ("series", "what", "measured_ms", "predicted_ms", "error_pct")
    }
    for series in info.series:
        points = len(series.measured)
        columns["series"] += [series.name] * points
        columns["what"] += list(series.labels) or [info.quantity.what] * points
        columns["measured_ms"] += series.measured.tolist()
        columns["predicted_ms"] += series.predicted.tolist()
        columns["error_pct"] += np.round(series.error_pct, 2).tolist()
    return columns
