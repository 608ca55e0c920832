"""Chunking off: iteration-level scheduling of whole prompts.

Source: Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative
Models", OSDI 2022: requests join at every iteration, a prompt is one indivisible slice, and
the running decodes ride along. With a finite budget a longer prompt can never run, and first
come first served makes everyone behind it wait for ever.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import Room, Take, admit, beside_decodes, go_on, keep


def whole_prompt(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every decode its token, then add whole prompts while the next one fits."""
    room = beside_decodes(batch, limits)
    go_on(room, whole)
    preempting = keep(room, VictimOrder.DECODES_FIRST)
    if preempting:
        return preempting
    admit(room, whole)
    return StepPlan(room.slices, room.blocked_by)


def whole(wanted: int, room: Room) -> Take:
    """Give all that is wanted, or nothing."""
    fits = wanted <= room.budget_left
    return (wanted, None) if fits else (0, BlockedBy.CHUNKING_OFF)
