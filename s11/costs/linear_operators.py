"""A decoder layer's dense products and elementwise operators, and the LM head, on one GPU.

Tensor parallelism as in Megatron-LM (Shoeybi et al. 2019): QKV and gate/up are cut by columns,
attention's output and down by rows; norms and residuals run whole on every GPU.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

from s11.catalog import Gpu, Model
from s11.costs.gemm import BF16_BYTES, GemmConstants, Numbers, gemm_ms

NORM_VALUES = 8  # per hidden channel: two fused residual-add-and-norms, each reads 2 and writes 2
L2_SHARPNESS = 2  # how sharply activations stop being served by the L2 once they outgrow it


class LinearOperator(NamedTuple):
    """One product (tokens, k) @ (k, n) of a layer on one GPU."""

    name: str
    n: int
    k: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ElementwiseConstants:
    """What one GPU's norms, rotary embedding and activation function reach together; fitted.

    launch_ms: floor of one layer's operators together.
    memory_efficiency: share of the peak HBM bandwidth.
    row_efficiency: share of one SM's part of that bandwidth at which one token's row, one thread
        block, is read and written: the time below which few tokens never get.
    exponent: of the soft maximum of one row and all rows.
    l2_speed: bandwidth of activations that stay in the L2 between operators, over the HBM's.
    l2_resident_share: share of the L2 that holds them.
    """

    launch_ms: float
    memory_efficiency: float
    row_efficiency: float
    exponent: float
    l2_speed: float
    l2_resident_share: float


def linear_operators(model: Model, tensor_parallel: int) -> tuple[LinearOperator, ...]:
    """Return the products of one layer on one of `tensor_parallel` GPUs, in order."""
    query = model.heads * model.head_dim // tensor_parallel
    key_value = 2 * max(1, model.kv_heads // tensor_parallel) * model.head_dim
    inner = -(-model.ffn // tensor_parallel)
    up_name, up_columns = ("gate and up", 2 * inner) if model.gated else ("up", inner)
    return (
        LinearOperator("qkv", query + key_value, model.hidden),
        LinearOperator("attention output", model.hidden, query),
        LinearOperator(up_name, up_columns, model.hidden),
        LinearOperator("down", model.hidden, inner),
    )


def layer_linear_ms(
    tokens: Numbers,
    *,
    model: Model,
    tensor_parallel: int,
    gpu: Gpu,
    constants: GemmConstants,
    fp8: bool,
) -> Numbers:
    """Return the time of one layer's products for a step of `tokens` tokens, in ms."""
    total_ms = 0.0
    for operator in linear_operators(model, tensor_parallel):
        total_ms = total_ms + gemm_ms(
            tokens, operator.n, operator.k, gpu=gpu, constants=constants, fp8=fp8
        )
    return total_ms


def elementwise_ms(
    tokens: Numbers,
    *,
    model: Model,
    tensor_parallel: int,
    gpu: Gpu,
    constants: ElementwiseConstants,
) -> Numbers:
    """Return the time of one layer's elementwise operators for `tokens` tokens, in ms."""
    query_key = (
        model.heads / tensor_parallel + max(1, model.kv_heads / tensor_parallel)
    ) * model.head_dim
    activated = (2 + model.gated) * model.ffn / tensor_parallel  # gate and up in, one out
    row_bytes = BF16_BYTES * (NORM_VALUES * model.hidden + 2 * query_key + activated)
    bytes_per_ms = gpu.hbm_bytes_per_s / 1e3
    row_ms = row_bytes / (bytes_per_ms / gpu.sm_count * constants.row_efficiency)
    l2_filled = tokens * activated * BF16_BYTES / (gpu.l2_bytes * constants.l2_resident_share)
    resident = 1 / (1 + l2_filled**L2_SHARPNESS)
    all_rows_ms = (
        tokens
        * row_bytes
        / (bytes_per_ms * constants.memory_efficiency)
        * (1 - resident * (1 - 1 / constants.l2_speed))
    )
    exponent = constants.exponent
    return constants.launch_ms + (row_ms**exponent + all_rows_ms**exponent) ** (1 / exponent)


def lm_head_ms(
    sampled_rows: Numbers,
    *,
    model: Model,
    tensor_parallel: int,
    gpu: Gpu,
    constants: GemmConstants,
) -> Numbers:
    """Return the time of the LM head for the rows that are sampled, in ms; it stays in bf16."""
    columns = -(-model.vocab // tensor_parallel)
    return gemm_ms(sampled_rows, columns, model.hidden, gpu=gpu, constants=constants, fp8=False)
