"""The commonest case of all: one prompt at a time is cut to what the decodes leave of the budget.

First come, first served, no chunk cap, and a step whose cost is a line in its counts: then at most
one prompt is part done, and its slice is what is left. This loop is `s11.express` with all that
taken as given, in three fifths of the time. It leaves to the engine what it does not know, in the
same way, and gives the same tables.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from heapq import heappop, heappush
from itertools import accumulate, islice, repeat

from s11.experiment import Experiment
from s11.express import CUT_BY_BUDGET, LONG_RUN, PACK_AT, REASON_OF, PlainRunner
from s11.plan import BlockedBy

TOKEN_BUDGET, CHUNK_CAP = BlockedBy.TOKEN_BUDGET.code, BlockedBy.CHUNK_CAP.code
SEATS = BlockedBy.SEATS.code
NOBODY: list[int] = []  # never written
NEVER = ENOUGH = 2**62


def serves_the_head_alone(experiment: Experiment) -> bool:
    """Return whether only the prompt at the head of the queue can be part done."""
    limits = experiment.limits
    if experiment.policy not in CUT_BY_BUDGET or experiment.cost.line is None:
        return False
    longest = max((request.prompt_tokens for request in experiment.workload.requests), default=0)
    cap = limits.tokens_per_slice()
    # Who is preempted computes its outputs anew with its prompt: more than any prompt has.
    no_cap = cap >= limits.tokens_per_step() or (limits.kv_blocks is None and cap >= longest)
    return (
        limits.chunking
        and no_cap
        and not (limits.prefix_caching or limits.align_first_chunk or limits.prefill_interval > 1)
        and (limits.max_model_len is None or longest <= limits.max_model_len)
    )


class HeadRunner(PlainRunner):
    """A worker that can run at once what `serves_the_head_alone` tells of."""

    def _long_run(
        self,
        most: int,
        counts_ms: float,
        context_ms: float,
        attended: int,
        decoding: int,
        until_ms: float,
        now_ms: float,
    ) -> int:
        """Run decode-only steps up to `most`, or past an arrival; return how many."""
        if until_ms < math.inf:  # no later step is shorter than the first
            first_ms = counts_ms + context_ms * attended
            most = int(min(most, (until_ms - now_ms) / first_ms + 2))
        if context_ms:
            contexts = range(attended, attended + most * decoding, decoding)
            each = map(counts_ms.__add__, map(context_ms.__mul__, contexts))
            run_ms = list(accumulate(each, initial=now_ms))
        else:
            run_ms = list(accumulate(repeat(counts_ms, most), initial=now_ms))
        ran = min(most, bisect_left(run_ms, until_ms, lo=1))
        self.notes.ends_ms.extend(run_ms[1 : ran + 1])
        return ran

    def run_head_of_queue(self) -> None:
        """Run until something comes that this loop does not know, or nothing comes any more."""
        batch, notes, limits, line = self.batch, self.notes, self.limits, self.cost.line
        prefilling, waiting = batch.prefilling, batch.waiting
        assert line is not None
        if len(prefilling) > 1:
            return
        fixed_ms, prefill_ms, decode_ms, context_ms = line
        known, remaining, outputs = self.known_tokens, batch.remaining_tokens, self.outputs
        output_tokens, final_tokens = self.output_tokens, self.final_tokens
        seats, span, followers = self.seats, self.span, self.followers
        arrivals_ms, arriving = self.arrivals_ms, self.arriving
        ends_at, end_steps = self.ends_with_decode, self.end_steps
        ends_ms, end_at = notes.ends_ms, notes.ends_ms.append
        note_run, note_slice = notes.runs.append, notes.slices.append
        note_span, admit = notes.spans.append, notes.admissions.append
        runs = notes.runs
        users, max_steps = self.users, self.max_steps
        most_seats, cap = limits.seats(), limits.tokens_per_slice()
        budget = ENOUGH if limits.token_budget is None else limits.token_budget
        pool, size, reserve = self.pool, limits.block_size, limits.reserve_full_prompt
        boundaries = pool.boundaries if pool is not None else []
        free_blocks: float = math.inf
        held_blocks = phase = 0
        if pool is not None:
            free_blocks, held_blocks, phase = pool.free_blocks, pool.held_blocks, pool.decode_steps

        now_ms, arrived = self.now_ms, self.arrived
        decoding, context = batch.decoding, batch.decode_context_tokens
        decode_steps, steps_run = self.decode_steps, len(notes.ends_ms)
        blocked = self.blocked_by.code if self.blocked_by else 0
        head, wanted = -1, 0  # the request that is part done
        if prefilling:
            head = prefilling.pop()
            wanted = remaining[head]
        while end_steps and not (end_steps[0] >= decode_steps and end_steps[0] in ends_at):
            heappop(end_steps)
        next_end = end_steps[0] if end_steps else NEVER
        arrivals_ms.append(math.inf)
        until_ms = arrivals_ms[arrived]

        while True:
            while until_ms <= now_ms:
                waiting.append(arriving[arrived])
                arrived += 1
                until_ms = arrivals_ms[arrived]

            # The plan, and its time.
            began_ms, first, left = now_ms, steps_run, budget - decoding
            given = needed = reason = 0
            unserved, complete, done = -1, NOBODY, NOBODY
            if head >= 0:
                request, serves = head, left > 0
            elif waiting:
                request, serves = waiting[0], left > 0 and decoding < most_seats
                wanted = remaining[request]
            else:
                request, serves = -1, False
            if serves and wanted > left:  # the head gets all there is, again and again
                given = left
                count = wanted // given
                if next_end - decode_steps < count:
                    count = next_end - decode_steps + 1
                if steps_run + count >= max_steps:
                    break
                if pool is not None:  # never fewer blocks than it takes
                    spare = free_blocks - decoding - 2
                    if reserve:
                        spare -= known[request] // size
                    if budget * count > spare * size:
                        break
                if head < 0:
                    head = waiting.popleft()
                    seats[head] = notes.admission_count = notes.admission_count + 1
                    admit((head, now_ms, steps_run, 0))
                if waiting:
                    unserved = waiting[0]
                    reason = SEATS if decoding + 1 >= most_seats else TOKEN_BUDGET
                blocked = reason
                start = known[head] - wanted
                attended = context + start
                counts_ms = fixed_ms + prefill_ms * given + decode_ms * decoding
                ran = 0
                while True:
                    now_ms += counts_ms + context_ms * attended
                    end_at(now_ms)
                    ran += 1
                    if ran == count or now_ms >= until_ms:
                        break
                    attended += decoding + given
                why = TOKEN_BUDGET if given < cap else CHUNK_CAP
                note_slice((first, ran, head, start, given, wanted, why))
                wanted -= given * ran
                if pool is not None:
                    needed = (-start // size) - ((wanted - known[head]) // size)
                if not wanted:
                    complete, head = [head], -1
            elif serves:  # the head's last slice, and what is left for those behind it
                if steps_run + 1 >= max_steps:
                    break
                given, started = wanted, head >= 0
                plan = [(request, wanted, wanted, 0)]
                if len(waiting) + started > 1:
                    left -= wanted
                    for newcomer in islice(waiting, 1 - started, None):
                        if decoding + len(plan) >= most_seats:
                            unserved, reason = newcomer, SEATS
                            break
                        if left <= 0:
                            unserved, reason = newcomer, TOKEN_BUDGET
                            break
                        wants = remaining[newcomer]
                        if wants <= left:
                            plan.append((newcomer, wants, wants, 0))
                            given += wants
                        else:
                            plan.append((newcomer, left, wants, TOKEN_BUDGET))
                            given += left
                        left -= wants
                if pool is not None:
                    spare = free_blocks - decoding - 2 * len(plan)
                    if reserve:
                        for part in plan[started:]:
                            spare -= known[part[0]] // size
                    if given + decoding > spare * size:
                        break
                for _ in range(started, len(plan)):
                    newcomer = waiting.popleft()
                    seats[newcomer] = notes.admission_count = notes.admission_count + 1
                    admit((newcomer, now_ms, steps_run, 0))
                blocked = reason
                attended = context + known[request] - wanted  # newcomers have nothing before them
                now_ms += (
                    fixed_ms + prefill_ms * given + decode_ms * decoding + context_ms * attended
                )
                end_at(now_ms)
                ran, head, complete = 1, -1, [request]
                start = known[request] - wanted
                note_slice((first, 1, request, start, wanted, wanted, 0))
                if pool is not None:
                    needed = (-start // size) - (-known[request] // size)
                for request, tokens, wanted, why in plan[1:]:  # from their first token on
                    note_slice((first, 1, request, 0, tokens, wanted, why))
                    if pool is not None:
                        needed -= -tokens // size
                    if why:
                        head, wanted = request, wanted - tokens
                    else:
                        complete.append(request)
            else:
                if decoding <= users:
                    if request >= 0 or users or until_ms == math.inf:
                        break
                    now_ms = until_ms
                    notes.idle_until.append((steps_run, now_ms))
                    continue
                count = next_end - decode_steps + 1
                if steps_run + count >= max_steps:
                    break
                if pool is not None and decoding * count > (free_blocks - decoding) * size:
                    break
                if request >= 0:
                    unserved = request
                    no_seat = head < 0 and decoding >= most_seats
                    blocked = reason = SEATS if no_seat else TOKEN_BUDGET
                attended, counts_ms, ran = context, fixed_ms + decode_ms * decoding, 0
                if count > LONG_RUN:
                    ran = self._long_run(
                        count, counts_ms, context_ms, context, decoding, until_ms, now_ms
                    )
                    now_ms = ends_ms[-1]
                else:
                    while True:
                        now_ms += counts_ms + context_ms * attended
                        end_at(now_ms)
                        ran += 1
                        if ran == count or now_ms >= until_ms:
                            break
                        attended += decoding
            if now_ms == began_ms:
                counts_ms = fixed_ms + prefill_ms * given + decode_ms * decoding
                self.refuse_still_clock(counts_ms + context_ms * attended, now_ms)
            steps_run += ran
            note_run((ran, given, decoding, 0, len(waiting), unserved, reason, context))

            # Decodes: one token each, a block now and then, and who has a last one.
            if decoding:
                decode_steps += ran
                context += ran * decoding
                if pool is not None:
                    at = phase % size
                    to = at + ran
                    if ran == 1:
                        needed += boundaries[at]
                    elif to <= size:
                        needed += sum(boundaries[at:to])
                    else:
                        periods, to = divmod(to, size)
                        needed += sum(boundaries[at:]) + sum(boundaries[:to])
                        needed += (periods - 1) * (decoding - users)
                if decode_steps > next_end:
                    done = ends_at.pop(decode_steps - 1)
                    for request in done:
                        token_ms, first_decode = span.pop(request)
                        note_span((request, token_ms, first_decode, decode_steps - first_decode))
                        outputs[request] = output_tokens[request]
                        context -= final_tokens[request]
                    decoding -= len(done)
                    while end_steps and end_steps[0] not in ends_at:
                        heappop(end_steps)
                    next_end = end_steps[0] if end_steps else NEVER
            if pool is not None:
                phase += ran
                for request in done:
                    tokens = final_tokens[request]
                    boundaries[(phase - tokens) % size] -= 1
                    needed += -tokens // size
                free_blocks -= needed
                held_blocks += needed

            # Whose prompt is complete.
            for request in complete:
                remaining[request] = 0
                outputs[request] += 1
                decodes = output_tokens[request] - outputs[request]
                if decodes:
                    span[request] = (now_ms, decode_steps)
                    decoding += 1
                    tokens = known[request]
                    context += tokens
                    end = decode_steps + decodes - 1
                    if end in ends_at:
                        ends_at[end].append(request)
                    else:
                        ends_at[end] = [request]
                        heappush(end_steps, end)
                        if end < next_end:
                            next_end = end
                    if pool is not None:
                        boundaries[(phase - tokens) % size] += 1
                else:
                    note_span((request, now_ms, decode_steps, 0))
                    done = [*done, request]
                    if pool is not None:
                        free_blocks += -(-known[request] // size)
                        held_blocks -= -(-known[request] // size)
            if done:
                if followers:
                    self.now_ms, self.arrived = now_ms, arrived
                    done.sort(key=seats.__getitem__)
                    for request in done:
                        self.let_follow(request)
                    until_ms = arrivals_ms[arrived]
                if len(runs) >= PACK_AT:
                    notes.pack()

        arrivals_ms.pop()
        if head >= 0:
            prefilling.append(head)
            remaining[head] = wanted
        self.now_ms, self.arrived = now_ms, arrived
        batch.decoding, batch.decode_context_tokens = decoding, context
        self.decode_steps, self.blocked_by = decode_steps, REASON_OF[blocked]
        if pool is not None:
            pool.free_blocks, pool.held_blocks, pool.decode_steps = free_blocks, held_blocks, phase
            pool.tokens.clear()
            pool.decodes_since.clear()
            for request in sorted((*span, *prefilling), key=seats.__getitem__):
                pool.tokens[request] = known[request] - remaining[request]
                if request in span:
                    pool.decodes_since[request] = phase - (decode_steps - span[request][1])
