"""The prefix cache: who finds what, what it costs, and what is evicted first. Blocks of four."""

import math

from s11 import EngineLimits, Request
from s11.plan import PrefillSlice, VictimOrder
from s11.prefix_cache import PrefixCachingPool


def asked(
    name: str,
    prompt: int,
    group: str | None = None,
    shared: int = 0,
    *,
    continues: str | None = None,
) -> Request:
    return Request(
        request_id=name,
        prompt_tokens=prompt,
        output_tokens=5,
        shared_group=group,
        shared_tokens=shared,
        continues=continues,
    )


def pool(*requests: Request, blocks: int | None = None, gate: bool = False) -> PrefixCachingPool:
    limits = EngineLimits(
        kv_blocks=blocks, block_size=4, prefix_caching=True, reserve_full_prompt=gate
    )
    return PrefixCachingPool(limits, [request.prompt_tokens for request in requests], requests)


def serve(made: PrefixCachingPool, request: int) -> int:
    """Admit a request with its whole prompt; return its hits. It holds its blocks."""
    hits = made.cached_tokens(request)
    assert made.admit(request, hits, made.known_tokens[request] - hits)
    return hits


def test_only_whole_blocks_of_what_is_shared_are_found() -> None:
    """Ten shared tokens are two whole blocks; the third is each one's own."""
    made = pool(asked("a", 12, "g", 10), asked("b", 12, "g", 10), asked("c", 12))
    assert [serve(made, request) for request in range(3)] == [0, 8, 0]
    assert made.held_blocks == 3 + 1 + 3


def test_at_least_one_token_is_computed() -> None:
    """Eight tokens are two whole blocks, but the last is left to compute; nine find both."""
    made = pool(asked("a", 8, "g", 8), asked("b", 8, "g", 8), asked("c", 9, "g", 8))
    assert [serve(made, request) for request in range(3)] == [0, 4, 8]


def test_a_longer_member_extends_a_shorter_one() -> None:
    made = pool(asked("a", 9, "g", 9), asked("b", 20, "g", 20), asked("c", 21, "g", 20))
    assert [serve(made, request) for request in range(3)] == [0, 8, 20]


def test_a_block_is_found_as_soon_as_it_is_planned() -> None:
    """a's first slice fills one block, the next two more; b comes between."""
    made = pool(asked("a", 13, "g", 13), asked("b", 13, "g", 13), asked("c", 13, "g", 13))
    assert made.admit(0, 0, 5)
    assert made.cached_tokens(1) == 4
    made.hold([PrefillSlice(0, 8)], VictimOrder.ADMISSION)
    assert made.cached_tokens(1) == 12


def test_what_is_given_back_is_found_until_it_is_needed_and_the_tail_goes_first() -> None:
    """a's three blocks fill the pool. b needs one, which evicts the third; then c's hit of two
    is idle and leaves nothing for its own block, until b is done."""
    made = pool(asked("a", 12, "g", 12), asked("b", 3), asked("c", 13, "g", 12), blocks=3)
    serve(made, 0)
    made.release(0)
    assert made.cached_tokens(2) == 12
    serve(made, 1)
    assert made.cached_tokens(2) == 8
    assert not made.admit(2, 8, 5)  # two new ones; one free beside the two idle hits: none
    made.release(1)
    assert made.cached_tokens(2) == 8
    assert not made.admit(2, 8, 5)
    assert made.admit(2, 8, 4)


def test_a_hit_that_someone_holds_costs_nothing() -> None:
    made = pool(asked("a", 8, "g", 8), asked("b", 9, "g", 8), blocks=3)
    serve(made, 0)
    assert made.free_blocks == 1
    assert serve(made, 1) == 8
    assert (made.free_blocks, made.held_blocks) == (0, 3)
    made.release(0)  # b holds both of its blocks still
    assert (made.free_blocks, made.held_blocks) == (0, 3)
    made.release(1)
    assert (made.free_blocks, made.held_blocks) == (3, 0)


def test_the_longest_unused_is_evicted_first() -> None:
    """a is given back before b, so a's block goes for c, and b's is still found."""
    requests = asked("a", 4, "g", 4), asked("b", 4, "h", 4), asked("c", 4)
    made = pool(*requests, asked("d", 5, "g", 4), asked("e", 5, "h", 4), blocks=2)
    serve(made, 0)
    serve(made, 1)
    made.release(0)
    made.release(1)
    serve(made, 2)
    assert (made.cached_tokens(3), made.cached_tokens(4)) == (0, 4)


def test_a_hit_makes_a_block_the_latest_used() -> None:
    requests = asked("a", 4, "g", 4), asked("b", 4, "h", 4), asked("c", 5, "g", 4), asked("d", 4)
    made = pool(*requests, asked("e", 5, "g", 4), asked("f", 5, "h", 4), blocks=3)
    for request in (0, 1):
        serve(made, request)
        made.release(request)
    assert serve(made, 2) == 4
    made.release(2)  # its own block, not full, then a's
    serve(made, 3)  # never-used blocks are gone: the front is b's
    assert (made.cached_tokens(4), made.cached_tokens(5)) == (4, 0)


def test_what_a_decode_filled_is_found_by_who_continues() -> None:
    """a: three tokens and five outputs, of which four are computed: seven tokens, one block."""
    made = pool(asked("a", 3), asked("b", 9, continues="a"))
    serve(made, 0)
    made.begin_decoding(0)
    assert made.cached_tokens(1) == 0
    made.take_decode_steps(1)
    assert made.cached_tokens(1) == 4  # while a still runs
    made.take_decode_steps(3)
    made.release(0)
    assert made.cached_tokens(1) == 4


def test_who_continues_a_member_of_a_group_has_the_groups_beginning() -> None:
    requests = asked("a", 9, "g", 8), asked("b", 16, continues="a"), asked("c", 9, "g", 8)
    made = pool(*requests)
    serve(made, 2)
    assert made.cached_tokens(1) == 8


def test_the_gate_counts_hits_out_and_idle_ones_in() -> None:
    """b: nine tokens are three blocks, two of them hits; of three free ones two are those hits."""
    made = pool(asked("a", 8, "g", 8), asked("b", 12, "g", 8), blocks=3, gate=True)
    serve(made, 0)
    made.release(0)
    assert made.admit(1, 8, 1)
    assert made.free_blocks == 0
    made = pool(asked("a", 8, "g", 8), asked("b", 13, "g", 8), blocks=3, gate=True)
    serve(made, 0)
    made.release(0)
    assert not made.admit(1, 8, 1)


def test_a_conversation_of_a_thousand_turns_finds_all_that_was_said() -> None:
    """Each turn: the one before and its five outputs, and three tokens more; a block of four is
    computed when its turn's last output is not part of it."""
    turns = [asked("0", 3)]
    for number in range(1, 1_200):
        turns.append(asked(str(number), 3 + 8 * number, continues=str(number - 1)))
    made = pool(*turns)
    for turn in range(1_200):
        hits = serve(made, turn)
        # All computed of the turn before: its prompt and four of five outputs, in whole blocks.
        assert hits == (0 if turn == 0 else (turns[turn - 1].prompt_tokens + 4) // 4 * 4)
        made.begin_decoding(turn)
        made.take_decode_steps(4)
        made.release(turn)


def test_two_that_continue_the_same_do_not_share_their_own_words() -> None:
    turns = asked("a", 8), asked("b", 20, continues="a"), asked("c", 20, continues="a")
    made = pool(*turns, asked("d", 30, continues="b"), asked("e", 30, continues="c"))
    for turn in range(3):
        serve(made, turn)
    # Thirteen tokens of a are three blocks; three more of the 25 are b's and c's own.
    assert list(made.texts.parts(3)) == [(3, 0), (6, 1), (math.inf, 3)]
    assert list(made.texts.parts(4)) == [(3, 0), (6, 2), (math.inf, 4)]
    assert [made.cached_tokens(3), made.cached_tokens(4)] == [20, 20]
