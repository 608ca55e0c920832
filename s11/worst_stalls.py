"""The longest waits for a next token in a run: when, who saw them, and what the steps held."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.checks import require_int
from s11.experiment import Experiment
from s11.metrics import inter_token_gaps
from s11.request_metrics import token_gaps
from s11.results import REASONS, Result
from s11.step_reasons import cut_words
from s11.step_story import StepStory, step_stories
from s11.words import count, ms, quoted

MOST_STALLS = 1_000
MOST_AROUND = 50
DECIMALS = 6  # of ms: equal steps differ in the last bits of a long clock

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class WorstStall:
    """One long ITL, from one token to the next; the table's rows of steps count from 0.

    request: one of those who saw it; None: only streaming users did.
    seen_by: how many had their next token at its end after just this wait.
    first_step, last_step: the steps that it spans; `step` is the longest of them.
    prefill_tokens: of all prompts in these steps.
    decode_tokens: of the last one.
    chunk_request, chunk_tokens: whose slice in these steps is the largest; None: no slice.
    preemptions: how often `request` lost its KV blocks in it.
    reason: why it took so long, without a full stop.
    """

    duration_ms: float
    start_ms: float
    end_ms: float
    request: str | None
    seen_by: int
    first_step: int
    last_step: int
    step: int
    prefill_tokens: int
    decode_tokens: int
    chunk_request: str | None
    chunk_tokens: int
    preemptions: int
    reason: str

    @property
    def who(self) -> str:
        """One of those who saw it."""
        return "a streaming user" if self.request is None else quoted(self.request)

    @property
    def sentence(self) -> str:
        """Who waited how long, when, and why, without a full stop."""
        others = self.seen_by - 1
        more = f" and {others:,} more wait" if others else " waits"
        return (
            f"{self.who}{more} {ms(self.duration_ms)} for a token, from {self.start_ms:,.0f} ms "
            f"on: {self.reason}"
        )


def worst_stalls(
    result: Result, experiment: Experiment, *, count: int = 10
) -> tuple[WorstStall, ...]:
    """Return the `count` longest waits for a next token, the longest first; at most one a step.

    Of all waits that end with the same step only the longest is told; of two that are as long,
    the earlier comes first. Of a disaggregated deployment the steps are the decode worker's.

    Raises:
        ValueError: a count out of range.
    """
    require_int("count", count, 1, MOST_STALLS)
    gaps = _Gaps(result)
    return tuple([_told(result, experiment, gaps, row) for row in gaps.longest(count)])


def steps_around(result: Result, step: int, *, before: int = 3, after: int = 3) -> range:
    """Return the steps (rows, from 0) from `before` steps before a step to `after` after it.

    Raises:
        ValueError: a step that the run has not, or a count out of range.
    """
    require_int("before", before, 0, MOST_AROUND)
    require_int("after", after, 0, MOST_AROUND)
    if not len(result.steps):
        raise ValueError("step: the run has no step")
    require_int("step", step, 0, len(result.steps) - 1)
    return range(max(0, step - before), min(len(result.steps), step + after + 1))


def stories_around(
    experiment: Experiment, result: Result, step: int, *, before: int = 3, after: int = 3
) -> list[StepStory]:
    """Return what the engine saw in the steps around a step.

    Raises:
        ValueError: a step that the run has not, or a count out of range.
    """
    return step_stories(experiment, result, steps_around(result, step, before=before, after=after))


class _Gaps:
    """Every gap between two tokens, in the rows of `inter_token_gaps`, and where it lies."""

    def __init__(self, result: Result) -> None:
        found = token_gaps(result)
        self.durations_ms, self.tokens = inter_token_gaps(result, gaps=found)  # (gaps,) each
        spans = result.spans
        self.spans = spans
        self.decode_steps = np.flatnonzero(result.steps.decode_tokens)  # (decode steps,)
        self.ends_ms = result.steps.end_ms
        # Of the rows after the decode steps' own:
        self.span = np.concatenate((found.begun, found.resumed))
        came = np.searchsorted(self.ends_ms, spans.token_ms[found.resumed])
        self.step = np.concatenate(  # (gaps,) with whose end the gap ends
            (self.decode_steps, self.decode_steps[spans.first_decode[found.begun]], came)
        )

    def longest(self, most: int) -> list[int]:
        """Return the rows of the longest gaps, one a step at most, the longest first."""
        seen = np.flatnonzero(self.tokens)
        durations_ms = np.round(self.durations_ms[seen], DECIMALS)
        own = int(np.searchsorted(seen, len(self.decode_steps)))  # each ends with its own step
        if own > most:
            least_ms = np.partition(durations_ms[:own], own - most)[own - most]
            far = durations_ms >= least_ms
            seen, durations_ms = seen[far], durations_ms[far]
        chosen: dict[int, int] = {}
        for row in seen[np.lexsort((self.step[seen], -durations_ms))].tolist():
            chosen.setdefault(int(self.step[row]), row)
            if len(chosen) == most:
                break
        return list(chosen.values())

    def start_end_ms(self, row: int) -> tuple[float, float]:
        end_ms = float(self.ends_ms[self.step[row]])
        return end_ms - float(self.durations_ms[row]), end_ms

    def example(self, row: int) -> int | None:
        """Return the row of a request that saw a gap; None: streaming users alone."""
        nth = row - len(self.decode_steps)
        spans = self.spans
        if nth >= 0:
            return int(spans.request[self.span[nth]])
        both = (spans.first_decode < row) & (row < spans.first_decode + spans.decodes)
        found = np.flatnonzero(both)
        return int(spans.request[found[0]]) if len(found) else None

    def seen_by(self, row: int) -> int:
        """Return how many tokens ended this gap and others as long that end with its step."""
        alike = np.flatnonzero(self.step == self.step[row])
        same = np.isclose(
            self.durations_ms[alike], self.durations_ms[row], rtol=1e-9, atol=10**-DECIMALS
        )
        return int(self.tokens[alike[same]].sum())


def _told(result: Result, experiment: Experiment, gaps: _Gaps, row: int) -> WorstStall:
    steps, ids = result.steps, result.requests.request_id
    start_ms, end_ms = gaps.start_end_ms(row)
    last = int(gaps.step[row])
    # The step that gave the token before it ends where the gap starts, but for the last bits.
    begun = int(np.searchsorted(steps.end_ms, start_ms + 10**-DECIMALS, side="right"))
    first = min(begun, last)
    example = gaps.example(row)
    slices = _slices_of(result, first, last)
    largest = int(slices[np.argmax(result.slices.tokens[slices])]) if len(slices) else None
    lost = 0
    if example is not None:
        table = result.preemptions
        mine = (table.request == example) & (table.step >= first) & (table.step <= last)
        lost = int(np.count_nonzero(mine))
    return WorstStall(
        duration_ms=float(gaps.durations_ms[row]),
        start_ms=start_ms,
        end_ms=end_ms,
        request=None if example is None else ids[example],
        seen_by=gaps.seen_by(row),
        first_step=first,
        last_step=last,
        step=first + int(np.argmax(steps.duration_ms[first : last + 1])),
        prefill_tokens=int(steps.prefill_tokens[first : last + 1].sum()),
        decode_tokens=int(steps.decode_tokens[last]),
        chunk_request=None if largest is None else ids[result.slices.request[largest]],
        chunk_tokens=0 if largest is None else int(result.slices.tokens[largest]),
        preemptions=lost,
        reason=_reason(
            result,
            experiment,
            first=first,
            last=last,
            start_ms=start_ms,
            example=example,
            lost=lost,
        ),
    )


def _slices_of(result: Result, first: int, last: int) -> Ints:
    """Return the rows of the slices in the steps from `first` to `last`."""
    begin, end = np.searchsorted(result.slices.step, [first, last + 1])
    return np.arange(begin, end)


def _reason(
    result: Result,
    experiment: Experiment,
    *,
    first: int,
    last: int,
    start_ms: float,
    example: int | None,
    lost: int,
) -> str:
    steps, slices = result.steps, result.slices
    rows = _slices_of(result, first, last)
    if lost:
        again = int(slices.tokens[rows[slices.request[rows] == example]].sum())
        often = {1: "once", 2: "twice"}.get(lost, f"{lost:,} times")
        return (
            f"it is preempted {often}, as KV blocks ran short, and {count(again, 'token')} "
            f"{'is' if again == 1 else 'are'} computed anew"
        )
    decodes = steps.decode_tokens[first : last + 1]
    if result.prefill_worker is not None and np.count_nonzero(decodes) > 1:
        running = steps.start_ms[first] < start_ms - 10**-DECIMALS  # a step that it cannot join
        waited = len(decodes) - 1 - running
        if not waited:
            return "its KV comes while a step runs, and it decodes in the next"
        return f"it has its KV, and waits {count(waited, 'step')} for a seat to decode in"
    still = int(np.count_nonzero(decodes == 0))
    beside = f"beside {count(int(decodes[-1]), 'decode')}"
    if not len(rows):
        return f"a step of {count(int(decodes[-1]), 'decode')} takes that long"
    whose = _whose(result, experiment, rows)
    if not still:
        return f"one step carries {whose}, {beside}"
    steps_told = "a step" if still == 1 else f"{still:,} steps in a row"
    alone = f"{steps_told} of prompts alone, without a decode"
    return f"{alone}, {'carries' if still == 1 else 'carry'} {whose}"


def _whose(result: Result, experiment: Experiment, rows: Ints) -> str:
    """Return which prompts' tokens some slices are: most of them whose, and how many more."""
    slices, ids = result.slices, result.requests.request_id
    requests = slices.request[rows]
    tokens = np.bincount(requests, weights=slices.tokens[rows]).astype(np.int64)
    most = int(np.argmax(tokens))
    mine = rows[requests == most]
    text = f"{count(int(tokens[most]), 'prompt token')} of {quoted(ids[most])}"
    wanted, cut_by = int(slices.wanted_tokens[mine[0]]), REASONS[slices.limited_by[mine[-1]]]
    if tokens[most] == wanted and slices.start_token[mine[0]] == 0:
        text += ", its whole prompt"
    elif cut_by and len(mine) == 1:
        text += f" ({cut_words(cut_by, experiment)})"
    others = int(np.count_nonzero(tokens)) - 1
    if others:
        whose = "another prompt" if others == 1 else f"{others:,} other prompts"
        text += f", and {int(tokens.sum() - tokens[most]):,} of {whose}"
    return text
