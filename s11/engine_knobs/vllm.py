"""vLLM's knobs.

Read in stored copies of vllm/config/scheduler.py, vllm/config/cache.py and
vllm/engine/arg_utils.py (`get_batch_defaults`), and in the pull requests that are named.
"""

from __future__ import annotations

from s11.engine_knobs.row import VLLM, EngineKnob

SCHEDULER = "vllm/config/scheduler.py at commit 1f8758d"
NEWER = "vllm/config/scheduler.py, a copy of mid-2026"
CACHE = "vllm/config/cache.py at commit c1d8642"
BATCH = "vllm/engine/arg_utils.py, get_batch_defaults, copies of 2025 and 2026"

VLLM_KNOBS = (
    EngineKnob(
        engine=VLLM,
        flag="--max-num-batched-tokens",
        default="16,384 with 70 GiB of GPU memory or more, 2,048 below",
        version="API server since August 2026; until then 8,192 with 70 GiB or more (A100: 2,048)",
        meaning="Most tokens in one step, decodes and prompt tokens together.",
        knob="token_budget",
        values=(16_384, 8_192, 2_048),
        source=f"{BATCH}; pull request 51726 of 10 August 2026 (8,192 to 16,384)",
        unverified="whether the A100 still has 2,048 after that change",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--long-prefill-token-threshold",
        default="0: no cap",
        version="V1",
        meaning="Most prompt tokens of one request in one step, so that others fit in too.",
        knob="chunk_tokens",
        source=SCHEDULER,
    ),
    EngineKnob(
        engine=VLLM,
        flag="--max-num-seqs",
        default="1,024 with 70 GiB of GPU memory or more, 256 below",
        version="V1, API server, 2025 and 2026 (A100: 256)",
        meaning="Most requests that run at once; a budget below it is refused.",
        knob="max_seqs",
        values=(1_024, 256),
        source=BATCH,
    ),
    EngineKnob(
        engine=VLLM,
        flag="--enable-chunked-prefill",
        default="on",
        version="V1; V0 turned it on only for some models",
        meaning="Cut a prompt to what is left of the budget; V1 warns of turning it off.",
        knob="chunking",
        values=(True,),
        source="docs/configuration/optimization.md, V1; vllm/engine/arg_utils.py",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--max-num-partial-prefills",
        default="1",
        version="V0 alone: V1 refused any other value, and July 2026 removed the flag",
        meaning="Most prompts that may be half computed at the same time.",
        source="pull requests 10235 (V0) and 49244 (removal, July 2026)",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--max-long-partial-prefills",
        default="1",
        version="V0 alone: V1 refused any other value, and July 2026 removed the flag",
        meaning="Of these, most that are longer than the threshold, so that short ones may pass.",
        source="pull requests 10235 (V0) and 49244 (removal, July 2026)",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--prefill-schedule-interval",
        default="1: every step",
        version="since v0.24, 2026; data-parallel engines alone",
        meaning="Let prompts begin only in every n-th step, the same one on all ranks.",
        knob="prefill_interval",
        values=(1,),
        source=NEWER,
        note="ours holds every scheduler back, not data-parallel ranks alone",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--scheduler-reserve-full-isl",
        default="on",
        version="V1, mid-2026",
        meaning="Admit a prompt only where all of it fits in the free KV blocks.",
        knob="reserve_full_prompt",
        values=(True,),
        source=NEWER,
        note="off in the engines of this app",
        unverified="since which version it is on",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--scheduling-policy",
        default="fcfs",
        version="V1",
        meaning="Who is admitted next: first come, first served, or by priority.",
        source=SCHEDULER,
    ),
    EngineKnob(
        engine=VLLM,
        flag="--enable-prefix-caching",
        default="on",
        version="V1; V0 had it off",
        meaning="Keep the KV blocks of prompts, and skip what another prompt begins with alike.",
        knob="prefix_caching",
        values=(True,),
        source=CACHE,
    ),
    EngineKnob(
        engine=VLLM,
        flag="--block-size",
        default="16",
        version="V1 on CUDA; other platforms set their own",
        meaning="Tokens in one KV block.",
        knob="block_size",
        values=(16,),
        source=f"{CACHE}; DEFAULT_BLOCK_SIZE in a copy of 2026",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--num-gpu-blocks-override",
        default="none: measured at start",
        version="V1",
        meaning="KV blocks in the pool, in place of those that were measured.",
        knob="kv_blocks",
        source=CACHE,
    ),
    EngineKnob(
        engine=VLLM,
        flag="--gpu-memory-utilization",
        default="0.92",
        version="v0.25 to v0.30, 2026; 0.9 before",
        meaning="Share of the GPU's memory for weights, activations and the KV pool.",
        source="docs/cli/serve, stable of 2026; 0.9 in vllm/config/cache.py of 2025",
        unverified="in which version between the two it changed",
    ),
    EngineKnob(
        engine=VLLM,
        flag="--max-model-len",
        default="none: the model's own",
        version="V1",
        meaning="Longest sequence that is served, prompt and answer.",
        knob="max_model_len",
        source="docs/cli/serve, stable of 2026",
    ),
)
