"""How many tokens' KV a deployment holds: what is left of each GPU's memory.

As vLLM sizes it: memory * share - weights - peak of a trial step at the token budget -
what lies outside PyTorch. Its trial peaks either inside a layer or at the sampler:

- a layer, 2 bytes each: four of the hidden width (residual, normed input, the MLP's output and
  its all-reduce) and the MLP's inner activations (gate, up and their product) of every token
  in the budget;
- the sampler: LOGIT_BYTES for each logit of the rows that are sampled, while residual and
  hidden states of the whole budget are still alive. Vocabularies are gathered on every GPU.

Measured, GiB, H100, vLLM 0.11, budget 8,192, 1,024 rows; here: Llama-3.1-8B 4.76 (4.77),
Qwen3-0.6B 5.56 (5.54), Qwen3-32B 5.64 (5.66), Llama-3.3-70B 4.84 (4.90), whatever the tensor
parallelism; and 256 rows of Llama-3-8B 1.26 (1.29, vLLM 0.6). Later versions need less:
1.89 for Llama-3.1-8B in 0.19, but 2.1 instead of 0.55 GiB outside PyTorch on several GPUs.

Sources: vLLM, vllm/v1/worker/gpu_worker.py (determine_available_memory); llm-d-benchmark,
config_explorer/empirical-vllm-memory-results.md; vLLM pull request 10511; llm-d-planner,
docs/accuracy/vllm-v0.19.0-accuracy-report.md.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from s11.catalog.deployment import BF16_BYTES, Deployment
from s11.catalog.gpus import GIB, Gpu
from s11.checks import MAX_TOKENS, require_int, require_ms

# Sorting and summing for top-p needs about ten arrays of the logits' shape at once. The five
# measurements above give 37.5 to 38.2 bytes for each logit.
LOGIT_BYTES = 38

# CUDA context, cuBLAS workspaces and, on several GPUs, NCCL's and the all-reduce's buffers.
# Measured by the same source at 1 and 2 GPUs: 0.13 to 0.14 and 0.54 to 0.55 GiB. For 4 and 8,
# NCCL takes 50 MiB more (aiconfigurator, systems/h100_sxm.yaml). CUDA graphs are not in it:
# vLLM captures them after it has sized the KV cache, from the share that it leaves alone.
OVERHEAD_BYTES = {
    1: round(0.14 * GIB),
    2: round(0.55 * GIB),
    4: round(0.60 * GIB),
    8: round(0.60 * GIB),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class KvCapacity:
    """The KV pool of a deployment. Bytes are of each GPU; blocks and tokens of the deployment.

    usable_bytes: memory_bytes times the share; the four that follow add up to it.
    kv_bytes: what is left for the KV cache; the last block may not be whole.
    """

    kv_blocks: int
    block_size: int
    kv_bytes_per_token: int
    memory_bytes: int
    usable_bytes: int
    weights_bytes: int
    activation_bytes: int
    overhead_bytes: int
    kv_bytes: int

    @property
    def kv_tokens(self) -> int:
        """Return the tokens in all whole blocks."""
        return self.kv_blocks * self.block_size


def default_max_seqs(gpu: Gpu) -> int:
    """Return vLLM's default of max_num_seqs: 1,024 from 70 GiB of memory on, A100 apart.

    Source: vLLM, vllm/engine/arg_utils.py (get_batch_defaults).
    """
    return 1_024 if gpu.memory_bytes >= 70 * GIB and not gpu.name.startswith("a100") else 256


def activation_bytes(deployment: Deployment, *, token_budget: int, max_seqs: int) -> int:
    """Return the peak of a step's activations on each GPU, as the module's text derives it."""
    model = deployment.model
    mlp_width = model.mlp_products * deployment.ffn_per_gpu
    layer_peak = token_budget * (4 * model.hidden + mlp_width) * BF16_BYTES
    logits = min(max_seqs, token_budget) * model.vocab
    sampler_peak = logits * LOGIT_BYTES + 2 * token_budget * model.hidden * BF16_BYTES
    return max(layer_peak, sampler_peak)


def kv_capacity(
    deployment: Deployment,
    *,
    token_budget: int,
    block_size: int = 16,
    memory_share: float = 0.9,
    max_seqs: int | None = None,
) -> KvCapacity:
    """Return the KV pool that a deployment has under a token budget.

    memory_share: of the GPU's memory that the engine may use (vLLM gpu_memory_utilization).
    max_seqs: most rows that are sampled in one step; None means vLLM's default for the GPU.

    Raises:
        ValueError: a number out of range, or no room for one block, with the numbers.
    """
    capacity = _capacity(
        deployment,
        token_budget=token_budget,
        block_size=block_size,
        memory_share=memory_share,
        max_seqs=max_seqs,
    )
    if capacity.kv_blocks < 1:
        raise ValueError(_does_not_fit(deployment, capacity, memory_share))
    return capacity


def kv_tokens_of_budgets(
    deployment: Deployment,
    token_budgets: Iterable[int],
    *,
    block_size: int = 16,
    memory_share: float = 0.9,
    max_seqs: int | None = None,
) -> tuple[int, ...]:
    """Return the tokens that the KV pool holds under each token budget, 0 where none fits.

    Raises:
        ValueError: a number out of range.
    """
    return tuple(
        max(
            0,
            _capacity(
                deployment,
                token_budget=token_budget,
                block_size=block_size,
                memory_share=memory_share,
                max_seqs=max_seqs,
            ).kv_tokens,
        )
        for token_budget in token_budgets
    )


def _capacity(
    deployment: Deployment,
    *,
    token_budget: int,
    block_size: int,
    memory_share: float,
    max_seqs: int | None,
) -> KvCapacity:
    gpu = deployment.hardware
    token_budget = require_int("token_budget", token_budget, 1, MAX_TOKENS)
    block_size = require_int("block_size", block_size, 1, 65_536)
    share = require_ms("memory_share", memory_share, 0, 1, above=True)
    rows = default_max_seqs(gpu) if max_seqs is None else max_seqs
    rows = require_int("max_seqs", rows, 1, MAX_TOKENS)
    usable = int(gpu.memory_bytes * share)
    weights = deployment.weight_bytes_per_gpu()
    activations = activation_bytes(deployment, token_budget=token_budget, max_seqs=rows)
    overhead = OVERHEAD_BYTES[deployment.tensor_parallel]
    left = usable - weights - activations - overhead
    per_token = deployment.kv_bytes_per_token_per_gpu()
    return KvCapacity(
        kv_blocks=left // (block_size * per_token),
        block_size=block_size,
        kv_bytes_per_token=per_token,
        memory_bytes=gpu.memory_bytes,
        usable_bytes=usable,
        weights_bytes=weights,
        activation_bytes=activations,
        overhead_bytes=overhead,
        kv_bytes=left,
    )


def _does_not_fit(deployment: Deployment, capacity: KvCapacity, memory_share: float) -> str:
    gpus = f"{deployment.tensor_parallel} × {deployment.hardware.title}"
    return (
        f"model: {deployment.model.name} ({deployment.precision}) does not fit {gpus}: "
        f"of each GPU's {capacity.memory_bytes / 1e9:,.1f} GB, {memory_share:.0%} are "
        f"{capacity.usable_bytes / 1e9:,.1f} GB; weights take {capacity.weights_bytes / 1e9:,.1f}, "
        f"activations {capacity.activation_bytes / 1e9:,.1f}, "
        f"overhead {capacity.overhead_bytes / 1e9:,.1f} GB and one KV block "
        f"{capacity.block_size * capacity.kv_bytes_per_token / 1e9:,.3f} GB "
        "(allowed: more GPUs, fp8 weights, a smaller token_budget or model)"
    )
