"""The best chunk size is a property of the targets: a load whose answers are closed forms."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from s11 import LinearCost
from s11.capacity import CapacityTargets, RatePoint
from s11.capacity_by_chunk import capacity_by_chunk, with_step_tokens
from s11.capacity_points import ExperimentAtRate
from s11.sweep_outcomes import Lost, WorkersGoneError
from s11.sweep_pool import ProcessPool
from tests.evenly import evenly
from tests.loads import load, request

# A step takes 4 ms and 0.018 ms for each prompt token; one stream decodes in every step and
# takes a token of its size, so that 400 prompt tokens take 4 x 5.8, 2 x 7.6 or 1 x 11.2 ms.
SIZES = (101, 201, 401)
PREFILL_MS = {101: 23.2, 201: 15.2, 401: 11.2}
MAKE = evenly(
    101,
    400,
    users=1,
    cost=LinearCost(fixed_ms=4.0, prefill_ms_per_token=0.018, decode_ms_per_token=0.0),
)
LOOSE = CapacityTargets(itl_p99_ms=12, scheduling_delay_p50_ms=20)
TIGHT = CapacityTargets(itl_p99_ms=6, scheduling_delay_p50_ms=20)


def test_each_size_has_the_rate_that_its_steps_allow() -> None:
    """Loose: no step is too long, so the delay decides. Of 101 requests the 51st waits
    50 (D - gap) ms, within 20 at a gap of D - 0.4.

    Tight: a step of 101 tokens takes 5.8 ms and the rate is the same; of the others, n steps a
    request are too long, and no more than one token in a hundred may see them. A second holds R
    requests' D ms and (1000 - R D) / 4 steps without a prompt: R n = (R n + 250 - R D / 4) / 100.
    """
    found = capacity_by_chunk(MAKE, SIZES, (LOOSE, TIGHT))
    assert [(one.capacity.targets, one.chunk_tokens) for one in found] == [
        (targets, size) for targets in (LOOSE, TIGHT) for size in SIZES
    ]
    rates = [one.capacity.highest_per_s for one in found]
    for size, rate_per_s in zip(SIZES, rates, strict=False):
        limit = 1000 / (PREFILL_MS[size] - 0.4)
        assert rate_per_s is not None
        assert limit / 1.02 <= rate_per_s <= limit
    assert rates[3] == pytest.approx(rates[0], rel=0.02)
    for size, steps, rate_per_s in ((201, 2, rates[4]), (401, 1, rates[5])):
        limit = 2.5 / (0.99 * steps + PREFILL_MS[size] / 400)
        assert rate_per_s is not None
        # The 100 gaps between 101 requests are a hundredth short of their time.
        assert 0.98 * limit / 1.02 <= rate_per_s <= limit * 1.001
    assert max(rates[:3], key=lambda rate: rate or 0) == rates[2]
    assert max(rates[3:], key=lambda rate: rate or 0) == rates[3]


def test_runs_serve_all_targets_and_progress_hears_of_each_once() -> None:
    heard: list[tuple[int | None, RatePoint]] = []
    found = capacity_by_chunk(
        MAKE, (101,), (LOOSE, TIGHT), progress=lambda size, point: heard.append((size, point))
    )
    assert {size for size, _ in heard} == {101}
    rates = [point.rate_per_s for _, point in heard]
    assert len(set(rates)) == len(rates)
    # The smallest size's steps hold the tight target too: nothing is left to try for it.
    assert len(found[0].capacity.points) == len(found[1].capacity.points) == len(rates)


def test_a_size_that_cannot_run_is_told_and_the_others_go_on() -> None:
    """Five streams take five tokens of every step."""
    make = evenly(20, 40, users=5)
    small, large = capacity_by_chunk(make, (4, 10), (LOOSE,))
    assert small.refused is not None
    assert small.refused.startswith("token_budget: 4 is less than the 5 streaming users")
    assert small.capacity.points == ()
    assert large.refused is None
    assert large.capacity.highest is not None


def test_whole_prompts_are_searched_beside_the_sizes() -> None:
    """With a seat for one prompt beside the stream, a whole one and a chunk of 401 tokens, of
    which the stream takes one, are the same steps of 11.2 ms."""
    make = evenly(
        101,
        400,
        users=1,
        seats=2,
        cost=LinearCost(fixed_ms=4.0, prefill_ms_per_token=0.018, decode_ms_per_token=0.0),
    )
    small, large, whole = capacity_by_chunk(make, (101, 401, None), (TIGHT,))
    assert whole.chunk_tokens is None
    assert whole.capacity == large.capacity
    assert small.capacity.highest_per_s is not None
    assert whole.capacity.highest_per_s is not None
    assert small.capacity.highest_per_s > whole.capacity.highest_per_s


def test_a_whole_prompt_over_the_experiments_own_budget_holds_no_rate() -> None:
    (whole,) = capacity_by_chunk(evenly(20, 40, budget=39), (None,), (LOOSE,))
    assert whole.refused is None
    assert whole.capacity.highest is None
    assert whole.capacity.failing is not None
    assert "never_served" in whole.capacity.failing.fails


LISTED = ExperimentAtRate(experiment=MAKE(100.0))


def mapped(function: Callable[..., Any], items: Sequence[Any]) -> list[Any]:
    return [function(item) for item in items]


@pytest.mark.parametrize("other", [ProcessPool(jobs=2), mapped])
def test_any_map_gives_the_same_to_the_bit_and_tells_of_each_run(other: Any) -> None:
    alone: list[tuple[int | None, float]] = []
    heard: list[tuple[int | None, float]] = []
    sizes = (*SIZES, None)
    expected = capacity_by_chunk(
        LISTED,
        sizes,
        (LOOSE, TIGHT),
        progress=lambda size, point: alone.append((size, point.rate_per_s)),
    )
    found = capacity_by_chunk(
        LISTED,
        sizes,
        (LOOSE, TIGHT),
        map=other,
        progress=lambda size, point: heard.append((size, point.rate_per_s)),
    )
    assert found == expected
    assert sorted(heard, key=str) == sorted(alone, key=str)


def test_a_size_whose_workers_died_is_no_answer() -> None:
    class Dying:
        def __call__(self, *_: Any) -> Iterator[Any]:
            raise AssertionError

        def as_they_come(self, function: Any, items: Any, *, shared: Any) -> Iterator[Any]:
            yield 1, function(items[1])
            yield 0, Lost(deaths=3, why="ended by SIGKILL")

    with pytest.raises(WorkersGoneError, match=r"worker: 3 died .* SIGKILL"):
        capacity_by_chunk(LISTED, SIZES[:2], (LOOSE,), map=Dying())


def test_without_sizes_or_targets_there_is_nothing() -> None:
    assert capacity_by_chunk(MAKE, (), (LOOSE,)) == ()
    assert capacity_by_chunk(MAKE, SIZES, ()) == ()


def test_a_size_bounds_a_step_and_a_chunk() -> None:
    sized = with_step_tokens(load(request("a", 9), policy="whole_prompt", seats=7), 64)
    assert (sized.policy, sized.limits.token_budget, sized.limits.chunk_tokens) == (
        "chunked", 64, 64,
    )  # fmt: skip
    assert sized.limits.max_seqs == 7


def test_sglangs_decodes_are_beside_the_chunk() -> None:
    sized = with_step_tokens(load(request("a", 9), policy="sglang", budget=900), 64)
    assert (sized.policy, sized.limits.token_budget, sized.limits.chunk_tokens) == (
        "sglang", 900, 64,
    )  # fmt: skip
