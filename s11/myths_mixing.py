"""“Mixing prefill and decode is always best”: it depends on what runs.

Three ways to serve one load: steps that mix chunks and decodes; steps of their own for whole
prompts, in which the decodes stand still; a GPU for each phase, with the KV handed over between.
Each is simulated. Sources of the ways: see `s11.policies`.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache

from s11.costs import AnyCost
from s11.experiment import Experiment
from s11.metrics import Metrics, measure
from s11.plan import EngineLimits, HandOver
from s11.simulator import simulate
from s11.workload import Request, Workload

CHUNK_TOKENS, STEP_TOKENS = 512, 8_192
TOKENS_EACH, MAX_STEPS = 200, 20_000


class Load(StrEnum):
    """What there is to serve."""

    ONE_PROMPT = "one long prompt, 24 streams"
    MANY_PROMPTS = "32 prompts, 24 streams"
    PROMPTS_ONLY = "32 prompts, no stream"
    STREAMS_ONLY = "24 streams, no prompt"


class Way(StrEnum):
    """How prefill and decode share the GPUs."""

    MIXED = "mixed steps"
    OWN_STEPS = "steps of their own"
    TWO_GPUS = "a GPU for each"


STREAMS = {load: 0 if load is Load.PROMPTS_ONLY else 24 for load in Load}
PROMPTS = {  # how many, tokens of each
    Load.ONE_PROMPT: (1, 8_192),
    Load.MANY_PROMPTS: (32, 2_048),
    Load.PROMPTS_ONLY: (32, 2_048),
    Load.STREAMS_ONLY: (0, 1),
}
POLICIES = {
    Way.MIXED: "chunked",
    Way.OWN_STEPS: "prefill_first",
    Way.TWO_GPUS: "disaggregated",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Ways:
    """One load, served each way.

    prompt_tokens: of each prompt; it is cut to the longest that the model was made for.
    """

    load: Load
    prompts: int
    prompt_tokens: int
    streaming_users: int
    metrics: Mapping[Way, Metrics]

    def values(self, name: str) -> dict[Way, float]:
        """Return one figure of each way; none where there is nothing to measure."""
        told = {way: getattr(metrics, name) for way, metrics in self.metrics.items()}
        return {way: value for way, value in told.items() if value is not None}


def step_tokens(way: Way, streaming_users: int) -> int:
    """Return the token budget of a step: a mixed one has `CHUNK_TOKENS` for prompts."""
    return CHUNK_TOKENS + streaming_users if way is Way.MIXED else STEP_TOKENS


@lru_cache(maxsize=64)
def ways(cost: AnyCost, load: Load, *, most_prompt_tokens: int, kv_bytes_per_token: int) -> Ways:
    """Return a load's figures each way; every stream gets at least `TOKENS_EACH` tokens.

    most_prompt_tokens: the longest prompt that the model takes.
    kv_bytes_per_token: what travels for each prompt token where there is a GPU for each phase.
    """
    prompts, tokens = PROMPTS[load]
    tokens = min(tokens, most_prompt_tokens)
    requests = tuple(
        Request(request_id=f"prompt-{number + 1}", prompt_tokens=tokens)
        for number in range(prompts)
    )
    workload = Workload(requests=requests, streaming_users=STREAMS[load], lead_in_steps=2)
    hand_over = HandOver(kv_bytes_per_token=kv_bytes_per_token)
    return Ways(
        load=load,
        prompts=prompts,
        prompt_tokens=tokens,
        streaming_users=STREAMS[load],
        metrics={
            way: _measured(
                Experiment(
                    workload=workload,
                    policy=policy,
                    limits=EngineLimits(
                        chunk_tokens=None, token_budget=step_tokens(way, STREAMS[load])
                    ),
                    cost=cost,
                    hand_over=hand_over,
                )
            )
            for way, policy in POLICIES.items()
        },
    )


def _measured(experiment: Experiment) -> Metrics:
    """Return the figures with as long a tail as gives each stream its tokens."""
    first = simulate(experiment, max_steps=MAX_STEPS)
    had = int((first.steps.decode_tokens > 0).sum())
    workload = replace(experiment.workload, tail_steps=max(0, TOKENS_EACH - had))
    result = simulate(replace(experiment, workload=workload), max_steps=MAX_STEPS)
    return measure(result, itl_target_ms=experiment.itl_target_ms)
