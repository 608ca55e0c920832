"""The metrics of several runs of one load, row by row, the best marked."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from s11.experiment import Experiment
from s11.metrics import Metrics
from s11.results import Result
from s11.words import count, ms


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class EngineRun:
    """One engine's run: what it is called, and what it gave."""

    label: str
    experiment: Experiment
    result: Result
    metrics: Metrics

    @property
    def name(self) -> str:
        """The label as it stands in a sentence: what tells it from its like in brackets."""
        title, _, rest = self.label.partition(", ")
        return f"{title} ({rest})" if rest else title

    @property
    def unserved(self) -> int:
        """How many requests never got all their tokens, refused ones included."""
        result = self.result
        return len(result.never_scheduled) + len(result.never_finished) + len(result.rejected)


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricRow:
    """One metric of every run: its values, how they read, and which of them are best."""

    title: str
    values: tuple[float | None, ...]
    texts: tuple[str, ...]
    best: tuple[bool, ...]


def metric_rows(runs: Sequence[EngineRun]) -> list[MetricRow]:
    """Return the metrics, a row each, the best marked; none where all are equal.

    Only runs that are `comparable` can be best, and only where there are two of them.
    """
    fair = comparable(runs)
    if sum(fair) < 2:
        fair = [False] * len(runs)
    uncut = [not run.result.stopped_at_max_steps for run in runs]

    def row(
        title: str,
        value: Callable[[EngineRun], float | None],
        text: Callable[[float | None], str] = ms,
        *,
        more_is_better: bool = False,
        among: Sequence[bool] = fair,
    ) -> MetricRow:
        values = tuple([value(run) for run in runs])
        texts = tuple([text(found) for found in values])
        return MetricRow(
            title=title,
            values=values,
            texts=texts,
            best=_best(values, texts, among, more_is_better=more_is_better),
        )

    rows = [
        row("Longest stall", lambda run: run.metrics.longest_stall_ms),
        row("TTFT p50", lambda run: run.metrics.ttft_p50_ms),
        row("TTFT p99", lambda run: run.metrics.ttft_p99_ms),
        row("ITL p50", lambda run: run.metrics.itl_p50_ms),
        row("ITL p99", lambda run: run.metrics.itl_p99_ms),
        row(  # of all requests, so that who leaves some out has no better share
            "SLO attainment",
            lambda run: run.metrics.slo_attainment,
            lambda share: "none" if share is None else f"{share:.1%}",
            more_is_better=True,
            among=uncut,
        ),
        row(
            "Decode throughput",
            lambda run: run.metrics.decode_tokens_per_s,
            lambda rate: "none" if rate is None else f"{rate:,.0f} tok/s",
            more_is_better=True,
        ),
        row("Preemptions", lambda run: float(run.metrics.preemptions), _number),
        row("Makespan", lambda run: run.metrics.makespan_ms),
    ]
    if any(run.metrics.cached_tokens for run in runs):
        from_cache = row(
            "Tokens from the prefix cache",
            lambda run: float(run.metrics.cached_tokens),
            _number,
            more_is_better=True,
        )
        rows.append(from_cache)
    if any(run.unserved for run in runs):
        served = row("Requests not served", lambda run: float(run.unserved), _number, among=uncut)
        rows.append(served)
    return rows


def comparable(runs: Sequence[EngineRun]) -> list[bool]:
    """Return whose figures can be held against each other's.

    A run that was cut, or that left somebody out whom another served, has its figures from
    the others alone.
    """
    fewest = min([run.unserved for run in runs], default=0)
    stopped = all(run.result.stopped_at_max_steps for run in runs)
    return [
        run.unserved == fewest and (stopped or not run.result.stopped_at_max_steps) for run in runs
    ]


def why_not_compared(runs: Sequence[EngineRun]) -> list[str]:
    """Say which runs can never be best, and why, a sentence each."""
    sentences = []
    fewest = min([run.unserved for run in runs], default=0)
    for run, fair in zip(runs, comparable(runs), strict=True):
        if fair:
            continue
        cut = run.unserved == fewest
        reason = "was cut" if cut else f"leaves {count(run.unserved, 'request')} out"
        sentences.append(f"{run.name} {reason}, so its figures are not compared.")
    return sentences


def _number(value: float | None) -> str:
    return f"{value or 0:,.0f}"


def _best(
    values: Sequence[float | None],
    texts: Sequence[str],
    fair: Sequence[bool],
    *,
    more_is_better: bool,
) -> tuple[bool, ...]:
    """Mark the best values and all that read the same; nothing where all do."""
    candidates = [v for v, ok in zip(values, fair, strict=True) if ok and v is not None]
    if not candidates or len(set(texts)) == 1:
        return (False,) * len(values)
    best = max(candidates) if more_is_better else min(candidates)
    text = texts[values.index(best)]
    return tuple([ok and mine == text for mine, ok in zip(texts, fair, strict=True)])
