"""The commonest case of all: one prompt at a time is cut to what the decodes leave of the budget.

First come, first served, no chunk cap, and a step whose cost is a line in its counts: then at most
one prompt is part done, its slice is what is left, and who got what follows from how many tokens
each step prefilled. So this loop keeps the clock and that number, and little else; the rest is
worked out by `s11.head_tables`, all steps at once, when it is asked for. It is `s11.express` with
all that taken as given, in a quarter of the time. It leaves to the engine what it does not know,
in the same way, and gives the same tables.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from s11.head_stretches import MOST_STEPS, StretchRunner
from s11.head_tables import Began, Jottings

LONG_RUN, LONGEST_RUN = 64, 4096  # decode steps that NumPy adds up at once
NOBODY: list[int] = []  # never written
LEAVE = -1  # as the last step to run
NTH = np.arange(float(LONGEST_RUN))


class HeadRunner(StretchRunner):
    """A worker that can run at once what `serves_the_head_alone` tells of."""

    def run_head_of_queue(self) -> None:
        """Run until something comes that this loop does not know, or nothing comes any more."""
        batch, notes, limits, pool, line = self.batch, self.notes, self.limits, self.pool, self.line
        assert line is not None
        fixed_ms, prefill_ms, decode_ms, context_ms = line
        known, outputs, output_tokens = self.known_tokens, self.outputs, self.output_tokens
        final_tokens, followers = self.final_tokens, self.followers
        arrivals_ms, arriving = self.arrivals_ms, self.arriving
        ends_at = self.ends_with_decode
        reserve = limits.reserve_full_prompt
        ample, size, boundaries = self.ample_blocks, 0, NOBODY
        free_blocks, phase = math.inf, 0
        if pool is not None:
            size, boundaries = limits.block_size, pool.boundaries
            free_blocks, phase = pool.free_blocks, pool.decode_steps

        # Counts are floats: exact, and twice as fast beside milliseconds and each other.
        users, seats = float(self.users), float(limits.seats())
        budget = float(limits.tokens_per_step())
        decoding, context = float(batch.decoding), float(batch.decode_context_tokens)
        now_ms, arrived, decode_steps = self.now_ms, self.arrived, self.decode_steps
        head = arrived - len(batch.waiting) - len(batch.prefilling)
        first_place, arrived_before = head, arrived
        wanted = done = 0.0
        if batch.prefilling:
            row = batch.prefilling[0]
            wanted, done = float(batch.remaining_tokens[row]), float(known[row])
            done -= wanted
        head_blocks = -(done // -size) if size else 0

        # The ends that are filed, by decode step of this stretch: the next is found at once.
        most_steps = min(MOST_STEPS, self.max_steps - len(notes.ends_ms)) // 2
        first_decode = decode_steps
        last_decode = last_step = first_decode + most_steps - 1
        is_end = bytearray(most_steps)
        for end in ends_at:
            if end <= last_decode:
                is_end[end - first_decode] = 1
        is_end[-1] = 1
        next_end = first_decode + is_end.index(1)

        began = Began(
            now_ms=now_ms,
            step=len(notes.ends_ms),
            decode_step=decode_steps,
            decoding=int(decoding),
            context_tokens=int(context),
            head_tokens_done=int(done),
            queue=arrived - head,
        )
        jottings, ends_ms, end_at = Jottings(), notes.ends_ms, notes.ends_ms.append
        note_step, note_given = jottings.prefill_decodes.append, jottings.given_tokens.append
        note_known, note_decodes = jottings.known_tokens.append, jottings.decodes.append
        without = jottings.without_decodes
        arrivals_ms.append(math.inf)
        until_ms = arrivals_ms[arrived]

        while decode_steps <= last_step:
            while until_ms <= now_ms:
                arrived += 1
                until_ms = arrivals_ms[arrived]
            first, left = head, budget - decoding
            if head < arrived and left > 0.0 and (done or decoding < seats):
                if not done:
                    wanted = float(known[arriving[head]])
                counts_ms = fixed_ms + prefill_ms * left + decode_ms * decoding
                while wanted > left:  # the head gets all there is, again and again
                    if size:
                        begun, after = boundaries[phase % size], -((done + left) // -size)
                        needed = begun + after - head_blocks
                        if needed > free_blocks or (
                            reserve
                            and not done
                            and begun - known[arriving[head]] // -size > free_blocks
                        ):
                            last_step = LEAVE
                            break
                        free_blocks -= needed
                        head_blocks = after
                        phase += 1
                    now_ms += counts_ms + context_ms * (context + done)
                    end_at(now_ms)
                    note_given(left)
                    note_step(decode_steps)
                    wanted -= left
                    done += left
                    if not decoding:
                        without.append(len(jottings.given_tokens) - 1)
                        if len(without) >= most_steps:
                            last_step = LEAVE
                        break
                    decode_steps += 1
                    context += decoding
                    if now_ms >= until_ms or decode_steps > next_end:
                        break
                else:  # its last slice, and what is left for those behind it
                    before, given, done, taken = done, wanted, 0.0, decoding + 1.0
                    left -= wanted
                    head += 1
                    while head < arrived and left and taken < seats:
                        wanted = float(known[arriving[head]])
                        if wanted > left:
                            given += left
                            wanted -= left
                            done = left
                            break
                        given += wanted
                        left -= wanted
                        head += 1
                        taken += 1.0
                    if size:
                        needed = boundaries[phase % size] - head_blocks
                        if free_blocks < ample:
                            most = needed - sum(
                                [known[row] // -size for row in arriving[first:head]]
                            )
                            most -= (known[arriving[head]] if reserve and done else done) // -size
                            if most > free_blocks:
                                head, done = first, before
                                wanted = known[arriving[head]] - before
                                break
                        head_blocks = -(done // -size) if done else 0
                        free_blocks -= needed + head_blocks
                        phase += 1
                    now_ms += (
                        fixed_ms
                        + prefill_ms * given
                        + decode_ms * decoding
                        + context_ms * (context + before)
                    )
                    end_at(now_ms)
                    note_given(given)
                    note_step(decode_steps)
                    if decoding:
                        decode_steps += 1
                        context += decoding
                    else:
                        without.append(len(jottings.given_tokens) - 1)
                        if len(without) >= most_steps:
                            last_step = LEAVE
            elif decoding > users or (users and until_ms < math.inf):
                counts_ms = fixed_ms + decode_ms * decoding
                count = next_end - decode_steps + 1
                if size and decoding * (count + size) > free_blocks * size:
                    count = steps_that_fit(boundaries, phase, free_blocks, count)
                    if not count:
                        break
                if count > LONG_RUN:
                    if until_ms < math.inf:  # no later step is shorter than the first
                        first_ms = counts_ms + context_ms * context
                        count = int(min(count, (until_ms - now_ms) / first_ms + 2))
                    run_ms = NTH[:count] * decoding
                    run_ms += context
                    run_ms *= context_ms
                    run_ms += counts_ms
                    run_ms[0] += now_ms
                    np.add.accumulate(run_ms, out=run_ms)
                    ran = min(len(run_ms), int(run_ms.searchsorted(until_ms)) + 1)
                    ends_ms.frombytes(run_ms[:ran].tobytes())
                    now_ms = ends_ms[-1]
                    context += ran * decoding
                else:
                    for ran in range(1, count + 1):  # noqa: B007 (its last value counts)
                        now_ms += counts_ms + context_ms * context
                        end_at(now_ms)
                        context += decoding
                        if now_ms >= until_ms:
                            break
                decode_steps += ran
                if size:
                    at, phase = phase % size, phase + ran
                    to = at + ran
                    if to <= size:
                        free_blocks -= sum(boundaries[at:to])
                    else:
                        periods, to = divmod(to, size)
                        free_blocks -= sum(boundaries[at:]) + sum(boundaries[:to])
                        free_blocks -= (periods - 1) * (decoding - users)
            elif decoding or until_ms == math.inf:
                break
            else:
                now_ms = until_ms
                jottings.idle_until.append((len(ends_ms), now_ms))
                continue

            if decode_steps > next_end:  # who has a last token
                gone = ends_at.pop(next_end, NOBODY)
                next_end = first_decode + is_end.find(1, decode_steps - first_decode)
                for row in gone:
                    decoding -= 1.0
                    context -= final_tokens[row]
                    if size:
                        boundaries[(phase - final_tokens[row]) % size] -= 1
                        free_blocks += -(-final_tokens[row] // size)
                if followers:
                    self.now_ms, self.arrived = now_ms, arrived
                    for row in gone:
                        self.let_follow(row)
                    until_ms = arrivals_ms[arrived]
            if head > first:  # whose prompt is complete
                for row in arriving[first:head]:
                    tokens, decodes = known[row], output_tokens[row] - outputs[row] - 1
                    note_known(tokens)
                    note_decodes(decodes)
                    if decodes:
                        decoding += 1.0
                        context += tokens
                        end = decode_steps + decodes - 1
                        ends_at[end].append(row)
                        if end < next_end:
                            next_end = end
                        if end < last_decode:
                            is_end[end - first_decode] = 1
                        if size:
                            boundaries[(phase - tokens) % size] += 1
                            free_blocks -= -(-tokens // size)
                    elif followers:
                        self.now_ms, self.arrived = now_ms, arrived
                        self.let_follow(row)
                        until_ms = arrivals_ms[arrived]

        arrivals_ms.pop()
        self.end_steps, self.decode_steps = sorted(ends_at), decode_steps
        self.now_ms, self.arrived = now_ms, arrived
        batch.decoding, batch.decode_context_tokens = int(decoding), int(context)
        queue = arriving[first_place:arrived]
        complete, part_done = head - first_place, int(done > 0)
        batch.waiting.clear()
        batch.waiting.extend(queue[complete + part_done :])
        batch.prefilling[:] = queue[complete : complete + part_done]
        if part_done:
            batch.remaining_tokens[queue[complete]] = int(wanted)
        notes.idle_until += jottings.idle_until
        self.note_stretch(began, jottings, queue, arrivals_ms[arrived_before:arrived])
        if pool is not None:
            pool.held_blocks += int(pool.free_blocks - free_blocks)
            pool.free_blocks, pool.decode_steps = int(free_blocks), phase
            self.list_holders(pool)


def steps_that_fit(
    boundaries: Sequence[int], phase: int, free_blocks: float, most_steps: int
) -> int:
    """Return for how many decode steps the free blocks last, `most_steps` at most.

    boundaries: how many requests begin a block, by the decode step's number modulo their size.
    """
    size, in_a_period = len(boundaries), sum(boundaries)
    periods = int(free_blocks // in_a_period) if in_a_period else most_steps
    fit, left = periods * size, free_blocks - periods * in_a_period
    while fit < most_steps and left >= boundaries[(phase + fit) % size]:
        left -= boundaries[(phase + fit) % size]
        fit += 1
    return min(fit, most_steps)
