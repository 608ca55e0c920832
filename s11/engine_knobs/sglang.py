"""SGLang's knobs.

Read in stored copies of docs/advanced_features/server_arguments.md and
python/sglang/srt/server_args.py.
"""

from __future__ import annotations

from s11.engine_knobs.row import SGLANG, EngineKnob

ARGUMENTS = "docs/advanced_features/server_arguments.md at commit 004813e"
MEMORY = "python/sglang/srt/server_args.py, sizes by GPU memory, copies of 2025 and 2026"

SGLANG_KNOBS = (
    EngineKnob(
        engine=SGLANG,
        flag="--chunked-prefill-size",
        default="by GPU memory: 16,384 from 160 GB, 8,192 from 60, 4,096 from 20, 2,048 below",
        version="2026; a copy of 2025 has 2,048 up to 35 GB",
        meaning="Most prompt tokens of a whole prefill step; with mixed chunk, decodes included.",
        knob="chunk_tokens",
        values=(16_384, 8_192, 4_096, 2_048),
        source=MEMORY,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--chunked-prefill-size -1",
        default="on: the size above is above 0",
        version="2026",
        meaning="A size of -1 turns chunking off: prompts are taken whole.",
        knob="chunking",
        values=(True,),
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--max-prefill-tokens",
        default="16,384",
        version="2026",
        meaning="Most prompt tokens of a prefill batch, but never below the model's longest "
        "sequence.",
        knob="token_budget",
        values=(16_384,),
        source=ARGUMENTS,
        note="the SGLang engines of this app leave it out: one long prompt passes it",
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--enable-mixed-chunk",
        default="off",
        version="2026",
        meaning="Let the running decodes ride along in prefill steps; off, they stand still.",
        knob="mixed",
        values=(False,),
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--prefill-decode-interval",
        default="none",
        version="since 2026, v0.5.20 at the latest",
        meaning="Decode rounds between one prefill batch and the next.",
        knob="prefill_interval",
        values=(1,),
        source="its help text of 2026, as others quote it",
        note="n rounds are our interval of n + 1",
        unverified="SGLang's own page was not read for this flag",
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--schedule-policy",
        default="fcfs",
        version="2026",
        meaning="Order of the queue: first come, longest cached prefix (lpm), and others.",
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--max-running-requests",
        default="none: from the KV pool",
        version="2026",
        meaning="Most requests that run at once.",
        knob="max_seqs",
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--page-size",
        default="1",
        version="2026; some attention kernels ask for more",
        meaning="Tokens in one KV page; prompts are cut to whole pages.",
        knob="block_size",
        values=(1,),
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--max-total-tokens",
        default="none: from the memory share",
        version="2026",
        meaning="Tokens in the KV pool: blocks times block size.",
        knob="kv_blocks",
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--disable-radix-cache",
        default="not given: the prefix cache is on",
        version="2026",
        meaning="Turn off the tree of cached prefixes.",
        knob="prefix_caching",
        values=(True,),
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--mem-fraction-static",
        default="worked out from GPU memory, chunk size and CUDA graphs",
        version="2026",
        meaning="Share of the GPU's memory for weights and the KV pool.",
        source=MEMORY,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--schedule-conservativeness",
        default="1.0",
        version="2026",
        meaning="How much room for answers an admission leaves; more: fewer retractions.",
        source=ARGUMENTS,
    ),
    EngineKnob(
        engine=SGLANG,
        flag="--context-length",
        default="none: the model's own",
        version="2026",
        meaning="Longest sequence that is served, prompt and answer.",
        knob="max_model_len",
        source=ARGUMENTS,
    ),
)
