"""Many experiments: the chunk-size sweep, its knee, and the largest chunk within a target."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from s11.checks import MAX_TOKENS, require_int
from s11.experiment import Experiment
from s11.metrics import Metrics, inter_token_gaps, measure
from s11.simulator import DEFAULT_MAX_STEPS, simulate


@dataclass(frozen=True, slots=True, kw_only=True)
class SweepPoint:
    """One chunk size and what it gives."""

    chunk_tokens: int
    itl_p99_ms: float | None
    longest_stall_ms: float | None
    ttft_ms: float | None
    prefill_tokens_per_s: float | None
    steps_over_target: int
    step_count: int


MOST_TRIED = 5_000


def chunk_sizes(*, smallest: int, largest: int) -> tuple[int, ...]:
    """Return `smallest`, its doublings below `largest`, and `largest`, in tokens.

    Raises:
        ValueError: a size below 1, or the smallest above the largest.
    """
    require_int("largest chunk", largest, 1, MAX_TOKENS)
    require_int("smallest chunk", smallest, 1, largest)
    sizes = []
    while smallest < largest:
        sizes.append(smallest)
        smallest *= 2
    return (*sizes, largest)


def sweep_chunk_sizes(
    experiment: Experiment,
    sizes: Sequence[int],
    *,
    progress: Callable[[int, int], None] | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
) -> tuple[SweepPoint, ...]:
    """Return a point for each chunk size; `prefill_tokens_per_s` is over the long prompt's TTFT.

    `progress` is called with (done, all) after each run.
    """
    prompt_tokens = longest_prompt_tokens(experiment)
    points = []
    for done, size in enumerate(sizes, start=1):
        metrics = run(experiment.with_chunk_tokens(size), max_steps=max_steps)
        ttft_ms = metrics.ttft_ms
        points.append(
            SweepPoint(
                chunk_tokens=size,
                itl_p99_ms=metrics.itl_p99_ms,
                longest_stall_ms=metrics.longest_stall_ms,
                ttft_ms=ttft_ms,
                prefill_tokens_per_s=1000 * prompt_tokens / ttft_ms if ttft_ms else None,
                steps_over_target=metrics.steps_over_target,
                step_count=metrics.step_count,
            )
        )
        if progress:
            progress(done, len(sizes))
    return tuple(points)


def run(experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS) -> Metrics:
    """Return the figures of one experiment against its own target."""
    result = simulate(experiment, max_steps=max_steps)
    return measure(result, itl_target_ms=experiment.itl_target_ms)


def longest_prompt_tokens(experiment: Experiment) -> int:
    """Return the size of the longest prompt, 0 where there is none."""
    return max((request.prompt_tokens for request in experiment.workload.requests), default=0)


def knee(points: Sequence[SweepPoint]) -> SweepPoint | None:
    """Return the point with the least stall x TTFT; None where neither is known anywhere.

    There the two are in balance: a larger chunk would cost as large a share of smoothness
    as it would save of the wait for the first token. With the linear model it lies where a
    chunk's own work equals the rest of its step: stall a + bc, TTFT (a + bc) n/c, product
    (a + bc)^2 n/c, least at c = a/b.
    """
    known = [p for p in points if p.longest_stall_ms and p.ttft_ms]
    return min(known, key=lambda p: (p.longest_stall_ms or 0) * (p.ttft_ms or 0), default=None)


def largest_chunk_within_target(
    experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS
) -> int | None:
    """Return the largest chunk, in tokens, with which no step and no gap exceeds the ITL target.

    A step that holds one full chunk bounds it from above. Where all prompts arrive together
    and nobody decodes after them, a larger chunk never makes the longest step shorter, and
    bisection finds the rest. Otherwise it can (prompts may meet in a step at one chunk size
    and miss each other at another): the sizes below the bound are tried one by one, at most
    `MOST_TRIED` of them, then bisection goes on below.

    None where even one-token chunks exceed the target, or no prompt ever runs.
    """
    target_ms, users = experiment.itl_target_ms, experiment.workload.streaming_users
    requests = experiment.workload.requests
    together = len({request.arrival_ms for request in requests}) == 1
    in_blocks = experiment.policy in ("sglang", "tensorrt_llm")
    monotone = (
        together and not in_blocks and all(request.output_tokens == 1 for request in requests)
    )
    apart = experiment.policy == "sglang" and not experiment.limits.mixed
    counted = users if experiment.policy == "sglang" and experiment.limits.mixed else 0

    def alone(chunk_tokens: int) -> bool:
        """Whether a step with one full chunk meets the target: cut to blocks, where it is."""
        if in_blocks:
            chunk_tokens = max(0, chunk_tokens - counted)
            chunk_tokens -= chunk_tokens % experiment.limits.block_size
        step_ms = experiment.cost.step_ms(
            prefill_tokens=chunk_tokens, decode_tokens=0 if apart else users
        )
        return step_ms <= target_ms

    def meets(chunk_tokens: int) -> bool:
        result = simulate(experiment.with_chunk_tokens(chunk_tokens), max_steps=max_steps)
        gaps_ms, tokens = inter_token_gaps(result)
        over = bool((result.steps.duration_ms > target_ms).any())
        over = over or bool((gaps_ms[tokens > 0] > target_ms).any())  # decodes can stand still
        # Of a run that was cut, the steps not seen are known only where none is longer.
        known = monotone or not result.stopped_at_max_steps
        return known and not over and bool(result.prefilling.steps.prefill_tokens.any())

    longest = longest_prompt_tokens(experiment)
    if longest == 0:
        return None
    if meets(longest):
        return longest
    if apart and users:  # the streams stand still for all of a prompt: more chunks, longer
        return None
    bound = _largest(alone, longest)
    for size in range(bound, max(0, bound - (1 if monotone else MOST_TRIED)), -1):
        if meets(size):
            return size
    return _largest(meets, bound - 1) or None


def _largest(holds: Callable[[int], bool], highest: int) -> int:
    """Return the largest whole number from 1 to `highest` that holds, 0 where none does.

    By bisection: right where a number holds whenever a larger one does.
    """
    low, high = 0, max(0, highest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
