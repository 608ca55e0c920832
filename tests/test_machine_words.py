"""What is said of a machine is true of its constants."""

import pytest

from s11 import Experiment
from s11.catalog import GPUS, MODELS, Deployment
from s11.costs import RooflineCost
from s11.costs.constants import constants_of
from s11.machine_words import calibration_note, machine_words


def deployment(gpu: str, *, tp: int = 1, precision: str = "bf16") -> Deployment:
    return Deployment(
        model=MODELS["llama-3.1-8b"], gpu=gpu, tensor_parallel=tp, precision=precision
    )


@pytest.mark.parametrize("gpu", GPUS)
def test_a_gpu_is_called_calibrated_only_where_it_is(gpu: str) -> None:
    told = calibration_note(deployment(gpu))
    assert told.startswith(GPUS[gpu].title)
    assert ("calibrated on measured kernels" in told) == constants_of(gpu, "bf16").calibrated
    for _, owner in constants_of(gpu, "bf16").owners[:1]:
        assert owner == gpu or GPUS[owner].title in told


@pytest.mark.parametrize(
    ("gpu", "part"),
    [
        ("a40", "its products are calibrated; attention is as efficient as on A100 80 GB SXM"),
        ("a6000", "It takes, its attention apart, the efficiencies of A40 48 GB"),
        ("h200", "not calibrated. It takes the efficiencies of H100 80 GB SXM"),
    ],
)
def test_what_is_inherited_is_told(gpu: str, part: str) -> None:
    assert part in calibration_note(deployment(gpu))


def test_what_a_machine_cannot_do_is_told() -> None:
    assert "It multiplies in bf16" in calibration_note(deployment("a100-80", precision="fp8"))
    assert "multiplies" not in calibration_note(deployment("h100", precision="fp8"))
    assert "Over PCIe" in calibration_note(deployment("l40s", tp=4))
    assert "Over PCIe" not in calibration_note(deployment("l40s", tp=2))
    assert "Over PCIe" not in calibration_note(deployment("h100", tp=8))


def test_the_streams_share_of_the_cache_is_told() -> None:
    """24 streams of 1,024 tokens hold 24,576."""
    told = machine_words(Experiment(cost=RooflineCost(deployment=deployment("h100"))))
    assert told is not None
    assert "16.1 GB on each GPU" in told
    assert "the streams hold 24,576 of them at first." in told
    assert machine_words(Experiment()) is None
