"""Deployments: what each GPU holds, worked by hand, and what cannot be shared out."""

from dataclasses import replace
from typing import Any

import pytest

from s11.catalog import GPUS, KNOWN_MODELS, MODELS, Deployment, tensor_parallel_sizes


def deployed(name: str, *, gpu: str = "h100", gpus: int = 1, precision: str = "bf16") -> Deployment:
    return Deployment(model=KNOWN_MODELS[name], gpu=gpu, tensor_parallel=gpus, precision=precision)


def test_on_one_gpu_in_bf16_weights_are_two_bytes_each() -> None:
    for model in KNOWN_MODELS.values():
        alone = Deployment(model=model, gpu="b200")
        assert alone.weight_bytes_per_gpu() == 2 * model.parameters(), model.name


def test_qwen3_on_two_gpus_by_hand() -> None:
    two = deployed("qwen3-32b", gpus=2)
    assert (two.heads_per_gpu, two.kv_heads_per_gpu, two.ffn_per_gpu) == (32, 4, 12_800)
    assert two.kv_bytes_per_token_per_gpu() == 64 * 2 * 4 * 128 * 2 == 131_072
    # qkv 5,120 x 5,120, out 4,096 x 5,120, MLP 3 x 12,800 x 5,120; two tables of 75,968 rows;
    # 129 norms of 5,120, whole on each GPU.
    linear = 64 * 5_120 * (5_120 + 4_096 + 3 * 12_800)
    assert two.weight_bytes_per_gpu() == 2 * (linear + 5_120 * (2 * 75_968 + 129))


def test_fp8_halves_the_layers_products_alone() -> None:
    model = MODELS["llama-3.1-70b"]
    linear = model.layers * model.layer_linear_parameters()
    whole, half = (
        deployed(model.name, precision=p).weight_bytes_per_gpu() for p in ("bf16", "fp8")
    )
    assert whole - half == linear
    assert deployed(model.name, precision="fp8").kv_bytes_per_token_per_gpu() == 327_680


@pytest.mark.parametrize("gpu", GPUS)
def test_only_gpus_with_fp8_tensor_cores_multiply_in_fp8(gpu: str) -> None:
    assert deployed("llama-2-7b", gpu=gpu).fp8_products is False
    has_fp8 = gpu in {"h100", "h200", "l40s", "l4", "b200"}
    assert deployed("llama-2-7b", gpu=gpu, precision="fp8").fp8_products is has_fp8


def test_few_kv_heads_are_replicated_as_vllm_does() -> None:
    model = replace(MODELS["llama-3.1-8b"], kv_heads=2)
    eight = Deployment(model=model, gpu="h100", tensor_parallel=8)
    four = Deployment(model=model, gpu="h100", tensor_parallel=4)
    assert eight.kv_heads_per_gpu == four.kv_heads_per_gpu == 1
    assert eight.heads_per_gpu == 4
    assert eight.kv_bytes_per_token_per_gpu() == four.kv_bytes_per_token_per_gpu()


@pytest.mark.parametrize(
    ("changes", "sizes"),
    [
        ({}, (1, 2, 4, 8)),
        ({"heads": 12, "kv_heads": 12, "head_dim": 64}, (1, 2, 4)),
        ({"heads": 24, "kv_heads": 3, "head_dim": 64}, (1,)),
        ({"heads": 24, "kv_heads": 6, "head_dim": 64}, (1, 2)),
        ({"ffn": 11_010}, (1, 2)),
        ({"heads": 71, "kv_heads": 1, "head_dim": 64}, (1,)),
    ],
)
def test_what_can_be_shared_out(changes: dict[str, Any], sizes: tuple[int, ...]) -> None:
    model = replace(MODELS["llama-2-7b"], **changes)
    assert tensor_parallel_sizes(model) == sizes
    for size in {1, 2, 4, 8} - set(sizes):
        allowed = ", ".join(map(str, sizes))
        with pytest.raises(
            ValueError, match=rf"^tensor_parallel: {size} .*\(allowed: {allowed}\)$"
        ):
            Deployment(model=model, gpu="h100", tensor_parallel=size)


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("model", "llama-2-7b"),
        ("gpu", "H100"),
        ("gpu", None),
        ("tensor_parallel", 0),
        ("tensor_parallel", 3),
        ("tensor_parallel", 16),
        ("tensor_parallel", True),
        ("tensor_parallel", 2.0),
        ("precision", "int4"),
        ("precision", None),
    ],
)
def test_what_is_no_deployment_is_refused(field: str, value: object) -> None:
    settings = {"model": MODELS["llama-2-7b"], "gpu": "h100", field: value}
    with pytest.raises(ValueError, match=f"^{field}: "):
        Deployment(**settings)  # type: ignore[arg-type]
