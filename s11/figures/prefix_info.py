"""Caching off and on times chunking off and on: four runs of one load, as plain values."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.metrics import Metrics
from s11.prefix_blocks import AdmittedBlocks, BlockKind
from s11.results import Result
from s11.words import count, ms

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class Measured:
    """One of the four runs."""

    experiment: Experiment
    result: Result
    metrics: Metrics

    @property
    def caching(self) -> bool:
        """Whether the prefix cache is on."""
        return self.experiment.limits.prefix_caching

    @property
    def chunking(self) -> bool:
        """Whether prompts are cut."""
        return self.experiment.limits.chunking

    @property
    def name(self) -> str:
        """What is switched on."""
        if self.caching:
            return "both" if self.chunking else "cache only"
        return "chunking only" if self.chunking else "neither"

    @property
    def ttft_ms(self) -> Floats:  # (requests,)
        """Each request's TTFT, NaN where it has none."""
        requests = self.result.requests
        return requests.first_token_ms - requests.arrival_ms

    @property
    def chunks(self) -> int:
        """Number of prefill slices."""
        return len(self.result.slices)

    def per_request(self, values: NDArray[np.int64] | None = None) -> NDArray[np.int64]:
        """Return by request how many slices it took, or the sum of a value of each."""
        size = len(self.result.requests)
        weights = None if values is None else values.astype(float)
        sums = np.bincount(self.result.slices.request, weights=weights, minlength=size)
        return sums.astype(np.int64)  # (requests,)

    def hits(self) -> NDArray[np.int64]:
        """Return each request's tokens found in the cache, of all its admissions."""
        table = self.result.admissions
        sums = np.zeros(len(self.result.requests), dtype=np.int64)
        np.add.at(sums, table.request, table.cached_tokens)
        return sums  # (requests,)


@dataclass(frozen=True, slots=True, eq=False)
class FourRuns:
    """The same load with caching off and on, chunking off and on."""

    neither: Measured
    chunking: Measured
    caching: Measured
    both: Measured

    def __iter__(self) -> Iterator[Measured]:
        return iter((self.neither, self.chunking, self.caching, self.both))

    @property
    def skipped_chunks(self) -> int:
        """How many chunks fewer the cache leaves to compute."""
        return self.chunking.chunks - self.both.chunks

    @property
    def hit_share(self) -> float:
        """Share of the tokens wanted from prefill that the cache held."""
        hits = self.both.metrics.cached_tokens
        wanted = hits + self.both.metrics.computed_prefill_tokens
        return hits / wanted if wanted else 0.0


@dataclass(frozen=True, slots=True)
class Group:
    """Neighbouring bars of one request."""

    label: str
    left: float
    right: float
    top_ms: float


@dataclass(frozen=True, slots=True, eq=False)
class Strip:
    """The steps of one run that carry prompt tokens, side by side."""

    run: Measured
    left: Floats  # (steps,) ms
    duration_ms: Floats  # (steps,)
    words: list[str]  # (steps,)
    group: NDArray[np.int64]  # (steps,) which of the groups
    groups: list[Group]
    total_ms: float
    saved_ms: float  # less than the same chunking takes without the cache

    @property
    def label(self) -> str:
        """The run's name and figures, about 50 characters."""
        stall = self.run.metrics.longest_stall_ms
        told = "" if stall is None else f", stall {ms(stall)}"
        return f"{count(len(self.left), 'step')}, {ms(self.total_ms)}{told}"


def strips(four: FourRuns) -> list[Strip]:
    """Return the four runs' strips."""
    totals = {run.chunking: _prefill_ms(run) for run in (four.neither, four.chunking)}
    return [_strip(run, totals[run.chunking]) for run in four]


def _prefill_ms(run: Measured) -> float:
    steps = run.result.steps
    return float(steps.duration_ms[steps.prefill_tokens > 0].sum())


def _strip(run: Measured, uncached_ms: float) -> Strip:
    steps, slices, ids = run.result.steps, run.result.slices, run.result.requests.request_id
    carrying = np.flatnonzero(steps.prefill_tokens)
    duration = steps.duration_ms[carrying]
    right = np.cumsum(duration)
    left = right - duration
    begin = np.searchsorted(slices.step, carrying)
    end = np.searchsorted(slices.step, carrying, side="right")
    words: list[str] = []
    group: list[int] = []
    groups: list[Group] = []
    for at in range(len(carrying)):
        rows = range(int(begin[at]), int(end[at]))
        names = [ids[slices.request[row]] for row in rows]
        tokens = int(steps.prefill_tokens[carrying[at]])
        words.append(f"{count(tokens, 'prompt token')} of {', '.join(names[:4])}")
        name = short(names[0]) if len(names) == 1 else f"{short(names[0])}–{short(names[-1])}"
        from_ms, top_ms = float(left[at]), float(duration[at])
        if groups and groups[-1].label == name:
            before = groups.pop()
            from_ms, top_ms = before.left, max(before.top_ms, top_ms)
        groups.append(Group(name, from_ms, float(right[at]), top_ms))
        group.append(len(groups) - 1)
    total = float(right[-1]) if len(right) else 0.0
    return Strip(
        run=run,
        left=left,
        duration_ms=duration,
        words=words,
        group=np.array(group, dtype=np.int64),
        groups=groups,
        total_ms=total,
        saved_ms=max(0.0, uncached_ms - total),
    )


def short(request_id: str) -> str:
    """Return the part of a request's name that tells it from the others."""
    return request_id.split()[-1]


def load_caption(four: FourRuns) -> list[str]:
    """Return the load and the engine in two lines of about 60 characters."""
    workload, limits = four.both.experiment.workload, four.both.experiment.limits
    shortest = min(request.prompt_tokens for request in workload.requests)
    longest = max(request.prompt_tokens for request in workload.requests)
    size = f"{shortest:,} to " if shortest < longest else ""
    pool = "" if limits.kv_blocks is None else f", pool {limits.kv_blocks:,}"
    return [
        f"{count(len(workload.requests), 'prompt')} of {size}{count(longest, 'token')}, "
        f"chunks of {limits.chunk_tokens:,}",
        f"blocks of {limits.block_size:,} tokens{pool}, "
        f"{count(workload.streaming_users, 'streaming user')}, s11",
    ]


def per_request_columns(four: FourRuns, blocks: tuple[AdmittedBlocks, ...]) -> dict[str, list[Any]]:
    """Return the four runs' figures, one row per request."""
    table = four.both.result.requests
    columns: dict[str, list[Any]] = {
        "request": list(table.request_id),
        "arrival_ms": table.arrival_ms.tolist(),
        "prompt_tokens": table.prompt_tokens.tolist(),
        "hit_tokens": four.both.hits().tolist(),
        "computed_tokens": four.both.per_request(four.both.result.slices.tokens).tolist(),
        "chunks_cache_off": four.chunking.per_request().tolist(),
        "chunks_cache_on": four.both.per_request().tolist(),
    }
    for name, kind in (
        ("evicted_tokens", BlockKind.EVICTED),
        ("last_token_tokens", BlockKind.LAST_TOKEN),
    ):
        again = [0] * len(table)
        for row in blocks:
            again[row.request] += row.tokens_again(kind)
        columns[name] = again
    for run in four:
        name = f"ttft_ms_{run.name.replace(' ', '_')}"
        columns[name] = [None if np.isnan(value) else float(value) for value in run.ttft_ms]
    return columns
