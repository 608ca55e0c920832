"""The search of the highest rate without chunking, beside the traffic page's chunk sizes."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import partial

from s11.capacity import RatePoint, tried_rates
from s11.experiment import Experiment
from s11.ui.traffic_runs import at_rate, turns
from s11.ui.traffic_search import (
    FIRST_PER_S,
    HIGH_PER_S,
    LOW_PER_S,
    MAX_STEPS,
    PRECISION,
    targets_of,
)
from s11.ui.traffic_setup import Setup


@dataclass(slots=True)
class WholeSearch:
    """What one session has tried of one setting with whole prompts, for all targets together."""

    asked: Setup
    points: list[RatePoint] = field(default_factory=list)
    finished: bool = False


def search_whole(found: WholeSearch) -> Iterator[RatePoint]:
    """Try rates until the highest is known for all targets; go on where it was left.

    Each is tried while no more than so many sessions simulate.

    Raises:
        ValueError: a setting that cannot run.
    """
    for targets in targets_of(found.asked):
        known = len(found.points)
        rates = tried_rates(
            partial(without_chunking, found.asked),
            targets,
            low_per_s=LOW_PER_S,
            high_per_s=HIGH_PER_S,
            first_per_s=FIRST_PER_S,
            relative_precision=PRECISION,
            max_steps=MAX_STEPS,
            known=tuple(found.points),
        )
        number = 0
        while True:
            with turns:
                point = next(rates, None)
            if point is None:
                break
            number += 1
            if number > known:
                found.points.append(point)
                yield point
    found.finished = True


def without_chunking(asked: Setup, rate_per_s: float) -> Experiment:
    """Return the experiment at a rate, with whole prompts and no limit on a step's tokens."""
    own = replace(asked, side=replace(asked.side, chunk_tokens=None))
    return own.experiment(at_rate(asked.source, rate_per_s)).chunking_off()
