"""The fitted constants that ship with the package, and who inherits whose.

constants.json is written by scripts/calibrate.py; nobody edits it by hand.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, fields
from functools import cache, lru_cache
from importlib import resources
from typing import Any, TypeVar

from s11.catalog import GPUS, PRECISIONS
from s11.checks import require_choice
from s11.costs.all_reduce import AllReduceConstants
from s11.costs.attention_kernels import DecodeAttentionConstants, PrefillAttentionConstants
from s11.costs.gemm import GemmConstants
from s11.costs.linear_operators import ElementwiseConstants

SCHEMA_VERSION = 1
FIT_NOTES = {"points", "mean_abs_error_pct"}  # how well it was fitted stands beside each constant
MEASURED_FOR_CALIBRATED = ("gemm", "prefill_attention", "decode_attention")

Constants = TypeVar("Constants")


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelConstants:
    """All kernels' constants of one GPU and precision.

    calibrated: whether products and attention were measured on this very GPU and precision.
    inherits: the nearest GPU of its family, which fills first what was not measured; None: all was
        measured.
    owners: the measured GPU behind each kernel, as (kernel, gpu): the GPU itself, or whose
        efficiencies it takes.
    gemm, lm_head: products of today's engine, in this precision and in bf16.
    layer_linear: bf16 products of the older harness behind layer_linear.csv.
    """

    gpu: str
    precision: str
    calibrated: bool
    inherits: str | None
    owners: tuple[tuple[str, str], ...]
    gemm: GemmConstants
    lm_head: GemmConstants
    layer_linear: GemmConstants
    elementwise: ElementwiseConstants
    prefill_attention: PrefillAttentionConstants
    decode_attention: DecodeAttentionConstants
    all_reduce: AllReduceConstants

    @property
    def inherited_kernels(self) -> tuple[str, ...]:
        """The kernels that were not measured on this GPU."""
        return tuple(kernel for kernel, owner in self.owners if owner != self.gpu)


@lru_cache(maxsize=64)
def constants_of(gpu: str, precision: str) -> KernelConstants:
    """Return the constants of a GPU of the catalog, inherited where they were not measured.

    In fp8, a GPU without fp8 constants computes with its bf16 ones on fp8 weights.

    Raises:
        ValueError: a GPU or a precision that is not in the catalog.
    """
    require_choice("gpu", gpu, tuple(GPUS))
    require_choice("precision", precision, PRECISIONS)
    found = {
        "gemm": _products(gpu, ("gemm", "layer_linear"), precision),
        "lm_head": _products(gpu, ("gemm", "layer_linear"), "bf16"),
        "layer_linear": _products(gpu, ("layer_linear", "gemm"), "bf16"),
        "elementwise": _kernel(gpu, "elementwise"),
        "prefill_attention": _kernel(gpu, "prefill_attention"),
        "decode_attention": _kernel(gpu, "decode_attention"),
        "all_reduce": _all_reduce(gpu),
    }
    owners = tuple((kernel, owner) for kernel, (owner, _) in found.items())
    inherited = {kernel for kernel, owner in owners if owner != gpu}
    fp8_measured = precision == "bf16" or precision in _table()[gpu].get("gemm", {})
    return KernelConstants(
        gpu=gpu,
        precision=precision,
        calibrated=fp8_measured and inherited.isdisjoint(MEASURED_FOR_CALIBRATED),
        inherits=_table()[gpu].get("inherits") if inherited else None,
        owners=owners,
        gemm=_read(GemmConstants, found["gemm"][1]),
        lm_head=_read(GemmConstants, found["lm_head"][1]),
        layer_linear=_read(GemmConstants, found["layer_linear"][1]),
        elementwise=_read(ElementwiseConstants, found["elementwise"][1]),
        prefill_attention=_read(PrefillAttentionConstants, found["prefill_attention"][1]),
        decode_attention=_read(DecodeAttentionConstants, found["decode_attention"][1]),
        all_reduce=_read(AllReduceConstants, found["all_reduce"][1]),
    )


@cache
def document() -> dict[str, Any]:
    """Return constants.json as it ships: schema_version, date, sources, gpus.

    Raises:
        ValueError: of another schema version.
    """
    text = resources.files("s11.costs").joinpath("constants.json").read_text(encoding="utf-8")
    read: dict[str, Any] = json.loads(text)
    if read.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"schema_version: {read.get('schema_version')!r} (allowed: {SCHEMA_VERSION})"
        )
    return read


def _table() -> dict[str, Any]:
    gpus: dict[str, Any] = document()["gpus"]
    return gpus


def _kernel(gpu: str, kernel: str) -> tuple[str, dict[str, float]]:
    """Return the nearest GPU that was measured, and its constants."""
    owner = gpu
    while kernel not in _table()[owner]:
        owner = _table()[owner]["inherits"]
    return owner, _table()[owner][kernel]


def _all_reduce(gpu: str) -> tuple[str, dict[str, float]]:
    """Return the nearest GPU measured over the same kind of link, and its constants.

    NVLink's latencies and shares say nothing of PCIe: the kind of link goes before the family.
    """
    nearest = [gpu]
    while "inherits" in _table()[nearest[-1]]:
        nearest.append(_table()[nearest[-1]]["inherits"])
    for owner in (*nearest, *GPUS):
        same_link = GPUS[owner].interconnect == GPUS[gpu].interconnect
        if same_link and "all_reduce" in _table()[owner]:
            return owner, _table()[owner]["all_reduce"]
    return _kernel(gpu, "all_reduce")


def _products(gpu: str, kernels: tuple[str, ...], precision: str) -> tuple[str, dict[str, float]]:
    """Return the nearest GPU with products measured, and its constants of the first kernel."""
    owner = gpu
    while not any(kernel in _table()[owner] for kernel in kernels):
        owner = _table()[owner]["inherits"]
    by_precision = next(_table()[owner][kernel] for kernel in kernels if kernel in _table()[owner])
    return owner, by_precision.get(precision, by_precision["bf16"])


def _read(kind: type[Constants], values: dict[str, float]) -> Constants:
    names = {field.name for field in fields(kind)}  # type: ignore[arg-type]
    unknown = set(values) - names - FIT_NOTES
    if unknown:
        raise ValueError(f"{kind.__name__}: unknown {sorted(unknown)} (allowed: {sorted(names)})")
    return kind(**{name: value for name, value in values.items() if name in names})
