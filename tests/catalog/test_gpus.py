"""GPUs: peaks as datasheets print them, a source for each number, spellings of measured tables."""

from dataclasses import fields

import pytest

from s11.catalog import GPUS, Gpu, gpu_of_measured

# Dense TFLOP/s in bf16 and fp8, TB/s, SMs, GB/s one way. Source of the first four of A100, H100,
# L40S and A40: the README of the measured tables. The others: NVIDIA's datasheets, rates with
# sparsity and bidirectional links halved.
DATASHEET = {
    "a100-40": (312, None, 1.555, 108, 300),
    "a100-80": (312, None, 2.039, 108, 300),
    "h100": (989, 1978, 3.35, 132, 450),
    "h200": (989, 1978, 4.8, 132, 450),
    "l40s": (362, 724, 0.864, 142, 32),
    "a40": (149.7, None, 0.696, 84, 32),
    "a6000": (154.8, None, 0.768, 84, 32),
    "l4": (121, 242, 0.3, 58, 32),
    "b200": (2250, 4500, 8, 148, 900),
}
SOLD_AS_GB = {
    "a100-40": 40,
    "a100-80": 80,
    "h100": 80,
    "h200": 141,
    "l40s": 48,
    "a40": 48,
    "a6000": 48,
    "l4": 24,
    "b200": 180,
}
NUMBERS = {field.name for field in fields(Gpu) if field.type in {"int", "float", "float | None"}}


@pytest.mark.parametrize("name", DATASHEET)
def test_peaks_are_the_datasheets(name: str) -> None:
    bf16, fp8, bandwidth, sms, link = DATASHEET[name]
    gpu = GPUS[name]
    assert gpu.name == name
    assert gpu.bf16_flops_per_s == pytest.approx(bf16 * 1e12)
    assert gpu.fp8_flops_per_s == (None if fp8 is None else pytest.approx(fp8 * 1e12))
    assert gpu.hbm_bytes_per_s == pytest.approx(bandwidth * 1e12)
    assert gpu.sm_count == sms
    assert gpu.interconnect_bytes_per_s == pytest.approx(link * 1e9)


def test_the_catalog_has_just_these() -> None:
    assert GPUS.keys() == DATASHEET.keys()


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_every_number_has_a_source(gpu: Gpu) -> None:
    covered = {field for source in gpu.sources for field in source.fields}
    assert covered == NUMBERS
    assert all(source.title and source.address.startswith("https://") for source in gpu.sources)


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_memory_is_what_the_driver_leaves_of_the_cards_own(gpu: Gpu) -> None:
    binary = SOLD_AS_GB[gpu.name] * 2**30
    assert 0.9 * binary < gpu.memory_bytes < binary


@pytest.mark.parametrize("gpu", GPUS.values(), ids=GPUS)
def test_fp8_is_twice_bf16_from_ada_on(gpu: Gpu) -> None:
    if gpu.family == "ampere":
        assert gpu.fp8_flops_per_s is None
    else:
        assert gpu.fp8_flops_per_s == pytest.approx(2 * gpu.bf16_flops_per_s)


@pytest.mark.parametrize(
    ("spelled", "name"),
    [
        ("a100", "a100-80"),
        ("a100_sxm", "a100-80"),
        ("A100_SXM", "a100-80"),
        ("h100", "h100"),
        ("h100_sxm", "h100"),
        ("h200_sxm", "h200"),
        ("b200_sxm", "b200"),
        ("l40s", "l40s"),
        ("a40", "a40"),
        ("l4", "l4"),
        ("a6000", "a6000"),
        ("rtx_a6000", "a6000"),
    ],
)
def test_measured_tables_spell_gpus_their_own_way(spelled: str, name: str) -> None:
    assert gpu_of_measured(spelled) == name


@pytest.mark.parametrize("spelled", ["", "v100", "h100_pcie", "gb200", None, 3, "a100 " * 99])
def test_a_gpu_not_in_the_catalog_is_refused(spelled: object) -> None:
    with pytest.raises(ValueError, match=r"^gpu: .* is not in the catalog \(allowed: a100-40, "):
        gpu_of_measured(spelled)  # type: ignore[arg-type]
