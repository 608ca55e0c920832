"""One step with chunking off, decided by hand."""

from collections import deque

import pytest

from s11.plan import Batch, BlockedBy, EngineLimits
from s11.policies import POLICIES, whole_prompt


def plan(
    remaining: list[int],
    *,
    decoding: int = 0,
    budget: int | None = None,
    seats: int | None = None,
    chunk: int | None = 1,
) -> tuple[list[tuple[int, int]], BlockedBy | None]:
    waiting = deque(range(len(remaining)))
    batch = Batch(decoding=decoding, remaining_tokens=remaining, waiting=waiting)
    limits = EngineLimits(token_budget=budget, chunk_tokens=chunk, max_seqs=seats)
    made = whole_prompt(batch, limits)
    assert list(waiting) == list(range(len(remaining)))
    return [(part.request, part.tokens) for part in made.slices], made.blocked_by


def test_prompts_are_whole_whatever_the_chunk_cap() -> None:
    assert plan([10, 20]) == ([(0, 10), (1, 20)], None)


@pytest.mark.parametrize(
    ("budget", "slices"), [(9, []), (10, [(0, 10)]), (14, [(0, 10)]), (15, [(0, 10), (1, 5)])]
)
def test_a_prompt_runs_when_all_of_it_fits_and_nobody_overtakes(
    budget: int, slices: list[tuple[int, int]]
) -> None:
    """Prompts of 10, 5 and 1: the last would fit earlier, but its turn is last."""
    assert plan([10, 5, 1], budget=budget) == (slices, BlockedBy.CHUNKING_OFF)


def test_decodes_take_from_the_budget_first() -> None:
    assert plan([8], decoding=2, budget=10) == ([(0, 8)], None)
    assert plan([8], decoding=3, budget=10) == ([], BlockedBy.CHUNKING_OFF)


@pytest.mark.parametrize(("seats", "admitted"), [(2, 0), (3, 1), (4, 2)])
def test_seats_are_held_by_decodes_and_taken_by_each_prompt(seats: int, admitted: int) -> None:
    blocked = BlockedBy.SEATS if admitted < 2 else None
    assert plan([1, 1], decoding=2, seats=seats) == ([(0, 1), (1, 1)][:admitted], blocked)


def test_it_is_registered_by_name() -> None:
    assert POLICIES["whole_prompt"] is whole_prompt
