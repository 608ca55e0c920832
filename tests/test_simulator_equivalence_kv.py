"""The engine against the one-object-per-request simulator: every policy, KV blocks, caches.

Exactly, to the last bit: the loads' times are short binary fractions.
"""

import math
import random
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from s11 import Experiment, LinearCost, Result, simulate
from s11.catalog import MODELS, Deployment
from s11.costs import RooflineCost
from s11.plan import BlockedBy
from s11.results import REASONS
from tests.loads import load, random_kv_experiment, random_policy_experiment, request
from tests.reference_simulator import ReferenceRun
from tests.reference_worker import Worker

LOADS_PER_SEED = 300
MAX_STEPS = 10_000  # more than any of these loads takes: a run without an end is then a difference
Account = dict[str, Any]


def known(value: float) -> float | None:
    return None if math.isnan(value) else float(value)


def engine_steps(result: Result, limits_kv: bool) -> Account:
    steps, slices, ids = result.steps, result.slices, result.requests.request_id
    rows = zip(slices.step, slices.request, slices.start_token, slices.tokens, strict=True)
    table = result.admissions
    admissions = zip(table.step, table.request, table.cached_tokens, strict=True)
    lost = result.preemptions
    return {
        "start": steps.start_ms.tolist(),
        "end": steps.end_ms.tolist(),
        "duration": steps.duration_ms.tolist(),
        "prefill tokens": steps.prefill_tokens.tolist(),
        "decode tokens": steps.decode_tokens.tolist(),
        "batch": list(result.schedule()),
        "slices": [(int(s), ids[r], int(start), int(n)) for s, r, start, n in rows],
        "wanted": slices.wanted_tokens.tolist(),
        "cut": [bool(code) for code in slices.limited_by],
        "admissions": [(int(s), ids[r], int(cached)) for s, r, cached in admissions],
        "admitted at": table.time_ms.tolist(),
        "preemptions": [(int(s), ids[r]) for s, r in zip(lost.step, lost.request, strict=True)],
        "preempted at": lost.time_ms.tolist(),
        "blocked by": [REASONS[code] for code in steps.blocked_by],
        "blocked": [None if row < 0 else ids[row] for row in steps.blocked_request],
        "held decodes": steps.held_decodes.tolist(),
        "waiting": steps.waiting.tolist(),
        "KV blocks": steps.kv_blocks.tolist() if limits_kv else [],
        "decodes' contexts": steps.decode_context_tokens.tolist(),
    }


def reference_steps(worker: Worker, limits_kv: bool) -> Account:
    steps = worker.steps
    return {
        "start": [step.start_ms for step in steps],
        "end": [step.end_ms for step in steps],
        "duration": [step.duration_ms for step in steps],
        "prefill tokens": [sum(tokens for _, _, tokens in step.slices) for step in steps],
        "decode tokens": [len(step.decoded) for step in steps],
        "batch": worker.schedule(),
        "slices": [
            (number, call.name, start, tokens)
            for number, step in enumerate(steps)
            for call, start, tokens in step.slices
        ],
        "wanted": [wanted for step in steps for wanted in step.wanted],
        "cut": [
            tokens < wanted
            for step in steps
            for (_, _, tokens), wanted in zip(step.slices, step.wanted, strict=True)
        ],
        "admissions": worker.admissions,
        "admitted at": [steps[number].start_ms for number, _, _ in worker.admissions],
        "preemptions": worker.preemptions,
        "preempted at": [steps[number].start_ms for number, _ in worker.preemptions],
        "blocked by": [step.blocked for step in steps],
        "blocked": [step.blocked_call and step.blocked_call.name for step in steps],
        "held decodes": [step.held_decodes for step in steps],
        "waiting": [step.waiting for step in steps],
        "KV blocks": [step.kv_blocks for step in steps] if limits_kv else [],
        "decodes' contexts": [step.decode_context_tokens for step in steps],
    }


def engine_requests(result: Result) -> Account:
    requests = result.requests
    return {
        "arrival": [known(t) for t in requests.arrival_ms],
        "first scheduled": [known(t) for t in requests.first_scheduled_ms],
        "first token": [known(t) for t in requests.first_token_ms],
        "last token": [known(t) for t in requests.last_token_ms],
        "tokens": [result.token_times_ms(row).tolist() for row in range(len(requests))],
        "never scheduled": list(result.never_scheduled),
        "never finished": list(result.never_finished),
        "rejected": list(result.rejected),
        "stopped": result.stopped_at_max_steps,
    }


def reference_requests(reference: ReferenceRun) -> Account:
    calls = reference.calls
    return {
        "arrival": [known(call.arrival_ms) for call in calls],
        "first scheduled": [known(call.first_scheduled_ms) for call in calls],
        "first token": [call.token_times_ms[0] if call.token_times_ms else None for call in calls],
        "last token": [call.token_times_ms[-1] if call.done else None for call in calls],
        "tokens": [call.token_times_ms for call in calls],
        "never scheduled": [call.name for call in reference.never_scheduled()],
        "never finished": [call.name for call in reference.never_finished()],
        "rejected": [call.name for call in reference.rejected()],
        "stopped": reference.stopped,
    }


def differences(experiment: Experiment) -> dict[str, tuple[Any, Any]]:
    """What the engine gives and what the reference gives, where they are not equal."""
    result = simulate(experiment, max_steps=MAX_STEPS)
    reference = ReferenceRun(experiment, MAX_STEPS)
    counted = experiment.limits.kv_blocks is not None or experiment.limits.prefix_caching
    pairs = {"": (engine_steps(result, counted), reference_steps(reference.worker, counted))}
    pairs["requests: "] = (engine_requests(result), reference_requests(reference))
    assert (result.prefill_worker is None) == (reference.prefill_worker is None)
    if result.prefill_worker is not None and reference.prefill_worker is not None:
        pairs["prefill worker: "] = (
            engine_steps(result.prefill_worker, counted),
            reference_steps(reference.prefill_worker, counted),
        )
    return {
        prefix + name: (ours[name], theirs[name])
        for prefix, (ours, theirs) in pairs.items()
        for name in ours
        if ours[name] != theirs[name]
    }


@pytest.mark.parametrize("seed", range(10))
@pytest.mark.parametrize("draw_load", [random_kv_experiment, random_policy_experiment])
def test_random_loads_run_as_one_object_per_request(
    draw_load: Callable[[random.Random], Experiment], seed: int
) -> None:
    draw = random.Random(seed)
    for number in range(LOADS_PER_SEED):
        experiment = draw_load(draw)
        assert differences(experiment) == {}, f"load {number}: {experiment}"


def test_random_loads_at_the_chapters_cost_run_as_one_object_per_request() -> None:
    draw = random.Random("chapter")
    for number in range(200):
        experiment = replace(random_kv_experiment(draw), cost=LinearCost())
        assert differences(experiment) == {}, f"load {number}: {experiment}"


def test_random_loads_on_a_machine_run_as_one_object_per_request() -> None:
    """Their times are no short fractions, but the same sums in the same order."""
    draw = random.Random("machine")
    model = replace(MODELS["llama-3.1-8b"], layers=2)
    cost = RooflineCost(deployment=Deployment(model=model, gpu="h100"))
    for number in range(200):
        experiment = replace(random_kv_experiment(draw), cost=cost, itl_target_ms=50.0)
        if experiment.policy != "slo_adaptive":  # asks the linear models alone
            assert differences(experiment) == {}, f"load {number}: {experiment}"


@pytest.mark.parametrize("policy", ["chunked", "vllm_v1", "slo_adaptive"])
def test_who_outgrows_the_pool_ends_though_another_comes_back_beside_it_each_time(
    policy: str,
) -> None:
    """Four blocks of 3 tokens: a's 13 need five. Again and again it preempts b, then itself.

    Whenever it falls over itself, it alone holds blocks; the third time is its last.
    """
    experiment = load(request("a", 13), request("b", 2), policy=policy, budget=8, chunk=7)
    limits = replace(experiment.limits, block_size=3, kv_blocks=4)
    experiment = replace(experiment, limits=limits)
    result = simulate(experiment, max_steps=MAX_STEPS)
    assert list(result.schedule()) == [{"a": 7, "b": 1}, {}] * 3
    assert result.preempted() == {1: ["b", "a"], 3: ["b", "a"], 5: ["b", "a"]}
    assert result.never_finished == ("a", "b")
    assert differences(experiment) == {}


def test_who_gets_a_token_in_every_round_beside_one_that_outgrows_the_pool_finishes() -> None:
    """Four blocks of 4 tokens; a's 20 need five. Each time a begins anew, b recomputes what it
    knows beside it, in two chunks of at most 4, and has one token more before it must go: two in
    the first round, then one in each, six in the fifth. Only a never finishes."""
    experiment = load(
        request("a", 20),
        request("b", 3, output_tokens=6),
        policy="vllm_v1",
        budget=8,
        chunk=4,
        block_size=4,
        kv_blocks=4,
    )
    result = simulate(experiment, max_steps=MAX_STEPS)
    assert result.never_finished == ("a",)
    assert len(result.token_times_ms(1)) == 6
    assert [name for ids in result.preempted().values() for name in ids].count("b") == 4
    assert differences(experiment) == {}


def test_the_random_loads_meet_what_they_are_for() -> None:
    """Preemptions in many, requests too large for the pool, hits, and every reason to wait."""
    draw = random.Random(0)
    preempting = hitting = resumed_hits = endless = refused = 0
    met: set[BlockedBy | None] = set()
    for _ in range(500):
        run = ReferenceRun(random_kv_experiment(draw))
        preempting += bool(run.preemptions)
        hitting += any(cached for _, _, cached in run.admissions)
        seen: set[str] = set()
        for _, name, cached in run.admissions:
            resumed_hits += name in seen and cached > 0
            seen.add(name)
        endless += bool(run.never_finished())
        refused += bool(run.rejected())
        met |= {step.blocked for step in run.steps}
    assert preempting > 100
    assert min(hitting, resumed_hits) > 50
    assert min(endless, refused) > 10
    never_first = {
        BlockedBy.CHUNK_CAP,
        BlockedBy.HEAD_OF_LINE,
        BlockedBy.PREFILL_FIRST,
    }
    assert met >= {None, *BlockedBy} - never_first
