"""What became of each block, worked out by hand in blocks of 4 tokens; then what always holds."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from s11 import Request, Workload, simulate
from s11.prefix_blocks import BlockKind, admitted_blocks
from s11.prefix_workloads import conversation, shared_system_prompt
from tests.prefix_runs import vllm

# H hit, n new, w not whole, l last token, y not yet, e evicted, o outputs
SIGNS = dict(zip(BlockKind, "Hnwlyeo", strict=True))


def rows(experiment):
    return admitted_blocks(experiment, simulate(experiment))


def drawn(experiment):
    return ["".join(SIGNS[BlockKind(kind)] for kind in row.kinds) for row in rows(experiment)]


def prompts(count, *, tokens, gap=1000.0, outputs=1, texts=1):
    return shared_system_prompt(
        requests=count,
        shared_tokens=tokens,
        own_tokens=0,
        output_tokens=outputs,
        gap_ms=gap,
        system_prompts=texts,
    )


def test_a_turn_hits_the_blocks_of_prompt_and_answer():
    talk = conversation(turns=3, system_tokens=8, user_tokens=4, answer_tokens=5, gap_ms=1000)
    # Prompts of 12, 21, 30; 16, 25 and 34 tokens are computed in the end. Turn 2 finds the 16 in
    # 4 whole blocks; turn 3 finds 24 of the 25 in 6, and the 25th alone in a seventh.
    assert drawn(vllm(talk, block_size=4)) == ["nnno", "HHHHnno", "HHHHHHwno"]
    first, second, third = rows(vllm(talk, block_size=4))
    assert [row.hit_tokens for row in (first, second, third)] == [0, 16, 24]
    assert [row.known_tokens for row in (first, second, third)] == [12, 21, 30]
    assert third.tokens_again(BlockKind.NOT_WHOLE) == 1
    assert third.runs() == [
        (BlockKind.HIT, 0, 6),
        (BlockKind.NOT_WHOLE, 6, 7),
        (BlockKind.NEW, 7, 8),
        (BlockKind.OUTPUT, 8, 9),
    ]


def test_whole_multiple_of_the_block_size_computes_one_block_again():
    assert drawn(vllm(prompts(2, tokens=8), block_size=4)) == ["nn", "Hl"]
    (_, again) = rows(vllm(prompts(2, tokens=8), block_size=4))
    assert again.tokens_again(BlockKind.LAST_TOKEN) == 4
    # One token more, and both whole blocks are hits.
    assert drawn(vllm(prompts(2, tokens=9), block_size=4)) == ["nnn", "HHw"]


def test_text_of_ones_own_is_new():
    own = shared_system_prompt(
        requests=2, shared_tokens=6, own_tokens=4, output_tokens=1, gap_ms=1000
    )
    # Tokens 4 and 5 are in common, but their block is not.
    assert drawn(vllm(own, block_size=4)) == ["nnn", "Hwn"]


def test_in_the_same_step_a_hit_ends_where_the_chunk_ahead_ends():
    together = prompts(3, tokens=12, gap=0.0)
    # Chunks of one block: the first fills block 0, the second hits it and fills block 1,
    # the third hits both; nobody has come to block 2.
    assert drawn(vllm(together, block_size=4, chunk=4)) == ["nnn", "Hyy", "HHy"]
    # Whole prompts: the first fills all three; two may be hit.
    assert drawn(vllm(together, block_size=4)) == ["nnn", "HHl", "HHl"]


def test_evicted_blocks_are_told_from_blocks_that_must_be_computed():
    # Two texts of 2 whole blocks and a token; a pool of 4. A takes 3 and gives back a2, a1, a0 in
    # this order. B takes the unused one, then a2 and a1. A comes again and finds a0 alone.
    turns = prompts(3, tokens=9, texts=2)
    assert drawn(vllm(turns, block_size=4, kv_blocks=4)) == ["nnn", "nnn", "Hew"]
    assert drawn(vllm(turns, block_size=4)) == ["nnn", "nnn", "HHw"]
    evicted = rows(vllm(turns, block_size=4, kv_blocks=4))[-1]
    assert evicted.tokens_again(BlockKind.EVICTED) == 4


def test_a_preempted_request_comes_again_in_a_row_of_its_own():
    # 7 tokens and 6 outputs each need 12 tokens, 3 blocks, of a pool of 4. When the first needs its
    # third, the second has computed 8 tokens, 2 blocks; it loses them, the tail to the first.
    # Then it knows 9 tokens, hits its block 0, and computes 1 again and its ninth token.
    pair = Workload(
        requests=tuple(
            Request(request_id=name, prompt_tokens=7, output_tokens=6) for name in ("a", "b")
        )
    )
    experiment = vllm(pair, block_size=4, kv_blocks=4)
    assert drawn(experiment) == ["nno", "nn", "Hen"]
    first, second, again = rows(experiment)
    assert [row.request for row in (first, second, again)] == [0, 1, 1]
    assert [row.resumed for row in (first, second, again)] == [False, False, True]
    assert [row.held_tokens for row in (first, second, again)] == [12, 8, 12]
    assert again.known_tokens == 9


def test_nothing_arrives_nothing_is_drawn():
    assert rows(vllm(Workload(requests=()), block_size=4)) == ()


LENGTHS = st.integers(1, 40)


@st.composite
def loads(draw):
    """Conversations and groups that overlap in time, in pools that are ample or tight."""
    gap = draw(st.sampled_from([0.0, 7.0, 30.0, 200.0]))
    if draw(st.booleans()):
        workload = conversation(
            turns=draw(st.integers(1, 3)),
            system_tokens=draw(st.integers(0, 30)),
            user_tokens=draw(LENGTHS),
            answer_tokens=draw(st.integers(1, 12)),
            gap_ms=gap,
            conversations=draw(st.integers(1, 3)),
            streaming_users=draw(st.integers(0, 2)),
        )
    else:
        workload = shared_system_prompt(
            requests=draw(st.integers(1, 6)),
            shared_tokens=draw(LENGTHS),
            own_tokens=draw(st.integers(0, 20)),
            output_tokens=draw(st.integers(1, 12)),
            gap_ms=gap,
            system_prompts=draw(st.integers(1, 3)),
        )
    size = draw(st.sampled_from([1, 2, 4, 16]))
    chunk = draw(st.sampled_from([None, 1, 5, 16]))
    longest = max(r.prompt_tokens + r.output_tokens for r in workload.requests)
    spare = draw(st.one_of(st.none(), st.integers(0, 20)))
    pool = None if spare is None else -(-longest // size) + spare
    return vllm(workload, chunk=chunk, block_size=size, kv_blocks=pool)


@given(experiment=loads())
def test_rows_agree_with_the_run(experiment):
    result = simulate(experiment)
    found = admitted_blocks(experiment, result)
    size = experiment.limits.block_size
    np.testing.assert_array_equal([row.request for row in found], result.admissions.request)
    for row, cached in zip(found, result.admissions.cached_tokens, strict=True):
        hits = row.count(BlockKind.HIT)
        assert hits * size == cached == row.hit_tokens
        assert np.all(row.kinds[:hits] == BlockKind.HIT)
        assert len(row.kinds) == -(-row.held_tokens // size)
        assert row.hit_tokens <= row.computed_before <= row.known_tokens
        if experiment.limits.kv_blocks is None:  # then nothing is ever evicted
            assert row.count(BlockKind.EVICTED) == 0
            most = min(row.computed_before // size, (row.known_tokens - 1) // size)
            assert hits == most
