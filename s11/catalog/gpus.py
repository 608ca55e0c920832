"""The catalog's GPUs: the peaks that a datasheet promises, never what a kernel reaches.

Rates are decimal, as datasheets print them (1 TB/s = 1e12 bytes/s), and dense: datasheets that
print rates with structured sparsity are halved. The interconnect is what one GPU sends, in one
direction: half of the bidirectional figure that datasheets print.

memory_bytes is not the name on the card: it is the total that the CUDA driver reports to
PyTorch, because an engine takes its share of that. An H100 of "80 GB" shows 81,559 MiB in
nvidia-smi and 79.18 GiB (85.02e9 bytes) to PyTorch. Drivers differ by up to 0.2 GiB.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from s11.catalog.source import (
    AD102,
    GA100,
    GA102,
    GB100,
    GH100,
    H100_MEMORY,
    Source,
    datasheet,
    reported_memory,
)

MIB, GIB = 2**20, 2**30
PCIE4_X16_BYTES_PER_S = 32e9


@dataclass(frozen=True, slots=True, kw_only=True)
class Gpu:
    """One GPU's datasheet peaks.

    family: "ampere", "ada", "hopper" or "blackwell".
    fp8_flops_per_s: None where the tensor cores have no fp8.
    interconnect: "NVLink" or "PCIe".
    sources: each number is among the fields of one of them.
    """

    name: str
    title: str
    family: str
    launch_year: int
    bf16_flops_per_s: float
    fp8_flops_per_s: float | None
    hbm_bytes_per_s: float
    memory_bytes: int
    sm_count: int
    l2_bytes: int
    interconnect: str
    interconnect_bytes_per_s: float
    sources: tuple[Source, ...]


def _reported(gib: float) -> tuple[int, Source]:
    return round(gib * GIB), reported_memory(gib)


def _gpu(*, memory: tuple[int, Source], sources: tuple[Source, ...], **fields: Any) -> Gpu:
    memory_bytes, source = memory
    return Gpu(memory_bytes=memory_bytes, sources=(*sources, source), **fields)


_ALL = (
    _gpu(
        name="a100-40",
        title="A100 40 GB SXM",
        family="ampere",
        launch_year=2020,
        bf16_flops_per_s=312e12,
        fp8_flops_per_s=None,
        hbm_bytes_per_s=1.555e12,
        memory=_reported(39.49),
        sm_count=108,
        l2_bytes=40 * MIB,
        interconnect="NVLink",
        interconnect_bytes_per_s=300e9,
        sources=(datasheet("A100", "data-center/a100/"), GA100),
    ),
    _gpu(
        name="a100-80",
        title="A100 80 GB SXM",
        family="ampere",
        launch_year=2020,
        bf16_flops_per_s=312e12,
        fp8_flops_per_s=None,
        hbm_bytes_per_s=2.039e12,
        memory=_reported(79.25),
        sm_count=108,
        l2_bytes=40 * MIB,
        interconnect="NVLink",
        interconnect_bytes_per_s=300e9,
        sources=(datasheet("A100", "data-center/a100/"), GA100),
    ),
    _gpu(
        name="h100",
        title="H100 80 GB SXM",
        family="hopper",
        launch_year=2022,
        bf16_flops_per_s=989e12,
        fp8_flops_per_s=1978e12,
        hbm_bytes_per_s=3.35e12,
        memory=(round(79.18 * GIB), H100_MEMORY),
        sm_count=132,
        l2_bytes=50 * MIB,
        interconnect="NVLink",
        interconnect_bytes_per_s=450e9,
        sources=(datasheet("H100", "data-center/h100/"), GH100),
    ),
    _gpu(
        name="h200",
        title="H200 141 GB SXM",
        family="hopper",
        launch_year=2024,
        bf16_flops_per_s=989e12,
        fp8_flops_per_s=1978e12,
        hbm_bytes_per_s=4.8e12,
        memory=_reported(139.80),
        sm_count=132,
        l2_bytes=50 * MIB,
        interconnect="NVLink",
        interconnect_bytes_per_s=450e9,
        sources=(datasheet("H200", "data-center/h200/"), GH100),
    ),
    _gpu(
        name="l40s",
        title="L40S 48 GB",
        family="ada",
        launch_year=2023,
        bf16_flops_per_s=362e12,
        fp8_flops_per_s=724e12,
        hbm_bytes_per_s=0.864e12,
        memory=_reported(44.39),
        sm_count=142,
        l2_bytes=96 * MIB,
        interconnect="PCIe",
        interconnect_bytes_per_s=PCIE4_X16_BYTES_PER_S,
        sources=(datasheet("L40S", "data-center/l40s/"), AD102),
    ),
    _gpu(
        name="a40",
        title="A40 48 GB",
        family="ampere",
        launch_year=2020,
        bf16_flops_per_s=149.7e12,
        fp8_flops_per_s=None,
        hbm_bytes_per_s=0.696e12,
        memory=_reported(44.34),
        sm_count=84,
        l2_bytes=6 * MIB,
        interconnect="PCIe",
        interconnect_bytes_per_s=PCIE4_X16_BYTES_PER_S,
        sources=(datasheet("A40", "data-center/a40/"), GA102),
    ),
    _gpu(
        name="a6000",
        title="RTX A6000 48 GB",
        family="ampere",
        launch_year=2020,
        bf16_flops_per_s=154.8e12,
        fp8_flops_per_s=None,
        hbm_bytes_per_s=0.768e12,
        memory=_reported(47.53),
        sm_count=84,
        l2_bytes=6 * MIB,
        interconnect="PCIe",
        interconnect_bytes_per_s=PCIE4_X16_BYTES_PER_S,
        sources=(datasheet("RTX A6000", "products/workstations/rtx-a6000/"), GA102),
    ),
    _gpu(
        name="l4",
        title="L4 24 GB",
        family="ada",
        launch_year=2023,
        bf16_flops_per_s=121e12,
        fp8_flops_per_s=242e12,
        hbm_bytes_per_s=0.3e12,
        memory=_reported(22.05),
        sm_count=58,
        l2_bytes=48 * MIB,
        interconnect="PCIe",
        interconnect_bytes_per_s=PCIE4_X16_BYTES_PER_S,
        sources=(datasheet("L4", "data-center/l4/"), AD102),
    ),
    _gpu(
        name="b200",
        title="B200 180 GB SXM",
        family="blackwell",
        launch_year=2024,
        bf16_flops_per_s=2250e12,
        fp8_flops_per_s=4500e12,
        hbm_bytes_per_s=8e12,
        memory=_reported(178.35),
        sm_count=148,
        l2_bytes=126 * MIB,
        interconnect="NVLink",
        interconnect_bytes_per_s=900e9,
        sources=(datasheet("HGX B200 (one GPU of eight)", "data-center/hgx/"), GB100),
    ),
)
GPUS = {gpu.name: gpu for gpu in _ALL}
_MEASURED = {
    "a100": "a100-80",
    "a100-80gb": "a100-80",
    "a100-40gb": "a100-40",
    "rtx-a6000": "a6000",
}


def gpu_of_measured(name: str) -> str:
    """Return the catalog's name of a GPU as measured tables spell it: "a100_sxm" -> "a100-80".

    Raises:
        ValueError: no GPU of the catalog.
    """
    spelled = name.strip().lower().replace("_", "-") if isinstance(name, str) else ""
    spelled = spelled.removesuffix("-sxm")
    found = _MEASURED.get(spelled, spelled)
    if found not in GPUS:
        raise ValueError(f"gpu: {name!r:.60} is not in the catalog (allowed: {', '.join(GPUS)})")
    return found
