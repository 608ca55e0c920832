"""“Chunking improves the mean ITL”: the mean hardly moves, the longest does.

Streams that get the same number of tokens wait for the same prefill, in one piece or in many: the
same area under their gaps. What chunking changes is the shape.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from functools import lru_cache

from s11.checks import require_int
from s11.costs import AnyCost
from s11.costs.breakdown import Floats
from s11.experiment import Experiment
from s11.metrics import Metrics, measure
from s11.simulator import simulate
from s11.workload import chapter_scenario

TOKENS_EACH, LEAD_IN_STEPS = 100, 10
MOST_CHUNKS = TOKENS_EACH - LEAD_IN_STEPS
KEPT = 64


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Gaps:
    """What each stream saw while one long prompt came: the gap before each of its tokens."""

    gap_ms: Floats  # (TOKENS_EACH,) the same for every stream
    metrics: Metrics
    prefill_steps: int


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class GapsBoth:
    """The same streams and the same prompt, taken whole and in chunks."""

    prompt_tokens: int
    chunk_tokens: int
    streaming_users: int
    whole: Gaps
    chunked: Gaps


@lru_cache(maxsize=KEPT)
def gaps_both(
    cost: AnyCost, *, prompt_tokens: int, chunk_tokens: int, streaming_users: int
) -> GapsBoth:
    """Return the gaps of streams that get `TOKENS_EACH` tokens each, with and without chunking.

    Raises:
        ValueError: nobody streams, or more chunks than the streams have tokens for.
    """
    require_int("streaming_users", streaming_users, 1, 1_024)
    chunks = math.ceil(prompt_tokens / chunk_tokens)
    require_int("chunks", chunks, 1, MOST_CHUNKS)
    scenario = chapter_scenario(prompt_tokens=prompt_tokens, streaming_users=streaming_users)
    base = Experiment(workload=scenario, cost=cost).with_chunk_tokens(chunk_tokens)

    def run(experiment: Experiment, prefill_steps: int) -> Gaps:
        tail = TOKENS_EACH - LEAD_IN_STEPS - prefill_steps
        workload = replace(scenario, lead_in_steps=LEAD_IN_STEPS, tail_steps=tail)
        result = simulate(replace(experiment, workload=workload))
        return Gaps(
            gap_ms=result.steps.duration_ms,
            metrics=measure(result, itl_target_ms=experiment.itl_target_ms),
            prefill_steps=prefill_steps,
        )

    return GapsBoth(
        prompt_tokens=prompt_tokens,
        chunk_tokens=chunk_tokens,
        streaming_users=streaming_users,
        whole=run(base.chunking_off(), 1),
        chunked=run(base, chunks),
    )
