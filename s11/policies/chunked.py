"""Stall-free batching, the chapter's scheduler.

Source: Agrawal et al., "Taming Throughput-Latency Tradeoff in LLM Inference with
Sarathi-Serve", OSDI 2024, Algorithm 3: decodes first, then unfinished prefills, then new
ones, all from one token budget.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, PrefillSlice, StepPlan


def chunked(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every decode its token, then slice prompts into what is left of the budget."""
    budget_left = limits.tokens_per_step() - batch.decoding
    seats_left = limits.seats() - batch.decoding - len(batch.prefilling)
    chunk_cap = limits.tokens_per_slice()
    slices: list[PrefillSlice] = []
    blocked_by = None
    full_chunks = []

    for queue, needs_seat in ((batch.prefilling, False), (batch.waiting, True)):
        for request in queue:
            if needs_seat and seats_left <= 0:
                blocked_by = BlockedBy.SEATS
                break
            remaining = batch.remaining_tokens[request]
            take = int(min(remaining, budget_left, chunk_cap))
            if take <= 0:
                blocked_by = BlockedBy.TOKEN_BUDGET
                break
            slices.append(PrefillSlice(request, take))
            full_chunks.append(remaining // take)
            budget_left -= take
            seats_left -= needs_seat
        if blocked_by:
            break

    return StepPlan(slices, blocked_by, min(full_chunks, default=1))
