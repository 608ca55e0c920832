"""The block pool: counts by hand, and the same counts from tokens."""

import random

import pytest

from s11 import EngineLimits
from s11.kv_blocks import BlockPool
from s11.plan import PrefillSlice, VictimOrder


def pool(blocks: int | None, *, size: int = 4, known: tuple[int, ...] = (99,) * 9) -> BlockPool:
    return BlockPool(EngineLimits(kv_blocks=blocks, block_size=size), known)


def test_a_newcomer_takes_the_blocks_of_its_first_slice() -> None:
    """Nine tokens in blocks of four are three; five are left, so five tokens fit and 21 do not."""
    made = pool(8)
    assert made.admit(0, 0, 9)
    assert (made.free_blocks, made.held_blocks) == (5, 3)
    assert not made.admit(1, 0, 21)
    assert (made.free_blocks, made.held_blocks) == (5, 3)
    assert made.admit(1, 0, 20)
    assert made.free_blocks == 0


def test_the_gate_asks_for_all_that_is_known_and_takes_only_the_slice() -> None:
    limits = EngineLimits(kv_blocks=4, block_size=4, reserve_full_prompt=True)
    made = BlockPool(limits, (17, 16))
    assert not made.admit(0, 0, 4)
    assert made.admit(1, 0, 4)
    assert made.free_blocks == 3


def test_a_decode_begins_a_block_every_block_size_steps() -> None:
    """Six tokens are two blocks with two places left: steps 3, 7, 11 begin a block."""
    made = pool(9)
    made.admit(0, 0, 6)
    made.begin_decoding(0)
    held = []
    for _ in range(11):
        assert made.hold((), VictimOrder.ADMISSION) == ()
        held.append(made.held_blocks)
    assert held == [2, 2, 3, 3, 3, 3, 4, 4, 4, 4, 5]
    assert made.tokens_held(0) == 17
    made.release(0)
    assert (made.free_blocks, made.held_blocks, made.boundaries) == (9, 0, [0] * 4)


def test_many_steps_at_once_take_what_they_take_one_by_one() -> None:
    draw = random.Random(1)
    for _ in range(200):
        size, one, many = draw.randrange(1, 6), *(pool(500, size=1) for _ in range(2))
        one, many = pool(500, size=size), pool(500, size=size)
        for request in range(draw.randrange(1, 5)):
            tokens = draw.randrange(1, 12)
            for made in (one, many):
                made.admit(request, 0, tokens)
                made.begin_decoding(request)
            if draw.random() < 0.5:
                one.take_decode_steps(1)
                many.take_decode_steps(1)
        steps = draw.randrange(1, 20)
        singly = []
        for _ in range(steps):
            one.hold((), VictimOrder.ADMISSION)
            singly.append(one.held_blocks)
        assert many.take_decode_steps(steps) == singly
        # Counted again from the tokens that each holds.
        expected = sum(-(-one.tokens_held(request) // size) for request in one.tokens)
        assert one.held_blocks == expected


def test_the_steps_that_surely_fit_do_and_the_next_period_may_not() -> None:
    """Three decodes, seven blocks free: two whole periods of four steps take six."""
    made = pool(10)
    for request in range(3):
        made.admit(request, 0, 4)
        made.begin_decoding(request)
    assert made.free_blocks == 7
    assert made.surely_fit() == 8
    made.take_decode_steps(8)
    assert made.free_blocks == 1
    assert made.surely_fit() == 0  # the ninth step wants three
    assert pool(5).surely_fit() == float("inf")
    assert pool(None).surely_fit() == float("inf")


def short_of_blocks(order: VictimOrder) -> tuple[list[int], BlockPool]:
    """Six blocks of four. 0 has a full block and goes on with four tokens; 1 and 2 decode at a
    boundary, with two blocks each: three are needed, one is free."""
    made = pool(6)
    made.admit(0, 0, 4)
    for request in (1, 2):
        made.admit(request, 0, 8)
        made.begin_decoding(request)
    assert made.free_blocks == 1
    return list(made.hold([PrefillSlice(0, 4)], order)), made


def test_in_order_of_admission_the_latest_goes() -> None:
    """0 takes the free block, 1 needs one: 2 gives two back."""
    victims, made = short_of_blocks(VictimOrder.ADMISSION)
    assert victims == [2]
    assert [made.tokens_held(request) for request in (0, 1)] == [8, 9]
    assert (made.held_blocks, made.free_blocks) == (5, 1)


def test_with_decodes_first_the_prefill_goes() -> None:
    """1 takes the free block, 2 needs one: 0, the last in that order, gives one back."""
    victims, made = short_of_blocks(VictimOrder.DECODES_FIRST)
    assert victims == [0]
    assert [made.tokens_held(request) for request in (1, 2)] == [9, 9]
    assert (made.held_blocks, made.free_blocks) == (6, 0)


def test_who_meets_itself_at_the_end_of_the_line_goes() -> None:
    made = pool(3)
    made.admit(0, 0, 8)
    made.begin_decoding(0)
    made.admit(1, 0, 4)
    assert made.hold([PrefillSlice(1, 5)], VictimOrder.ADMISSION) == [1]
    # 1 went for 0's ninth token, which needs a block; nothing of 1 is left.
    assert (made.held_blocks, made.tokens_held(0), 1 in made.tokens) == (3, 9, False)


def test_decodes_that_stand_still_need_no_blocks_but_can_be_victims() -> None:
    made = pool(3)
    made.admit(0, 0, 4)
    made.admit(1, 0, 8)
    made.begin_decoding(1)
    assert made.hold([PrefillSlice(0, 4)], VictimOrder.ADMISSION, decodes=False) == [1]
    assert made.tokens_held(0) == 8


@pytest.mark.parametrize("order", VictimOrder)
def test_where_all_fits_nobody_goes(order: VictimOrder) -> None:
    made = pool(6)
    made.admit(0, 0, 4)
    made.begin_decoding(0)
    made.admit(1, 0, 3)
    assert made.hold([PrefillSlice(1, 5)], order) == ()
    assert made.held_blocks == 2 + 2
