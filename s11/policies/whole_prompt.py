"""Chunking off: iteration-level scheduling of whole prompts.

Source: Yu et al., "Orca: A Distributed Serving System for Transformer-Based Generative
Models", OSDI 2022: requests join at every iteration, a prompt is one indivisible slice, and
the running decodes ride along. With a finite budget a longer prompt can never run, and first
come first served makes everyone behind it wait for ever.
"""

from __future__ import annotations

from s11.plan import Batch, BlockedBy, EngineLimits, PrefillSlice, StepPlan


def whole_prompt(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every decode its token, then add whole prompts while the next one fits."""
    budget_left = limits.tokens_per_step() - batch.decoding
    seats_left = limits.seats() - batch.decoding
    slices: list[PrefillSlice] = []

    for request in batch.waiting:
        prompt_tokens = batch.remaining_tokens[request]
        if seats_left <= 0:
            return StepPlan(slices, BlockedBy.SEATS)
        if prompt_tokens > budget_left:
            return StepPlan(slices, BlockedBy.CHUNKING_OFF)
        slices.append(PrefillSlice(request, prompt_tokens))
        budget_left -= prompt_tokens
        seats_left -= 1

    return StepPlan(slices, None)
