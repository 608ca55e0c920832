"""Why a request got less than it wanted in a step, or nothing, in words."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.plan import BlockedBy
from s11.words import count, ms


def cut_words(reason: BlockedBy, experiment: Experiment) -> str:
    """Return why a request got some of the tokens that it wants, and not all."""
    cap = f"{experiment.limits.chunk_tokens or 0:,}"
    if reason is BlockedBy.CHUNK_CAP:
        whose = "of a whole step" if experiment.policy == "sglang" else "of one request"
        return f"the chunk cap {whose} is {cap}"
    if reason is BlockedBy.TOKEN_BUDGET:
        return "no more is left of the token budget"
    if reason is BlockedBy.ITL_TARGET:
        return f"more would break the ITL target of {ms(experiment.itl_target_ms)}"
    return f"cut by the {reason}"


def blocked_words(
    reason: BlockedBy, *, experiment: Experiment, left: int | None, free_blocks: int | None
) -> str:
    """Return why the first request that got nothing got nothing.

    Args:
        reason: what the engine noted.
        experiment: for the limits, the policy and the ITL target.
        left: tokens of the budget that this step had left for it; None without a budget.
        free_blocks: KV blocks that nobody holds in this step; None where they are ample.
    """
    limits = experiment.limits
    if reason is BlockedBy.CHUNKING_OFF:
        room = f"the {count(left, 'token')} left of the budget" if left is not None else "the room"
        return f"it is taken whole or not at all, and {room} {'is' if left == 1 else 'are'} too few"
    if reason is BlockedBy.ALIGNMENT:
        return (
            "what is left of the step is less than a whole block of "
            f"{count(limits.block_size, 'token')}"
        )
    if reason is BlockedBy.SEATS:
        if limits.max_seqs is not None and limits.max_seqs <= limits.tokens_per_step():
            return (
                "the only seat is taken"
                if limits.max_seqs == 1
                else (f"all {limits.max_seqs:,} seats are taken")
            )
        return f"the budget of {limits.token_budget or 0:,} has no decode token for one more"
    if reason is BlockedBy.KV_BLOCKS:
        if free_blocks is None:
            return "too few KV blocks are free"
        verb = "is" if free_blocks == 1 else "are"
        return f"only {count(free_blocks, 'KV block')} {verb} free, too few for it"
    return {
        BlockedBy.TOKEN_BUDGET: "nothing is left of the token budget",
        BlockedBy.CHUNK_CAP: f"a step's {limits.chunk_tokens or 0:,} prompt tokens are used up",
        BlockedBy.PREEMPTION: "nobody is admitted in a step that preempted",
        BlockedBy.HEAD_OF_LINE: "it stands behind another",
        BlockedBy.ONE_AT_A_TIME: "another prompt is cut, and only one at a time may be",
        BlockedBy.BATCH_RUNNING: "the running batch decodes to its end first",
        BlockedBy.PREFILL_FIRST: "waiting prompts go first",
        BlockedBy.PREFILL_INTERVAL: (
            f"the prefill interval of {limits.prefill_interval} lets no prompt into this step"
        ),
        BlockedBy.ITL_TARGET: (
            f"one token more would break the ITL target of {ms(experiment.itl_target_ms)}"
        ),
    }[reason]
