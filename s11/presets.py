"""Real engines as they come: which policy, which limits, and what they call each knob.

Sources: vLLM, vllm/engine/arg_utils.py (`get_batch_defaults`: token budget and seats by
usage and GPU memory) and vllm/config/scheduler.py; SGLang, python/sglang/srt/server_args.py
(`chunked_prefill_size` by GPU memory, `page_size`, `enable_mixed_chunk`); TensorRT-LLM,
tensorrt_llm/llmapi/llm_args.py (`max_num_tokens`, `max_batch_size`,
`enable_chunked_prefill`, `tokens_per_block`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from s11.experiment import Experiment
from s11.plan import EngineLimits


@dataclass(frozen=True, slots=True, kw_only=True)
class EnginePreset:
    """An engine's defaults.

    name: what it is called in links and on the command line.
    title: what it is called on the page.
    speaks_for: the versions and the hardware whose defaults these are.
    """

    name: str
    title: str
    speaks_for: str
    policy: str
    limits: EngineLimits

    def of(self, experiment: Experiment) -> Experiment:
        """Return the experiment on this engine; how much KV memory there is stays as it was."""
        limits = replace(
            self.limits,
            kv_blocks=experiment.limits.kv_blocks,
            max_model_len=experiment.limits.max_model_len,
        )
        return replace(experiment, policy=self.policy, limits=limits)


def _vllm(
    name: str, title: str, speaks_for: str, *, token_budget: int, max_seqs: int
) -> EnginePreset:
    limits = EngineLimits(
        token_budget=token_budget,
        chunk_tokens=None,
        max_seqs=max_seqs,
        block_size=16,
        prefix_caching=True,
    )
    return EnginePreset(
        name=name, title=title, speaks_for=speaks_for, policy="vllm_v1", limits=limits
    )


def _sglang(name: str, title: str, memory: str, chunk_tokens: int) -> EnginePreset:
    limits = EngineLimits(chunk_tokens=chunk_tokens, block_size=1, prefix_caching=True)
    return EnginePreset(
        name=name,
        title=title,
        speaks_for=f"SGLang, GPU with {memory}; mixed chunk off",
        policy="sglang",
        limits=limits,
    )


PRESETS: dict[str, EnginePreset] = {
    preset.name: preset
    for preset in (
        _vllm(
            "vllm-16k",
            "vLLM V1, large GPU",
            "vLLM since August 2026, API server on a GPU of 70 GiB or more (A100: not verified)",
            token_budget=16_384,
            max_seqs=1_024,
        ),
        _vllm(
            "vllm-8k",
            "vLLM V1, large GPU, before August 2026",
            "vLLM V1 until August 2026, API server on a GPU of 70 GiB or more, but no A100",
            token_budget=8_192,
            max_seqs=1_024,
        ),
        _vllm(
            "vllm-2k",
            "vLLM V1, smaller GPU",
            "vLLM V1, API server on a GPU of less than 70 GiB, or on an A100",
            token_budget=2_048,
            max_seqs=256,
        ),
        _sglang("sglang-2k", "SGLang, under 20 GB", "less than 20 GB", 2_048),
        _sglang("sglang-4k", "SGLang, under 60 GB", "20 to 60 GB", 4_096),
        _sglang("sglang-8k", "SGLang, under 160 GB", "60 to 160 GB", 8_192),
        _sglang("sglang-16k", "SGLang, 160 GB or more", "160 GB or more", 16_384),
        EnginePreset(
            name="tensorrt-llm",
            title="TensorRT-LLM",
            speaks_for="TensorRT-LLM 1.x, chunked context off as it comes",
            policy="tensorrt_llm",
            limits=EngineLimits(
                token_budget=8_192,
                chunk_tokens=None,
                max_seqs=2_048,
                chunking=False,
                block_size=32,
                prefix_caching=True,
            ),
        ),
        EnginePreset(
            name="tensorrt-llm-chunked",
            title="TensorRT-LLM, chunked",
            speaks_for="TensorRT-LLM 1.x with enable_chunked_prefill",
            policy="tensorrt_llm",
            limits=EngineLimits(
                token_budget=8_192,
                chunk_tokens=None,
                max_seqs=2_048,
                block_size=32,
                prefix_caching=True,
            ),
        ),
    )
}

FLAGS: dict[str, dict[str, str]] = {
    "vllm_v1": {
        "token_budget": "--max-num-batched-tokens",
        "chunk_tokens": "--long-prefill-token-threshold",
        "max_seqs": "--max-num-seqs",
        "chunking": "--enable-chunked-prefill",
        "prefill_interval": "--prefill-schedule-interval",
        "block_size": "--block-size",
        "kv_blocks": "--num-gpu-blocks-override",
        "prefix_caching": "--enable-prefix-caching",
        "max_model_len": "--max-model-len",
    },
    "sglang": {
        "token_budget": "--max-prefill-tokens",
        "chunk_tokens": "--chunked-prefill-size",
        "max_seqs": "--max-running-requests",
        "chunking": "--chunked-prefill-size -1",
        "mixed": "--enable-mixed-chunk",
        "block_size": "--page-size",
        "kv_blocks": "--max-total-tokens",
        "prefix_caching": "--disable-radix-cache",
        "max_model_len": "--context-length",
    },
    "tensorrt_llm": {
        "token_budget": "max_num_tokens",
        "max_seqs": "max_batch_size",
        "chunking": "enable_chunked_prefill",
        "block_size": "kv_cache_config.tokens_per_block",
        "kv_blocks": "kv_cache_config.max_tokens",
        "prefix_caching": "kv_cache_config.enable_block_reuse",
        "max_model_len": "max_seq_len",
    },
}
"""By policy, what the engine calls each of our knobs."""


def flag(policy: str, knob: str) -> str | None:
    """Return the engine's own name for a knob of `EngineLimits`, None where it has none."""
    return FLAGS.get(policy, {}).get(knob)


COUNTED_IN_TOKENS = frozenset({"sglang", "tensorrt_llm"})
"""Policies whose engines size the KV pool in tokens: blocks x block size."""


def flag_words(policy: str, knob: str) -> str | None:
    """Return the engine's own name for a knob, with its unit where that is not ours."""
    name = flag(policy, knob)
    if name is None:
        return None
    tokens = knob == "kv_blocks" and policy in COUNTED_IN_TOKENS
    return f"`{name}`" + (" (tokens: blocks × block size)" if tokens else "")


READS: dict[str, frozenset[str]] = {
    policy: frozenset(knobs)
    for policy, knobs in {
        "chunked": ("token_budget", "chunk_tokens", "max_seqs", "chunking"),
        "whole_prompt": ("token_budget", "max_seqs"),
        "request_level": ("token_budget", "max_seqs"),
        "prefill_first": ("token_budget", "max_seqs"),
        "vllm_v1": ("token_budget", "chunk_tokens", "max_seqs", "chunking"),
        "sglang": ("token_budget", "chunk_tokens", "max_seqs", "chunking", "mixed"),
        "tensorrt_llm": ("token_budget", "chunk_tokens", "max_seqs", "chunking"),
        "slo_adaptive": ("token_budget", "chunk_tokens", "max_seqs"),
        "disaggregated": ("token_budget", "chunk_tokens", "max_seqs", "chunking"),
    }.items()
}
"""By policy, the knobs that change what it plans, those of the KV pool and the interval aside."""

TITLES: dict[str, str] = {
    "chunked": "Chunked",
    "whole_prompt": "Whole prompts",
    "request_level": "Request level",
    "prefill_first": "Prefill first",
    "vllm_v1": "vLLM V1",
    "sglang": "SGLang",
    "tensorrt_llm": "TensorRT-LLM",
    "slo_adaptive": "SLO-adaptive",
    "disaggregated": "Disaggregated",
}
"""By policy, what it is called on the page."""

ABOUT: dict[str, str] = {
    "chunked": "The chapter's, Sarathi-Serve's stall-free batching: decodes first, then slices of "
    "prompts, from one budget.",
    "whole_prompt": "Orca's: every step takes whole prompts beside the decodes.",
    "request_level": "FasterTransformer's: a batch decodes to its very end before new prompts "
    "enter.",
    "prefill_first": "Early vLLM's: waiting prompts first, in steps of their own; decodes stand "
    "still.",
    "vllm_v1": "Running requests in the order of their admission, each as much as cap and budget "
    "leave, then the head of the queue.",
    "sglang": "A step is prefill or decode, prefill first, and one prompt at a time is cut.",
    "tensorrt_llm": "Generation first, then chunks in whole KV blocks.",
    "slo_adaptive": "The largest slice whose predicted step still meets the ITL target.",
    "disaggregated": "One worker prefills, another decodes, and the KV travels between them.",
}
"""By policy, what it does, in one sentence."""
