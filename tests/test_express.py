"""The loop for plain stretches against the engine without it: the same tables, to the last bit."""

import random
import re
import time
from concurrent.futures import ThreadPoolExecutor
from dataclasses import fields, replace

import numpy as np
import pytest

from s11 import (
    EngineLimits,
    Experiment,
    Request,
    Result,
    Workload,
    head_of_queue,
    head_stretches,
    simulate,
)
from s11.bench import LLAMA_ON_H100
from s11.costs import FittedCost, LinearCost
from s11.engine import Engine
from s11.express import is_plain
from s11.head_of_queue import steps_that_fit
from s11.head_stretches import StretchRunner, serves_the_head_alone
from s11.head_tables import Began, Jottings
from s11.plan import StepPlan
from s11.recorder import Recorder
from tests.loads import random_experiment

COSTS = (
    LinearCost(),
    FittedCost(
        fixed_ms=3.0,
        prefill_ms_per_token=0.02,
        decode_ms_per_token=0.05,
        context_ms_per_token=0.0003,
    ),
)


@pytest.fixture(params=["long stretches", "short stretches"])
def stretches(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """As they are, or so short, and for so few requests, that every way in and out is met."""
    name: str = request.param
    if name == "short stretches":
        monkeypatch.setattr(head_stretches, "FEW_REQUESTS", -1)
        monkeypatch.setattr(head_stretches, "FEWEST_STEPS", 8)
        monkeypatch.setattr(head_of_queue, "MOST_STEPS", 60)
        monkeypatch.setattr(head_of_queue, "LONG_RUN", 3)
    return name


def assert_same(one: Result, other: Result) -> None:
    for table in ("steps", "slices", "requests", "admissions", "preemptions", "spans"):
        columns = getattr(one, table).columns()
        for name, column in getattr(other, table).columns().items():
            assert np.array_equal(columns[name], column, equal_nan=name.endswith("_ms")), (
                table,
                name,
            )
    for field in fields(Result):
        if field.name not in ("steps", "slices", "requests", "admissions", "preemptions", "spans"):
            assert getattr(one, field.name) == getattr(other, field.name), field.name


def traffic(draw: random.Random) -> Experiment:
    """Up to 200 requests, idle times and queues; now and then streams, tight pools, refusals."""
    arrival_ms, requests = 0.0, []
    for row in range(draw.randrange(1, 200)):
        arrival_ms += draw.choice([0.0, 1.0, draw.expovariate(0.02), draw.expovariate(0.001)])
        requests.append(
            Request(
                request_id=str(row),
                arrival_ms=arrival_ms,
                prompt_tokens=draw.randrange(1, draw.choice([20, 2000])),
                output_tokens=draw.randrange(1, draw.choice([3, 90])),
                after=str(draw.randrange(row)) if row and draw.random() < 0.1 else None,
            )
        )
    users = draw.choice([0, 0, 5])
    limits = EngineLimits(
        token_budget=draw.choice([None, 64, 512]),
        chunk_tokens=draw.choice([None, 50, 512]),
        max_seqs=draw.choice([None, 8, 32]),
        kv_blocks=draw.choice([None, 400, 4000]),
        block_size=draw.choice([1, 7, 16]),
        reserve_full_prompt=draw.random() < 0.3,
        max_model_len=draw.choice([None, None, 1500]),
        chunking=draw.random() < 0.8,
    )
    return Experiment(
        workload=Workload(
            requests=tuple(requests), streaming_users=users, lead_in_steps=2, tail_steps=3
        ),
        policy=draw.choice(["chunked", "vllm_v1", "whole_prompt"]),
        limits=limits,
        cost=draw.choice(COSTS),
    )


@pytest.mark.usefixtures("stretches")
@pytest.mark.parametrize("seed", range(8))
def test_plain_stretches_change_nothing(seed: int) -> None:
    draw = random.Random(seed)
    for _ in range(25):
        experiment = traffic(draw)
        assert_same(simulate(experiment), simulate(experiment, express=False))
        cut = draw.randrange(1, 300)
        assert_same(
            simulate(experiment, max_steps=cut), simulate(experiment, max_steps=cut, express=False)
        )


@pytest.mark.usefixtures("stretches")
def test_nor_on_small_loads_of_every_scheduler() -> None:
    draw = random.Random(99)
    for _ in range(400):
        experiment = random_experiment(draw)
        assert_same(simulate(experiment), simulate(experiment, express=False))


def test_what_is_plain() -> None:
    plain = Experiment(limits=EngineLimits(token_budget=512))
    assert is_plain(plain)
    assert is_plain(replace(plain, policy="vllm_v1"))
    assert is_plain(plain.chunking_off())
    for change in (
        {"prefix_caching": True, "kv_blocks": 9},
        {"prefill_interval": 2},
        {"align_first_chunk": True},
    ):
        assert not is_plain(replace(plain, limits=replace(plain.limits, **change)))
    assert not is_plain(replace(plain, policy="sglang"))
    off = replace(plain.limits, chunking=False)
    assert not is_plain(replace(plain, policy="vllm_v1", limits=off))


class Counting(LinearCost):
    """The chapter's cost, known by its counts alone: it tells of no line."""

    line = None  # type: ignore[assignment]


@pytest.mark.parametrize("express", [True, False])
def test_a_cost_of_counts_that_is_no_line_notes_every_duration(express: bool) -> None:
    draw = random.Random(11)
    for _ in range(10):
        experiment = replace(traffic(draw), cost=LinearCost())
        told = simulate(experiment)
        noted = simulate(replace(experiment, cost=Counting()), express=express)
        assert np.array_equal(noted.steps.duration_ms, told.steps.duration_ms)
        assert_same(noted, told)


def test_whose_head_alone_is_part_done() -> None:
    """Prompts of 900 tokens, a budget of 512: a cap below it would let two be part done."""
    requests = (Request(request_id="a", prompt_tokens=900),)
    limits = EngineLimits(token_budget=512, chunk_tokens=None)
    alone = Experiment(workload=Workload(requests=requests), limits=limits)
    assert serves_the_head_alone(alone)
    assert serves_the_head_alone(replace(alone, policy="vllm_v1", cost=COSTS[1]))
    for same in ({"chunk_tokens": 512}, {"token_budget": None}, {"max_model_len": 900}):
        assert serves_the_head_alone(replace(alone, limits=replace(limits, **same)))
    for other in (
        {"chunk_tokens": 511},
        {"token_budget": 1024, "chunk_tokens": 900, "kv_blocks": 99},  # preempted: 900 and more
        {"token_budget": None, "chunk_tokens": 900, "kv_blocks": 99},
        {"token_budget": None, "chunk_tokens": 899},
        {"max_model_len": 899},
        {"chunking": False},
        {"prefix_caching": True, "kv_blocks": 99},
        {"prefill_interval": 2},
        {"align_first_chunk": True},
    ):
        assert not serves_the_head_alone(replace(alone, limits=replace(limits, **other))), other
    assert not serves_the_head_alone(replace(alone, policy="whole_prompt"))
    assert not serves_the_head_alone(replace(alone, cost=LLAMA_ON_H100))


@pytest.mark.parametrize("policy", ["chunked", "vllm_v1"])
@pytest.mark.parametrize("budget", [16, None])
def test_a_preempted_requests_outputs_are_cut_to_the_cap_too(
    policy: str, budget: int | None
) -> None:
    """Two prompts of 8 in blocks of 4, five blocks: one is preempted after its first outputs.

    Its 8 + n tokens do not fit a cap of 8, the longest prompt, so they come in two slices.
    """
    requests = tuple(Request(request_id=name, prompt_tokens=8, output_tokens=10) for name in "ab")
    experiment = Experiment(
        workload=Workload(requests=requests),
        policy=policy,
        limits=EngineLimits(token_budget=budget, chunk_tokens=8, kv_blocks=5, block_size=4),
    )
    result = simulate(experiment)
    assert len(result.preemptions)
    assert result.slices.tokens.max() == 8
    assert result.slices.wanted_tokens.max() > 8
    assert_same(result, simulate(experiment, express=False))


def queued(requests: int, *, draw: random.Random) -> Workload:
    return Workload(
        requests=tuple(
            Request(
                request_id=str(row),
                arrival_ms=row * draw.choice([1.0, 40.0]),
                prompt_tokens=draw.randrange(1, 400),
                output_tokens=draw.randrange(1, 60),
            )
            for row in range(requests)
        )
    )


@pytest.fixture
def engine_turns(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps with slices that the engine plans itself."""
    turns: list[int] = []
    alone = Engine._prefill

    def counted(engine: Engine, plan: StepPlan) -> None:
        turns.append(len(engine.notes.ends_ms))
        alone(engine, plan)

    monkeypatch.setattr(Engine, "_prefill", counted)
    return turns


@pytest.fixture
def head_steps(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The steps of each stretch in the loop for the head of the queue."""
    steps: list[int] = []
    alone = StretchRunner.note_stretch

    def counted(
        engine: StretchRunner,
        began: Began,
        jottings: Jottings,
        queue: list[int],
        arrivals_ms: list[float],
    ) -> None:
        steps.append(len(engine.notes.ends_ms) - began.step)
        alone(engine, began, jottings, queue, arrivals_ms)

    monkeypatch.setattr(StretchRunner, "note_stretch", counted)
    return steps


@pytest.mark.parametrize("cap", [None, 64])
def test_the_loop_for_the_head_does_all_but_the_last_turns(
    cap: int | None, engine_turns: list[int], head_steps: list[int]
) -> None:
    """Nothing runs short, so the engine itself only ever finds that nothing is left to do."""
    experiment = Experiment(
        workload=queued(60, draw=random.Random(3)),
        limits=EngineLimits(token_budget=64, chunk_tokens=cap, max_seqs=9, kv_blocks=5000),
        cost=COSTS[1],
    )
    express = simulate(experiment)
    assert not engine_turns
    assert head_steps == [len(express.steps)]
    assert_same(express, simulate(experiment, express=False))
    assert engine_turns


def test_the_loop_for_the_head_goes_on_when_blocks_are_free_again(head_steps: list[int]) -> None:
    """A pool that nine requests of 230 tokens on average overfill now and then."""
    experiment = Experiment(
        workload=queued(300, draw=random.Random(4)),
        limits=EngineLimits(token_budget=64, chunk_tokens=None, max_seqs=9, kv_blocks=120),
        policy="vllm_v1",
        cost=COSTS[1],
    )
    result = simulate(experiment)
    assert len(result.preemptions)
    assert len(head_steps) > 2
    assert sum(head_steps) > len(result.steps) / 2
    assert_same(result, simulate(experiment, express=False))


def test_what_nobody_reads_is_not_worked_out() -> None:
    """A table is told when it is read, and then as it would have been told at once."""
    experiment = Experiment(
        workload=queued(60, draw=random.Random(5)),
        limits=EngineLimits(token_budget=64, chunk_tokens=None, max_seqs=9),
    )
    told, plain = simulate(experiment), simulate(experiment, express=False)
    assert len(told.admissions) == 60
    assert np.array_equal(told.requests.last_token_ms, plain.requests.last_token_ms)
    assert np.array_equal(told.spans.decodes, plain.spans.decodes)
    assert_same(told, plain)


def test_two_who_read_a_run_at_once_work_it_out_once() -> None:
    """Sessions share kept runs: the second waits for the first, who takes a while."""
    recorder, worked_out = Recorder(()), []

    def rows() -> np.ndarray:
        worked_out.append(1)
        time.sleep(0.05)
        return np.array([[0.0, 1.0, 2.0, 3.0]])

    recorder.append_later("spans", rows)
    with ThreadPoolExecutor(2) as readers:
        tables = list(readers.map(lambda _: recorder.span_table().decodes.tolist(), range(2)))
    assert tables == [[3], [3]]
    assert len(worked_out) == 1


@pytest.mark.parametrize("express", [True, False])
def test_a_clock_that_stands_still_is_refused_in_every_loop(express: bool) -> None:
    """At 2^39 ms the next number is 2^-13 further: a step of 2^-15 is lost on it."""
    requests = tuple(
        Request(request_id=str(row), arrival_ms=2.0**39 if row > 30 else 0.0, prompt_tokens=5)
        for row in range(40)
    )
    cost = LinearCost(fixed_ms=2.0**-15, prefill_ms_per_token=0.0, decode_ms_per_token=0.0)
    experiment = Experiment(workload=Workload(requests=requests), cost=cost)
    told = "a step of 3.05176e-05 ms is too short to move a clock that stands at 5.49756e+11 ms"
    with pytest.raises(ValueError, match=re.escape(told)):
        simulate(experiment, express=express)


def test_for_how_many_steps_blocks_last() -> None:
    """Blocks of 4; one request begins a block in every fourth step, two in the one after it."""
    boundaries = [0, 1, 2, 0]
    assert steps_that_fit(boundaries, 0, 0, 99) == 1
    assert steps_that_fit(boundaries, 1, 0, 99) == 0
    assert steps_that_fit(boundaries, 1, 2, 99) == 1
    assert steps_that_fit(boundaries, 1, 3, 99) == 4
    assert steps_that_fit(boundaries, 1, 7, 99) == 9
    assert steps_that_fit(boundaries, 1, 7, 6) == 6
    assert steps_that_fit([0, 0], 1, 0, 5) == 5


def test_blocks_held_by_hand() -> None:
    """Blocks of 4. "a": 6 tokens at once (2 blocks), then 7, 8 and 9 (a third for the ninth).

    "b" comes with the second step: 3 tokens (1 block), no decode, gone after it.
    """
    experiment = Experiment(
        workload=Workload(
            requests=(
                Request(request_id="a", prompt_tokens=6, output_tokens=4),
                Request(request_id="b", prompt_tokens=3, arrival_ms=1.0),
            )
        ),
        limits=EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=100),
    )
    for express in (True, False):
        steps = simulate(experiment, express=express).steps
        assert steps.prefill_tokens.tolist() == [6, 3, 0, 0]
        assert steps.kv_blocks.tolist() == [2, 3, 2, 3]


def test_a_preempted_request_gives_its_blocks_back_in_the_step_that_takes_them() -> None:
    """Blocks of 4, five of them. Two prompts of 8 (2 blocks each) fill four; the first step of
    decodes takes one more each: only one is there, so the later request goes.
    """
    experiment = Experiment(
        workload=Workload(
            requests=tuple(
                Request(request_id=name, prompt_tokens=8, output_tokens=3) for name in "ab"
            )
        ),
        limits=EngineLimits(chunk_tokens=None, block_size=4, kv_blocks=5),
    )
    result = simulate(experiment)
    assert result.preemptions.step.tolist() == [1]
    assert result.steps.kv_blocks.tolist()[:3] == [4, 3, 3]
