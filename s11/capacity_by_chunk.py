"""The highest request rate of each chunk size: the best chunk is a property of the targets."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

from s11.capacity import Capacity, CapacityTargets, Make, RatePoint, capacity_of, tried_rates
from s11.experiment import Experiment
from s11.sweep_outcomes import Lost, WorkersGoneError
from s11.sweeps import Map, Workers

FIRST_PER_S = 1.0
Tried = Callable[[int | None, RatePoint], None]
"""Told of a run: its chunk size in tokens, None for whole prompts, and what it gave."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkCapacity:
    """One chunk size under one set of targets.

    chunk_tokens: None where prompts are taken whole.
    refused: why the chunk size cannot run at all; its capacity has no points then.
    """

    chunk_tokens: int | None
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
    chunk_sizes: Sequence[int | None],
    targets: Sequence[CapacityTargets],
    *,
    map: Map = map,
    progress: Tried | None = None,
    first_per_s: float | None = None,
    relative_precision: float = 0.02,
    **search: Any,
) -> tuple[ChunkCapacity, ...]:
    """Return each chunk size's highest rate for each set of targets, by targets, then size.

    One size's runs serve all targets: only what the targets before have left open is simulated.
    The sizes know nothing of each other, so any `map` gives the same. See `highest_rate`.

    chunk_sizes: in tokens; None: whole prompts, under the experiment's own limits.
    map: the built-in one, or another such as `s11.sweep_pool.ProcessPool`, to which `make` must
        be possible to send.
    first_per_s: where each search begins; None: at `FIRST_PER_S`, or at the bound next to it.
    progress: called after each run; with another map than the built-in one, when a size is
        done, for each of its runs.

    Raises:
        ValueError: rates or a precision out of range, or what `make` refuses.
        WorkersGoneError: workers that died at every attempt.
    """
    if first_per_s is None:  # few requests a second, where the bounds allow it
        low_per_s, high_per_s = search.get("low_per_s", 0.0), search.get("high_per_s", math.inf)
        first_per_s = min(max(FIRST_PER_S, low_per_s), high_per_s)
    of_size = partial(
        _of_size,
        make=make,
        targets=tuple(targets),
        relative_precision=relative_precision,
        search={**search, "first_per_s": first_per_s},
    )
    found = _in_order(map, of_size, list(chunk_sizes), progress)
    return tuple([each[place] for place in range(len(targets)) for each in found])


def _in_order(
    map: Map,
    of_size: Callable[..., tuple[ChunkCapacity, ...]],
    sizes: Sequence[int | None],
    progress: Tried | None,
) -> list[tuple[ChunkCapacity, ...]]:
    """Return what each size has for each set of targets, whichever is done first."""
    if map is _IN_PROCESS:
        return list(map(partial(of_size, progress=progress), sizes))
    coming = (
        map.as_they_come(of_size, sizes, shared=())
        if isinstance(map, Workers)
        else enumerate(map(of_size, sizes))
    )
    done: dict[int, tuple[ChunkCapacity, ...]] = {}
    for number, found in coming:
        if isinstance(found, Lost):
            raise WorkersGoneError(found.sentence())
        done[number] = found
        for point in found[-1].capacity.points if found and progress else ():
            progress(sizes[number], point)  # type: ignore[misc]
    return [done[number] for number in range(len(sizes))]


_IN_PROCESS: Map = map


def _of_size(
    size: int | None,
    *,
    make: Make,
    targets: Sequence[CapacityTargets],
    relative_precision: float,
    search: dict[str, Any],
    progress: Tried | None = None,
) -> tuple[ChunkCapacity, ...]:
    """Return one size's highest rate for each set of targets."""
    known: tuple[RatePoint, ...] = ()
    refused = _refused(make(search["first_per_s"]), size)
    found = []
    for each in targets:
        if refused is None:
            rates = tried_rates(
                lambda rate_per_s: _sized(make(rate_per_s), size),
                each,
                relative_precision=relative_precision,
                known=known,
                **search,
            )
            known = tuple(_told(rates, size, len(known), progress))
        capacity = capacity_of(known, each, relative_precision=relative_precision)
        found.append(ChunkCapacity(chunk_tokens=size, capacity=capacity, refused=refused))
    return tuple(found)


def _sized(experiment: Experiment, chunk_tokens: int | None) -> Experiment:
    if chunk_tokens is None:
        return experiment.chunking_off()
    return with_step_tokens(experiment, chunk_tokens)


def _refused(experiment: Experiment, chunk_tokens: int | None) -> str | None:
    """Return why a chunk size does not go with the other limits, None where it does."""
    try:
        _sized(experiment, chunk_tokens)
    except ValueError as error:
        return str(error)
    return None


def _told(
    points: Iterator[RatePoint], chunk_tokens: int | None, known: int, progress: Tried | None
) -> Iterator[RatePoint]:
    """Yield points on, and tell of those that are new."""
    for number, point in enumerate(points):
        if progress and number >= known:
            progress(chunk_tokens, point)
        yield point
