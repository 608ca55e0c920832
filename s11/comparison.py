"""Runs of one load on several engines, side by side: figures, who suffered and why."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from s11.metric_rows import EngineRun, MetricRow, metric_rows
from s11.results import Result, SliceTable, SpanTable, StepTable
from s11.step_story import names
from s11.suffering import longest_stall, stall_of, ttft_of, waits_ms
from s11.unserved import unserved_sentences
from s11.words import count, ms

MOST_HEADLINE = 44
LEAST_LOSS = 0.02


@dataclass(frozen=True, slots=True, kw_only=True)
class Comparison:
    """What a comparison says.

    headline: the finding in at most 44 characters; it names the scheduler.
    lead: who suffered under which engine, why, and which engine spares them.
    verdicts: for each run, who suffers most in it and why.
    identical: a sentence for each group of runs that did the same, step by step.
    rows: the table of metrics.
    """

    headline: str
    lead: str
    verdicts: tuple[str, ...]
    identical: tuple[str, ...]
    rows: tuple[MetricRow, ...]


def compare(runs: Sequence[EngineRun]) -> Comparison:
    """Return what one or more runs of the same load say beside each other."""
    headline, lead = _lead(runs)
    return Comparison(
        headline=headline,
        lead=lead,
        verdicts=tuple([_verdict(run, runs) for run in runs]),
        identical=tuple(_identical(runs)),
        rows=tuple(metric_rows(runs)),
    )


def same_schedule(mine: Result, other: Result) -> bool:
    """Return whether two runs did the same, step by step: batches, times, preemptions."""

    def same(one: StepTable | SliceTable | SpanTable, two: object, *columns: str) -> bool:
        return all(np.array_equal(getattr(one, name), getattr(two, name)) for name in columns)

    workers = mine.prefill_worker, other.prefill_worker
    if (workers[0] is None) != (workers[1] is None):
        return False
    return (
        same(mine.steps, other.steps, "start_ms", "end_ms", "prefill_tokens", "decode_tokens")
        and same(mine.slices, other.slices, "step", "request", "start_token", "tokens")
        and same(mine.spans, other.spans, "request", "token_ms", "first_decode", "decodes")
        and (workers[0] is None or same_schedule(workers[0], workers[1]))  # type: ignore[arg-type]
    )


def _verdict(run: EngineRun, runs: Sequence[EngineRun]) -> str:
    """Return who suffers most in a run, and why."""
    parts = unserved_sentences(run.experiment, run.result)
    stall, target_ms = longest_stall(run.result), run.experiment.itl_target_ms
    if stall and stall.waited_ms > target_ms:
        parts.append(f"{stall.sentence}.")
    elif stall:
        longest = ms(stall.waited_ms)
        parts.append(f"Nobody waits over {ms(target_ms)} for a next token, {longest} at most.")
    late = _worst_in(run, runs, stall=False)
    if late:
        parts.append(f"{ttft_of(run.result, late.row).sentence}.")
    if run.result.stopped_at_max_steps:
        parts.append("This run was cut, so these are the figures of its first part.")
    return " ".join(parts) or "No request got a token."


def _lead(runs: Sequence[EngineRun]) -> tuple[str, str]:
    """Return headline and sentence: the greatest difference that an engine makes."""
    if not runs:
        return "Nothing to compare", "Choose the engines to compare."
    outcast = max(runs, key=lambda run: run.unserved)
    if outcast.unserved > min(run.unserved for run in runs):
        spared = min(runs, key=lambda run: run.unserved)
        who = " ".join(unserved_sentences(outcast.experiment, outcast.result))
        served = "serves everyone" if not spared.unserved else f"leaves out {spared.unserved}"
        return _under(outcast, f"{count(outcast.unserved, 'request')} not served"), (
            f"Under {outcast.name}, {who} {spared.name} {served}."
        )
    target_ms = runs[0].experiment.itl_target_ms
    stall, late = (_worst(runs, stall=stall) for stall in (True, False))
    worst = stall if stall and (stall.waited_ms > target_ms or not late) else late
    if worst is None:
        if len(runs) == 1:
            return _under(runs[0], "Nobody is served"), "No request got a token."
        return "All give the same here", "Nobody waits longer under one than under another."
    by_stall = worst is stall
    told = (stall_of if by_stall else ttft_of)(worst.run.result, worst.row)
    what = "Stall" if by_stall else "TTFT"
    headline = _under(
        worst.run,
        told.short(),
        told.short(counted=True),
        f"{what} {ms(told.waited_ms)}",
    )
    lead = f"Under {worst.run.name}, {told.sentence}"
    if len(runs) > 1:
        keeps = "keeps it at" if by_stall else "needs"
        lead += f"; {worst.best.name} {keeps} {ms(worst.best_ms)}"
    return headline, f"{lead}."


def _under(run: EngineRun, *findings: str) -> str:
    """Return the first finding that fits a headline with its scheduler's name; cut, if none."""
    texts = [f"{finding} under {run.name}" for finding in findings]
    texts.append(f"{findings[-1]}: {run.name}")
    last = texts[-1]
    cut = last if len(last) <= MOST_HEADLINE else f"{last[: MOST_HEADLINE - 1].rstrip(', ')}…"
    return next((text for text in texts if len(text) <= MOST_HEADLINE), cut)


@dataclass(frozen=True, slots=True, eq=False)
class _Worst:
    """A wait that some requests share, and the run that best spares them all."""

    run: EngineRun
    row: int
    waited_ms: float
    best: EngineRun
    best_ms: float

    @property
    def loss_ms(self) -> float:
        """How much longer the wait is than it need be."""
        return self.waited_ms - self.best_ms


def _worst_in(run: EngineRun, runs: Sequence[EngineRun], *, stall: bool) -> _Worst | None:
    """Return the wait that loses most against the run that is best for the same requests."""
    others = [(waits_ms(other.result, stall=stall), other) for other in runs]
    alike: dict[float, list[int]] = {}
    for row, waited_ms in waits_ms(run.result, stall=stall).items():
        alike.setdefault(round(waited_ms, 6), []).append(row)
    found: list[_Worst] = []
    for waited_ms, rows in alike.items():
        there = [
            (max([waits[row] for row in rows]), other)
            for waits, other in others
            if all(row in waits for row in rows)
        ]
        best_ms, best = min(there, key=lambda pair: pair[0])
        found.append(_Worst(run, rows[0], waited_ms, best, best_ms))
    if not found:
        return None
    longest = max(found, key=lambda worst: worst.waited_ms)
    greatest = max(found, key=lambda worst: worst.loss_ms)
    return greatest if greatest.loss_ms > LEAST_LOSS * longest.waited_ms else longest


def _worst(runs: Sequence[EngineRun], *, stall: bool) -> _Worst | None:
    """Return the greatest loss of all runs, None where none is worth telling.

    Of one run alone it is the longest wait.
    """
    found = [worst for run in runs if (worst := _worst_in(run, runs, stall=stall))]
    greatest = max(found, key=lambda worst: worst.loss_ms, default=None)
    if greatest is None or len(runs) == 1:
        return greatest
    if greatest.waited_ms <= (1 + LEAST_LOSS) * greatest.best_ms:
        return None
    return greatest


def _identical(runs: Sequence[EngineRun]) -> list[str]:
    """Say which runs did the same in every step."""
    sentences, told = [], set()
    for at, run in enumerate(runs):
        alike = [i for i in range(at, len(runs)) if same_schedule(run.result, runs[i].result)]
        if len(alike) < 2 or at in told:
            continue
        told.update(alike)
        labels = [runs[i].name for i in alike]
        sentence = f"{names(labels)} do exactly the same in every step here."
        policies = {runs[i].experiment.policy for i in alike}
        ample = all(
            runs[i].experiment.chunking and runs[i].experiment.limits.kv_blocks is None
            for i in alike
        )
        if ample and {"chunked", "vllm_v1"} <= policies:
            sentence += (
                " With KV blocks to spare they always do on the same knobs: they differ only in "
                "whom they preempt."
            )
        sentences.append(sentence)
    return sentences
