"""Who waited longest in a run, for a next token or for a first one, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.plan import BlockedBy
from s11.results import REASONS, Result
from s11.step_story import names
from s11.words import count, ms, quoted

TOLD_SHARE, MOSTLY_SHARE = 0.05, 0.75
"""Of a wait for a first token, the share from which a part of it is worth telling; of a queue,
the share up to which its main reason is not the whole of it."""

STREAMS = -1
"""Stands for the streaming users among the rows of the request table."""

WHY_WAITING: dict[BlockedBy, str] = {
    BlockedBy.TOKEN_BUDGET: "the token budget is used up",
    BlockedBy.CHUNK_CAP: "the prompt tokens of a step are used up",
    BlockedBy.CHUNKING_OFF: "a whole prompt does not fit into what is left of the budget",
    BlockedBy.ALIGNMENT: "less than a whole block is left of the step",
    BlockedBy.SEATS: "all seats are taken",
    BlockedBy.KV_BLOCKS: "too few KV blocks are free",
    BlockedBy.PREEMPTION: "nobody is admitted in a step that preempted",
    BlockedBy.HEAD_OF_LINE: "another stands before it",
    BlockedBy.ONE_AT_A_TIME: "only one prompt at a time may be cut",
    BlockedBy.BATCH_RUNNING: "the running batch decodes to its end first",
    BlockedBy.PREFILL_FIRST: "waiting prompts go first",
    BlockedBy.PREFILL_INTERVAL: "the prefill interval holds prompts back",
    BlockedBy.ITL_TARGET: "more prefill would break the ITL target",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Suffering:
    """The longest wait of a run: whose (rows of the request table), how long, why.

    plain: who, without quotation marks.
    stall: whether it is a wait for a next token; else for a first one.
    """

    rows: tuple[int, ...]
    who: str
    plain: str
    waited_ms: float
    why: str
    stall: bool

    @property
    def sentence(self) -> str:
        """Who waits how long, and why, without a full stop."""
        one = len(self.rows) == 1 and self.rows[0] != STREAMS
        token = f"{'its' if one else 'their'} {'next' if self.stall else 'first'} token"
        waits = "waits" if one else "wait"
        return f"{self.who} {waits} {ms(self.waited_ms)} for {token}, since {self.why}"

    def short(self, *, counted: bool = False) -> str:
        """Who waits how long, in a few words; `counted`: how many instead of who."""
        one = len(self.rows) == 1 and self.rows[0] != STREAMS
        who = count(len(self.rows), "request") if counted and len(self.rows) > 1 else self.plain
        if not self.stall:
            return f"TTFT {ms(self.waited_ms)} for {who}"
        return f"{who} {'waits' if one else 'wait'} {ms(self.waited_ms)}"


@dataclass(frozen=True, slots=True)
class Gap:
    """The longest wait between two tokens of one request."""

    start_ms: float
    end_ms: float

    @property
    def duration_ms(self) -> float:
        """How long it is."""
        return self.end_ms - self.start_ms


def longest_gap(result: Result, row: int) -> Gap | None:
    """Return the longest gap between two tokens of a request, None where it has not two."""
    times_ms = result.token_times_ms(row) if row != STREAMS else _stream_times_ms(result)
    if len(times_ms) < 2:
        return None
    at = int(np.argmax(np.diff(times_ms)))
    return Gap(float(times_ms[at]), float(times_ms[at + 1]))


def _stream_times_ms(result: Result) -> NDArray[np.float64]:
    return np.concatenate(([0.0], result.decode_ends_ms()))


def waits_ms(result: Result, *, stall: bool) -> dict[int, float]:
    """Return everyone's longest wait for a next token, or for the first one, by row."""
    if stall:
        return {row: gap.duration_ms for row, gap in all_gaps(result).items()}
    ttft_ms = result.requests.first_token_ms - result.requests.arrival_ms
    return {row: float(wait) for row, wait in enumerate(ttft_ms) if not np.isnan(wait)}


def longest_stall(result: Result) -> Suffering | None:
    """Return the longest wait for a next token, None where nobody has two tokens."""
    gaps = all_gaps(result)
    if not gaps:
        return None
    return stall_of(result, max(gaps, key=lambda row: gaps[row].duration_ms))


def all_gaps(result: Result) -> dict[int, Gap]:
    """Return everyone's longest gap between two tokens, by row."""
    rows = [*([STREAMS] if result.streaming_users else []), *range(len(result.requests))]
    return {row: gap for row in rows if (gap := longest_gap(result, row)) is not None}


def stall_of(result: Result, row: int) -> Suffering:
    """Return the longest wait of a request for a next token, with all who waited as long."""
    gaps = all_gaps(result)
    longest_ms = gaps[row].duration_ms
    alike = [other for other, gap in gaps.items() if np.isclose(gap.duration_ms, longest_ms)]
    one = len(alike) == 1 and alike[0] != STREAMS
    return Suffering(
        rows=tuple(alike),
        who=_who(result, alike),
        plain=_who(result, alike, plain=True),
        waited_ms=longest_ms,
        why=_why_stalled(result, row, gaps[row], "it" if one else _who(result, [row])),
        stall=True,
    )


def ttft_of(result: Result, row: int) -> Suffering:
    """Return the wait of a request for its first token, with all who waited as long."""
    ttft_ms = result.requests.first_token_ms - result.requests.arrival_ms
    alike = np.flatnonzero(np.isclose(ttft_ms, ttft_ms[row])).tolist()
    return Suffering(
        rows=tuple(alike),
        who=_who(result, alike),
        plain=_who(result, alike, plain=True),
        waited_ms=float(ttft_ms[row]),
        why=_why_late(result, row, "it" if len(alike) == 1 else _who(result, [row])),
        stall=False,
    )


def _who(result: Result, rows: Sequence[int], *, plain: bool = False) -> str:
    ids = result.requests.request_id
    mark = str if plain else quoted
    named = [
        count(result.streaming_users, "streaming user") if row == STREAMS else mark(ids[row])
        for row in rows
    ]
    return names(named)


def _why_stalled(result: Result, row: int, gap: Gap, it: str) -> str:
    steps = result.steps
    first = int(np.searchsorted(steps.start_ms, gap.start_ms))
    last = int(np.searchsorted(steps.end_ms, gap.end_ms, side="right"))
    lost = _preemptions(result, row, gap.start_ms, gap.end_ms)
    if lost:
        again = result.slices.tokens[
            (result.slices.request == row)
            & (result.slices.step >= first)
            & (result.slices.step < last)
        ].sum()
        they = f"preempted {count(lost, 'time')}" if lost > 1 else "preempted"
        return f"{it} is {they} and {int(again):,} of its tokens are computed anew"
    prompts = steps.prefill_tokens[first:last]
    held = int(np.count_nonzero((steps.decode_tokens[first:last] == 0) & (prompts > 0)))
    if held == 1:
        return f"a step of {int(prompts[0]):,} prompt tokens carries no decode"
    if held:
        return f"{held:,} prompt steps in a row carry no decode"
    if prompts.any():
        return f"one step carries {int(prompts.max()):,} prompt tokens beside the decodes"
    if first < last:
        return (
            f"that is how long a step of {count(int(steps.decode_tokens[first]), 'decode')} takes"
        )
    return "that is when the next decode step ends"


def _preemptions(result: Result, row: int, start_ms: float, end_ms: float) -> int:
    table = result.preemptions
    inside = (table.time_ms >= start_ms) & (table.time_ms < end_ms)
    return int(np.count_nonzero((table.request == row) & inside))


def _why_late(result: Result, row: int, it: str) -> str:
    """Return the parts of a wait for a first token: queue, prompt, and KV that travels."""
    worker = result.prefilling
    arrival_ms = float(result.requests.arrival_ms[row])
    began_ms = float(result.requests.first_scheduled_ms[row])
    first_ms = float(result.requests.first_token_ms[row])
    prefilled_ms = float(worker.requests.first_token_ms[row])
    lost = _preemptions(worker, row, began_ms, first_ms)
    if lost:
        often = {1: "once", 2: "twice"}.get(lost, f"{lost:,} times")
        return f"{it} is preempted {often} before its prompt is complete"
    prompt, kv = ("its prompt", "its KV")
    if it != "it":
        prompt, kv = f"the prompt of {it}", f"the KV of {it}"
    told = [
        (began_ms - arrival_ms, _queue(worker, row, arrival_ms, began_ms, it)),
        (prefilled_ms - began_ms, _own_prompt(worker, row, began_ms, prefilled_ms, prompt)),
        (first_ms - prefilled_ms, f"{kv} travels for {ms(first_ms - prefilled_ms)}"),
    ]
    waited_ms = first_ms - arrival_ms
    return ", and then ".join([text for part, text in told if part > TOLD_SHARE * waited_ms])


def _own_prompt(worker: Result, row: int, began_ms: float, end_ms: float, prompt: str) -> str:
    """Return how long a prompt takes, in how many steps, and with whom it shares them."""
    steps, slices, ids = worker.steps, worker.slices, worker.requests.request_id
    inside = (steps.start_ms[slices.step] >= began_ms) & (steps.end_ms[slices.step] <= end_ms)
    mine = inside & (slices.request == row)
    tokens, own_steps = slices.tokens[mine], slices.step[mine]
    size = count(int(tokens.max()), "token")
    much = f"{count(len(tokens), 'step')} of {'up to ' if len(tokens) > 1 else ''}{size}"
    text = f"{prompt} takes {ms(end_ms - began_ms)}: {much}"
    shared = inside & (slices.request != row) & np.isin(slices.step, own_steps)
    if slices.tokens[shared].sum() > tokens.sum():
        others = np.unique(slices.request[shared])
        whose = (
            quoted(ids[others[0]]) if len(others) == 1 else f"{count(len(others), 'other prompt')}"
        )
        carry = "that also carries" if len(tokens) == 1 else "that also carry"
        text += f" {carry} {count(int(slices.tokens[shared].sum()), 'token')} of {whose}"
    between = int(np.count_nonzero((steps.start_ms >= began_ms) & (steps.end_ms <= end_ms)))
    if between > len(own_steps):
        text += f", and {count(between - len(own_steps), 'step')} between them without it"
    return text


def _queue(worker: Result, row: int, arrival_ms: float, began_ms: float, it: str) -> str:
    """Return how long a request queued, and what it met for most of that time."""
    steps, ids = worker.steps, worker.requests.request_id
    met: Counter[tuple[int, int]] = Counter()  # ms by reason and by who is blocked
    for step in np.flatnonzero((steps.start_ms >= arrival_ms) & (steps.end_ms <= began_ms)):
        if steps.blocked_by[step]:
            key = int(steps.blocked_by[step]), int(steps.blocked_request[step])
            met[key] += steps.duration_ms[step]
    under_way = (steps.start_ms < arrival_ms) & (steps.end_ms > arrival_ms)
    rest_ms = float((steps.end_ms[under_way] - arrival_ms).sum())
    text = f"{it} queues {ms(began_ms - arrival_ms)}"
    if not met or rest_ms > max(met.values()):
        if not under_way.any():
            return text
        took = ms(float(steps.duration_ms[under_way].max()))
        return f"{text}, as a step of {took} is under way when it arrives"
    (code, who), longest_ms = met.most_common(1)[0]
    reason = REASONS[code]
    assert reason is not None
    mostly = "mostly " if longest_ms < MOSTLY_SHARE * (began_ms - arrival_ms) else ""
    behind = f"it stands behind {quoted(ids[who])}, and " if who not in (row, -1) else ""
    return f"{text}, {mostly}as {behind}{WHY_WAITING[reason]}"
