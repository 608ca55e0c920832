"""What the engine saw in a step, and why each request got what it got, in sentences."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.plan import BlockedBy
from s11.policies import DISAGGREGATED
from s11.results import REASONS, Result
from s11.step_reasons import blocked_words, cut_words
from s11.step_tables import Decoding, Standing, ending, grouped, running_requests
from s11.words import count, quoted

MOST_NAMES, MOST_SLICES = 6, 4

Ints = NDArray[np.int64]


@dataclass(frozen=True, slots=True, kw_only=True)
class StepStory:
    """One step told: its number from 1, when it ran, and a sentence for each thing to know."""

    number: int
    start_ms: float
    duration_ms: float
    prefill_tokens: int
    decode_tokens: int
    lines: tuple[str, ...]

    @property
    def head(self) -> str:
        """Which step it is, and when."""
        end_ms = self.start_ms + self.duration_ms
        return f"Step {self.number:,}: {self.start_ms:,.1f} to {end_ms:,.1f} ms, {_load(self)}"


def step_stories(
    experiment: Experiment, result: Result, steps: Sequence[int] | None = None
) -> list[StepStory]:
    """Return the stories of some steps (rising numbers, from 0), of all where none are named.

    One sweep over the run: what a story costs does not depend on how long the run is.
    Of a disaggregated deployment these are the decode worker's steps; its prefill worker's
    result has its own.
    """
    return _Teller(experiment, result).tell(range(len(result.steps)) if steps is None else steps)


def names(ids: Sequence[str], total: int | None = None) -> str:
    """Return names as people list them: "A", "A and B", "A, B and 3 more"."""
    total = len(ids) if total is None else total
    shown = list(ids[:MOST_NAMES])
    if total > len(shown):
        shown.append(f"{total - len(shown):,} more")
    if len(shown) < 2:
        return "".join(shown)
    return f"{', '.join(shown[:-1])} and {shown[-1]}"


def _load(story: StepStory) -> str:
    parts = []
    if story.prefill_tokens:
        parts.append(f"{story.prefill_tokens:,} prefill")
    if story.decode_tokens:
        parts.append(f"{story.decode_tokens:,} decode")
    if not parts:
        return "empty"
    last = story.decode_tokens or story.prefill_tokens
    return f"{' + '.join(parts)} token{'' if last == 1 and len(parts) == 1 else 's'}"


class _Teller:
    """The tables of one run, laid out by step."""

    def __init__(self, experiment: Experiment, result: Result) -> None:
        self.experiment, self.result, self.limits = experiment, result, experiment.limits
        self.ids = result.requests.request_id
        steps = result.steps
        self.prefill_worker = experiment.policy == DISAGGREGATED and result.prefill_worker is None
        carries = steps.decode_tokens > 0
        self.decode_step: Ints = np.cumsum(carries) - carries  # (steps,) decode steps before it
        self.running = running_requests(result)
        self.preempted = grouped(result.preemptions.step, result.preemptions.request)
        self.seats = grouped(result.admissions.request, result.admissions.step)
        self.losses = grouped(result.preemptions.request, result.preemptions.step)
        self.hits = {
            (int(result.admissions.step[row]), int(result.admissions.request[row])): int(
                result.admissions.cached_tokens[row]
            )
            for row in range(len(result.admissions))
        }
        requests = result.requests
        self.first_tokens = grouped(*ending(result, requests.first_token_ms))
        self.last_tokens = grouped(*ending(result, requests.last_token_ms))

    def tell(self, steps: Iterable[int]) -> list[StepStory]:
        table, decoding = self.result.steps, Decoding(self.result)
        self.standing = Standing(self.result)
        return [
            StepStory(
                number=step + 1,
                start_ms=float(table.start_ms[step]),
                duration_ms=float(table.duration_ms[step]),
                prefill_tokens=int(table.prefill_tokens[step]),
                decode_tokens=int(table.decode_tokens[step]),
                lines=tuple(self._lines(step, decoding.at(int(self.decode_step[step])))),
            )
            for step in steps
        ]

    def _lines(self, step: int, decoding: dict[int, None]) -> list[str]:
        table = self.result.steps
        decode_tokens, held = int(table.decode_tokens[step]), int(table.held_decodes[step])
        lines = [self._lost(request, step) for request in self.preempted.get(step, ())]
        lines += self._slices(step)
        if decode_tokens:
            who = self._streams(decoding)
            lines.append(f"{who} {'gets' if decode_tokens == 1 else 'each get'} 1 decode token.")
        if held:
            who = self._streams(self.standing.at(step))
            stands = "stands" if held == 1 else "stand"
            lines.append(f"{who} {stands} still: this step carries prompts alone.")
        if not decode_tokens and not table.prefill_tokens[step]:
            lines.append("Nothing is left to run in this step.")
        lines += self._blocked(step)
        lines += self._room(step)
        return lines + self._ends(step)

    def _streams(self, decoding: dict[int, None]) -> str:
        users = self.result.streaming_users
        ids = [quoted(self.ids[request]) for request in list(decoding)[:MOST_NAMES]]
        streams = [count(users, "streaming user")] if users else []
        return names(streams + ids, total=len(decoding) + len(streams))

    def _lost(self, request: int, step: int) -> str:
        spans, start_ms = self.result.spans, self.result.steps.start_ms[step]
        begin, end = np.searchsorted(spans.request, [request, request + 1])
        so_far = spans.token_ms[begin:end] <= start_ms
        outputs = int((1 + spans.decodes[begin:end])[so_far].sum())
        keeps = f", keeps its {count(outputs, 'output')}" if outputs else ""
        return (
            f"{quoted(self.ids[request])} was preempted just before, as KV blocks ran short: it "
            f"lost its own{keeps} and is back at the front of the queue."
        )

    def _slices(self, step: int) -> list[str]:
        slices = self.result.slices
        begin, end = np.searchsorted(slices.step, [step, step + 1])
        lines = [self._slice(row, step) for row in range(begin, min(end, begin + MOST_SLICES))]
        more = end - begin - MOST_SLICES
        if more > 0:
            tokens = int(slices.tokens[begin + MOST_SLICES : end].sum())
            lines.append(f"{count(more, 'more prompt')} get{'s' if more == 1 else ''} {tokens:,}.")
        return lines

    def _slice(self, row: int, step: int) -> str:
        slices = self.result.slices
        request, tokens = int(slices.request[row]), int(slices.tokens[row])
        wanted = int(slices.wanted_tokens[row])
        name, hit = quoted(self.ids[request]), self.hits.get((step, request))
        cached = f" ({hit:,} more come from the prefix cache)" if hit else ""
        lost = bisect_right(self.losses.get(request, []), step)
        anew = ", anew after its preemption" if lost else ""
        if tokens == wanted:
            much = "the 1 token" if tokens == 1 else f"all {tokens:,} tokens"
            return f"{name} gets {much} that it still wants{anew}{cached}."
        reason = REASONS[slices.limited_by[row]]
        why = f": {cut_words(reason, self.experiment)}" if reason else ""
        return f"{name} gets {tokens:,} of the {wanted:,} tokens that it wants{anew}{cached}{why}."

    def _blocked(self, step: int) -> list[str]:
        table = self.result.steps
        reason, waiting = REASONS[table.blocked_by[step]], int(table.waiting[step])
        row = int(table.blocked_request[step])
        if reason is None or row < 0:
            if not waiting:
                return []
            return [
                f"{count(waiting, 'request')} {'waits' if waiting == 1 else 'wait'} for a seat."
            ]
        behind = waiting if self._seated(row, step) else waiting - 1
        line = f"{quoted(self.ids[row])} gets nothing: {self._why_blocked(reason, step)}."
        if behind > 0:
            line += f" {behind:,} more {'waits' if behind == 1 else 'wait'} behind it."
        return [line]

    def _seated(self, request: int, step: int) -> bool:
        """Return whether a request is admitted at this time: more often than preempted."""
        seats = bisect_right(self.seats.get(request, []), step)
        return seats > bisect_right(self.losses.get(request, []), step)

    def _why_blocked(self, reason: BlockedBy, step: int) -> str:
        left = self._left(step)
        if left is not None and self.experiment.policy == "prefill_first":
            left += int(self.result.steps.decode_tokens[step])  # decodes share no budget with it
        return blocked_words(
            reason, experiment=self.experiment, left=left, free_blocks=self._free_blocks(step)
        )

    def _left(self, step: int) -> int | None:
        """Return what the budget has left; None where there is no budget."""
        budget, table = self.limits.token_budget, self.result.steps
        if budget is None:
            return None
        return int(budget - table.prefill_tokens[step] - table.decode_tokens[step])

    def _free_blocks(self, step: int) -> int | None:
        pool = self.limits.kv_blocks
        return None if pool is None else pool - int(self.result.steps.kv_blocks[step])

    def _room(self, step: int) -> list[str]:
        parts = []
        left, budget = self._left(step), self.limits.token_budget
        if left is not None and budget is not None:
            parts.append(f"{budget - left:,} of {budget:,} budget tokens used, {left:,} left")
        running, seats = int(self.running[step]), self.limits.max_seqs
        parts.append(
            f"{running:,} of {count(seats, 'seat')} taken"
            if seats
            else f"{count(running, 'request')} running, with no limit on seats"
        )
        held, free = int(self.result.steps.kv_blocks[step]), self._free_blocks(step)
        if free is not None:
            parts.append(f"{held:,} of {held + free:,} KV blocks held, {free:,} free")
        elif held:
            parts.append(f"{count(held, 'KV block')} held")
        return ["Room: " + "; ".join(parts) + "."]

    def _ends(self, step: int) -> list[str]:
        first = self.first_tokens.get(step, [])
        last = self.last_tokens.get(step, [])
        if self.prefill_worker:
            return [f"At its end the KV of {self._named(first)} travels on."] if first else []
        parts = []
        if first:
            tokens = "gets its first token" if len(first) == 1 else "get their first tokens"
            parts.append(f"{self._named(first)} {tokens}")
        if last:
            parts.append(f"{self._named(last)} {'is' if len(last) == 1 else 'are'} done")
        return [f"At its end {' and '.join(parts)}."] if parts else []

    def _named(self, requests: Sequence[int]) -> str:
        ids = [quoted(self.ids[row]) for row in requests[:MOST_NAMES]]
        return names(ids, total=len(requests))


def story_text(story: StepStory) -> str:
    """Return a story as one paragraph."""
    return " ".join(story.lines)
