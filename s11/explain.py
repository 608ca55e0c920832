"""One sentence that is true of this result."""

from __future__ import annotations

from dataclasses import replace

from s11.experiment import Experiment
from s11.explain_never import why_never_finished, why_never_scheduled, why_refused
from s11.metrics import Metrics
from s11.results import Result
from s11.sweeps import longest_prompt_tokens
from s11.verdict import Explanation, Verdict
from s11.words import count, ms, times


def explain(
    experiment: Experiment, result: Result, metrics: Metrics, *, whole: Metrics | None
) -> Explanation:
    """Return what happened, from the result.

    whole: the figures with chunking off; None holds the result against nothing.
    """
    requests = experiment.workload.requests
    if not requests:
        return Explanation(
            verdict=Verdict.NO_REQUEST,
            headline="No prompt",
            sentence="No request arrives, so every step only decodes.",
        )
    if len(result.rejected) == len(requests):
        return why_refused(experiment, result)
    if result.never_finished:
        return why_never_finished(experiment, result)
    if result.never_scheduled:
        return why_never_scheduled(experiment, result)
    if result.stopped_at_max_steps:
        return Explanation(
            verdict=Verdict.STOPPED,
            headline=f"Stopped after {count(metrics.step_count, 'step')}",
            sentence=(
                f"This run is longer than the {count(metrics.step_count, 'step')} that one run "
                "may take here, so its figures are of the part that was run. Choose a larger "
                "chunk or a shorter prompt."
            ),
        )
    if metrics.longest_stall_ms is None:
        told = _nobody_streams(experiment, result, metrics, whole)
    elif metrics.longest_stall_ms > experiment.itl_target_ms:
        told = _stall(experiment, result, metrics, whole)
    else:
        told = _smooth(experiment, result, metrics, whole)
    return replace(told, sentence=told.sentence + _memory(metrics) + _refused(result))


def _refused(result: Result) -> str:
    if not result.rejected:
        return ""
    few = len(result.rejected) == 1
    return (
        f" {count(len(result.rejected), 'request')} {'was' if few else 'were'} refused: longer "
        "than the model's maximum length."
    )


def _memory(metrics: Metrics) -> str:
    """Return what preemptions and the prefix cache did, "" where they did nothing."""
    sentence = ""
    if metrics.preemptions:
        sentence += (
            f" The KV blocks ran short: {count(metrics.preemptions, 'preemption')}, after each of "
            "which prompt and outputs are computed again."
        )
    if metrics.cached_tokens:
        sentence += f" The prefix cache held {count(metrics.cached_tokens, 'prompt token')}."
    return sentence


def _prefill_steps(result: Result) -> int:
    return int((result.prefilling.steps.prefill_tokens > 0).sum())


def _one_step_prompt(experiment: Experiment, result: Result) -> bool:
    workload = experiment.workload
    alone = len(workload.requests) == 1 and workload.streaming_users > 0
    return alone and _prefill_steps(result) == 1


def _nobody_streams(
    experiment: Experiment, result: Result, metrics: Metrics, whole: Metrics | None
) -> Explanation:
    prompts = len(experiment.workload.requests)
    steps = count(_prefill_steps(result), "step")
    first = "its first token comes" if prompts == 1 else "the longest one's first token comes"
    sentence = (
        f"{'The prompt takes' if prompts == 1 else f'The {prompts:,} prompts take'} {steps} and "
        f"{first} after {ms(metrics.ttft_ms)}"
    )
    if whole is None:
        pass
    elif whole.ttft_ms is None:
        sentence += "; with chunking off it would never run"
    elif whole.ttft_ms != metrics.ttft_ms:
        sentence += f"; with chunking off it would come after {ms(whole.ttft_ms)}"
    moral, whole_ttft_ms = "", whole and whole.ttft_ms
    if experiment.chunking and prompts == 1 and whole_ttft_ms not in (None, metrics.ttft_ms):
        moral = " Without a stream to protect, chunking only costs."
    return Explanation(
        verdict=Verdict.NOBODY_STREAMS,
        headline="Nobody is streaming, so nothing can stall",
        sentence=f"{sentence}.{moral}",
    )


def _longest_hold(result: Result) -> int:
    """Return the most steps in a row in which running decodes got no token."""
    longest = now = 0
    for held in result.steps.held_decodes.tolist():
        now = now + 1 if held else 0
        longest = max(longest, now)
    return longest


def _stall(
    experiment: Experiment, result: Result, metrics: Metrics, whole: Metrics | None
) -> Explanation:
    target, stall = experiment.itl_target_ms, metrics.longest_stall_ms or 0.0
    users = experiment.workload.streaming_users
    who = f"all {count(users, 'stream')}" if users > 1 else "the stream"
    least_ms = experiment.first_step_ms(0)
    if users and least_ms > target:
        return Explanation(
            verdict=Verdict.TARGET_OUT_OF_REACH,
            headline=f"No chunk size can meet {ms(target)}",
            sentence=(
                f"A step that only decodes for {count(users, 'user')} already takes "
                f"{ms(least_ms)}, over the target of {ms(target)}; the longest stall is "
                f"{ms(stall)}."
            ),
        )
    held = _longest_hold(result)
    if held:
        steps = f"For {count(held, 'step')} in a row" if held > 1 else "For one step"
        return Explanation(
            verdict=Verdict.STALL,
            headline=f"A {ms(stall)} freeze" if held == 1 else f"Stalls of up to {ms(stall)}",
            sentence=(
                f"{steps} prompts run by themselves and no stream gets a token; with the decode "
                f"step after, {who} {'waits' if users == 1 else 'wait'} {ms(stall)}, "
                f"{times(stall / target)} the target."
            ),
        )
    if _one_step_prompt(experiment, result):
        prompt_tokens, chunk = longest_prompt_tokens(experiment), experiment.limits.chunk_tokens
        same = ""
        if experiment.chunking:
            relation = "equals" if chunk == prompt_tokens else "is not smaller than"
            same = f" The chunk {relation} the prompt, so this is the same as chunking off."
        return Explanation(
            verdict=Verdict.STALL,
            headline=f"A {ms(stall)} freeze",
            sentence=(
                f"One step carries the whole {prompt_tokens:,}-token prompt, and {who} "
                f"{'wait' if users > 1 else 'waits'} {ms(stall)} for it, "
                f"{times(stall / target)} the target.{same}"
            ),
        )
    over = metrics.steps_over_target
    return Explanation(
        verdict=Verdict.STALL,
        headline=f"Stalls of up to {ms(stall)}",
        sentence=(
            f"{count(over, 'step')} of {metrics.step_count:,} "
            f"{'is' if over == 1 else 'are'} over the target of {ms(target)}; "
            f"the longest that a stream waits for is {ms(stall)}{_against_whole(stall, whole)}."
        ),
    )


def _against_whole(stall_ms: float, whole: Metrics | None) -> str:
    """Return how much shorter the longest stall is than with chunking off, where it is."""
    other_ms = whole and whole.longest_stall_ms
    if not other_ms or not stall_ms or other_ms < 1.05 * stall_ms:
        return ""
    return f", {times(other_ms / stall_ms)} less than the {ms(other_ms)} with chunking off"


def _smooth(
    experiment: Experiment, result: Result, metrics: Metrics, whole: Metrics | None
) -> Explanation:
    stall = metrics.longest_stall_ms or 0.0
    users = experiment.workload.streaming_users
    if _one_step_prompt(experiment, result):
        same = ""
        if experiment.chunking:
            same = " The chunk holds the whole prompt, so this is the same as chunking off."
        return Explanation(
            verdict=Verdict.SMOOTH,
            headline=f"No stall over {ms(experiment.itl_target_ms)}",
            sentence=(
                f"The whole prompt fits in one step of {ms(stall)}, within the target of "
                f"{ms(experiment.itl_target_ms)}.{same}"
            ),
        )
    steps = count(_prefill_steps(result), "prefill step")
    sentence = f"{steps} of {count(metrics.step_count, 'step')} carry prompt tokens"
    if result.prefill_worker is not None:
        travel_ms = experiment.hand_over.duration_ms(longest_prompt_tokens(experiment))
        sentence = (
            f"Another worker prefills, in {count(_prefill_steps(result), 'step')}, and the longest "
            f"prompt's KV travels {ms(travel_ms)}; no decode step carries a prompt token"
        )
    elif result.steps.held_decodes.any():
        sentence += ", and in some of them the streams stand still"
    elif users and experiment.chunking and len(experiment.workload.requests) == 1:
        size = f"at most {count(int(result.prefilling.slices.tokens.max()), 'prompt token')}"
        sentence = f"Each of {steps} carries {size} and a token for each of {count(users, 'user')}"
    sentence += f"; the longest wait of a stream is {ms(stall)}"
    if whole and whole.longest_stall_ms and whole.longest_stall_ms > stall * 1.05:
        sentence += (
            f", {times(whole.longest_stall_ms / stall)} less than the "
            f"{ms(whole.longest_stall_ms)} of chunking off"
        )
    if whole and metrics.ttft_ms and whole.ttft_ms and metrics.ttft_ms > whole.ttft_ms:
        more = f"{ms(metrics.ttft_ms - whole.ttft_ms)} more TTFT"
        if (whole.longest_stall_ms or 0.0) > stall:
            sentence += f". The long prompt pays for it with {more}"
        else:
            sentence += f". Chunking costs the long prompt {more} here, and nobody gains by it"
    headline = f"No stall over {ms(experiment.itl_target_ms)}"
    return Explanation(verdict=Verdict.SMOOTH, headline=headline, sentence=sentence + ".")
