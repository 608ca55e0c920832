"""The traffic page's search of the highest rate that holds, by chunk size, and what it tells."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

from s11.capacity import (
    Capacity,
    CapacityTargets,
    RatePoint,
    capacity_of,
    requests_needed,
    tried_rates,
)
from s11.experiment import Experiment
from s11.figures.traffic_capacity import rate_words
from s11.ui.traffic_runs import at_rate, turns
from s11.ui.traffic_setup import Setup
from s11.words import count, ms

CHUNK_SIZES = (128, 256, 512, 1_024, 2_048, 4_096)
SEARCHED: tuple[int | None, ...] = (*CHUNK_SIZES, None)  # None: whole prompts
ITL_FACTORS = (0.5, 1.0, 2.0)
DELAY_MS = 2_000.0
PRECISION = 0.05
LOW_PER_S, HIGH_PER_S, FIRST_PER_S = 0.05, 200.0, 4.0
MOST_REQUESTS = 2_000
MAX_STEPS = 500_000


@dataclass(slots=True)
class Search:
    """What one session has tried of one setting.

    points: by chunk size, None for whole prompts, for all targets together.
    latest: the run that searches. One that was interrupted may end its last simulation beside the
        run that came after it; what it finds is left out.
    """

    asked: Setup
    points: dict[int | None, list[RatePoint]] = field(default_factory=dict)
    finished: bool = False
    latest: object = None


def targets_of(asked: Setup) -> list[CapacityTargets]:
    """Return the page's ITL target, half and twice of it, as what P99 ITL must hold."""
    return [
        CapacityTargets(itl_p99_ms=factor * asked.itl_target_ms, scheduling_delay_p50_ms=DELAY_MS)
        for factor in ITL_FACTORS
    ]


def precision_words(requests: int) -> str:
    """Return up to which rate so many requests are enough for the search's precision."""
    targets = CapacityTargets(itl_p99_ms=1.0, scheduling_delay_p50_ms=DELAY_MS)
    each = requests_needed(1.0, targets, relative_precision=PRECISION)
    return (
        f"To know a rate within {PRECISION:.0%} takes {each:,} requests for each request per "
        f"second: {count(requests, 'request')} will do up to {rate_words(requests / each)} per "
        "second."
    )


def search(found: Search) -> Iterator[tuple[int | None, RatePoint]]:
    """Try rates until every chunk size's highest is known, and that of whole prompts.

    It goes on where it was left.

    Raises:
        ValueError: a setting that cannot run.
    """
    asked = found.asked
    first_per_s = FIRST_PER_S
    mine = found.latest = object()
    for size in SEARCHED:
        points = found.points.setdefault(size, [])
        for targets in targets_of(asked):
            known = _uncut(points)
            rates = tried_rates(
                partial(searched, asked, size),
                targets,
                low_per_s=LOW_PER_S,
                high_per_s=HIGH_PER_S,
                first_per_s=FIRST_PER_S if size is None else first_per_s,
                relative_precision=PRECISION,
                max_steps=MAX_STEPS,
                known=known,
            )
            for number, point in enumerate(_in_turn(rates)):
                if found.latest is not mine:
                    return
                if number >= len(known):
                    points.append(point)
                    yield size, point
            highest = found_of(points, targets).highest_per_s
            first_per_s = highest or first_per_s
    found.finished = True


def _in_turn(rates: Iterator[RatePoint]) -> Iterator[RatePoint]:
    """Yield each point, made while no more than so many sessions simulate."""
    while True:
        with turns:
            point = next(rates, None)
        if point is None:
            return
        yield point


def searched(asked: Setup, chunk_tokens: int | None, rate_per_s: float) -> Experiment:
    """Return the experiment at a rate; for None, prompts are whole and no step has a limit."""
    sized = replace(asked, side=replace(asked.side, chunk_tokens=chunk_tokens))
    experiment = sized.experiment(at_rate(asked.source, rate_per_s))
    return experiment.chunking_off() if chunk_tokens is None else experiment


def found_of(points: list[RatePoint], targets: CapacityTargets) -> Capacity:
    """Return what the tried rates show of some targets."""
    return capacity_of(_uncut(points), targets, relative_precision=PRECISION)


def _uncut(points: list[RatePoint]) -> tuple[RatePoint, ...]:
    """Return the rates whose runs went to their end; all of them where none did.

    A slow rate takes the most steps: that its run was cut is no sign that a faster one fails.
    """
    uncut = [point for point in points if not point.stopped_at_max_steps]
    return tuple(uncut or points)


def capacity_words(
    capacities: Mapping[tuple[CapacityTargets, int], Capacity], chosen: CapacityTargets
) -> list[str]:
    """Say which chunk sizes hold the most for each of the targets, and whether they are the same.

    A rate is known to within `PRECISION`, so sizes that near to the best are named with it.
    """
    every = list(dict.fromkeys([targets for targets, _ in capacities]))
    best = {targets: _best(capacities, targets) for targets in every}
    others = [targets for targets in every if targets != chosen]
    told = [_told(targets, best[targets]) for targets in (chosen, *others)]
    if best[chosen]:
        found = capacities[chosen, next(iter(best[chosen]))]
        assert found.highest is not None, "the best size holds a rate"
        if found.highest.request_count < found.requests_needed:
            told.append(
                f"To know a rate within {PRECISION:.0%} takes {found.requests_needed:,} requests; "
                "with fewer, a small overload has too little time to show."
            )
    held = [set(sizes) for sizes in best.values() if sizes]
    if len(held) > 1 and not set.intersection(*held):
        told.append("The best chunk size is a property of the targets.")
    return told


def _best(
    capacities: Mapping[tuple[CapacityTargets, int], Capacity], targets: CapacityTargets
) -> dict[int, float]:
    """Return the sizes that hold the most and what they hold, the best first."""
    rates = {
        size: found.highest_per_s
        for (each, size), found in capacities.items()
        if each == targets and found.highest_per_s is not None
    }
    most = max(rates.values(), default=0.0)
    near = [size for size, rate in rates.items() if rate * (1 + PRECISION) >= most]
    return {size: rates[size] for size in sorted(near, key=lambda size: -rates[size])}


def _told(targets: CapacityTargets, best: Mapping[int, float]) -> str:
    target = ms(targets.itl_p99_ms)
    if not best:
        return f"No rate holds a P99 ITL of {target} at any chunk size."
    size, *others = best
    near = f" (as good as: {', '.join(f'{other:,}' for other in others)})" if others else ""
    return (
        f"A P99 ITL of {target} holds at the highest rate, {rate_words(best[size])} requests per "
        f"second, with chunks of {size:,} tokens{near}."
    )
