"""Stall-free batching, the chapter's scheduler.

Source: Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with
Sarathi-Serve", OSDI 2024, Algorithm 3: decodes first, then unfinished prefills, then new
ones, all from one token budget.
"""

from __future__ import annotations

from s11.plan import Batch, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import (
    admit,
    beside_decodes,
    budget_and_cap,
    go_on,
    keep,
    newcomers,
    repeated,
)
from s11.policies.whole_prompt import whole_prompt


def chunked(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every decode its token, then slice prompts into what is left of the budget."""
    if not limits.chunking:
        return whole_prompt(batch, limits)
    room = beside_decodes(batch, limits)
    go_on(room, budget_and_cap)
    preempting = keep(room, VictimOrder.DECODES_FIRST)
    if preempting:
        return preempting
    admit(room, newcomers(limits))
    return repeated(room)
