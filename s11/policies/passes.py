"""What several schedulers have in common: going on with prefills, and admitting newcomers."""

from __future__ import annotations

from collections.abc import Callable

from s11.plan import Batch, BlockedBy, EngineLimits, PrefillSlice, StepPlan, VictimOrder

Take = tuple[int, BlockedBy | None]
"""How many tokens a request gets of those that it wants, and why not all."""


class Room:
    """What a step has left to give, and what it has given."""

    __slots__ = (
        "asked",
        "batch",
        "blocked_by",
        "budget_left",
        "given",
        "limits",
        "seats_left",
        "slices",
    )

    def __init__(
        self, batch: Batch, limits: EngineLimits, budget_left: float, seats_left: float
    ) -> None:
        self.batch, self.limits = batch, limits
        self.budget_left, self.seats_left = budget_left, seats_left
        self.slices: list[PrefillSlice] = []
        self.given = 0  # tokens of the slices
        self.asked = -1  # the request whose share is asked for
        self.blocked_by: BlockedBy | None = None


def beside_decodes(batch: Batch, limits: EngineLimits) -> Room:
    """Return what is left when every running decode has its token."""
    decoding = batch.decoding
    return Room(
        batch,
        limits,
        limits.tokens_per_step() - decoding,
        limits.seats() - decoding - len(batch.prefilling),
    )


Share = Callable[[int, Room], Take]
"""A policy's rule: the tokens wanted and the room left -> what the request gets."""


def budget_and_cap(wanted: int, room: Room) -> Take:
    """Give as much as the chunk cap and what is left of the budget allow."""
    budget_left, cap = room.budget_left, room.limits.chunk_tokens
    if cap is not None and cap < wanted and cap <= budget_left:
        return cap, BlockedBy.CHUNK_CAP
    if wanted <= budget_left:
        return wanted, None
    return int(budget_left), BlockedBy.TOKEN_BUDGET


def newcomers(limits: EngineLimits) -> Share:
    """Return the rule for a first chunk: whole blocks where the budget cuts it, if asked for."""
    return _aligned if limits.align_first_chunk else budget_and_cap


def _aligned(wanted: int, room: Room) -> Take:
    tokens, limited_by = budget_and_cap(wanted, room)
    if limited_by is not BlockedBy.TOKEN_BUDGET or tokens <= 0:
        return tokens, limited_by
    floored = tokens - tokens % room.limits.block_size
    return floored, limited_by if floored else BlockedBy.ALIGNMENT


def go_on(room: Room, share: Share) -> None:
    """Give the partly prefilled requests their next slices, in admission order."""
    batch = room.batch
    for request in batch.prefilling:
        if batch.prefill_held:
            room.blocked_by = BlockedBy.PREFILL_INTERVAL
            return
        room.asked = request
        tokens, limited_by = share(batch.remaining_tokens[request], room)
        if tokens <= 0:
            room.blocked_by = limited_by
            return
        room.slices.append(PrefillSlice(request, tokens, limited_by))
        room.budget_left -= tokens
        room.given += tokens


def keep(room: Room, order: VictimOrder) -> StepPlan | None:
    """Take the blocks for all that runs; where someone is preempted, that is the whole step."""
    preempted = room.batch.memory.hold(room.slices, order)
    if not preempted:
        return None
    gone = set(preempted)
    slices = [part for part in room.slices if part.request not in gone]
    return StepPlan(slices, BlockedBy.PREEMPTION, preempted=preempted)


def admit(room: Room, share: Share) -> None:
    """Admit the head of the queue, and the next; it is never overtaken."""
    batch, memory = room.batch, room.batch.memory
    if room.blocked_by or not batch.waiting:
        return
    for request in batch.waiting:
        if batch.prefill_held:
            room.blocked_by = BlockedBy.PREFILL_INTERVAL
            return
        if room.seats_left <= 0:
            room.blocked_by = BlockedBy.SEATS
            return
        room.asked = request
        cached_tokens = memory.cached_tokens(request)
        tokens, limited_by = share(batch.remaining_tokens[request] - cached_tokens, room)
        if tokens <= 0:
            room.blocked_by = limited_by
            return
        if not memory.admit(request, cached_tokens, tokens):
            room.blocked_by = BlockedBy.KV_BLOCKS
            return
        room.slices.append(PrefillSlice(request, tokens, limited_by, cached_tokens))
        room.budget_left -= tokens
        room.given += tokens
        room.seats_left -= 1


def repeated(room: Room, *, floored: bool = False) -> StepPlan:
    """Return the plan, with how often it would come out the same: until a prompt is complete.

    With `floored` slices the last time is left out: what is left then can fit unfloored.
    """
    steps, remaining_tokens = 0, room.batch.remaining_tokens
    for request, tokens, limited_by, cached_tokens in room.slices:
        full = (remaining_tokens[request] - cached_tokens) // tokens if limited_by else 1
        if full < steps or not steps:
            steps = full
    if room.limits.align_first_chunk:  # a first chunk is unlike the next
        steps = 1
    return StepPlan(room.slices, room.blocked_by, max(1, steps - floored))
