"""The highest request rate of each chunk size: the best chunk is a property of the targets."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from s11.capacity import Capacity, CapacityTargets, Make, RatePoint, capacity_of, tried_rates
from s11.experiment import Experiment


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCapacity:
    """One chunk size under one set of targets.

    refused: why the chunk size cannot run at all; its capacity has no points then.
    """

    chunk_tokens: int
    capacity: Capacity
    refused: str | None = None


def with_step_tokens(experiment: Experiment, chunk_tokens: int) -> Experiment:
    """Return the same experiment with steps of at most `chunk_tokens`, decodes included.

    That is a chunk size as Sarathi-Serve has it: the chunk cap alone would let several prompts
    have a chunk each in one step. SGLang counts a step's prompt tokens alone, so there the
    decodes are beside the chunk.

    Raises:
        ValueError: a size that the experiment's other limits do not go with.
    """
    chunked = experiment.with_chunk_tokens(chunk_tokens)
    if chunked.policy == "sglang":
        return chunked
    return replace(chunked, limits=replace(chunked.limits, token_budget=chunk_tokens))


def capacity_by_chunk(
    make: Make,
    chunk_sizes: Sequence[int],
    targets: Sequence[CapacityTargets],
    *,
    progress: Callable[[int, RatePoint], None] | None = None,
    first_per_s: float = 1.0,
    relative_precision: float = 0.02,
    **search: Any,
) -> tuple[ChunkCapacity, ...]:
    """Return each chunk size's highest rate for each set of targets, by targets, then size.

    One size's runs serve all targets: only what the targets before have left open is simulated.
    Each size's search begins where the one before ended. See `highest_rate`.

    progress: called with the chunk size and the point after each run.

    Raises:
        ValueError: rates or a precision out of range, or what `make` refuses.
    """
    start = make(first_per_s)
    found: dict[tuple[CapacityTargets, int], ChunkCapacity] = {}
    for size in chunk_sizes:
        known: tuple[RatePoint, ...] = ()
        refused = _refused(start, size)
        for each in targets:
            points = known
            if refused is None:
                points = tuple(
                    _told(
                        tried_rates(
                            _sized(make, size),
                            each,
                            first_per_s=first_per_s,
                            relative_precision=relative_precision,
                            known=known,
                            **search,
                        ),
                        size,
                        len(known),
                        progress,
                    )
                )
            capacity = capacity_of(points, each, relative_precision=relative_precision)
            found[each, size] = ChunkCapacity(chunk_tokens=size, capacity=capacity, refused=refused)
            known, first_per_s = points, capacity.highest_per_s or first_per_s
    return tuple([found[each, size] for each in targets for size in chunk_sizes])


def _sized(make: Make, chunk_tokens: int) -> Make:
    return lambda rate_per_s: with_step_tokens(make(rate_per_s), chunk_tokens)


def _refused(experiment: Experiment, chunk_tokens: int) -> str | None:
    """Return why a chunk size does not go with the other limits, None where it does."""
    try:
        with_step_tokens(experiment, chunk_tokens)
    except ValueError as error:
        return str(error)
    return None


def _told(
    points: Iterator[RatePoint],
    chunk_tokens: int,
    known: int,
    progress: Callable[[int, RatePoint], None] | None,
) -> Iterator[RatePoint]:
    """Yield points on, and tell of those that are new."""
    for number, point in enumerate(points):
        if progress and number >= known:
            progress(chunk_tokens, point)
        yield point
