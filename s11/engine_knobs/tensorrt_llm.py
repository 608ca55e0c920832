"""TensorRT-LLM's knobs.

Read in stored copies of tensorrt_llm/llmapi/llm_args.py and tensorrt_llm/commands/serve.py (1.x,
2026), and in docs/source/features/paged-attention-ifb-scheduler.md.
"""

from __future__ import annotations

from s11.engine_knobs.row import TENSORRT_LLM, EngineKnob

ARGS = "tensorrt_llm/llmapi/llm_args.py, a copy of 2026"
DOCUMENT = "docs/source/features/paged-attention-ifb-scheduler.md at commit 0c6a62a"
VERSION = "1.x, 2026"

TENSORRT_LLM_KNOBS = (
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="max_num_tokens",
        default="8,192",
        version="since v0.11; 1.x, 2026",
        meaning="Most tokens in one step, generation and context together.",
        knob="token_budget",
        values=(8_192,),
        source=f"{ARGS}; {DOCUMENT}",
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="max_batch_size",
        default="2,048",
        version=VERSION,
        meaning="Most requests that are scheduled at once.",
        knob="max_seqs",
        values=(2_048,),
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="enable_chunked_prefill",
        default="off",
        version=VERSION,
        meaning="Chunked context: cut a prompt to what is left of the budget, in whole blocks.",
        knob="chunking",
        values=(False,),
        source=f"{ARGS}; {DOCUMENT} (which advises to turn it on)",
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="scheduler_config.capacity_scheduler_policy",
        default="GUARANTEED_NO_EVICT",
        version=VERSION,
        meaning="Admit only what can run to its end, or as much as fits, and pause some later.",
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="scheduler_config.context_chunking_policy",
        default="none",
        version=VERSION,
        meaning="Share the chunks out first come, first served, or with equal progress.",
        source=ARGS,
        unverified="what the runtime takes where none is given",
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="kv_cache_config.tokens_per_block",
        default="32",
        version=VERSION,
        meaning="Tokens in one KV block, and the unit of a chunk.",
        knob="block_size",
        values=(32,),
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="kv_cache_config.enable_block_reuse",
        default="on",
        version=VERSION,
        meaning="Keep KV blocks, and skip what another prompt begins with alike.",
        knob="prefix_caching",
        values=(True,),
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="kv_cache_config.max_tokens",
        default="none: from the memory share",
        version=VERSION,
        meaning="Tokens in the KV pool: blocks times block size.",
        knob="kv_blocks",
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="kv_cache_config.free_gpu_memory_fraction",
        default="0.9 of what the weights leave",
        version=VERSION,
        meaning="Share of the free GPU memory for the KV pool.",
        source=ARGS,
    ),
    EngineKnob(
        engine=TENSORRT_LLM,
        flag="max_seq_len",
        default="none: the model's own",
        version=VERSION,
        meaning="Longest sequence that is served, prompt and answer.",
        knob="max_model_len",
        source=ARGS,
    ),
)
