"""Why a request never runs, or never ends."""

from __future__ import annotations

from s11.experiment import Experiment
from s11.plan import BlockedBy
from s11.results import Result
from s11.verdict import Explanation, Verdict
from s11.words import count, ms


def why_refused(experiment: Experiment, result: Result) -> Explanation:
    """Return that every request is longer than the model's maximum length."""
    longest, refused = experiment.limits.max_model_len or 0, len(result.rejected)
    prompt_tokens = experiment.workload.requests[0].prompt_tokens
    what = f"The {prompt_tokens:,}-token prompt is"
    if refused > 1:
        what = f"All {refused:,} prompts are"
    it = "It is" if refused == 1 else "They are"
    return Explanation(
        verdict=Verdict.REFUSED,
        headline=f"{what} refused",
        sentence=f"{it} longer than the model's maximum length of {count(longest, 'token')}.",
    )


def why_never_scheduled(experiment: Experiment, result: Result) -> Explanation:
    """Return what the first request that never began met, and who waits behind it."""
    first = result.never_scheduled[0]
    prompt_tokens = next(
        r.prompt_tokens for r in experiment.workload.requests if r.request_id == first
    )
    users, limits = experiment.workload.streaming_users, experiment.limits
    beside = f" beside {count(users, 'decode')}" if users else ""
    budget = f"{count(limits.token_budget or 0, 'token')} a step"
    decodes = f"the {count(users, 'running decode')}"
    take = "takes" if users == 1 else "take"
    because = BlockedBy(result.never_scheduled_because or BlockedBy.TOKEN_BUDGET)
    reason = {
        BlockedBy.CHUNKING_OFF: (
            f"with chunking off its {count(prompt_tokens, 'token')} are one indivisible slice, and "
            f"the budget of {budget} cannot hold it{beside}"
        ),
        BlockedBy.TOKEN_BUDGET: f"{decodes} {take} the whole budget of {budget}",
        BlockedBy.CHUNK_CAP: (
            f"{decodes} {take} all of the {count(limits.chunk_tokens or 0, 'token')} that a mixed "
            "step may hold"
        ),
        BlockedBy.ALIGNMENT: _less_than_a_block(experiment),
        BlockedBy.SEATS: (
            f"the {count(users, 'streaming user')} hold every one of the "
            + (
                count(limits.max_seqs, "seat")
                if limits.max_seqs
                else f"{count(limits.token_budget or 0, 'seat')} that the token budget allows"
            )
        ),
        BlockedBy.KV_BLOCKS: (
            f"it needs more than the {count(limits.kv_blocks or 0, 'KV block')} of "
            f"{count(limits.block_size, 'token')}"
        ),
        BlockedBy.BATCH_RUNNING: (
            f"no prompt enters while a batch runs, and the {count(users, 'streaming user')} "
            f"{'goes' if users == 1 else 'go'} on for ever"
        ),
        BlockedBy.ITL_TARGET: (
            f"beside {decodes} not one prompt token fits in a step of "
            f"{ms(experiment.itl_target_ms)}"
        ),
    }.get(because, f"it is held back for ever ({because})")
    behind = len(result.never_scheduled) - 1
    waiting = (
        f" {count(behind, 'request')} behind it {'waits' if behind == 1 else 'wait'} for ever too."
        if behind
        else ""
    )
    return Explanation(
        verdict=Verdict.NEVER_SCHEDULED,
        headline=f"The {prompt_tokens:,}-token prompt never runs",
        sentence=f"It is never scheduled: {reason}.{waiting}",
    )


def _less_than_a_block(experiment: Experiment) -> str:
    """Return why not even one block fits into a step."""
    users, limits = experiment.workload.streaming_users, experiment.limits
    block = f"one block of {count(limits.block_size, 'token')}"
    most = min(limits.tokens_per_step(), limits.tokens_per_slice())
    if not users or most < limits.block_size:
        return f"a chunk of at most {count(int(most), 'token')} is less than {block}"
    return f"the {count(users, 'running decode')} leave less of a step than {block}"


def why_never_finished(experiment: Experiment, result: Result) -> Explanation:
    """Return why the first request that began and cannot end cannot."""
    first, limits = result.never_finished[0], experiment.limits
    request = next(r for r in experiment.workload.requests if r.request_id == first)
    tokens = request.prompt_tokens + request.output_tokens - 1
    blocks = -(-tokens // limits.block_size)
    sentence = f"{first} began and can never get its last token."
    if limits.kv_blocks and blocks > limits.kv_blocks:
        sentence = (
            f"{first} grows to {count(tokens, 'token')}, {count(blocks, 'KV block')}; the pool has "
            f"{limits.kv_blocks:,}. So it is preempted, computed again and preempted for ever, and "
            "nobody behind it gets in."
        )
    return Explanation(
        verdict=Verdict.NEVER_FINISHED, headline=f"{first} never finishes", sentence=sentence
    )
