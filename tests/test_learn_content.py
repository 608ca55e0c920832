"""The tour's numbers: the chapter's cost model by hand (4.0 + 0.018 a prefill + 0.05 a decode)."""

import math

import numpy as np
import pytest

from s11.figures.learn_keys import KeysInfo
from s11.learn_budget import budget_info, stall_free
from s11.learn_choice import choice_info, choose
from s11.learn_cost import cost, cost_info
from s11.learn_engines import ENGINES, engine, served, shown_by
from s11.learn_freeze import freeze
from s11.learn_keys import divide, keys_info
from s11.learn_mask import look
from s11.learn_next import next_up, online_softmax, workers_info
from s11.learn_orders import ORDERS, queue_info, queued, reorder
from s11.learn_positions import place, positions_info
from s11.learn_ride import MACHINE, mix, riding
from s11.piggyback import linear_weight_bytes
from s11.presets import PRESETS


def words(shown):
    return " ".join(shown.sentences)


def test_freeze_is_the_whole_prompts_step():
    shown = freeze(8192)
    # 4 + 0.018 · 8,192 + 0.05 · 24 = 152.656; 4 + 0.05 · 24 = 5.2; 152.656 / 5.2 = 29.4
    assert shown.columns["duration_ms"] == [5.2, 5.2, 152.656, 5.2, 5.2, 5.2]
    assert "24 streams get a token every 5.2 ms" in words(shown)
    assert "every stream waits 153 ms: 29× its usual gap" in words(shown)
    assert shown.link.parameters == {"prompt": "8192", "chunking": "false"}


# Chats: 192 tokens in 7.456 ms, then 4.15 ms a token; the step that begins before the prompts
# arrive at 20 ms ends at 24.056.
ORDERS_BY_HAND = {
    # 151.606 with three decodes, then 512 tokens and four decodes: 13.416; arrival to 189.078
    "First come": (151.606, 169.078, "short"),
    # 13.366 for the short ones and three decodes, then the long one with five
    "Shortest first": (151.706, 151.706, "short"),
    # 151.456 and 13.216 in steps of their own, then 4.3 for six decodes
    "Prompts first": (151.456, 168.972, "chat"),
    # chats end at 7.456 + 23 · 4.15, then 151.456, three decodes of the long one at 4.05, 13.216
    "Streams first": (151.456, 259.728, "short"),
}


@pytest.mark.parametrize("name", ORDERS)
def test_every_order_waits_for_the_whole_pass(name):
    pass_ms, longest_ms, who = ORDERS_BY_HAND[name]
    info = queue_info(name)
    assert info.pass_ms == pytest.approx(pass_ms)
    assert info.longest.longest_ms == pytest.approx(longest_ms)
    assert info.longest.name.startswith(who)
    assert info.longest.longest_ms >= info.pass_ms
    experiment, _ = queued(name)
    assert not experiment.chunking
    assert f"up to {longest_ms:.0f} ms" in words(reorder(name))
    assert "takes 151 ms wherever it stands" in words(reorder(name))
    assert "is the longest wait under 152 ms" in words(reorder(name))


@pytest.mark.parametrize(("chunk_tokens", "chunks"), [(7, 19), (50, 3), (128, 1)])
def test_cut_prompt_leaves_the_same_bits(chunk_tokens, chunks):
    info = keys_info(chunk_tokens)
    assert (info.differing, info.chunks) == (0, chunks)
    assert info.numbers == 2 * 3 * 128 * 2 * 32  # K and V, layers, tokens, KV heads, dimensions
    assert "all 49,152 numbers of the KV cache have the same bits" in words(divide(chunk_tokens))
    assert info.plain_difference < 1e-4


def test_difference_would_be_told():
    one = np.zeros((2, 4), np.float32)
    info = KeysInfo(
        whole=one,
        chunked=one + 1,
        chunk_tokens=3,
        chunks=2,
        numbers=8,
        differing=8,
        plain_difference=0.0,
        layers=1,
    )
    assert info.title == "8 numbers differ"
    assert info.sizes == "2 chunks of up to 3"


@pytest.mark.parametrize(
    # (512 - users) a step: 8,192 = 16 · 488 + 384; 4 + 0.018 · 488 + 0.05 · 24
    ("users", "left", "steps", "gap_ms"),
    [(24, 488, 17, 13.984), (256, 256, 32, 21.408)],
)
def test_decodes_take_theirs_first(users, left, steps, gap_ms):
    info = budget_info(users)
    assert (info.left_tokens, info.prefill_steps) == (left, steps)
    assert info.longest_gap_ms == pytest.approx(gap_ms)
    assert (info.decode_tokens == users).all()
    assert (info.decode_tokens + info.prefill_tokens).max() == 512
    assert info.title == f"{users} decodes first, {left} tokens left"
    assert f"the {left} that are left: {steps} steps compute it" in words(stall_free(users))


def test_what_eight_chunks_cost():
    info = cost_info(1024)
    assert info.whole.ttft_ms == pytest.approx(152.656)
    assert info.chunked.ttft_ms == pytest.approx(189.056)
    assert info.later_ms == pytest.approx(7 * 5.2)
    assert (info.chunked.steps, info.whole.steps) == (8, 1)
    assert info.chunked.prefill_ms == pytest.approx(info.whole.prefill_ms)
    assert info.chunked.fixed_ms == pytest.approx(8 * 4.0)
    assert info.chunked.decode_ms == pytest.approx(8 * 24 * 0.05)
    assert info.chunked.reread_tokens == 1024 * (0 + 1 + 2 + 3 + 4 + 5 + 6 + 7)
    assert info.chunked.pairs == info.whole.pairs == 8192 * 8193 // 2
    told = words(cost(1024))
    assert "7 further steps repeat the fixed cost and carry the decodes, 5.2 ms each" in told
    assert "after 189 ms instead of 153 ms" in told
    assert "28,672 tokens in all, which this cost model does not price" in told
    assert "attention computes the same 33,558,528 query-key pairs" in told
    assert "Nothing is read twice" in words(cost(8192))


def test_decodes_aboard_are_cheaper_the_fewer_they_are():
    one, few, many = (riding(decodes) for decodes in (1, 8, 128))
    assert [ride.factor for ride in (one, few, many)] == sorted(
        [ride.alone_ms / ride.aboard_ms for ride in (one, few, many)], reverse=True
    )
    assert many.alone_ms > many.aboard_ms
    # A step cannot read the weights faster than the datasheet's bandwidth.
    read_ms = 1000 * linear_weight_bytes(MACHINE) / MACHINE.hardware.hbm_bytes_per_s
    assert float(few.parts.linear_ms[2]) > read_ms
    told = words(mix(8))
    assert f"it grows from {few.step_ms[0]:.1f} ms to {few.step_ms[1]:.1f} ms" in told
    assert f"Alone, 8 decodes take a step of {few.step_ms[2]:.1f} ms" in told


def stall(point):
    return point.longest_stall_ms


def test_target_picks_the_largest_chunk():
    low, middle, high = (choice_info(target) for target in (10, 50, 200))
    assert low.largest is None
    assert stall(low.points[0]) > 10
    assert f"64 tokens already make it {stall(low.points[0]):.1f} ms" in words(choose(10))
    assert middle.largest is not None
    assert middle.largest.chunk_tokens == 1768  # the README's picture of the Chunk size page
    assert stall(middle.largest) <= 50 < stall(high.largest) <= 200
    products = {p.chunk_tokens: stall(p) * (p.ttft_ms or 0) for p in middle.points}
    assert middle.knee is not None
    assert products[middle.knee.chunk_tokens] == min(products.values())
    assert "chunks of up to 1,768 tokens" in words(choose(50))


def test_mask_is_a_block_and_a_triangle():
    told = words(look(16))
    # 8 · 16 pairs with the cache, 8 · 9 / 2 inside the chunk, of 8 · 24
    assert "first query sees 17 keys, its last 24, together 164 of 192 pairs" in told
    assert "the 36 pairs inside the chunk and hide the 128 with the cache" in told
    assert "the causal triangle of any prompt, 36 pairs" in words(look(0))


def test_positions_from_0_in_every_chunk_spoil_all_but_the_first():
    info = positions_info(64)
    assert not info.absolute.any()
    assert not info.relative[:64].any()
    assert (info.relative[64:] > 0.1).all()  # rounding is a hundred thousand times smaller
    assert info.relative.max() <= info.most
    assert "the other 192 are off by up to" in words(place(64))
    assert positions_info(256).wrong == 0
    assert "cannot catch this bug" in words(place(256))


ENGINES_BY_HAND = {
    # two steps of 16,384 - 24 tokens, then 48: 4 + 0.018 · 16,360 + 1.2
    "vLLM, large GPU": (299.68, 2 * 299.68 + 6.064),
    # 16 steps of 2,048 - 24, then 384
    "vLLM, smaller GPU": (41.632, 16 * 41.632 + 12.112),
    # four steps of 8,192 by themselves, then the decodes' own
    "SGLang": (4 * 151.456 + 5.2, 4 * 151.456),
    "TensorRT-LLM": (5.2, None),
}


@pytest.mark.parametrize("name", ENGINES)
def test_engines_as_they_come(name):
    stall_ms, ttft_ms = ENGINES_BY_HAND[name]
    preset = PRESETS[ENGINES[name]]
    metrics = shown_by(preset).metrics
    assert metrics.longest_stall_ms == pytest.approx(stall_ms)
    assert metrics.ttft_ms == (None if ttft_ms is None else pytest.approx(ttft_ms))
    assert served(preset).limits.token_budget == preset.limits.token_budget
    told = words(engine(name))
    assert told.startswith(preset.speaks_for)
    assert ("never runs" in told) == (ttft_ms is None)
    assert ("no stream gets a token" in told) == (name == "SGLang")
    assert ("within the target of 50 ms" in told) == (name == "vLLM, smaller GPU")


def test_two_workers():
    info = workers_info()
    assert (info.one_stall_ms, info.one_ttft_ms) == pytest.approx((23.632, 189.056))
    assert info.two_stall_ms == pytest.approx(5.2)
    # 8,192 tokens of 131,072 bytes at 50 GB/s, and 1 ms
    travel_ms = 8192 * 131_072 / 50e9 * 1e3 + 1
    assert info.travel_ms[1] - info.travel_ms[0] == pytest.approx(travel_ms)
    assert info.two_ttft_ms == pytest.approx(8 * (4 + 0.018 * 1024) + travel_ms)
    assert not info.decode.prefill.any()
    assert info.prefill.prefill.all()
    assert "23.6 ms here" in words(next_up("Two workers"))
    assert "KV of 1.07 GB travels 22.5 ms at 50 GB/s" in words(next_up("Two workers"))


def test_online_softmax_by_hand():
    # weights 1, 1 | 4: after two keys the sum is 2; then 2 / 4 + 1
    scores = np.array([0, 0, math.log(4)], np.float32)
    values = np.array([[6], [0], [3]], np.float32)
    info = online_softmax(scores, values, 2)
    assert info.largest.tolist() == pytest.approx([0, math.log(4)])
    assert info.denominator.tolist() == pytest.approx([2, 1.5])
    assert info.rescaled == 1
    assert info.difference < 1e-6
    assert online_softmax(scores[::-1].copy(), values[::-1].copy(), 1).rescaled == 0


def test_blocks_do_not_matter():
    several, many = (next_up(name) for name in ("Softmax, blocks of 64", "Softmax, blocks of 16"))
    assert len(several.columns["block"]) == 256 // 64
    assert len(many.columns["block"]) == 256 // 16
    last = [shown.columns["denominator_so_far"][-1] for shown in (several, many)]
    assert last[0] == pytest.approx(last[1], rel=1e-6)
    assert several.columns["largest_score_so_far"][-1] == many.columns["largest_score_so_far"][-1]
