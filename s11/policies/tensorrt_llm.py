"""TensorRT-LLM's in-flight batching: generation first, chunks in units of the KV block.

Source: NVIDIA TensorRT-LLM, docs/source/features/paged-attention-ifb-scheduler.md and
cpp/tensorrt_llm/batch_manager/microBatchScheduler.cpp: generation requests take their tokens
of `max_num_tokens`, context requests share the rest first come first served, and a chunk that
is not the last of its prompt is rounded down to whole blocks. Without chunked context a
prompt is taken whole.
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
    repeated,
)
from s11.policies.whole_prompt import whole_prompt


def tensorrt_llm(batch: Batch, limits: EngineLimits) -> StepPlan:
    """Give every generation its token, then contexts in whole blocks."""
    if not limits.chunking:
        return whole_prompt(batch, limits)
    room = beside_decodes(batch, limits)
    go_on(room, _whole_blocks)
    preempting = keep(room, VictimOrder.DECODES_FIRST)
    if preempting:
        return preempting
    admit(room, _whole_blocks)
    return repeated(room, floored=True)


def _whole_blocks(wanted: int, room: Room) -> Take:
    """Give what budget and cap allow, rounded down to blocks where it is not all."""
    tokens, limited_by = budget_and_cap(wanted, room)
    if limited_by is None or tokens <= 0:
        return (tokens, limited_by)
    floored = tokens - tokens % room.limits.block_size
    return (floored, limited_by if floored else BlockedBy.ALIGNMENT)
