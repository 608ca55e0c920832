"""All-reduce: hand-worked times, limits, and measured kernels."""

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.catalog import GPUS, Gpu
from s11.costs.all_reduce import AllReduceConstants, all_reduce_ms
from scripts.calibrate_attention import fit

# links of 1e9 bytes a millisecond
NVLINK = replace(GPUS["h100"], interconnect="NVLink", interconnect_bytes_per_s=1e12)
PCIE = replace(GPUS["l40s"], interconnect="PCIe", interconnect_bytes_per_s=1e12)
BYTES_ONLY = AllReduceConstants(
    latency_ms=1e-9,
    latency_ms_per_gpu=0.0,
    bandwidth_share=0.5,
    ring_latency_ms=0.0,
    ring_bandwidth_share=0.25,
)
LIKE_FITTED = AllReduceConstants(
    latency_ms=0.005,
    latency_ms_per_gpu=0.0001,
    bandwidth_share=0.3,
    ring_latency_ms=0.03,
    ring_bandwidth_share=0.35,
)


def nvlink_ms(message_bytes: int, num_gpus: int, **changes: float) -> float:
    constants = replace(BYTES_ONLY, **changes)
    return float(all_reduce_ms(message_bytes, gpu=NVLINK, num_gpus=num_gpus, constants=constants))


@pytest.mark.parametrize("gpu", [NVLINK, PCIE])
def test_one_gpu_has_nothing_to_reduce(gpu: Gpu) -> None:
    assert all_reduce_ms(10**9, gpu=gpu, num_gpus=1, constants=LIKE_FITTED) == 0


def test_small_messages_take_one_exchange() -> None:
    assert nvlink_ms(1, 4, latency_ms=0.5, latency_ms_per_gpu=0.1) == pytest.approx(0.7, rel=1e-3)


def test_larger_ones_are_scattered_and_gathered() -> None:
    # 2 · 3/4 of a megabyte at half the link: less than the three whole messages of one exchange.
    assert nvlink_ms(10**6, 4) == pytest.approx(1.5 * 1e6 / 0.5e9, rel=1e-3)


def test_the_largest_go_round_the_ring() -> None:
    over = nvlink_ms(10**9, 8, ring_latency_ms=0.5)
    assert over == pytest.approx(0.5 + 2 * 7 / 8 * 1e9 / 0.25e9)


def test_pcie_gpus_share_the_way_through_the_host() -> None:
    # Four rings' worth of bytes on one link; two GPUs reach each other straight.
    four = all_reduce_ms(10**6, gpu=PCIE, num_gpus=4, constants=BYTES_ONLY)
    assert four == pytest.approx(4 * 1.5 * 1e6 / 0.25e9)
    two = all_reduce_ms(10**6, gpu=PCIE, num_gpus=2, constants=BYTES_ONLY)
    assert two == pytest.approx(1e6 / 0.5e9, rel=1e-3)


@pytest.mark.parametrize("gpu", [NVLINK, PCIE])
@given(message_bytes=st.integers(1, 2**29), num_gpus=st.sampled_from([2, 3, 4, 7]))
def test_more_bytes_or_gpus_never_take_less_time(
    gpu: Gpu, message_bytes: int, num_gpus: int
) -> None:
    def ms(message_bytes: int, num_gpus: int) -> float:
        settings: dict[str, Any] = {"gpu": gpu, "constants": LIKE_FITTED}
        return float(all_reduce_ms(message_bytes, num_gpus=num_gpus, **settings))

    here = ms(message_bytes, num_gpus)
    assert ms(message_bytes + 1, num_gpus) >= here
    assert ms(message_bytes, num_gpus + 1) >= here


@pytest.mark.parametrize("gpu", [NVLINK, PCIE])
def test_scalars_and_arrays_agree(gpu: Gpu) -> None:
    sizes = [1, 1000, 2**17, 2**21, 2**21 + 1, 2**29]
    for num_gpus in (1, 2, 4, 8):
        settings: dict[str, Any] = {"gpu": gpu, "num_gpus": num_gpus, "constants": LIKE_FITTED}
        one_by_one = [all_reduce_ms(size, **settings) for size in sizes]
        at_once = all_reduce_ms(np.array(sizes), **settings)
        np.testing.assert_allclose(at_once, one_by_one, rtol=1e-12)


def test_measured_all_reduces_are_met_within_twelve_percent(shared_dir: Path) -> None:
    fitted = fit(shared_dir / "measured")
    errors = {
        gpu: kernels["all_reduce"]["mean_abs_error_pct"]
        for gpu, kernels in fitted.items()
        if "all_reduce" in kernels
    }
    assert {"a100-80", "h100", "h200", "l40s"} <= errors.keys()
    assert max(errors.values()) <= 12, errors
