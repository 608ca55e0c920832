"""Many experiments: the chunk-size sweep, and its knee."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from s11.checks import MAX_TOKENS, require_int
from s11.experiment import Experiment
from s11.kv_pool import in_its_memory
from s11.metrics import Metrics, measure
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
    points = []
    for done, size in enumerate(sizes, start=1):
        points.append(sweep_point(experiment, size, max_steps=max_steps))
        if progress:
            progress(done, len(sizes))
    return tuple(points)


def sweep_point(
    experiment: Experiment, chunk_tokens: int, *, max_steps: int = DEFAULT_MAX_STEPS
) -> SweepPoint:
    """Return what one chunk size gives."""
    metrics = run(experiment.with_chunk_tokens(chunk_tokens), max_steps=max_steps)
    ttft_ms, prompt_tokens = metrics.ttft_ms, longest_prompt_tokens(experiment)
    return SweepPoint(
        chunk_tokens=chunk_tokens,
        itl_p99_ms=metrics.itl_p99_ms,
        longest_stall_ms=metrics.longest_stall_ms,
        ttft_ms=ttft_ms,
        prefill_tokens_per_s=1000 * prompt_tokens / ttft_ms if ttft_ms else None,
        steps_over_target=metrics.steps_over_target,
        step_count=metrics.step_count,
    )


def run(experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS) -> Metrics:
    """Return the figures of one experiment, in its machine's memory, against its own target."""
    result = simulate(in_its_memory(experiment), max_steps=max_steps)
    return measure(result, itl_target_ms=experiment.itl_target_ms)


def longest_prompt_tokens(experiment: Experiment) -> int:
    """Return the size of the longest prompt, 0 where there is none."""
    return max((request.prompt_tokens for request in experiment.workload.requests), default=0)


def knee(points: Sequence[SweepPoint]) -> SweepPoint | None:
    """Return the point with the least stall x TTFT; None where neither is known anywhere.

    There the two are in balance: a larger chunk would cost as large a share of smoothness
    as it would save of the wait for the first token. With the linear model it lies where a
    chunk's own work equals the rest of its step: stall a + bc, TTFT (a + bc) n/c, product
    (a + bc)^2 n/c, least at c = a/b. With a roofline the same holds of the slope b that it has
    there: flat while the weights' read covers the chunk's arithmetic, steep beyond.
    """
    known = [p for p in points if p.longest_stall_ms and p.ttft_ms]
    return min(known, key=lambda p: (p.longest_stall_ms or 0) * (p.ttft_ms or 0), default=None)
