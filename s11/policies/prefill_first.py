"""Early vLLM: waiting prompts first, in steps of their own, while every decode stands still.

Source: Kwon et al., "Efficient Memory Management for Large Language Model Serving with
PagedAttention", SOSP 2023, and vLLM before V1 with chunked prefill off
(vllm/core/scheduler.py, `_schedule_default`).
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import Room, admit
from s11.policies.whole_prompt import whole


def prefill_first(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Prefill whole prompts alone while any can start; otherwise decode."""
    seats = min(limits.seats(), limits.tokens_per_step())  # a decode step needs a token for each
    room = Room(batch, limits, limits.tokens_per_step(), seats - batch.decoding)
    admit(room, whole)
    if room.slices:
        return StepPlan(room.slices, room.blocked_by, decodes=False)
    preempted = batch.memory.hold((), VictimOrder.DECODES_FIRST)
    return StepPlan((), BlockedBy.PREEMPTION if preempted else room.blocked_by, preempted=preempted)
