"""SGLang: a step is prefill or decode, prefill first, and one request at a time is cut.

Source: SGLang, python/sglang/srt/managers/schedule_policy.py (`PrefillAdder`) and
scheduler.py (`get_next_batch_to_run`): `chunked_prefill_size` is the prompt tokens of a whole
step; the request that does not fit is cut to whole pages, goes on first in the next step, and
nobody comes after it. With `enable_mixed_chunk` the running decodes ride along and their
number is taken from those tokens; otherwise they stand still.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan, VictimOrder
from s11.policies.passes import Room, Take, admit, go_on
from s11.policies.whole_prompt import whole


def sglang(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Prefill while there is anything to prefill; otherwise decode."""
    order = VictimOrder.DECODES_FIRST
    budget, seats = limits.tokens_per_step(), limits.seats()
    if not limits.mixed:
        seats = min(seats, budget)  # a decode step needs a token for each
    if limits.chunking:
        budget = min(budget, limits.tokens_per_slice())
    room = Room(
        batch,
        limits,
        budget - (batch.decoding if limits.mixed else 0),
        seats - batch.decoding - len(batch.prefilling),
    )
    share = _one_cut if limits.chunking else whole
    go_on(room, share)
    if room.slices or limits.mixed:
        preempted = batch.memory.hold(room.slices, order, decodes=limits.mixed)
        if preempted:
            gone = set(preempted)
            slices = [part for part in room.slices if part.request not in gone]
            decodes = limits.mixed or not slices
            if decodes and not limits.mixed:  # the prefill itself had to go: then decode
                preempted = [*preempted, *batch.memory.hold((), order)]
            return StepPlan(slices, BlockedBy.PREEMPTION, preempted=preempted, decodes=decodes)
    admit(room, share)
    if room.slices or limits.mixed:
        return StepPlan(room.slices, room.blocked_by, decodes=limits.mixed)
    preempted = batch.memory.hold((), order)
    return StepPlan((), BlockedBy.PREEMPTION if preempted else room.blocked_by, preempted=preempted)


def _one_cut(wanted: int, room: Room) -> Take:
    """Give all that is wanted, or the rest of the step in whole pages; after that, no more."""
    limits, page = room.limits, room.limits.block_size
    least_is_cap = limits.tokens_per_slice() <= limits.tokens_per_step()
    used_up = BlockedBy.CHUNK_CAP if least_is_cap else BlockedBy.TOKEN_BUDGET
    if room.slices and room.slices[-1].limited_by:
        return (0, BlockedBy.ONE_AT_A_TIME)
    if wanted <= room.budget_left:
        return (wanted, None)
    if room.budget_left <= 0:
        return (0, used_up)
    tokens = int(room.budget_left) // page * page
    return (tokens, used_up if tokens else BlockedBy.ALIGNMENT)
