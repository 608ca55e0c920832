"""What other ways to simulate the reference work cost, in the unit of `python -m s11 bench`.

python benchmarks/peers.py

Two small simulators of the same scheduler and cost, written for this comparison: one keeps an
object for every running request and touches each in every step, as most simulators do; one counts,
and keeps no tables at all. Both must end on the same last token, to the bit, as `simulate()`.
"""

import sys
from collections import defaultdict, deque
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

import numpy as np

from s11.bench import (
    REFERENCE_RATE_PER_S,
    WITH_KV_TERM,
    calibrate,
    cpu_seconds,
    loads,
    reference_requests,
)
from s11.simulator import simulate
from s11.workload import Workload

REFERENCE = next(iter(loads().values()))[0]
BUDGET, SEATS, COST = 512, 128, WITH_KV_TERM
ROUNDS = 3


@dataclass(frozen=True, slots=True)
class Outcome:
    steps: int
    last_token_ms: float


@dataclass(slots=True)
class Running:
    prompt_tokens: int
    output_tokens: int
    computed_tokens: int = 0
    outputs: int = 0


def step_ms(prefill_tokens: int, decodes: int, context_tokens: int) -> float:
    return (
        COST.fixed_ms
        + COST.prefill_ms_per_token * prefill_tokens
        + COST.decode_ms_per_token * decodes
        + COST.context_ms_per_token * context_tokens
    )


def one_object_per_decode(workload: Workload) -> Outcome:
    """Visit every running request in every step."""
    coming = deque(workload.requests)
    waiting: deque[Running] = deque()
    running: list[Running] = []
    now_ms, steps, last_ms = 0.0, 0, 0.0
    while coming or waiting or running:
        while coming and coming[0].arrival_ms <= now_ms:
            asked = coming.popleft()
            waiting.append(Running(asked.prompt_tokens, asked.output_tokens))
        if not waiting and not running:
            now_ms = coming[0].arrival_ms
            continue
        plan: list[tuple[Running, int]] = []
        left, context = BUDGET, 0
        for request in running:
            if request.outputs:
                plan.append((request, 1))
                context += request.computed_tokens
                left -= 1
        decodes = len(plan)
        for request in running:
            if not request.outputs and left > 0:
                tokens = min(left, request.prompt_tokens - request.computed_tokens)
                plan.append((request, tokens))
                context += request.computed_tokens
                left -= tokens
        while waiting and left > 0 and len(running) < SEATS:
            request = waiting.popleft()
            running.append(request)
            tokens = min(left, request.prompt_tokens)
            plan.append((request, tokens))
            left -= tokens
        now_ms += step_ms(BUDGET - left - decodes, decodes, context)
        steps += 1
        for request, tokens in plan:
            request.computed_tokens += tokens
            if request.computed_tokens >= request.prompt_tokens:
                request.outputs += 1
                if request.outputs == request.output_tokens:
                    last_ms = now_ms
                    running.remove(request)
    return Outcome(steps, last_ms)


def counts_per_step(workload: Workload) -> Outcome:
    """Count decodes, file ends by step, step by step; keep nothing but the clock."""
    requests = workload.requests
    arrival_ms = [request.arrival_ms for request in requests] + [float("inf")]
    prompt_tokens = [request.prompt_tokens for request in requests]
    decodes_of = [request.output_tokens - 1 for request in requests]
    line = COST.line
    assert line is not None
    fixed_ms, prefill_ms, decode_ms, context_ms = line
    ends: defaultdict[int, list[int]] = defaultdict(list)
    now_ms, steps, last_ms = 0.0, 0, 0.0
    arrived = head = decoding = context = decode_steps = 0
    wanted = prompt_tokens[0]
    while True:
        while arrival_ms[arrived] <= now_ms:
            arrived += 1
        left, start = BUDGET - decoding, 0
        complete = []
        held = decoding
        while head < arrived and left > 0 and held < SEATS:
            start += prompt_tokens[head] - wanted
            if wanted > left:
                wanted -= left
                left = 0
                break
            left -= wanted
            held += 1
            complete.append(head)
            head += 1
            wanted = prompt_tokens[head] if head < len(requests) else 0
        given = BUDGET - decoding - left
        if not given and not decoding:
            if head == len(requests):
                return Outcome(steps, last_ms)
            now_ms = arrival_ms[arrived]
            continue
        now_ms += (
            fixed_ms + prefill_ms * given + decode_ms * decoding + context_ms * (context + start)
        )
        steps += 1
        if decoding:
            context += decoding
            for request in ends.pop(decode_steps, ()):
                decoding -= 1
                context -= prompt_tokens[request] + decodes_of[request]
                last_ms = now_ms
            decode_steps += 1
        for request in complete:
            if decodes_of[request]:
                decoding += 1
                context += prompt_tokens[request]
                ends[decode_steps + decodes_of[request] - 1].append(request)
            else:
                last_ms = now_ms


def ours(workload: Workload) -> Outcome:
    """Run the same on s11's engine."""
    result = simulate(replace(REFERENCE, workload=workload))
    return Outcome(len(result.steps), float(np.nanmax(result.requests.last_token_ms)))


WAYS: dict[str, Callable[[Workload], Outcome]] = {
    "simulate(), tables included": ours,
    "counts per step, no tables": counts_per_step,
    "one object per decode, no tables": one_object_per_decode,
}


def main() -> None:
    workload = reference_requests(REFERENCE_RATE_PER_S)
    outcomes = {way(workload) for way in WAYS.values()}
    assert len(outcomes) == 1, f"they do not agree: {outcomes}"
    best = dict.fromkeys(WAYS, float("inf"))
    calibration_s = float("inf")
    for _ in range(ROUNDS):
        calibration_s = min(calibration_s, cpu_seconds(calibrate))
        for name, way in WAYS.items():
            best[name] = min(best[name], cpu_seconds(partial(way, workload)))
    print(f"{outcomes.pop().steps:,} steps; the loop takes {calibration_s:.3f} s")
    for name, cpu_s in best.items():
        print(f"{name:35s} {cpu_s / calibration_s:7.2f} loops")


if __name__ == "__main__":
    main()
