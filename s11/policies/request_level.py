"""Request-level batching: a batch decodes to its very end before new prompts enter.

Source: NVIDIA FasterTransformer, as Yu et al. (Orca, OSDI 2022, section 2) and Agrawal et al.
(Sarathi-Serve, OSDI 2024, section 2.4) describe it.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import admit, beside_decodes
from s11.policies.whole_prompt import whole


def request_level(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Decode as long as anyone runs; then prefill the next batch, whole prompts together."""
    if not batch.decoding:
        room = beside_decodes(batch, limits)
        admit(room, whole)
        return StepPlan(room.slices, room.blocked_by)
    preempted = batch.memory.hold((), VictimOrder.DECODES_FIRST)
    blocked_by = BlockedBy.BATCH_RUNNING if batch.waiting else None
    if preempted:
        blocked_by = BlockedBy.PREEMPTION
    return StepPlan((), blocked_by, preempted=preempted)
