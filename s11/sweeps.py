"""Many experiments: wherever they run, their figures in order; the chunk-size sweep, its knee."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol, runtime_checkable

from s11.checks import MAX_TOKENS, require_int
from s11.experiment import Experiment
from s11.kv_pool import in_its_memory, within_memory
from s11.metrics import Metrics, measure
from s11.results import Result
from s11.simulator import DEFAULT_MAX_STEPS, simulate
from s11.sweep_journal import Journal
from s11.sweep_outcomes import Lost, Outcome
from s11.sweep_tasks import Packed, PackedVariant, Variant, digests, pack, variant

Map = Callable[..., Iterable[Any]]
"""`map` or anything like it: a function and its arguments in, the results in order out."""


@runtime_checkable
class Workers(Protocol):
    """A map that can also say what it has as it comes, and send things ahead to each process."""

    def as_they_come(
        self, function: Callable[[Any], Any], items: Sequence[Any], *, shared: Sequence[Packed]
    ) -> Iterator[tuple[int, Any]]:
        """Yield each item's number with its result, or with `Lost`; keep `shared` everywhere."""


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


def run(
    experiments: Iterable[Experiment | Variant],
    *,
    map: Map = map,
    progress: Callable[[int, int], None] | None = None,
    max_steps: int = DEFAULT_MAX_STEPS,
    journal: Journal | None = None,
) -> tuple[Outcome, ...]:
    """Return what each experiment gives, in their order, run by any `map`.

    map: the built-in one, `Pool.imap`, `ProcessPoolExecutor.map`, or workers such as
        `s11.sweep_pool.ProcessPool` and `s11.sweep_dask.DaskCluster`. Requests that several
        experiments have in common are packed once. To workers they are sent once for each
        process; with another map the packed bytes go along with every experiment, and each
        process unpacks them once.
    progress: called with (done, all) after each, and at first where a journal has some.
    journal: has what is finished, which is not run again, and takes each outcome as it comes:
        from workers at once, from another map in order.

    An experiment that is refused gives its sentence; so does one that `max_steps` cuts, whose
    figures would be of a part, and one whose workers died.

    Raises:
        ValueError: a journal of other experiments.
    """
    variants = [each if isinstance(each, Variant) else variant(each) for each in experiments]
    outcomes: dict[int, Outcome] = {}
    if journal:
        outcomes = journal.begin(digests(variants))
        if outcomes and progress:
            progress(len(outcomes), len(variants))
    left = [number for number in range(len(variants)) if number not in outcomes]
    function = partial(_outcome, max_steps=max_steps)
    for position, outcome in _as_they_come(map, function, [variants[number] for number in left]):
        number = left[position]
        if isinstance(outcome, Lost):
            outcome = Outcome(metrics=None, refused=outcome.sentence(), lost=True)
        elif journal:  # what was lost is tried again when the sweep is resumed
            journal.add(number, outcome)
        outcomes[number] = outcome
        if progress:
            progress(len(outcomes), len(variants))
    if len(outcomes) != len(variants):
        raise ValueError(f"map: gave {len(outcomes):,} results for {len(variants):,} experiments")
    return tuple(outcomes[number] for number in range(len(variants)))


def _as_they_come(
    map: Map, function: Callable[[Any], Any], variants: Sequence[Variant]
) -> Iterator[tuple[int, Any]]:
    if isinstance(map, Workers):
        sent, shared = pack(variants, apart=True)
        yield from map.as_they_come(function, sent, shared=shared)
    elif map is _IN_PROCESS:
        yield from enumerate(map(function, variants))
    else:
        yield from enumerate(map(function, pack(variants, apart=False)[0]))


_IN_PROCESS: Map = map


def _outcome(point: Variant | PackedVariant, *, max_steps: int) -> Outcome:
    """Return one experiment's figures, or the sentence with which it is refused."""
    try:
        experiment = point.experiment()
        result = simulate(within_memory(experiment), max_steps=max_steps)
        if result.stopped_at_max_steps:
            raise ValueError(f"max_steps: {max_steps:,} steps are too few for this run")
        return Outcome(metrics=_measured(experiment, result), refused=None)
    except ValueError as error:
        return Outcome(metrics=None, refused=" ".join(str(error).split()))


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
    metrics = figures_of(experiment.with_chunk_tokens(chunk_tokens), max_steps=max_steps)
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


def figures_of(experiment: Experiment, *, max_steps: int = DEFAULT_MAX_STEPS) -> Metrics:
    """Return the figures of one experiment, in its machine's memory, against its own target."""
    return _measured(experiment, simulate(in_its_memory(experiment), max_steps=max_steps))


def _measured(experiment: Experiment, result: Result) -> Metrics:
    return measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )


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
