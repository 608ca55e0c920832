"""Where a stretch that `s11.head_of_queue` can run begins, and what is filed when it ends."""

from __future__ import annotations

import numpy as np

from s11.experiment import Experiment
from s11.express import CUT_BY_BUDGET, PlainRunner
from s11.head_tables import Began, Jottings, Stretch
from s11.kv_blocks import BlockPool
from s11.recorder import Span

FEW_REQUESTS = 32  # up to so many, all steps at once are no gain
MOST_STEPS = 262_144  # in a stretch, those with and without decodes each half
FEWEST_STEPS = 256  # of the run's limit: the rest of it is for the loop that counts each


def serves_the_head_alone(experiment: Experiment) -> bool:
    """Return whether only the prompt at the head of the queue can be part done."""
    limits, cap = experiment.limits, experiment.limits.tokens_per_slice()
    if experiment.policy not in CUT_BY_BUDGET or experiment.cost.line is None:
        return False
    if not limits.chunking or limits.prefix_caching or limits.align_first_chunk:
        return False
    if limits.prefill_interval > 1:
        return False
    no_cap = cap >= limits.tokens_per_step()
    if no_cap and limits.max_model_len is None:
        return True
    # Who is preempted computes its outputs anew with its prompt: more than any prompt has.
    longest = max((request.prompt_tokens for request in experiment.workload.requests), default=0)
    no_cap = no_cap or (limits.kv_blocks is None and cap >= longest)
    return no_cap and (limits.max_model_len is None or longest <= limits.max_model_len)


class StretchRunner(PlainRunner):
    """A worker that knows when the head of its queue is served alone, and files what was done."""

    def look_at_the_load(self, experiment: Experiment) -> None:
        """Find out whether the loop below can run it, and from how many free blocks on."""
        self.head_alone = (
            self.plain
            and len(self.known_tokens) > FEW_REQUESTS
            and serves_the_head_alone(experiment)
        )
        self.ample_blocks = 0.0
        if not self.head_alone or self.pool is None:
            return
        limits = self.limits
        seats = max(self.users, min(limits.seats(), self.users + len(self.known_tokens)))
        most = 3.0 * seats + 2.0 * limits.tokens_per_step() / limits.block_size + 1
        if limits.reserve_full_prompt:
            most += max(self.final_tokens) / limits.block_size + 1
        self.ample_blocks = most

    def can_run_head_of_queue(self) -> bool:
        """Return whether all that wait came in that order, and nothing runs short soon."""
        batch = self.batch
        if self.max_steps - len(self.notes.ends_ms) < FEWEST_STEPS or len(batch.prefilling) > 1:
            return False
        if self.pool is not None and self.pool.free_blocks < self.ample_blocks:
            return False
        if batch.waiting and batch.waiting[0] != self.arriving[self.arrived - len(batch.waiting)]:
            return False  # preempted, and first again
        queue = [*batch.prefilling, *batch.waiting]
        return queue == self.arriving[self.arrived - len(queue) : self.arrived]

    def note_stretch(
        self,
        began: Began,
        jottings: Jottings,
        queue: list[int],
        arrivals_ms: list[float],
    ) -> None:
        """Note a stretch, and file who decodes at its end.

        queue: who waited in it, from the head at its beginning on. arrivals_ms: of those that
            came in it.
        """
        notes, span, outputs, seats = self.notes, self.span, self.outputs, self.seats
        if len(notes.ends_ms) == began.step:
            return
        others: list[Span] = []
        for row, (token_ms, first) in list(span.items()):
            decodes = self.output_tokens[row] - outputs[row]
            if first + decodes <= self.decode_steps:
                others.append((row, token_ms, first, decodes))
                outputs[row] = self.output_tokens[row]
                del span[row]
        complete, part_done = len(jottings.decodes), self.batch.prefilling
        served_tokens = jottings.known_tokens + [self.known_tokens[row] for row in part_done]
        decodes_before = np.array(jottings.prefill_decodes, dtype=np.int64) - began.decode_step
        without = np.zeros_like(decodes_before)
        without[jottings.without_decodes] = 1
        prefill_steps = decodes_before + without.cumsum() - without
        stretch = Stretch(
            began=began,
            ends_ms=notes.ends_ms,
            steps=len(notes.ends_ms) - began.step,
            rows=np.array(queue[: len(served_tokens) + 1], dtype=np.int64),
            arrivals_ms=np.array(arrivals_ms, dtype=np.float64),
            known_tokens=np.array(served_tokens, dtype=np.int64),
            decodes=np.array(jottings.decodes, dtype=np.int64),
            prefill_steps=prefill_steps,
            given_tokens=np.array(jottings.given_tokens, dtype=np.float64).astype(np.int64),
            without_decodes=prefill_steps[jottings.without_decodes],
            idle_until=jottings.idle_until,
            others_ended=others,
            others_final_tokens=np.array(
                [self.final_tokens[row] for row, _, _, _ in others], dtype=np.int64
            ),
            seats=self.limits.seats(),
            chunk_cap=self.limits.tokens_per_slice(),
        )
        notes.append_later("runs", stretch.runs)
        notes.append_later("slices", stretch.slices)
        notes.append_later("admissions", stretch.admissions)
        notes.append_later("spans", stretch.spans)
        assert self.line is not None
        if self.now_ms + self.line.fixed_ms / 2 == self.now_ms:  # else every step moved it
            self._look_for_a_still_clock(stretch)

        # Of who has ended nothing is kept but the notes.
        first_seat = notes.admission_count + 1 - bool(began.head_tokens_done)
        notes.admission_count = first_seat - 1 + len(served_tokens)
        for place in np.flatnonzero(~stretch.ended).tolist():
            row = queue[place]
            outputs[row] += 1
            self.batch.remaining_tokens[row] = 0
            seats[row] = first_seat + place
            at = int(prefill_steps[stretch.complete_in[place]])
            decodes = int(stretch.decodes_before[place])
            span[row] = notes.ends_ms[began.step + at], began.decode_step + decodes
        for row in part_done:
            seats[row] = first_seat + complete

    def _look_for_a_still_clock(self, stretch: Stretch) -> None:
        still = np.flatnonzero(stretch.end_ms == stretch.start_ms)
        if len(still):
            step = stretch.began.step + int(still[0])
            steps = self.notes.step_table(self.cost, self.notes.slice_table(), lambda: np.empty(0))
            self.refuse_still_clock(float(steps.duration_ms[step]), float(steps.end_ms[step]))

    def list_holders(self, pool: BlockPool) -> None:
        """Tell the pool who holds its blocks."""
        known, remaining = self.known_tokens, self.batch.remaining_tokens
        pool.tokens.clear()
        pool.decodes_since.clear()
        for row in sorted((*self.span, *self.batch.prefilling), key=self.seats.__getitem__):
            pool.tokens[row] = known[row] - remaining[row]
            if row in self.span:
                since = self.decode_steps - self.span[row][1]
                pool.decodes_since[row] = pool.decode_steps - since
