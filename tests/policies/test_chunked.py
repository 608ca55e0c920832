"""One step of the chapter's scheduler, decided by hand."""

from collections import deque

import pytest

from s11.plan import Batch, BlockedBy, EngineLimits, StepPlan
from s11.policies import POLICIES, chunked


def plan(
    remaining: list[int],
    *,
    decoding: int = 0,
    prefilling: tuple[int, ...] = (),
    waiting: tuple[int, ...] = (),
    budget: int | None = None,
    chunk: int | None = None,
    seats: int | None = None,
) -> StepPlan:
    batch = Batch(
        decoding=decoding,
        remaining_tokens=remaining,
        prefilling=list(prefilling),
        waiting=deque(waiting),
    )
    limits = EngineLimits(token_budget=budget, chunk_tokens=chunk, max_seqs=seats)
    return chunked(batch, limits)


def shares(made: StepPlan) -> list[tuple[int, int]]:
    """Who gets how many tokens."""
    return [(part.request, part.tokens) for part in made.slices]


def reasons(made: StepPlan) -> list[BlockedBy | None]:
    """Why each slice is not all that its request wants."""
    return [part.limited_by for part in made.slices]


def test_take_is_the_least_of_what_remains_the_budget_left_and_the_cap() -> None:
    assert shares(plan([10], waiting=(0,))) == [(0, 10)]
    assert shares(plan([10], waiting=(0,), chunk=4)) == [(0, 4)]
    assert shares(plan([10], waiting=(0,), chunk=4, budget=3)) == [(0, 3)]
    assert shares(plan([10], waiting=(0,), budget=9, decoding=2)) == [(0, 7)]


def test_the_partly_prefilled_come_before_those_who_wait() -> None:
    made = plan([5, 9, 9], prefilling=(2,), waiting=(0, 1), budget=12)
    assert shares(made) == [(2, 9), (0, 3)]
    assert made.blocked_by is BlockedBy.TOKEN_BUDGET


def test_it_stops_at_the_first_that_can_take_nothing() -> None:
    made = plan([5, 1], waiting=(0, 1), decoding=3, budget=3)
    assert (shares(made), made.blocked_by, made.steps) == ([], BlockedBy.TOKEN_BUDGET, 1)


def test_the_cap_is_for_each_request_and_not_for_the_step() -> None:
    assert shares(plan([9, 9, 9], waiting=(0, 1, 2), chunk=4)) == [(0, 4), (1, 4), (2, 4)]


@pytest.mark.parametrize(("seats", "admitted"), [(3, 0), (4, 1), (5, 2), (None, 2)])
def test_seats_are_held_by_decodes_and_by_prompts_in_progress(
    seats: int | None, admitted: int
) -> None:
    made = plan([9, 1, 1], decoding=2, prefilling=(0,), waiting=(1, 2), seats=seats)
    assert shares(made) == [(0, 9), (1, 1), (2, 1)][: 1 + admitted]
    assert made.blocked_by == (BlockedBy.SEATS if admitted < 2 else None)


def test_a_prompt_in_progress_needs_no_new_seat() -> None:
    assert shares(plan([9], decoding=1, prefilling=(0,), seats=2)) == [(0, 9)]


def test_nobody_to_serve_is_an_empty_plan() -> None:
    made = plan([], decoding=4)
    assert (shares(made), made.blocked_by, made.steps, made.decodes) == ([], None, 1, True)


def test_a_slice_that_is_not_all_says_what_held_it_back() -> None:
    cap, budget = BlockedBy.CHUNK_CAP, BlockedBy.TOKEN_BUDGET
    assert reasons(plan([10], waiting=(0,))) == [None]
    assert reasons(plan([10], waiting=(0,), chunk=4)) == [cap]
    assert reasons(plan([10], waiting=(0,), chunk=4, budget=4)) == [cap]
    assert reasons(plan([10, 10], waiting=(0, 1), chunk=4, budget=7)) == [cap, budget]


def test_with_chunking_off_it_takes_whole_prompts() -> None:
    batch = Batch(decoding=1, remaining_tokens=[5, 6], waiting=deque([0, 1]))
    made = chunked(batch, EngineLimits(token_budget=8, chunk_tokens=2, chunking=False))
    assert (shares(made), made.blocked_by) == ([(0, 5)], BlockedBy.CHUNKING_OFF)


def test_a_first_chunk_that_the_budget_cuts_can_be_floored_to_whole_blocks() -> None:
    """Ten tokens left, blocks of four: eight. Cut by the cap, or the last of a prompt: as it is."""

    def first(remaining: int, budget: int, chunk: int | None = None) -> StepPlan:
        batch = Batch(decoding=0, remaining_tokens=[remaining], waiting=deque([0]))
        limits = EngineLimits(
            token_budget=budget, chunk_tokens=chunk, block_size=4, align_first_chunk=True
        )
        return chunked(batch, limits)

    assert (shares(first(50, 10)), first(50, 10).steps) == ([(0, 8)], 1)
    assert shares(first(9, 10)) == [(0, 9)]
    assert shares(first(50, 10, chunk=5)) == [(0, 5)]
    assert (shares(first(50, 3)), first(50, 3).blocked_by) == ([], BlockedBy.ALIGNMENT)


@pytest.mark.parametrize(
    ("remaining", "steps"), [([8], 2), ([9], 2), ([11], 2), ([12], 3), ([3], 1), ([12, 5], 1)]
)
def test_it_says_for_how_many_steps_it_would_plan_the_same(
    remaining: list[int], steps: int
) -> None:
    """Cap 4: a prompt gives as many full chunks as four fits into what remains."""
    assert plan(remaining, waiting=tuple(range(len(remaining))), chunk=4).steps == steps


def test_the_batch_is_only_read() -> None:
    batch = Batch(decoding=1, remaining_tokens=[5, 6], prefilling=[0], waiting=deque([1]))
    chunked(batch, EngineLimits(token_budget=8))
    assert (batch.decoding, batch.remaining_tokens) == (1, [5, 6])
    assert (batch.prefilling, list(batch.waiting)) == ([0], [1])


def test_both_policies_are_registered_by_name() -> None:
    assert POLICIES["chunked"] is chunked
    assert set(POLICIES) >= {"chunked", "whole_prompt"}
