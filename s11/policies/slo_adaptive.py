"""Chunks sized by the clock: the largest slice whose predicted step still meets the ITL target.

Source: the idea of dynamic chunk sizes under a latency target, as in Agrawal et al.
(Sarathi-Serve, OSDI 2024, section 4.3: the token budget from the TBT target) made per step,
and Agrawal et al., "Medha", 2024 (adaptive chunking). The prediction is the cost model's own,
so here it is never wrong; on a machine it is.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import Room, Take, admit, beside_decodes, budget_and_cap, go_on, keep


def slo_adaptive(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every decode its token, then slice prompts into what is left of the target."""
    room = beside_decodes(batch, limits)
    go_on(room, _within_target)
    preempting = keep(room, VictimOrder.DECODES_FIRST)
    if preempting:
        return preempting
    admit(room, _within_target)
    return StepPlan(room.slices, room.blocked_by)


def _within_target(wanted: int, room: Room) -> Take:
    """Give what budget and cap allow, in a step that no decode finds too long.

    Where nobody decodes there is no ITL to keep.
    """
    batch = room.batch
    most, limited_by = budget_and_cap(wanted, room)

    given = [
        (
            batch.known_tokens[part.request]
            - batch.remaining_tokens[part.request]
            + part.cached_tokens,
            part.tokens,
        )
        for part in room.slices
    ]

    def meets(tokens: int) -> bool:
        step_ms = batch.step_ms(
            prefill_tokens=room.given + tokens,
            decode_tokens=batch.decoding,
            slices=[*given, (batch.known_tokens[room.asked] - wanted, tokens)],
            decode_context_tokens=batch.decode_context_tokens,
        )
        return step_ms <= batch.itl_target_ms

    if most <= 0 or not batch.decoding or meets(most):
        return most, limited_by
    low, high = 0, most  # a longer step for more tokens: bisection finds the most
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if meets(middle) else (low, middle)
    return (low, BlockedBy.ITL_TARGET)
