"""The proof that a schedule changes nothing: run it for real, and compare with serving alone.

Whatever a scheduler does (cut prompts, preempt, share prefixes, hand KV over), every request
must get the tokens that it gets alone, bit for bit. Here the decoder of `s11.attention`
computes what a simulation scheduled.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from s11.attention import Decoder, RequestComparison, generate, verify_execution
from s11.experiment import Experiment
from s11.results import Result
from s11.simulator import simulate
from s11.workload import HASH_BLOCK_TOKENS, Request

Tokens = NDArray[np.int64]


def prove(
    experiment: Experiment, *, decoder: Decoder, seed: int = 0, max_steps: int = 100_000
) -> dict[str, RequestComparison]:
    """Execute an experiment's schedule; return how each request compares with itself alone.

    Streaming users are served too: a few tokens of prompt, computed before the first step.
    """
    result = simulate(experiment, max_steps=max_steps)
    requests, users = experiment.workload.requests, result.streaming_users
    prompts = prompt_tokens(requests, decoder=decoder, seed=seed)
    names = [f"user-{number}" for number in range(1, users + 1)]
    draw = np.random.default_rng(seed + 1)
    output_tokens: dict[str, int | None] = {r.request_id: r.output_tokens for r in requests}
    for name in names:
        prompts[name] = draw.integers(0, decoder.config.vocab_size, 3)
        output_tokens[name] = None
    return verify_execution(
        executed_steps(result),
        prompts,
        decoder=decoder,
        output_tokens=output_tokens,
        already_prefilled=frozenset(names),
        preempted=result.preempted(),
        cached=result.cached(),
    )


def executed_steps(result: Result) -> list[dict[str, int]]:
    """Return the steps' batches; those of two workers in the order in which they ended."""
    steps = list(result.schedule())
    if result.prefill_worker is None:
        return steps
    other = list(result.prefill_worker.schedule())
    ends_ms = [*result.steps.end_ms.tolist(), *result.prefill_worker.steps.end_ms.tolist()]
    order = sorted(range(len(ends_ms)), key=ends_ms.__getitem__)
    return [[*steps, *other][at] for at in order]


def prompt_tokens(
    requests: Sequence[Request], *, decoder: Decoder, seed: int
) -> dict[str, Tokens]:  # (p,) each
    """Return token ids for the requests' prompts: shared where they share, else their own.

    What continues another request begins with its prompt and the outputs that it gets.
    """
    draw = np.random.default_rng(seed)
    vocab_size = decoder.config.vocab_size
    longest: dict[str, int] = {}
    for request in requests:
        if request.shared_group is not None:
            group = request.shared_group
            longest[group] = max(longest.get(group, 0), request.shared_tokens)
    common = {group: draw.integers(0, vocab_size, tokens) for group, tokens in longest.items()}
    by_id = {request.request_id: request for request in requests}
    prompts: dict[str, Tokens] = {}
    hashed: dict[tuple[int, ...], Tokens] = {}  # by a beginning's ids, its last block

    def begin(request: Request) -> Tokens:
        if request.hash_ids:
            beginnings = [request.hash_ids[: n + 1] for n in range(len(request.hash_ids))]
            for ids in beginnings:
                if ids not in hashed:
                    hashed[ids] = draw.integers(0, vocab_size, HASH_BLOCK_TOKENS)
            return np.concatenate([hashed[ids] for ids in beginnings])[: request.prompt_tokens]
        if request.shared_group is not None:
            return common[request.shared_group][: request.shared_tokens]
        if request.continues is None:
            return np.empty(0, dtype=np.int64)
        before = by_id[request.continues]
        served = generate(prompts[before.request_id], before.output_tokens, decoder=decoder)
        return np.concatenate([prompts[before.request_id], served.tokens])

    left = list(requests)
    while left:
        ready = [r for r in left if r.continues is None or r.continues in prompts]
        for request in ready:
            beginning = begin(request)
            own = draw.integers(0, vocab_size, request.prompt_tokens - len(beginning))
            prompts[request.request_id] = np.concatenate([beginning, own])
        left = [r for r in left if r.request_id not in prompts]
    return prompts
