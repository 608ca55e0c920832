"""A model on its GPUs: what each of them holds."""

from __future__ import annotations

from dataclasses import dataclass

from s11.catalog.gpus import GPUS, Gpu
from s11.catalog.models import Model
from s11.checks import require_choice, require_int

PRECISIONS = ("bf16", "fp8")
TENSOR_PARALLEL = (1, 2, 4, 8)
BF16_BYTES, FP8_BYTES = 2, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """One replica of a dense model over `tensor_parallel` GPUs of one kind.

    gpu: its name in GPUS.
    precision: "fp8" halves the layers' weights; embeddings, LM head, norms and KV stay in
        bf16, as in vLLM's fp8 checkpoints.

    Raises:
        ValueError: a GPU or precision not known here, or a model that cannot be shared out.
    """

    model: Model
    gpu: str
    tensor_parallel: int = 1
    precision: str = "bf16"

    def __post_init__(self) -> None:
        model = self.model
        if not isinstance(model, Model):
            raise ValueError(f"model: {model!r:.60} is not a Model (allowed: one of the catalog's)")
        require_choice("gpu", self.gpu, tuple(GPUS))
        require_choice("precision", self.precision, PRECISIONS)
        size = require_int("tensor_parallel", self.tensor_parallel, 1, max(TENSOR_PARALLEL))
        object.__setattr__(self, "tensor_parallel", size)
        allowed = tensor_parallel_sizes(model)
        if size not in allowed:
            raise ValueError(
                f"tensor_parallel: {size} GPUs cannot share {model.name}'s {model.heads} heads, "
                f"{model.kv_heads} KV heads and MLP width of {model.ffn:,} evenly "
                f"(allowed: {', '.join(map(str, allowed))})"
            )

    @property
    def hardware(self) -> Gpu:
        """Return the catalog's entry of the GPU."""
        return GPUS[self.gpu]

    @property
    def heads_per_gpu(self) -> int:
        """Return the query heads on one GPU."""
        return self.model.heads // self.tensor_parallel

    @property
    def kv_heads_per_gpu(self) -> int:
        """Return the KV heads on one GPU: at least one, as vLLM replicates them."""
        return max(1, self.model.kv_heads // self.tensor_parallel)

    @property
    def ffn_per_gpu(self) -> int:
        """Return the MLP's inner width on one GPU."""
        return self.model.ffn // self.tensor_parallel

    @property
    def fp8_products(self) -> bool:
        """Return whether the products run in fp8.

        Where the tensor cores have none, fp8 weights are widened on the way and the products
        run in bf16 (vLLM's Marlin kernel).
        """
        return self.precision == "fp8" and self.hardware.fp8_flops_per_s is not None

    @property
    def weight_bytes(self) -> int:
        """Return the bytes of one weight in the layers' products."""
        return FP8_BYTES if self.precision == "fp8" else BF16_BYTES

    def weight_bytes_per_gpu(self) -> int:
        """Return the bytes of all weights on one GPU; norms and positions lie on each."""
        model = self.model
        projections = 2 * (self.heads_per_gpu + self.kv_heads_per_gpu) * model.head_dim
        width = projections + model.mlp_products * self.ffn_per_gpu
        tables = 1 if model.tied_embeddings else 2
        rows = tables * -(-model.vocab // self.tensor_parallel)
        rows += model.max_positions if model.learned_positions else 0
        linear = model.layers * model.hidden * width * self.weight_bytes
        return linear + (rows * model.hidden + model.norm_parameters()) * BF16_BYTES

    def kv_bytes_per_token_per_gpu(self) -> int:
        """Return the bytes of one token's keys and values on one GPU, in bf16."""
        return 2 * self.model.layers * self.kv_heads_per_gpu * self.model.head_dim * BF16_BYTES


def tensor_parallel_sizes(model: Model) -> tuple[int, ...]:
    """Return the numbers of GPUs that can share a model out evenly.

    Query heads and the MLP's width must divide; KV heads must divide, or be replicated a whole
    number of times.
    """
    return tuple(
        size
        for size in TENSOR_PARALLEL
        if not model.heads % size
        and not model.ffn % size
        and (not model.kv_heads % size or not size % model.kv_heads)
    )
