"""Models and GPUs by name, each number with its source, and what follows by arithmetic."""

from __future__ import annotations

from s11.catalog.deployment import (
    PRECISIONS,
    TENSOR_PARALLEL,
    Deployment,
    tensor_parallel_sizes,
)
from s11.catalog.gpus import GPUS, Gpu, gpu_of_measured
from s11.catalog.huggingface import MAX_CONFIG_BYTES, model_from_config
from s11.catalog.kv_capacity import (
    KvCapacity,
    activation_bytes,
    default_max_seqs,
    kv_capacity,
    kv_tokens_of_budgets,
)
from s11.catalog.models import KNOWN_MODELS, MODELS, Model, model_of_measured
from s11.catalog.source import Source

__all__ = [
    "GPUS",
    "KNOWN_MODELS",
    "MAX_CONFIG_BYTES",
    "MODELS",
    "PRECISIONS",
    "TENSOR_PARALLEL",
    "Deployment",
    "Gpu",
    "KvCapacity",
    "Model",
    "Source",
    "activation_bytes",
    "default_max_seqs",
    "gpu_of_measured",
    "kv_capacity",
    "kv_tokens_of_budgets",
    "model_from_config",
    "model_of_measured",
    "tensor_parallel_sizes",
]
