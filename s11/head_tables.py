"""What happened while only the head of the queue was cut, told from little: all steps at once.

First come, first served, so the tokens that the steps prefilled, laid end to end, are the prompts
laid end to end: where one of them is complete, who was admitted when, who waited and why follows
from where their edges lie. The notes are those of `s11.recorder`, as the engine writes them.
"""

from __future__ import annotations

from array import array
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from s11.plan import BlockedBy
from s11.recorder import Span
from s11.results import Floats, Ints

TOKEN_BUDGET, CHUNK_CAP = BlockedBy.TOKEN_BUDGET.code, BlockedBy.CHUNK_CAP.code
SEATS = BlockedBy.SEATS.code


@dataclass(frozen=True, slots=True, kw_only=True)
class Began:
    """How things stood when a stretch began.

    step, decode_step: how many the run had before. decoding, context_tokens: who decoded, and
    their cached tokens. head_tokens_done: of the head of the queue, what was computed; 0 without
    a seat. queue: how many waited, the head among them.
    """

    now_ms: float
    step: int
    decode_step: int
    decoding: int
    context_tokens: int
    head_tokens_done: int
    queue: int


@dataclass(slots=True, kw_only=True)
class Jottings:
    """What the loop keeps of its steps.

    prefill_decodes, given_tokens: of each step with slices, the run's decode steps before it,
        and its tokens.
    without_decodes: those in which nobody decodes, by their place among them.
    idle_until: a step, and when it began, where the one before had ended earlier.
    known_tokens, decodes: of those whose prefill was completed, and the outputs to come.
    """

    prefill_decodes: list[int] = field(default_factory=list)
    given_tokens: list[float] = field(default_factory=list)
    without_decodes: list[int] = field(default_factory=list)
    idle_until: list[tuple[int, float]] = field(default_factory=list)
    known_tokens: list[int] = field(default_factory=list)
    decodes: list[int] = field(default_factory=list)


@dataclass(frozen=True, kw_only=True, eq=False)
class Stretch:
    """A stretch of steps: how it began, who waited, and what was kept of it.

    rows: who got any token in it, in order, from its first head on, and who came after them.
    arrivals_ms: of those that came in it.
    known_tokens: of those that got any token.
    decodes: to come, of those whose prefill was completed.
    prefill_steps, without_decodes: steps counted from its first.
    others_ended, others_final_tokens: the spans that began before it and ended in it.
    """

    began: Began
    ends_ms: array[float]  # of the run
    steps: int
    rows: Ints  # (served + 1,) or as many as there are
    arrivals_ms: Floats  # (arrived,)
    known_tokens: Ints  # (served,)
    decodes: Ints  # (complete,)
    prefill_steps: Ints  # (prefill steps,)
    given_tokens: Ints  # (prefill steps,)
    without_decodes: Ints  # (steps without,)
    idle_until: list[tuple[int, float]]  # steps of the run
    others_ended: list[Span]
    others_final_tokens: Ints  # (others ended,)
    seats: float
    chunk_cap: float

    @cached_property
    def end_ms(self) -> Floats:  # (steps,)
        """When each step ended."""
        return np.array(self.ends_ms[self.began.step : self.began.step + self.steps])

    @cached_property
    def start_ms(self) -> Floats:  # (steps,)
        """When each step began."""
        start_ms = np.empty_like(self.end_ms)
        start_ms[:1], start_ms[1:] = self.began.now_ms, self.end_ms[:-1]
        for step, at_ms in self.idle_until:
            if step < self.began.step + self.steps:
                start_ms[step - self.began.step] = at_ms
        return start_ms

    @cached_property
    def given_through(self) -> Ints:  # (prefill steps,)
        """The tokens given up to and with each step: the steps' slices end to end."""
        return self.given_tokens.cumsum()

    @cached_property
    def wanted_tokens(self) -> Ints:  # (served,)
        """What was left of each prompt when the stretch began."""
        wanted = self.known_tokens.copy()
        wanted[:1] -= self.began.head_tokens_done
        return wanted

    @cached_property
    def prompts_through(self) -> Ints:  # (served,)
        """The prompts' tokens end to end."""
        return self.wanted_tokens.cumsum()

    @cached_property
    def complete_in(self) -> Ints:  # (complete,)
        """The prefill step, by place, that completed each prefill."""
        return self.given_through.searchsorted(self.prompts_through[: len(self.decodes)])

    @cached_property
    def admitted_in(self) -> Ints:  # (admitted,)
        """The prefill step, by place, that gave each its first token; without the head's."""
        before = (self.prompts_through - self.wanted_tokens)[self.began_before :]
        return self.given_through.searchsorted(before, side="right")

    @property
    def began_before(self) -> int:
        """1 where the head had a seat already, or 0."""
        return int(self.began.head_tokens_done > 0)

    @cached_property
    def token_ms(self) -> Floats:  # (complete,)
        """When the output of each prefill appeared."""
        return self.end_ms[self.prefill_steps[self.complete_in]]

    @cached_property
    def decodes_before(self) -> Ints:  # (complete,)
        """The stretch's decode steps up to and with the one that completed each prefill."""
        at = self.prefill_steps[self.complete_in]
        return at + 1 - self.without_decodes.searchsorted(at, side="right")

    @cached_property
    def ended(self) -> np.ndarray:  # (complete,) of bool
        """Whether each has its last token too."""
        in_all = self.steps - len(self.without_decodes)
        return self.decodes_before + self.decodes <= in_all

    def spans(self) -> Floats:  # (ended, 4)
        """Return the notes of the spans that ended."""
        ended = np.flatnonzero(self.ended)
        own = (
            self.rows[ended],
            self.token_ms[ended],
            self.began.decode_step + self.decodes_before[ended],
            self.decodes[ended],
        )
        others = np.array(self.others_ended, dtype=np.float64).reshape(-1, 4)
        return np.concatenate((others, np.stack(own, axis=1)))

    def admissions(self) -> Floats:  # (admitted, 4)
        """Return the notes of the admissions."""
        at = self.prefill_steps[self.admitted_in]
        rows = self.rows[self.began_before : len(self.known_tokens)]
        uncached = np.zeros(len(at))
        return np.stack((rows, self.start_ms[at], self.began.step + at, uncached), axis=1)

    @cached_property
    def slice_edges(self) -> Ints:  # (slices,)
        """Where each slice ends, all of them end to end: where a step or a prompt does."""
        edges = np.concatenate((self.prompts_through[: len(self.decodes)], self.given_through))
        edges.sort(kind="stable")  # two rising runs: merged
        distinct: Ints = edges[np.diff(edges, prepend=0) > 0]
        return distinct

    def slices(self) -> Ints:  # (slices, 7)
        """Return the notes of the slices."""
        edges = self.slice_edges
        tokens = np.diff(edges, prepend=0)
        at = self.prefill_steps[self.given_through.searchsorted(edges)]
        place = self.prompts_through.searchsorted(edges)
        wanted = self.prompts_through[place] - edges + tokens
        cut_by = np.where(tokens < self.chunk_cap, TOKEN_BUDGET, CHUNK_CAP) * (tokens < wanted)
        start_token = self.known_tokens[place] - wanted
        step, rows, once = self.began.step + at, self.rows[place], np.ones_like(edges)
        return np.stack((step, once, rows, start_token, tokens, wanted, cut_by)).T

    def runs(self) -> Ints:  # (runs, 8)
        """Return the notes of the runs of equal steps: from change to change."""
        steps = self.steps
        decoders = np.flatnonzero(self.decodes)  # places in the queue
        left_after, left_tokens = self._last_decodes(decoders)
        arrived_at = self.start_ms.searchsorted(self.arrivals_ms)
        changes = np.concatenate(
            ([0], self.prefill_steps, self.prefill_steps + 1, np.sort(left_after) + 1, arrived_at)
        )
        changes.sort(kind="stable")  # rising runs: merged
        changes = changes[: changes.searchsorted(steps)]
        changes = changes[np.diff(changes, prepend=-1) > 0]
        runs = len(changes)
        lengths = np.diff(np.append(changes, steps))
        prefill_run = changes.searchsorted(self.prefill_steps)
        given_tokens = np.zeros(runs, dtype=np.int64)
        given_tokens[prefill_run] = self.given_tokens

        def count(run: Ints, weights: Ints | None = None) -> Ints:  # (runs,)
            """Count by run; what would be in the run after the last falls away."""
            return np.bincount(run, weights, minlength=runs + 1)[:runs].astype(np.int64)

        begun = prefill_run[self.complete_in[decoders]] + 1
        left = changes.searchsorted(left_after + 1)
        decoding = self.began.decoding + (count(begun) - count(left)).cumsum()
        context = count(begun, self.known_tokens[decoders]) - count(left, left_tokens)
        context[1:] += (lengths * decoding)[:-1]
        context = self.began.context_tokens + context.cumsum()

        # Who waits, and why. Places in the queue: of the first without a seat, and of who came.
        admitted = self.began_before + count(prefill_run[self.admitted_in]).cumsum()
        came = count(changes.searchsorted(arrived_at)).cumsum()
        waiting = self.began.queue + came - admitted
        part_done = admitted > count(prefill_run[self.complete_in]).cumsum()
        starved = (given_tokens == 0) & part_done
        slices = count(prefill_run[self.given_through.searchsorted(self.slice_edges)])
        no_seat = ~starved & (decoding + slices >= self.seats)
        blocked = starved | (waiting > 0)
        reason = np.where(no_seat, SEATS, TOKEN_BUDGET) * blocked
        row = np.append(self.rows, -1)[np.where(blocked, admitted - starved, -1)]
        held = np.zeros(runs, dtype=np.int64)
        return np.stack((lengths, given_tokens, decoding, held, waiting, row, reason, context)).T

    def _last_decodes(self, decoders: Ints) -> tuple[Ints, Ints]:
        """Return the steps with somebody's last token, and the tokens in its cache then."""
        leaving = decoders[self.ended[decoders]]
        nth = self.decodes_before[leaving] + self.decodes[leaving] - 1
        tokens = self.known_tokens[leaving] + self.decodes[leaving]
        others = [
            first + many - 1 - self.began.decode_step for _, _, first, many in self.others_ended
        ]
        nth = np.append(nth, np.array(others, dtype=np.int64))
        # The nth decode step comes after all those without whose place among decodes it passed.
        among_decodes = self.without_decodes - np.arange(len(self.without_decodes))
        return (
            nth + among_decodes.searchsorted(nth, side="right"),
            np.append(tokens, self.others_final_tokens),
        )
