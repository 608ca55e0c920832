"""The largest chunk within an ITL target."""

from __future__ import annotations

from collections.abc import Callable

from s11.experiment import Experiment
from s11.kv_pool import in_its_memory
from s11.metrics import inter_token_gaps
from s11.simulator import DEFAULT_MAX_STEPS, simulate
from s11.sweeps import chunk_sizes, longest_prompt_tokens

MOST_TRIED = 5_000
IN_BLOCKS = ("sglang", "tensorrt_llm")
GRAIN_TOKENS = 16
GRAINS_ABOVE, GRAINS_BELOW = 16, 8  # 256 tokens: the most rows that a kernel's tile has


def largest_chunk_within_target(
    experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS
) -> int | None:
    """Return the largest chunk, in tokens, with which no step and no gap exceeds the ITL target.

    What is returned was simulated and meets the target, whatever the cost model.

    Where counts alone say what a step costs, a step that holds one full chunk bounds it from
    above. Where all prompts arrive together and nobody decodes after them, a larger chunk never
    makes the longest step shorter, and bisection finds the rest. Otherwise it can (prompts may
    meet in a step at one chunk size and miss each other at another): the sizes below the bound
    are tried one by one, at most `MOST_TRIED` of them, then bisection goes on below.

    Where what is attended to costs too, the answer is a multiple of `GRAIN_TOKENS`, by itself or
    with the decodes that ride along (or the whole prompt; below one grain, a power of two). See
    `_largest_in_grains`.

    None where even one-token chunks exceed the target, or no prompt ever runs.
    """
    longest = longest_prompt_tokens(experiment)
    if longest == 0:
        return None
    meets = _meeting(experiment, max_steps)
    if meets(longest):
        return longest
    if _apart(experiment) and experiment.workload.streaming_users:
        return None  # the streams stand still for all of a prompt: more chunks, longer
    if not experiment.cost.counts_only:
        return _largest_in_grains(experiment, longest, meets)

    def alone(chunk_tokens: int) -> bool:
        step_ms = experiment.cost.step_ms(
            prefill_tokens=_whole_blocks(experiment, chunk_tokens),
            decode_tokens=_riding(experiment),
        )
        return step_ms <= experiment.itl_target_ms

    bound = _largest(alone, longest)
    for size in range(bound, max(0, bound - (1 if _monotone(experiment) else MOST_TRIED)), -1):
        if meets(size):
            return size
    return _largest(meets, bound - 1) or None


def longest_chunk_step_ms(experiment: Experiment, chunk_tokens: int) -> float:
    """Return what the longest step of the longest prompt takes by itself, without simulating.

    Its last full chunk attends to most, or the rest of the prompt behind it does; the streams'
    contexts have grown by a token a step by then.
    """
    workload, limits = experiment.workload, experiment.limits
    prompt_tokens, riding = longest_prompt_tokens(experiment), _riding(experiment)
    full = min(prompt_tokens, _whole_blocks(experiment, chunk_tokens))
    if limits.token_budget is not None:
        full = min(full, limits.token_budget - riding)
    if full <= 0:
        slices = [(0, 0)]
    else:
        whole_chunks, rest = divmod(prompt_tokens, full)
        slices = [((whole_chunks - 1) * full, full)]
        slices += [(whole_chunks * full, rest)] if rest else []
    steps_ms = []
    for start_token, tokens in slices:
        passed = workload.lead_in_steps + (start_token // full if full > 0 else 0)
        steps_ms.append(
            experiment.cost.step_ms(
                prefill_tokens=tokens,
                decode_tokens=riding,
                slices=((start_token, tokens),) if tokens else (),
                decode_context_tokens=riding * (workload.user_context_tokens + passed),
            )
        )
    return max(steps_ms)


def _largest_in_grains(
    experiment: Experiment, longest: int, meets: Callable[[int], bool]
) -> int | None:
    """Return the largest size below the longest prompt, of two grids, that meets the target.

    One grid is of multiples of `GRAIN_TOKENS`, the other of sizes that are such multiples
    together with the decodes that ride along: kernels see the sum. See `_largest_of_grid`.
    """

    def alone(chunk_tokens: int) -> bool:
        return longest_chunk_step_ms(experiment, chunk_tokens) <= experiment.itl_target_ms

    best = 0
    for shift in _grid_shifts(experiment):
        best = max(best, _largest_of_grid(shift, longest, alone, meets, above=best))
    if best:
        return best
    small = [size for size in (8, 4, 2, 1) if size < longest and alone(size)]
    return next((size for size in small if meets(size)), None)


def _grid_shifts(experiment: Experiment) -> tuple[int, ...]:
    """Return what the grids' sizes are off a multiple of `GRAIN_TOKENS`."""
    riding = _riding(experiment)
    in_blocks = experiment.policy in IN_BLOCKS and experiment.limits.block_size > 1
    if in_blocks or riding % GRAIN_TOKENS == 0:
        return (0,)
    return (0, riding if experiment.policy == "sglang" else -riding)  # SGLang's size counts them


def _largest_of_grid(
    shift: int,
    longest: int,
    alone: Callable[[int], bool],
    meets: Callable[[int], bool],
    *,
    above: int,
) -> int:
    """Return the largest size, a multiple of `GRAIN_TOKENS` and `shift`, that meets the target.

    Quick, as every simulation costs a step's price for each chunk: the prompt's longest step by
    itself bounds the chunk. A small chunk can be over the target where a larger one is not (the
    streams' contexts grow while it takes its many steps), so powers of two and the halves
    between are asked first, then bisection finds the bound between the largest that holds and
    the next. Kernels' tiles make that not quite monotone, so all grains within a tile above are
    asked too. From there down each is simulated; below `GRAINS_BELOW` that fail (prompts that
    share steps, blocks that run short), bisection.

    above: sizes up to here are of no interest; 0 is returned where none above meets the target.
    """
    lowest = (above - shift) // GRAIN_TOKENS  # grains up to here are of no interest
    highest = (longest - 1 - shift) // GRAIN_TOKENS
    coarse = {size * half // 2 for size in chunk_sizes(smallest=1, largest=max(1, highest))
              for half in (2, 3)}  # fmt: skip

    def size_of(grains: int) -> int:
        return grains * GRAIN_TOKENS + shift

    fits = [n for n in coarse if lowest < n <= highest and alone(size_of(n))]
    low = max(fits, default=max(0, lowest))
    end = min([n for n in coarse if n > low] + [highest + 1])
    bound = low + _largest(lambda more: alone(size_of(low + more)), end - low - 1)
    for grains in range(min(bound + GRAINS_ABOVE, highest), max(lowest, bound - GRAINS_BELOW), -1):
        size = size_of(grains)
        if alone(size) and meets(size):
            return size
    if not fits:
        return 0
    least = max(0, lowest)
    more = _largest(lambda n: meets(size_of(least + n)), bound - GRAINS_BELOW - least)
    return size_of(least + more) if more else 0


def _meeting(experiment: Experiment, max_steps: int) -> Callable[[int], bool]:
    """Return whether a run at a chunk size meets the target, as a function of the size."""
    target_ms, monotone = experiment.itl_target_ms, _monotone(experiment)

    def meets(chunk_tokens: int) -> bool:
        chunked = in_its_memory(experiment.with_chunk_tokens(chunk_tokens))
        result = simulate(chunked, max_steps=max_steps)
        gaps_ms, tokens = inter_token_gaps(result)
        over = bool((result.steps.duration_ms > target_ms).any())
        over = over or bool((gaps_ms[tokens > 0] > target_ms).any())  # decodes can stand still
        # Of a run that was cut, the steps not seen are known only where none is longer.
        known = monotone or not result.stopped_at_max_steps
        stuck = result.never_scheduled or result.never_finished
        return (
            known and not over and not stuck and bool(result.prefilling.steps.prefill_tokens.any())
        )

    return meets


def _monotone(experiment: Experiment) -> bool:
    """Return whether a larger chunk can never make the longest step shorter."""
    requests = experiment.workload.requests
    return (
        experiment.cost.counts_only
        and len({request.arrival_ms for request in requests}) == 1
        and experiment.policy not in IN_BLOCKS
        and all(request.output_tokens == 1 for request in requests)
    )


def _apart(experiment: Experiment) -> bool:
    """Return whether prefill steps let the decodes stand still."""
    return experiment.policy == "sglang" and not experiment.limits.mixed


def _riding(experiment: Experiment) -> int:
    return 0 if _apart(experiment) else experiment.workload.streaming_users


def _whole_blocks(experiment: Experiment, chunk_tokens: int) -> int:
    """Return what of a chunk size is prompt: cut to blocks, where the engine cuts to blocks."""
    if experiment.policy not in IN_BLOCKS:
        return chunk_tokens
    counted = _riding(experiment) if experiment.policy == "sglang" else 0
    chunk_tokens = max(0, chunk_tokens - counted)
    return chunk_tokens - chunk_tokens % experiment.limits.block_size


def _largest(holds: Callable[[int], bool], highest: int) -> int:
    """Return the largest whole number from 1 to `highest` that holds, 0 where none does.

    By bisection: right where a number holds whenever a larger one does.
    """
    low, high = 0, max(0, highest) + 1
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low
