"""The knobs of llama.cpp and LMDeploy, whose schedulers are not simulated as they come.

Read in stored copies of tools/server/README.md of llama.cpp and of lmdeploy/cli/utils.py and
lmdeploy/messages.py of LMDeploy.
"""

from __future__ import annotations

from s11.engine_knobs.row import LLAMA_CPP, LMDEPLOY, EngineKnob

SERVER = "tools/server/README.md at commit 00dc805"
LLAMA_VERSION = "llama-server, 2026"
CLI = "lmdeploy/messages.py at commit 9f134dc; lmdeploy/cli/utils.py, a copy of 2025"
LMDEPLOY_VERSION = "TurboMind, 2025"

LLAMA_CPP_KNOBS = (
    EngineKnob(
        engine=LLAMA_CPP,
        flag="-b",
        also="--batch-size",
        default="2,048",
        version=LLAMA_VERSION,
        meaning="Logical batch: most tokens of one step, running answers and prompts together.",
        knob="token_budget",
        values=(2_048,),
        source=SERVER,
    ),
    EngineKnob(
        engine=LLAMA_CPP,
        flag="-ub",
        also="--ubatch-size",
        default="512",
        version=LLAMA_VERSION,
        meaning="Physical batch: the pieces in which the device computes the logical one; they "
        "save memory, and the streams still wait for the whole of it.",
        source=SERVER,
    ),
    EngineKnob(
        engine=LLAMA_CPP,
        flag="-np",
        also="--parallel",
        default="-1: automatic",
        version=LLAMA_VERSION,
        meaning="Server slots: most requests at once, which share the context.",
        knob="max_seqs",
        source=SERVER,
        unverified="how many slots automatic gives",
    ),
    EngineKnob(
        engine=LLAMA_CPP,
        flag="-cb",
        also="--cont-batching",
        default="on",
        version=LLAMA_VERSION,
        meaning="Let requests join and leave between steps.",
        source=SERVER,
    ),
    EngineKnob(
        engine=LLAMA_CPP,
        flag="--cache-prompt",
        default="on",
        version=LLAMA_VERSION,
        meaning="Keep a slot's KV, and skip what its next prompt begins with alike.",
        knob="prefix_caching",
        values=(True,),
        source=SERVER,
    ),
    EngineKnob(
        engine=LLAMA_CPP,
        flag="-c",
        also="--ctx-size",
        default="0: the model's own",
        version=LLAMA_VERSION,
        meaning="Tokens of context that the server holds.",
        knob="max_model_len",
        source=SERVER,
    ),
)

LMDEPLOY_KNOBS = (
    EngineKnob(
        engine=LMDEPLOY,
        flag="--max-prefill-token-num",
        default="8,192",
        version="TurboMind, 2025; PyTorch engine 4,096 there, 8,192 in a later copy",
        meaning="Most prompt tokens of one iteration; longer prompts are cut to it.",
        knob="chunk_tokens",
        values=(8_192, 4_096),
        source=CLI,
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--num-tokens-per-iter",
        default="0: not used",
        version=LMDEPLOY_VERSION,
        meaning="Tokens that one forward pass aims at, decodes first, as in Dynamic SplitFuse.",
        knob="token_budget",
        source=f"{CLI}; issue 1740",
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--max-prefill-iters",
        default="1",
        version=LMDEPLOY_VERSION,
        meaning="Most passes that one prompt is spread over; 1 takes it whole, whatever the "
        "tokens per iteration.",
        source=f"{CLI}; issue 1740",
        unverified="whether the command line passes it on (pull request 3504 says it did not)",
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--max-batch-size",
        default="none: by the device",
        version=LMDEPLOY_VERSION,
        meaning="Most requests that run at once.",
        knob="max_seqs",
        source=CLI,
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--enable-prefix-caching",
        default="off",
        version=LMDEPLOY_VERSION,
        meaning="Keep KV blocks, and skip what another prompt begins with alike.",
        knob="prefix_caching",
        values=(False,),
        source=CLI,
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--cache-block-seq-len",
        default="64",
        version=LMDEPLOY_VERSION,
        meaning="Tokens in one KV block.",
        knob="block_size",
        values=(64,),
        source=CLI,
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--cache-max-entry-count",
        default="0.8 of what the weights leave",
        version="since v0.2.2; 2025",
        meaning="Share of the free GPU memory for the KV pool.",
        source=CLI,
    ),
    EngineKnob(
        engine=LMDEPLOY,
        flag="--session-len",
        default="none: the model's own",
        version=LMDEPLOY_VERSION,
        meaning="Longest sequence that is served, prompt and answer.",
        knob="max_model_len",
        source=CLI,
    ),
)
