"""The schedulers, the slow and plain way: one request after another, blocks as it goes.

A policy changes its worker's lists while it plans, as vLLM's scheduler does.
"""

from collections.abc import Callable

from s11.plan import BlockedBy
from tests.reference_plan import Call, Plan, Take, one


def whole_prompts(plan: Plan) -> Take:
    def take(call: Call, wanted: int, newcomer: bool) -> int:
        if wanted <= plan.budget_left:
            return wanted
        return plan.stop(BlockedBy.CHUNKING_OFF, call)

    return take


def floored(tokens: float, block_size: int) -> int:
    return int(max(tokens, 0) // block_size) * block_size


def whole_prompt(plan: Plan) -> None:
    plan.budget_left -= len(plan.worker.users)
    take = whole_prompts(plan)
    plan.run(plan.decodes_first(), one, take)
    plan.admit(take, plan.limits.seats())


def chunked(plan: Plan, target_ms: float | None = None) -> None:
    limits = plan.limits
    if not limits.chunking:
        whole_prompt(plan)
        return

    def take(call: Call, wanted: int, newcomer: bool) -> int:
        tokens = int(min(wanted, max(plan.budget_left, 0), limits.tokens_per_slice()))
        if tokens == 0:
            return plan.stop(BlockedBy.TOKEN_BUDGET, call)
        cut_by_budget = plan.budget_left < min(wanted, limits.tokens_per_slice())
        if limits.align_first_chunk and newcomer and cut_by_budget:
            tokens = floored(tokens, limits.block_size)
            if tokens == 0:
                return plan.stop(BlockedBy.ALIGNMENT, call)
        decodes = len(plan.worker.users) + len(plan.decoded)
        if target_ms is not None and decodes:
            so_far = sum(slice_tokens for _, slice_tokens, _ in plan.slices)
            context = sum(c.in_cache for c in [*plan.worker.users, *plan.decoded])
            context += sum(c.in_cache for c, _, _ in plan.slices) + len(call.known) - wanted
            while tokens and plan.worker.duration_ms(so_far + tokens, decodes, context) > target_ms:
                tokens -= 1
            if tokens == 0:
                return plan.stop(BlockedBy.ITL_TARGET, call)
        return tokens

    plan.budget_left -= len(plan.worker.users)
    plan.run(plan.decodes_first(), one, take)
    plan.admit(take, limits.seats())


def slo_adaptive(plan: Plan) -> None:
    chunked(plan, plan.worker.itl_target_ms)


def vllm_v1(plan: Plan) -> None:
    limits = plan.limits

    def take_running(call: Call, wanted: int, newcomer: bool) -> int:
        tokens = int(min(wanted, limits.tokens_per_slice(), plan.budget_left))
        if tokens == 0 and not call.decoding:
            plan.meet(BlockedBy.TOKEN_BUDGET, call)
        return tokens

    def take_waiting(call: Call, wanted: int, newcomer: bool) -> int:
        tokens = min(wanted, limits.tokens_per_slice())
        if not limits.chunking and tokens > plan.budget_left:
            return plan.stop(BlockedBy.CHUNKING_OFF, call)
        cut_by_budget = plan.budget_left < tokens
        tokens = int(min(tokens, plan.budget_left))
        if tokens == 0:
            return plan.stop(BlockedBy.TOKEN_BUDGET, call)
        if limits.align_first_chunk and cut_by_budget:
            tokens = floored(tokens, limits.block_size)
            if tokens == 0:
                return plan.stop(BlockedBy.ALIGNMENT, call)
        return tokens

    plan.budget_left -= len(plan.worker.users)
    plan.run(list(plan.worker.running), take_running, take_running)
    plan.admit(take_waiting, limits.seats())


def prefill_first(plan: Plan) -> None:
    plan.admit(whole_prompts(plan), min(plan.limits.seats(), plan.limits.tokens_per_step()))
    if plan.slices:
        plan.decodes_run = False
    else:
        plan.run(plan.decodes_first(), one, None)


def request_level(plan: Plan) -> None:
    if plan.running():
        plan.run(plan.decodes_first(), one, None)
        if plan.worker.waiting:
            plan.meet(BlockedBy.BATCH_RUNNING, plan.worker.waiting[0])
    else:
        plan.admit(whole_prompts(plan), plan.limits.seats())


def sglang(plan: Plan) -> None:
    limits, budget, cut = plan.limits, plan.limits.tokens_per_step(), False
    if limits.chunking:
        budget = min(budget, limits.tokens_per_slice())
    plan.budget_left = budget

    def take(call: Call, wanted: int, newcomer: bool) -> int:
        nonlocal cut
        if cut:
            return plan.stop(BlockedBy.ONE_AT_A_TIME, call)
        if wanted <= plan.budget_left:
            return wanted
        if not limits.chunking:
            return plan.stop(BlockedBy.CHUNKING_OFF, call)
        if plan.budget_left <= 0:
            capped = limits.tokens_per_slice() <= limits.tokens_per_step()
            return plan.stop(BlockedBy.CHUNK_CAP if capped else BlockedBy.TOKEN_BUDGET, call)
        tokens = floored(plan.budget_left, limits.block_size)
        if tokens == 0:
            return plan.stop(BlockedBy.ALIGNMENT, call)
        cut = True
        return tokens

    if limits.mixed:
        plan.budget_left -= len(plan.worker.users)
        plan.run(plan.decodes_first(), one, take)
        plan.admit(take, limits.seats())
        return
    plan.run(plan.decodes_first(), None, take)
    plan.admit(take, min(limits.seats(), limits.tokens_per_step()))
    if plan.slices:
        plan.decodes_run = False
    else:
        plan.run(plan.decodes_first(), one, None)


def tensorrt_llm(plan: Plan) -> None:
    limits = plan.limits

    def take(call: Call, wanted: int, newcomer: bool) -> int:
        tokens = min(wanted, max(plan.budget_left, 0))
        if not limits.chunking:
            return wanted if tokens == wanted else plan.stop(BlockedBy.CHUNKING_OFF, call)
        if tokens == 0:
            return plan.stop(BlockedBy.TOKEN_BUDGET, call)
        tokens = min(tokens, limits.tokens_per_slice())
        if tokens < wanted:
            tokens = floored(tokens, limits.block_size)
        return int(tokens) if tokens else plan.stop(BlockedBy.ALIGNMENT, call)

    plan.budget_left -= len(plan.worker.users)
    plan.run(plan.decodes_first(), one, take)
    plan.admit(take, limits.seats())


def handed_over(plan: Plan) -> None:
    """A decode worker: whoever comes has its KV with it."""
    seats = min(plan.limits.seats(), plan.limits.tokens_per_step())
    waiting, running = plan.worker.waiting, plan.worker.running
    while waiting and plan.running() < seats:
        running.append(waiting.pop(0))
        plan.admitted.append((running[-1], 0))
    if waiting:
        plan.meet(BlockedBy.SEATS, waiting[0])
    plan.decoded = list(running)


def held(plan: Plan, policy: str) -> None:
    """The prefill interval lets no prefill into this step."""
    plan.held = True
    in_order = policy == "vllm_v1"
    plan.run(list(plan.worker.running) if in_order else plan.decodes_first(), one, None)
    wants = [call for call in plan.worker.running if not call.decoding] + plan.worker.waiting
    if wants:
        plan.meet(BlockedBy.PREFILL_INTERVAL, wants[0])


POLICIES: dict[str, Callable[[Plan], None]] = {
    "whole_prompt": whole_prompt,
    "chunked": chunked,
    "vllm_v1": vllm_v1,
    "prefill_first": prefill_first,
    "request_level": request_level,
    "sglang": sglang,
    "tensorrt_llm": tensorrt_llm,
    "slo_adaptive": slo_adaptive,
    "handed_over": handed_over,
}
