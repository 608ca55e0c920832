"""What stands above the timeline: the finding, the parameters, and what the pinned state is."""

from __future__ import annotations

from dataclasses import replace

from s11.costs import RooflineCost
from s11.experiment import Experiment
from s11.metrics import Metrics
from s11.plan import EngineLimits
from s11.presets import TITLES
from s11.results import Result
from s11.verdict import Explanation, Verdict
from s11.words import count, ms


def on_a_machine(experiment: Experiment) -> bool:
    """Return whether a model and a GPU say what a step takes."""
    return isinstance(experiment.cost, RooflineCost)


def title(experiment: Experiment, explanation: Explanation) -> str:
    """Return the finding, short enough for a phone."""
    if explanation.verdict is Verdict.SMOOTH:
        return f"No stream waits over {ms(experiment.itl_target_ms)}"
    if explanation.verdict is Verdict.STALL:
        return f"{explanation.headline} for {count(experiment.workload.streaming_users, 'stream')}"
    return explanation.headline


def _load(experiment: Experiment, result: Result) -> tuple[str, str, str]:
    """Name the prompts, how they are cut, and the streams."""
    requests, limits = experiment.workload.requests, experiment.limits
    longest = max((request.prompt_tokens for request in requests), default=0)
    prompt = f"{longest:,}-token prompt"
    if len(requests) > 1:
        prompt = f"{len(requests):,} prompts of {count(longest, 'token')}"
    how = "unlimited chunks" if experiment.chunking else "whole"
    if experiment.chunking and limits.chunk_tokens:
        how = f"{limits.chunk_tokens:,}-token chunks"
        largest = int(result.prefilling.slices.tokens.max(initial=0))
        if largest < min(limits.chunk_tokens, longest) and largest:  # something else cut them
            how = f"chunks of up to {count(largest, 'token')}"
    return prompt, how, count(experiment.workload.streaming_users, "streaming user")


def caption(experiment: Experiment, result: Result) -> list[str]:
    """Return the lines with the parameters."""
    limits, cost = experiment.limits, experiment.cost
    prompt, how, users = _load(experiment, result)
    budget = f", budget {limits.token_budget:,}" if limits.token_budget else ""
    load = [f"{prompt}, {how}, {users}{budget}"]
    if experiment.policy not in ("chunked", "whole_prompt"):  # one line would be cut at 390 px
        load = [f"{prompt}, {how}", f"{users}, {TITLES[experiment.policy]}{budget}"]
    target = f"target {experiment.itl_target_ms:g} ms"
    if not on_a_machine(experiment):
        return [*load, f"{cost.formula()}, {target}, s11"]
    context = f"contexts of {count(experiment.workload.user_context_tokens, 'token')}"
    return [*load, f"{cost.formula()}, {target}", f"{context}, simulated by s11"]


def pinned_caption(
    its: Experiment, result: Result, metrics: Metrics, *, beside: Experiment
) -> tuple[str, ...]:
    """Say what A is, as far as it differs beside its chunks, and its figures."""
    prompts, chunks, _ = _load(its, result)
    parts = ["chunking off" if chunks == "whole" else chunks]
    if its.workload.requests != beside.workload.requests:
        parts.insert(0, prompts)
    if its.workload.streaming_users != beside.workload.streaming_users:
        parts.append(count(its.workload.streaming_users, "user"))
    if its.policy != beside.policy and {its.policy, beside.policy} != {"chunked", "whole_prompt"}:
        parts.append(TITLES[its.policy])
    if _limits_beside_chunks(its) != _limits_beside_chunks(beside):
        parts.append("other limits")
    if its.cost != beside.cost:
        parts.append("other costs")
    figures = f"stall {ms(metrics.longest_stall_ms)}, TTFT {ms(metrics.ttft_ms)}"
    told = f"A, outlined: {', '.join(parts)}"
    return (f"{told}, {figures}",) if len(parts) == 1 else (told, f"A: {figures}")


def _limits_beside_chunks(experiment: Experiment) -> EngineLimits:
    return replace(experiment.limits, chunk_tokens=None, chunking=True)
