"""What a sweep varies: the product of rates, seeds, policies, token budgets and chunk sizes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import Any

from s11.experiment import Experiment
from s11.exports import rounded
from s11.policies import CHUNKING
from s11.sweep_outcomes import Outcome, figure_kinds
from s11.sweep_tasks import Source, Variant, require_drawn

MAX_POINTS = 100_000
KNOBS: dict[str, type] = {
    "rate_per_s": float,
    "seed": int,
    "policy": str,
    "token_budget": int,
    "chunk_tokens": int,
}
"""What can be swept and the kind of its values, in the order of columns and rows."""


@dataclass(frozen=True, slots=True, kw_only=True)
class GridPoint:
    """One point: the values of the knobs that are swept, by name, and its experiment."""

    knobs: dict[str, Any]
    variant: Variant


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Grid:
    """A base experiment and the values that each knob takes; an empty one is not swept.

    source: of the base's requests; None: they are given.

    A scheduler that has no chunk size stands in one point with none, not in one for each size.

    Raises:
        ValueError: a value that is given twice, more points than `MAX_POINTS`, or rates or
            seeds for requests that do not come at another.
    """

    base: Experiment
    source: Source | None = None
    rate_per_s: tuple[float, ...] = ()
    seed: tuple[int, ...] = ()
    policy: tuple[str, ...] = ()
    token_budget: tuple[int | None, ...] = ()
    chunk_tokens: tuple[int | None, ...] = ()

    def __post_init__(self) -> None:
        require_drawn(
            self.origin,
            rate_per_s=next(iter(self.rate_per_s), None),
            seed=next(iter(self.seed), None),
        )
        count = 1
        for name in KNOBS:
            values = getattr(self, name)
            for value in values:
                if values.count(value) > 1:
                    raise ValueError(f"{name}: {value} is given twice (allowed: each value once)")
            count *= max(1, len(values))
        if count > MAX_POINTS:
            raise ValueError(f"points: {count:,} are too many (allowed: {MAX_POINTS:,})")

    @property
    def origin(self) -> Source:
        """Where the requests come from."""
        return self.base.workload if self.source is None else self.source

    def knobs(self) -> tuple[str, ...]:
        """Return the names of what is swept."""
        return tuple(name for name in KNOBS if getattr(self, name))

    def points(self) -> tuple[GridPoint, ...]:
        """Return every point, the last knob's values changing first."""
        frame = replace(self.base, workload=replace(self.base.workload, requests=()))
        names = self.knobs()
        return tuple(
            GridPoint(knobs=knobs, variant=_variant(frame, self.origin, knobs))
            for knobs in self._combinations(names)
        )

    def _combinations(self, names: Sequence[str]) -> Iterator[dict[str, Any]]:
        for values in product(*(getattr(self, name) for name in names)):
            knobs = dict(zip(names, values, strict=True))
            if "chunk_tokens" in knobs and knobs.get("policy", self.base.policy) not in CHUNKING:
                if knobs["chunk_tokens"] != self.chunk_tokens[0]:
                    continue
                knobs["chunk_tokens"] = None
            yield knobs


def _variant(frame: Experiment, source: Source, knobs: dict[str, Any]) -> Variant:
    limits: list[tuple[str, int | bool | None]] = []
    if "token_budget" in knobs:
        limits.append(("token_budget", knobs["token_budget"]))
    if "chunk_tokens" in knobs and knobs.get("policy", frame.policy) in CHUNKING:
        limits += [("chunk_tokens", knobs["chunk_tokens"]), ("chunking", True)]
    return Variant(
        frame=frame,
        source=source,
        rate_per_s=knobs.get("rate_per_s"),
        seed=knobs.get("seed"),
        policy=knobs.get("policy"),
        limits=tuple(limits),
    )


def table(
    points: Sequence[GridPoint], outcomes: Sequence[Outcome], names: Sequence[str]
) -> dict[str, list[Any]]:
    """Return a sweep as columns: the swept knobs, all figures, and why a point was refused."""
    columns: dict[str, list[Any]] = {
        name: [point.knobs[name] for point in points] for name in names
    }
    figures = [outcome.figures() for outcome in outcomes]
    for name in figure_kinds():
        columns[name] = [rounded(row[name]) for row in figures]
    columns["refused"] = [outcome.refused for outcome in outcomes]
    return columns


def kinds(names: Sequence[str]) -> dict[str, type]:
    """Return what each of the table's columns holds, missing values aside."""
    return {**{name: KNOBS[name] for name in names}, **figure_kinds(), "refused": str}
