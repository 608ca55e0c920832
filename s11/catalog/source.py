"""Where a number of the catalog comes from: the documents, each with what it vouches for."""

from __future__ import annotations

from typing import NamedTuple


class Source(NamedTuple):
    """A document, where it lies, and the fields that it vouches for."""

    title: str
    address: str
    fields: tuple[str, ...]


RATES = (
    "bf16_flops_per_s",
    "fp8_flops_per_s",
    "hbm_bytes_per_s",
    "interconnect_bytes_per_s",
    "launch_year",
)
CHIP = ("sm_count", "l2_bytes")

GA100 = Source(
    "NVIDIA A100 Tensor Core GPU Architecture whitepaper",
    "https://images.nvidia.com/aem-dam/en-zz/Solutions/data-center/"
    "nvidia-ampere-architecture-whitepaper.pdf",
    CHIP,
)
GA102 = Source(
    "NVIDIA Ampere GA102 GPU Architecture whitepaper",
    "https://www.nvidia.com/content/PDF/nvidia-ampere-ga-102-gpu-architecture-whitepaper-v2.pdf",
    CHIP,
)
AD102 = Source(
    "NVIDIA Ada GPU Architecture whitepaper (L4 in its appendix D)",
    "https://images.nvidia.com/aem-dam/Solutions/Data-Center/l4/"
    "nvidia-ada-gpu-architecture-whitepaper-v2.1.pdf",
    CHIP,
)
GH100 = Source(
    "NVIDIA H100 Tensor Core GPU Architecture whitepaper",
    "https://resources.nvidia.com/en-us-tensor-core/gtc22-whitepaper-hopper",
    CHIP,
)
GB100 = Source(
    "Chips and Cheese, Nvidia's B200 (2025)",
    "https://chipsandcheese.com/p/nvidias-b200-keeping-the-cuda-juggernaut",
    CHIP,
)
H100_MEMORY = Source(
    "llm-d-benchmark, vLLM's memory report on H100: 79.18 GiB",
    "https://github.com/llm-d/llm-d-benchmark/blob/main/config_explorer/"
    "empirical-vllm-memory-results.md",
    ("memory_bytes",),
)


def datasheet(title: str, path: str) -> Source:
    """Return the source of a GPU's rates and year: NVIDIA's product page and datasheet."""
    return Source(f"NVIDIA {title} datasheet", f"https://www.nvidia.com/en-us/{path}", RATES)


def reported_memory(gib: float) -> Source:
    """Return the source of a card's total memory that no datasheet prints."""
    title = f"PyTorch's out-of-memory reports: a total capacity of {gib:.2f} GiB"
    address = "https://docs.pytorch.org/docs/stable/generated/torch.cuda.mem_get_info.html"
    return Source(title, address, ("memory_bytes",))
