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
from s11.words import count, ms

TOLD_SHARE = 0.25
"""Of a wait for a first token, the share from which its queue or its prompt is worth telling."""

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

    stall: whether it is a wait for a next token; else for a first one.
    """

    rows: tuple[int, ...]
    who: str
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
        who = count(len(self.rows), "request") if counted and len(self.rows) > 1 else self.who
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
        waited_ms=float(ttft_ms[row]),
        why=_why_late(result, row, "it" if len(alike) == 1 else result.requests.request_id[row]),
        stall=False,
    )


def _who(result: Result, rows: Sequence[int]) -> str:
    ids = result.requests.request_id
    named = [
        count(result.streaming_users, "streaming user") if row == STREAMS else ids[row]
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
    worker = result.prefill_worker or result
    arrival_ms = float(result.requests.arrival_ms[row])
    began_ms = float(result.requests.first_scheduled_ms[row])
    first_ms = float(result.requests.first_token_ms[row])
    lost = _preemptions(worker, row, began_ms, first_ms)
    if lost:
        often = {1: "once", 2: "twice"}.get(lost, f"{lost:,} times")
        return f"{it} is preempted {often} before its prompt is complete"
    steps, slices = worker.steps, worker.slices
    mine = (slices.request == row) & (steps.end_ms[slices.step] <= first_ms)
    waited = np.flatnonzero((steps.end_ms > arrival_ms) & (steps.end_ms <= began_ms))
    queued = _queue(worker, row, waited, it)
    own = _own_prompt(result, slices.tokens[mine], "its" if it == "it" else f"{it}'s")
    share = (began_ms - arrival_ms) / (first_ms - arrival_ms)
    if share > 1 - TOLD_SHARE:
        return queued
    return f"{queued} and then {own}" if share > TOLD_SHARE else own


def _own_prompt(result: Result, tokens: NDArray[np.int64], its: str) -> str:
    much = f"{its} prompt takes {count(len(tokens), 'step')}"
    if len(tokens) > 1:
        much += f" of up to {count(int(tokens.max()), 'token')}"
    elif len(tokens):
        much += f" of {count(int(tokens[0]), 'token')}"
    return f"{much}, after which its KV travels" if result.prefill_worker else much


def _queue(worker: Result, row: int, waited: NDArray[np.int64], it: str) -> str:
    """Return what a request met in the steps that it waited for."""
    steps, ids = worker.steps, worker.requests.request_id
    codes, blocked = steps.blocked_by[waited], steps.blocked_request[waited]
    met = Counter(zip(codes[codes > 0].tolist(), blocked[codes > 0].tolist(), strict=True))
    if not met:
        longest_ms = float(steps.duration_ms[waited].max()) if len(waited) else 0.0
        return f"a step of {ms(longest_ms)} is under way when {it} arrives"
    (code, who), _ = met.most_common(1)[0]
    reason = REASONS[code]
    assert reason is not None
    behind = f"{it} stands behind {ids[who]}, and " if who not in (row, -1) else ""
    return f"{behind}for {count(sum(met.values()), 'step')} {WHY_WAITING[reason]}"
