"""A layer's operators: shapes by hand, sums, and SARATHI's published times."""

from dataclasses import replace

import numpy as np
import pytest

from s11.catalog import GPUS, MODELS, Model
from s11.costs.constants import constants_of
from s11.costs.gemm import gemm_ms
from s11.costs.linear_operators import (
    ElementwiseConstants,
    elementwise_ms,
    layer_linear_ms,
    linear_operators,
    lm_head_ms,
)

LLAMA_8B, PHI_2, LLAMA_13B = MODELS["llama-3.1-8b"], MODELS["phi-2"], MODELS["llama-13b"]
A100 = GPUS["a100-80"]


def shapes(model: Model, tensor_parallel: int) -> list[tuple[int, int]]:
    return [(operator.n, operator.k) for operator in linear_operators(model, tensor_parallel)]


def test_llama_3_8b_has_four_products_of_218_million_weights() -> None:
    # hidden 4096, 32 heads and 8 KV heads of 128, MLP of 14,336, gated
    assert shapes(LLAMA_8B, 1) == [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
    assert sum(n * k for n, k in shapes(LLAMA_8B, 1)) == 218_103_808


def test_tensor_parallelism_cuts_columns_then_rows() -> None:
    # 4 query heads and 1 KV head each: (4 + 2) · 128 columns
    assert shapes(LLAMA_8B, 8) == [(768, 4096), (4096, 512), (3584, 4096), (4096, 1792)]


def test_kv_heads_are_replicated_where_they_are_fewer_than_gpus() -> None:
    two_kv_heads = replace(LLAMA_8B, kv_heads=2)
    assert shapes(two_kv_heads, 8)[0] == (768, 4096)


def test_an_ungated_mlp_has_one_product_up() -> None:
    # Phi-2: hidden 2560, 32 heads of 80, MLP of 10,240
    assert shapes(PHI_2, 1) == [(7680, 2560), (2560, 2560), (10240, 2560), (2560, 10240)]


def test_a_layer_is_the_sum_of_its_products() -> None:
    constants = constants_of("a100-80", "bf16").gemm
    by_hand = sum(
        gemm_ms(300, n, k, gpu=A100, constants=constants, fp8=False)
        for n, k in [(6144, 4096), (4096, 4096), (28672, 4096), (4096, 14336)]
    )
    layer = layer_linear_ms(
        300, model=LLAMA_8B, tensor_parallel=1, gpu=A100, constants=constants, fp8=False
    )
    assert layer == pytest.approx(by_hand)


def test_the_lm_head_has_the_vocabulary_for_columns() -> None:
    constants = constants_of("a100-80", "bf16").lm_head
    head = lm_head_ms(7, model=LLAMA_8B, tensor_parallel=4, gpu=A100, constants=constants)
    # 128,256 / 4 columns
    assert head == gemm_ms(7, 32_064, 4096, gpu=A100, constants=constants, fp8=False)


# elementwise

PLAIN = ElementwiseConstants(
    launch_ms=0.5,
    memory_efficiency=1.0,
    row_efficiency=1.0,
    exponent=32.0,
    l2_speed=1.0,
    l2_resident_share=1.0,
)


def elementwise(tokens: int, *, tensor_parallel: int = 1, **changes: float) -> float:
    """Llama-3.1-8B on a GPU of 1e9 bytes a millisecond and four SMs."""
    gpu = replace(A100, hbm_bytes_per_s=1e12, sm_count=4)
    return float(
        elementwise_ms(
            tokens,
            model=LLAMA_8B,
            tensor_parallel=tensor_parallel,
            gpu=gpu,
            constants=replace(PLAIN, **changes),
        )
    )


def test_elementwise_operators_move_their_values_once_each() -> None:
    # A token: norms 8 · 4096, rotary 2 · (32 + 8) · 128, activation 3 · 14,336: 86,016 values
    # of 2 bytes. 10,000 tokens: 1.72032e9 bytes at 1e9 a millisecond, after the launch.
    assert elementwise(10_000) == pytest.approx(0.5 + 1.72032, rel=1e-6)


def test_one_token_is_held_up_by_one_sm() -> None:
    # 172,032 bytes at a quarter of the bandwidth
    assert elementwise(1) == pytest.approx(0.5 + 172_032 / 2.5e8, rel=1e-6)


def test_tensor_parallelism_leaves_the_norms_whole() -> None:
    # 8 · 4096 + (2 · 40 · 128 + 3 · 14,336) / 4 = 46,080 values
    whole = elementwise(10_000, tensor_parallel=4) - 0.5
    assert whole == pytest.approx(10_000 * 46_080 * 2 / 1e9, rel=1e-6)


def test_activations_that_stay_in_the_l2_are_faster() -> None:
    # 64 tokens' activations are 5.5 MB of 42 MB: nearly all stay
    slow, fast = elementwise(64) - 0.5, elementwise(64, l2_speed=2.0) - 0.5
    assert 0.5 < fast / slow < 0.53


def test_arrays_give_what_scalars_give() -> None:
    tokens = np.array([1, 17, 512, 40_000])
    constants = constants_of("h100", "bf16").elementwise
    for sizes in (1, 8):
        together = elementwise_ms(
            tokens, model=PHI_2, tensor_parallel=sizes, gpu=GPUS["h100"], constants=constants
        )
        alone = [
            elementwise_ms(
                int(one), model=PHI_2, tensor_parallel=sizes, gpu=GPUS["h100"], constants=constants
            )
            for one in tokens
        ]
        np.testing.assert_allclose(together, alone, rtol=1e-12)


# Agrawal et al. 2023, SARATHI (arXiv:2308.16369): LLaMA-13B on A6000, all 40 layers' linear
# operators, ms: decode of 4; the tile's edge at 256; a prompt of 1,024
@pytest.mark.parametrize(
    ("tokens", "published_ms"),
    [(4, 44.28), (128, 55.0), (256, 69.8), (257, 92.33), (1024, 224.8)],
)
def test_sarathis_a6000_is_met_within_ten_percent(tokens: int, published_ms: float) -> None:
    layer_ms = layer_linear_ms(
        tokens,
        model=LLAMA_13B,
        tensor_parallel=1,
        gpu=GPUS["a6000"],
        constants=constants_of("a6000", "bf16").gemm,
        fp8=False,
    )
    assert 40 * layer_ms == pytest.approx(published_ms, rel=0.10)
