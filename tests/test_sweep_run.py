"""`sweeps.run`: any map, the same outcomes in the same order."""

import multiprocessing
import pickle
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import EngineLimits, Experiment, LinearCost, measure, simulate
from s11.arrivals import ClosedLoopArrivals, PoissonArrivals
from s11.catalog import MODELS, Deployment
from s11.costs import RooflineCost
from s11.lengths import FixedTokens
from s11.sweep_outcomes import Outcome, figure_kinds
from s11.sweep_pool import ProcessPool
from s11.sweep_tasks import Packed, Variant, digests, forget, keep, pack, variant
from s11.sweeps import Map, figures_of, run
from s11.traffic import Traffic
from tests.loads import EXPERIMENTS, load, request

CHAPTER = [Experiment().with_chunk_tokens(size) for size in (128, 512, 1024, 4096)]
TRAFFIC = Traffic(
    request_count=20,
    arrivals=PoissonArrivals(rate_per_s=5.0),
    prompt=FixedTokens(tokens=100),
    output=FixedTokens(tokens=3),
)


def each_alone(experiments: list[Experiment]) -> list[Outcome]:
    """What each gives by itself, without anything of sweeps."""
    return [
        Outcome(
            metrics=measure(
                simulate(each),
                itl_target_ms=each.itl_target_ms,
                ttft_target_ms=each.ttft_target_ms,
            ),
            refused=None,
        )
        for each in experiments
    ]


class Travelling:
    """A map whose function, items and results go through bytes, as to another process."""

    def __call__(self, function: Callable[..., Any], *iterables: Iterable[Any]) -> Iterator[Any]:
        for arguments in zip(*iterables, strict=True):
            there, with_it = pickle.loads(pickle.dumps((function, arguments)))
            yield pickle.loads(pickle.dumps(there(*with_it)))


class LastFirst:
    """Workers that do the last item first, and were told before what items share."""

    def __init__(self) -> None:
        self.shared: list[Packed] = []

    def __call__(self, function: Callable[..., Any], *iterables: Any) -> Iterator[Any]:
        raise AssertionError("they can say what they have as it comes")

    def as_they_come(
        self, function: Callable[[Any], Any], items: list[Any], *, shared: list[Packed]
    ) -> Iterator[tuple[int, Any]]:
        self.shared = shared
        keep(shared)
        try:
            for number in reversed(range(len(items))):
                item = pickle.loads(pickle.dumps(items[number]))
                yield number, function(item)
        finally:
            forget(shared)


@settings(max_examples=40)
@given(experiments=st.lists(EXPERIMENTS, max_size=5))
@pytest.mark.parametrize("other", [map, Travelling(), LastFirst()], ids=["map", "bytes", "last"])
def test_any_map_gives_each_experiments_own_figures_in_order(
    other: Map, experiments: list[Experiment]
) -> None:
    assert list(run(experiments, map=other)) == each_alone(experiments)


def test_maps_of_the_standard_library() -> None:
    expected = run(CHAPTER)
    assert list(expected) == each_alone(CHAPTER)
    with ThreadPoolExecutor(2) as threads:
        assert run(CHAPTER, map=threads.map) == expected
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(1, mp_context=spawn) as processes:
        assert run(CHAPTER, map=processes.map) == expected
    with spawn.Pool(1) as pool:
        assert run(CHAPTER, map=pool.imap) == expected
        pool.close()
        pool.join()
    assert run(CHAPTER, map=ProcessPool(jobs=2)) == expected


def test_the_chapters_figures() -> None:
    """4 + 0.018 c + 1.2: 14.416 ms at 512 tokens, 23.632 ms at 1,024."""
    stalls = [o.metrics.longest_stall_ms for o in run(CHAPTER[1:3]) if o.metrics]
    assert stalls == pytest.approx([14.416, 23.632])


def test_progress_is_told_after_each() -> None:
    told: list[tuple[int, int]] = []
    run(CHAPTER, progress=lambda done, of: told.append((done, of)), map=LastFirst())
    assert told == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_what_is_refused_is_a_row_and_not_the_end() -> None:
    """A budget of 8 for 24 users; an H100 holds no 70B model in 16 bits (141 GB of 80 GB)."""
    small = Variant(
        frame=Experiment(),
        source=Experiment().workload,
        limits=(("token_budget", 8),),
    )
    big = RooflineCost(deployment=Deployment(model=MODELS["llama-3.1-70b"], gpu="h100"))
    outcomes = run([small, Experiment(), Experiment(cost=big)])
    assert outcomes[0].metrics is None
    assert outcomes[0].refused == (
        "token_budget: 8 is less than the 24 streaming users need (allowed: 24 or more, or none)"
    )
    assert outcomes[1].refused is None
    assert outcomes[2].refused is not None
    assert set(outcomes[2].figures().values()) == {None}


def test_a_run_that_is_cut_has_no_figures() -> None:
    """13 steps: 2 of lead-in, 8 of prefill, 3 of the tail."""
    assert run([Experiment()], max_steps=13) == run([Experiment()])
    (cut,) = run([Experiment()], max_steps=12)
    assert cut == Outcome(metrics=None, refused="max_steps: 12 steps are too few for this run")


def test_errors_that_are_no_refusals_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(*_: object, **__: object) -> None:
        raise AssertionError("a bug")

    monkeypatch.setattr("s11.sweeps.simulate", broken)
    with pytest.raises(AssertionError, match="a bug"):
        run([Experiment()])


def test_a_map_that_loses_results_is_refused() -> None:
    def half(function: Callable[..., Any], *iterables: Any) -> list[Any]:
        return list(map(function, *iterables))[:1]

    with pytest.raises(ValueError, match=r"^map: gave 1 results for 4 experiments$"):
        run(CHAPTER, map=half)


def test_requests_in_common_are_sent_once() -> None:
    """1,000 requests in 50 experiments: what is sent for each does not hold them."""
    many = load(*(request(str(n), 10) for n in range(1_000)))
    lone = load(request("a", 10))
    experiments = [many.with_chunk_tokens(size) for size in range(1, 51)]
    sent, shared = pack([variant(each) for each in [*experiments, lone]], apart=True)
    assert [packed.data for packed in shared] == [pickle.dumps(many.workload, 5)]
    assert all(len(pickle.dumps(each)) < len(shared[0].data) / 5 for each in sent)
    assert sent[-1].packed is not None  # a lone one's own goes with it
    assert sent[0].packed is None
    whole, nothing = pack([variant(each) for each in experiments], apart=False)
    assert nothing == []
    assert len({id(each.packed) for each in whole}) == 1
    assert whole[3].experiment() == experiments[3]


def test_a_process_builds_the_requests_of_one_rate_once() -> None:
    frame = load()
    made = [
        Variant(frame=frame, source=TRAFFIC, rate_per_s=rate, limits=(("chunk_tokens", size),))
        for rate in (1.0, 2.0)
        for size in (10, 20)
    ]
    workloads = [each.experiment().workload for each in made]
    assert workloads[0] is workloads[1]
    assert workloads[2] is workloads[3]
    assert workloads[0] == TRAFFIC.at_rate(1.0).workload()
    assert workloads[2] == TRAFFIC.at_rate(2.0).workload()


def test_a_variant_is_its_base_changed() -> None:
    users = load(users=3, tail=2, cost=LinearCost())
    made = Variant(
        frame=users,
        source=TRAFFIC,
        rate_per_s=4.0,
        seed=7,
        policy="sglang",
        limits=(("chunk_tokens", 64), ("chunking", True)),
    ).experiment()
    drawn = replace(TRAFFIC, seed=7).at_rate(4.0).workload()
    assert made == replace(
        users,
        workload=replace(users.workload, requests=drawn.requests),
        policy="sglang",
        limits=EngineLimits(chunk_tokens=64),
    )
    assert made.workload.streaming_users == 3


def test_given_requests_have_no_other_rate_or_seed() -> None:
    given_ = Experiment()
    (rate,) = run([Variant(frame=given_, source=given_.workload, rate_per_s=2.0)])
    assert rate.refused is not None
    assert rate.refused.startswith("rate_per_s: 2 does not go with requests that are given")
    (seed,) = run([Variant(frame=given_, source=given_.workload, seed=2)])
    assert seed.refused == (
        "seed: 2 does not go with requests that are not drawn (allowed: traffic)"
    )
    clients = replace(TRAFFIC, arrivals=ClosedLoopArrivals(clients=2, think_ms=0.0))
    (closed,) = run([Variant(frame=load(), source=clients, rate_per_s=2.0)])
    assert closed.refused is not None
    assert closed.refused.startswith("rate_per_s: 2 does not go with closed-loop clients")


def test_a_digest_names_what_is_run_and_nothing_else() -> None:
    again = [pickle.loads(pickle.dumps(each)) for each in CHAPTER]
    assert digests([variant(e) for e in again]) == digests([variant(e) for e in CHAPTER])
    base = Variant(frame=load(), source=TRAFFIC)
    others = [
        base,
        replace(base, rate_per_s=5.0),
        replace(base, seed=0),
        replace(base, policy="sglang"),
        replace(base, limits=(("chunk_tokens", 8),)),
        replace(base, frame=load(users=1)),
        replace(base, source=replace(TRAFFIC, request_count=21)),
        variant(load(request("a", 5))),
        variant(load(request("a", 6))),
        variant(load(request("b", 5))),
        variant(load(request("a", 5, arrival_ms=0.5))),
    ]
    assert len(set(digests(others))) == len(others)


def test_an_outcome_is_read_back_equal() -> None:
    for outcome in run([CHAPTER[0], load()]):
        assert Outcome.from_dict(outcome.to_dict()) == outcome
    assert set(figure_kinds().values()) == {int, float}


def test_figures_of_one_experiment() -> None:
    assert figures_of(CHAPTER[0]) == each_alone(CHAPTER)[0].metrics
