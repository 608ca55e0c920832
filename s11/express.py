"""The engine's common case in one loop: first come, first served, and nothing runs short.

Most steps of a busy server are alike: decodes, and slices of the prompts at the head of the queue
in what is left of the budget. This loop plans, runs and retires them with all state in local
variables. Whatever it does not know (a pool about to run short, a run about to be cut, streams
alone) it leaves to `Engine.serve` for one turn. That it changes nothing is tested: every load gives
the same tables without it.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections import defaultdict
from heapq import heappop, heappush
from itertools import accumulate, chain, repeat

from s11.costs.breakdown import DecodeTerms
from s11.experiment import Experiment
from s11.kv_blocks import BlockPool
from s11.plan import BlockedBy, EngineLimits
from s11.stepping import StepRunner

CUT_BY_BUDGET = frozenset({"chunked", "vllm_v1"})
TOKEN_BUDGET, CHUNK_CAP = BlockedBy.TOKEN_BUDGET.code, BlockedBy.CHUNK_CAP.code
CHUNKING_OFF, SEATS = BlockedBy.CHUNKING_OFF.code, BlockedBy.SEATS.code
REASON_OF: tuple[BlockedBy | None, ...] = (None, *BlockedBy)
LONG_RUN = 8  # steps: from there on a run is added up at once
NEVER = math.nan  # no number reaches it
PACK_AT = 65_536  # notes: then they go from Python's objects to an array


def is_plain(experiment: Experiment) -> bool:
    """Return whether the scheduler is one that this loop knows.

    With blocks to spare the two that slice plan the same; so do all that take prompts whole.
    """
    limits = experiment.limits
    slices = experiment.policy in CUT_BY_BUDGET and limits.chunking
    whole = experiment.policy == "whole_prompt" or (
        experiment.policy == "chunked" and not limits.chunking
    )
    return (slices or whole) and not (
        limits.prefix_caching or limits.prefill_interval > 1 or limits.align_first_chunk
    )


class PlainRunner(StepRunner):
    """A worker that can run plain stretches at once; what it keeps beside clock and batch.

    plain: whether its scheduler is one that this loop knows.
    head_alone: whether, with so many blocks free, the faster loop of `s11.head_of_queue` runs it.
    ample_blocks: with fewer free, a step of it might want more than there are.
    final_tokens: by request, the tokens in its cache when it has its last one.
    seats: by request, the number of its admission; 0 without a seat.
    span: of who decodes, when the token before its decodes appeared, and its first decode step.
    """

    plain: bool
    head_alone: bool
    ample_blocks: float
    policy_name: str
    limits: EngineLimits
    pool: BlockPool | None
    users: int
    known_tokens: list[int]
    prompt_tokens: list[int]
    output_tokens: list[int]
    final_tokens: list[int]
    outputs: list[int]
    seats: list[int]
    span: dict[int, tuple[float, int]]
    arriving: list[int]
    followers: defaultdict[int, list[int]]
    blocked_by: BlockedBy | None

    def let_follow(self, request: int) -> None:
        """Place the requests on the clock that are sent when this one has ended."""
        raise NotImplementedError

    def run_plain_steps(self) -> None:
        """Run until something comes that this loop does not know, or nothing comes any more."""
        batch, notes, limits, cost = self.batch, self.notes, self.limits, self.cost
        waiting, prefilling = batch.waiting, batch.prefilling
        known, remaining, outputs = self.known_tokens, batch.remaining_tokens, self.outputs
        prompt_tokens, output_tokens = self.prompt_tokens, self.output_tokens
        seats, span, followers = self.seats, self.span, self.followers
        arrivals_ms, arriving = self.arrivals_ms, self.arriving
        ends_at, end_steps = self.ends_with_decode, self.end_steps
        ends_ms, durations_ms = notes.ends_ms, notes.durations_ms
        runs, note_slice, span_notes = notes.runs, notes.slices.append, notes.spans
        admissions = notes.admissions
        counts_only, step_ms, noted = cost.counts_only, cost.step_ms, cost.line is None
        terms_of: dict[int, DecodeTerms] = {}
        end_at, take_ms, note_run = ends_ms.append, durations_ms.append, notes.runs.append
        users, max_steps, longest = self.users, self.max_steps, limits.max_model_len
        budget, most_seats = limits.tokens_per_step(), limits.seats()
        cap = limits.tokens_per_slice()
        whole = self.policy_name == "whole_prompt" or not limits.chunking
        pool, reserve = self.pool, limits.reserve_full_prompt
        size = limits.block_size
        held = pool.tokens if pool is not None else {}
        since = pool.decodes_since if pool is not None else {}
        boundaries = pool.boundaries if pool is not None else []

        free_blocks: float = math.inf
        held_blocks = phase = 0
        if pool is not None:
            free_blocks, held_blocks, phase = pool.free_blocks, pool.held_blocks, pool.decode_steps

        hand_back = self.ample_blocks if self.head_alone and pool is not None else NEVER
        now_ms, arrived = self.now_ms, self.arrived
        decoding, context = batch.decoding, batch.decode_context_tokens
        decode_steps, blocked = self.decode_steps, self.blocked_by
        steps_run = len(ends_ms)

        while True:
            # Who has arrived.
            until_ms = math.inf
            while arrived < len(arrivals_ms):
                until_ms = arrivals_ms[arrived]
                if until_ms > now_ms:
                    break
                request = arriving[arrived]
                if longest is not None and known[request] > longest:
                    break  # refused
                waiting.append(request)
                arrived += 1
                until_ms = math.inf
            if until_ms <= now_ms:
                break

            # The plan: slices, why the first that gets nothing gets nothing, and how often.
            plan: list[tuple[int, int, int, int]] = []
            newcomers = given = reason = 0
            steps: float = 0
            if prefilling or waiting:
                left, started = budget - decoding, len(prefilling)
                most_slices = started + max(0, most_seats - decoding - started)
                for request in chain(prefilling, waiting):
                    if len(plan) == most_slices:
                        reason = SEATS
                        break
                    wanted = remaining[request]
                    if whole:
                        tokens, why = (wanted, 0) if wanted <= left else (0, CHUNKING_OFF)
                    elif cap < wanted and cap <= left:
                        tokens, why = int(cap), CHUNK_CAP
                    elif wanted <= left:
                        tokens, why = wanted, 0
                    else:
                        tokens, why = int(left), TOKEN_BUDGET
                    if tokens <= 0:
                        reason = why
                        break
                    plan.append((request, tokens, wanted, why))
                    left -= tokens
                    given += tokens
                    times = wanted // tokens if why else 1
                    if times < steps or not steps:
                        steps = times
                newcomers = max(0, len(plan) - started)
                blocked = REASON_OF[reason]
            elif decoding <= users:
                if users or until_ms == math.inf:
                    break
                now_ms = until_ms
                notes.idle_until.append((steps_run, now_ms))
                continue

            # How many such steps: until a prompt is complete, or an answer.
            if decoding > users:
                while True:
                    end = end_steps[0]
                    if end >= decode_steps and end in ends_at:
                        break
                    heappop(end_steps)
                to_an_end = end - decode_steps + 1
                if not plan or to_an_end < steps:
                    steps = to_an_end
            elif not plan:
                break
            count = int(steps)
            if steps_run + count >= max_steps:
                break
            if pool is not None:  # never fewer blocks than it takes
                most = decoding * (count // size + 1) + given * count // size + 2 * len(plan)
                if reserve:
                    for request, _, _, _ in plan[len(plan) - newcomers :]:
                        most += known[request] // size + 1
                if most > free_blocks:
                    break

            # Seats for the newcomers.
            for _ in range(newcomers):
                request = waiting.popleft()
                prefilling.append(request)
                admissions.append((request, now_ms, steps_run, 0))
                seats[request] = notes.admission_count = notes.admission_count + 1
                held[request] = 0

            # The clock.
            began_ms, first, ran = now_ms, steps_run, 0
            if plan and not counts_only:
                starts = [(known[part[0]] - part[2], part[1]) for part in plan]
                attended = context
                while True:
                    duration_ms = step_ms(
                        prefill_tokens=given,
                        decode_tokens=decoding,
                        slices=starts,
                        decode_context_tokens=attended,
                    )
                    now_ms += duration_ms
                    end_at(now_ms)
                    if noted:
                        take_ms(duration_ms)
                    ran += 1
                    if ran == count or now_ms >= until_ms:
                        break
                    attended += decoding
                    starts = [(start + tokens, tokens) for start, tokens in starts]
            elif counts_only:
                before = len(ends_ms)
                duration_ms = step_ms(prefill_tokens=given, decode_tokens=decoding)
                if count > LONG_RUN and now_ms + LONG_RUN * duration_ms < until_ms:
                    if until_ms < math.inf:
                        count = min(count, int((until_ms - now_ms) / duration_ms) + 2)
                    run = list(accumulate(repeat(duration_ms, count), initial=now_ms))
                    ran = min(count, bisect_left(run, until_ms, lo=1))
                    ends_ms.extend(run[1 : ran + 1])
                    now_ms = run[ran]
                else:
                    while ran < count:
                        now_ms += duration_ms
                        end_at(now_ms)
                        ran += 1
                        if now_ms >= until_ms:
                            break
                if noted:
                    durations_ms.extend(repeat(duration_ms, len(ends_ms) - before))
            else:
                terms = terms_of.get(decoding)
                if terms is None:
                    terms = terms_of[decoding] = cost.decode_terms(decoding)
                base_ms, token_ms, ramp_ms, ramp_tokens = terms
                attended = context
                if ramp_ms:
                    while ran < count:
                        duration_ms = base_ms + (
                            token_ms * attended + ramp_ms * attended / (attended + ramp_tokens)
                        )
                        now_ms += duration_ms
                        end_at(now_ms)
                        take_ms(duration_ms)
                        ran += 1
                        if now_ms >= until_ms:
                            break
                        attended += decoding
                else:
                    while ran < count:
                        duration_ms = base_ms + token_ms * attended
                        now_ms += duration_ms
                        end_at(now_ms)
                        if noted:
                            take_ms(duration_ms)
                        ran += 1
                        if now_ms >= until_ms:
                            break
                        attended += decoding
            if now_ms == began_ms:
                self.refuse_still_clock(duration_ms, now_ms)
            steps_run += ran
            if reason:
                unserved = prefilling[len(plan)] if len(prefilling) > len(plan) else waiting[0]
            else:
                unserved = -1
            note_run((ran, given, decoding, 0, len(waiting), unserved, reason, context))
            if decoding:
                decode_steps += ran
                context += ran * decoding

            # Blocks.
            if pool is not None:
                at = phase % size
                if ran == 1:
                    needed = boundaries[at]
                else:
                    whole_periods, rest = divmod(ran, size)
                    needed = whole_periods * len(since) + sum(boundaries[at : at + rest])
                    if at + rest > size:
                        needed += sum(boundaries[: at + rest - size])
                phase += ran
                for request, tokens, _, _ in plan:
                    before = held[request]
                    held[request] = after = before + tokens * ran
                    needed += (-before // size) - (-after // size)
                free_blocks -= needed
                held_blocks += needed

            # Who has a last token, and whose prompt is complete.
            done = ends_at.pop(decode_steps - 1, None) if decoding > users else None
            if done:
                for request in done:
                    token_ms, first_decode = span.pop(request)
                    decodes = decode_steps - first_decode
                    outputs[request] += decodes
                    span_notes.append((request, token_ms, first_decode, decodes))
                    context -= prompt_tokens[request] + outputs[request] - 1
                decoding -= len(done)
            for request, tokens, wanted, why in plan:
                start = known[request] - wanted
                note_slice((first, ran, request, start, tokens, wanted, why))
                wanted -= tokens * ran
                remaining[request] = wanted
                if wanted:
                    continue
                prefilling.remove(request)
                outputs[request] += 1
                decodes = output_tokens[request] - outputs[request]
                if decodes:
                    span[request] = (now_ms, decode_steps)
                    decoding += 1
                    context += known[request]
                    end = decode_steps + decodes - 1
                    if end not in ends_at:
                        heappush(end_steps, end)
                    ends_at[end].append(request)
                    if pool is not None:
                        since[request] = phase
                        boundaries[(phase - held[request]) % size] += 1
                else:
                    span_notes.append((request, now_ms, decode_steps, 0))
                    done = [*done, request] if done else [request]
            if done:
                if pool is not None:
                    for request in done:
                        tokens = held.pop(request)
                        began = since.pop(request, None)
                        if began is not None:
                            boundaries[(began - tokens) % size] -= 1
                            tokens += phase - began
                        needed = -(-tokens // size)
                        free_blocks += needed
                        held_blocks -= needed
                if followers:
                    self.now_ms, self.arrived = now_ms, arrived
                    done.sort(key=seats.__getitem__)
                    for request in done:
                        self.let_follow(request)
            if done and len(runs) >= PACK_AT:
                notes.pack()
            if done and free_blocks >= hand_back and len(prefilling) <= 1:
                break

        self.now_ms, self.arrived = now_ms, arrived
        batch.decoding, batch.decode_context_tokens = decoding, context
        self.decode_steps, self.blocked_by = decode_steps, blocked
        if pool is not None:
            pool.free_blocks, pool.held_blocks, pool.decode_steps = free_blocks, held_blocks, phase
