"""Options of the command line that do nothing beside the others: each is told of, and kept."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

from s11.experiment import Experiment
from s11.policies import CHUNKING, DISAGGREGATED, POLICIES
from s11.presets import PRESETS

READERS: dict[str, Collection[str]] = {
    "chunk_tokens": CHUNKING,
    "mixed": ("sglang",),
    "align_first_chunk": ("chunked", "vllm_v1", DISAGGREGATED),
    "prefill_interval": [name for name in POLICIES if name not in ("request_level", DISAGGREGATED)],
    "kv_bytes_per_token": (DISAGGREGATED,),
    "link_bytes_per_s": (DISAGGREGATED,),
    "link_latency_ms": (DISAGGREGATED,),
}
"""By option, the schedulers that read it; what is not here all of them read."""

REPLACED_BY: dict[str, tuple[str, ...]] = {
    "chunk_tokens": ("chunk_tokens_list", "chunk_sizes"),
    "no_chunking": ("policies",),
    "token_budget": ("token_budgets",),
    "policy": ("policies",),
    "seed": ("seeds",),
    "smallest": ("chunk_tokens_list", "token_budgets", "rates", "policies", "seeds"),
}
"""By option, those beside which nothing is left for it to say.

`--no-chunking` is a switch, as on the pages: the chunk size that it leaves unused is no mistake.
"""


def ignored(experiment: Experiment, given: Mapping[str, Any]) -> Iterator[str]:
    """Yield a sentence for each option that does nothing beside the others.

    experiment: what the options describe; `policies` among the given are run in place of its own.
    given: the options that were given, by name.
    """
    replaced = {
        name: other
        for name, others in REPLACED_BY.items()
        for other in others
        if name in given and other in given
    }
    for name, other in replaced.items():
        yield f"{name}: {given[name]} does nothing beside {other}"
    given = {name: value for name, value in given.items() if name not in replaced}
    policies = tuple(given.get("policies") or (experiment.policy,))
    for name, readers in READERS.items():
        if name in given and not set(readers) & set(policies):
            yield (
                f"{name}: {given[name]} does nothing with the scheduler {', '.join(policies)} "
                f"(read by {', '.join(readers)})"
            )
    # vLLM with chunking off refuses what is longer than the cap, so it reads the cap.
    if "chunk_tokens" in given and not experiment.limits.chunking and set(policies) != {"vllm_v1"}:
        yield f"chunk_tokens: {given['chunk_tokens']} does nothing{_whole_prompts(given)}"


def _whole_prompts(given: Mapping[str, Any]) -> str:
    engine = given.get("engine")
    if engine is None:
        return ", as the experiment has chunking off"
    policy = PRESETS[engine].policy
    on = [p.name for p in PRESETS.values() if p.policy == policy and p.limits.chunking]
    return f": the engine {engine} takes prompts whole (read by {', '.join(on)})"
