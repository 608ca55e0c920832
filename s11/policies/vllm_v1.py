"""vLLM V1: no phases. Every request just has tokens to catch up on.

Source: vLLM, vllm/v1/core/sched/scheduler.py, `Scheduler.schedule`: running requests in the
order of their admission, each as much as it wants within the chunk cap
(`long_prefill_token_threshold`) and what is left of the budget
(`max_num_batched_tokens`); then the head of the waiting queue, and nobody past it. Blocks
run short: the latest admitted goes, and nobody is admitted in that step.

In admission order decodes stand among unfinished prefills, yet no decode is ever left out for
want of budget: whoever runs ahead of it got at most as much as when it was admitted, and then
there was budget for it too. So the order tells only who is preempted. (With V0's
`align_first_chunk`, which V1 does not have, it could be: that is left out.)
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import (
    Room,
    Take,
    admit,
    beside_decodes,
    budget_and_cap,
    go_on,
    keep,
    newcomers,
    repeated,
)


def vllm_v1(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give the running what they want, in admission order, then admit the queue's head."""
    room = beside_decodes(batch, limits)
    go_on(room, budget_and_cap)
    preempting = keep(room, VictimOrder.ADMISSION)
    if preempting:
        return preempting
    admit(room, newcomers(limits) if limits.chunking else _cap_or_nothing)
    return repeated(room)


def _cap_or_nothing(wanted: int, room: Room) -> Take:
    """Give a newcomer with chunking off its cap first, and then all of that or nothing."""
    cap = room.limits.tokens_per_slice()
    if min(wanted, cap) > room.budget_left:
        return (0, BlockedBy.CHUNKING_OFF)
    return (wanted, None) if wanted <= cap else (int(cap), BlockedBy.CHUNK_CAP)
