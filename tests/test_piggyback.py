"""What a step's tokens cost: limits, turning points, rides, shares; by arithmetic."""

import itertools

import numpy as np
import pytest

from s11.catalog import GPUS, MODELS, Deployment
from s11.costs import RooflineCost
from s11.costs.constants import constants_of
from s11.costs.roofline import StepParts
from s11.piggyback import (
    FREE_SHARE,
    MOST_TOKENS,
    LinearTimes,
    datasheet_tokens,
    linear_times,
    linear_weight_bytes,
    quantise_ms,
    step_curve,
    tile_steps,
)
from s11.piggyback_rides import (
    MOST_DECODES,
    Ride,
    attention_ms,
    chunk_share,
    decode_share,
    ride,
    ride_by_decodes,
)


def machine(model="llama-3.1-8b", gpu="h100", tensor_parallel=1, precision="bf16"):
    return Deployment(
        model=MODELS[model], gpu=gpu, tensor_parallel=tensor_parallel, precision=precision
    )


MACHINES = [
    machine(gpu=gpu, precision=precision, tensor_parallel=size)
    for gpu, precision, size in itertools.product(GPUS, ("bf16", "fp8"), (1, 4))
]
SOME = [
    machine(),
    machine(precision="fp8"),
    machine(gpu="a100-80", precision="fp8"),
    machine("llama-2-70b", tensor_parallel=4),
    machine("llama-13b", "a6000"),
    machine("phi-2", "l4"),
]


def name(deployment):
    size, precision = deployment.tensor_parallel, deployment.precision
    return f"{deployment.model.name}-{size}x{deployment.gpu}-{precision}"


def parts(*, linear, attention, rest):
    """Three steps' parts by hand; attention is that of decodes."""
    zero = np.zeros(3)
    return StepParts(
        linear_ms=np.array(linear, float),
        elementwise_ms=zero,
        all_reduce_ms=zero,
        lm_head_ms=zero,
        prefill_attention_ms=zero,
        decode_attention_ms=np.array(attention, float),
        host_ms=np.array(rest, float),
    )


def test_weights_by_hand():
    # Llama-3.1-8B, a layer: 4096 x (4096 + 2 x 1024) + 4096 x 4096 + 3 x 4096 x 14336 =
    # 218,103,808 weights; 32 layers of 2 bytes.
    assert linear_weight_bytes(machine()) == 32 * 218_103_808 * 2
    assert linear_weight_bytes(machine(precision="fp8")) == 32 * 218_103_808
    assert linear_weight_bytes(machine(tensor_parallel=4)) == 32 * 218_103_808 * 2 // 4


def test_rule_of_thumb_by_hand():
    # 989 TFLOP/s over 3.35 TB/s; a weight of 2 bytes takes 2 FLOP for each token.
    assert datasheet_tokens(machine()) == pytest.approx(989 / 3.35)
    # Twice the arithmetic on half the bytes.
    assert datasheet_tokens(machine(precision="fp8")) == pytest.approx(989 / 3.35)
    # No fp8 arithmetic: the same on half the bytes.
    assert datasheet_tokens(machine(gpu="a100-80", precision="fp8")) == pytest.approx(
        312 / 2.039 / 2
    )


def test_memory_time_is_bytes_over_bandwidth():
    constants = constants_of("h100", "bf16").gemm
    memory = linear_times(machine(), np.array([1, 2, 1001])).memory_ms
    per_ms = 3.35e9 * constants.memory_efficiency
    # Of a token and layer, read 4096 + 4096 + 4096 + 14336, written 6144 + 4096 + 28672 + 4096.
    token_bytes = 32 * 2 * (26_624 + 43_008)
    assert memory[0] * per_ms == pytest.approx(32 * 218_103_808 * 2 + token_bytes)
    assert (memory[2] - memory[0]) * per_ms == pytest.approx(1000 * token_bytes)


@pytest.mark.parametrize("deployment", MACHINES, ids=name)
def test_products_take_longer_than_either_limit(deployment):
    times = linear_times(deployment, np.array([1, 17, 128, 129, 257, 1000, 4096, MOST_TOKENS]))
    assert np.all(times.linear_ms > np.maximum(times.compute_ms, times.memory_ms))


@pytest.mark.parametrize("deployment", SOME, ids=name)
def test_curve_is_the_cost_models_own(deployment):
    curve = step_curve(deployment, 2048)
    tokens = curve.linear.tokens
    assert (int(tokens[0]), int(tokens[-1])) == (1, MOST_TOKENS)
    assert np.all(np.diff(tokens) > 0)
    np.testing.assert_allclose(curve.parts.linear_ms, curve.linear.linear_ms)
    cost, total = RooflineCost(deployment=deployment), curve.parts.total_ms()
    for place in (0, 64, len(tokens) // 2, len(tokens) - 1):
        own = int(tokens[place])
        step_ms = cost.step_ms(prefill_tokens=own, decode_tokens=0, slices=[(2048, own)])
        assert total[place] == pytest.approx(step_ms)


@pytest.mark.parametrize("deployment", MACHINES, ids=name)
def test_turning_point_is_where_the_limits_cross_for_good(deployment):
    curve = step_curve(deployment, 0)
    turn = curve.turning_tokens
    if turn is None:
        assert curve.linear.compute_ms[-1] < curve.linear.memory_ms[-1]
        return
    later = curve.linear.tokens >= turn
    assert np.all(curve.linear.compute_ms[later] >= curve.linear.memory_ms[later])
    at = linear_times(deployment, np.array([max(1, turn - 1), turn]))
    assert at.compute_ms[1] >= at.memory_ms[1]
    if turn > 1:
        assert at.compute_ms[0] < at.memory_ms[0]


@pytest.mark.parametrize("deployment", SOME, ids=name)
def test_free_tokens_cost_little_and_the_next_does_not(deployment):
    free = step_curve(deployment, 0).free_tokens
    one, last, after = linear_times(deployment, np.array([1, free, free + 1])).linear_ms
    assert last <= (1 + FREE_SHARE) * one < after


def test_quantising_is_of_fp8_products_alone():
    assert quantise_ms(machine(), 64) == 0
    assert quantise_ms(machine(gpu="a100-80", precision="fp8"), 64) == 0  # it multiplies in bf16
    one, many = (quantise_ms(machine(precision="fp8"), tokens) for tokens in (1, 64))
    assert 0 < many == pytest.approx(64 * one)


def test_jumps_of_a_table_by_hand():
    times = LinearTimes(
        tokens=np.arange(3, 8),
        compute_ms=np.zeros(5),
        memory_ms=np.zeros(5),
        linear_ms=np.array([1.0, 1.5, 1.25, 4.0, 4.0]),
    )
    assert times.jump_ms(3) == 0.5
    assert times.jump_ms(4) == -0.25
    assert times.largest_jump() == 5
    assert times.jump_ms(5) == 2.75


def test_every_single_count_around_an_edge():
    steps = tile_steps(machine(), 256)
    assert steps.tokens.tolist() == list(range(128, 385))
    # A tile more is computed for the row after the edge.
    assert steps.jump_ms(256) > 0
    assert np.diff(steps.compute_ms)[256 - 128] == steps.compute_ms[129] - steps.compute_ms[128]


def test_a_ride_by_hand():
    told = Ride(
        prefill_tokens=100,
        start_token=0,
        decodes=4,
        context_tokens=10,
        parts=parts(linear=[20, 21, 9], attention=[0, 1, 1], rest=[2, 2, 2]),
        edge_tokens=101,
        edge_ms=0.5,
    )
    assert told.step_ms == (22, 24, 12)
    assert (told.added_ms, told.aboard_ms, told.alone_ms, told.factor) == (2, 0.5, 3, 6)
    assert told.added_by("linear_ms") == 1
    assert told.added_by("decode_attention_ms") == 1
    free = Ride(
        prefill_tokens=100,
        start_token=0,
        decodes=4,
        context_tokens=10,
        parts=parts(linear=[20, 18, 9], attention=[0, 1, 1], rest=[2, 2, 2]),
        edge_tokens=101,
        edge_ms=0.5,
    )
    assert (free.added_ms, free.factor) == (-1, None)


@pytest.mark.parametrize("deployment", SOME, ids=name)
def test_a_ride_is_three_steps_of_the_cost_model(deployment):
    told = ride(deployment, prefill_tokens=1021, start_token=512, decodes=3, context_tokens=1024)
    cost = RooflineCost(deployment=deployment)
    slices, contexts = [(512, 1021)], 3 * 1024
    assert told.step_ms == pytest.approx(
        (
            cost.step_ms(prefill_tokens=1021, decode_tokens=0, slices=slices),
            cost.step_ms(
                prefill_tokens=1021, decode_tokens=3, slices=slices, decode_context_tokens=contexts
            ),
            cost.step_ms(prefill_tokens=0, decode_tokens=3, decode_context_tokens=contexts),
        )
    )
    assert 1021 <= told.edge_tokens < 1024
    three = np.diff(linear_times(deployment, np.arange(1021, 1025)).linear_ms)
    assert told.edge_ms == pytest.approx(three.max())
    after = np.diff(linear_times(deployment, np.array([1024, 1025])).linear_ms)
    assert told.next_ms == pytest.approx(after[0])
    assert told.quantise_ms == pytest.approx(quantise_ms(deployment, 3), abs=1e-9)


def test_decodes_by_their_number_agree_with_each_ride():
    many = ride_by_decodes(machine(), prefill_tokens=500, start_token=0, context_tokens=2048)
    assert (int(many.decodes[0]), int(many.decodes[-1])) == (1, MOST_DECODES)
    rows = linear_times(machine(), np.arange(500, 500 + MOST_DECODES + 1)).linear_ms
    assert many.edge_decodes == np.argmax(np.diff(rows) / np.arange(1, MOST_DECODES + 1))
    assert many.edge_ms == pytest.approx(np.diff(rows)[many.edge_decodes])
    assert many.usual_ms == pytest.approx((rows[-1] - rows[0]) / MOST_DECODES)
    assert {many.edge_decodes, many.edge_decodes + 1} <= set(many.decodes.tolist())
    assert many.at(MOST_DECODES) == (many.aboard_ms[-1], many.alone_ms[-1])
    for place in (0, 20, len(many.decodes) - 1):
        told = ride(
            machine(),
            prefill_tokens=500,
            start_token=0,
            decodes=int(many.decodes[place]),
            context_tokens=2048,
        )
        assert many.aboard_ms[place] == pytest.approx(told.aboard_ms)
        assert many.alone_ms[place] == pytest.approx(told.alone_ms)


@pytest.mark.parametrize("deployment", SOME, ids=name)
def test_shares_add_up_and_half_is_where_they_say(deployment):
    for share in (chunk_share(deployment, 512), decode_share(deployment, 32)):
        assert np.all((share.attention > 0) & (share.linear > 0))
        assert np.all(share.attention + share.linear < 1)
        assert share.attention[-1] > share.attention[0]
        half = share.half_tokens
        if half is None:
            assert np.all(share.attention <= 0.5)
        else:
            before = share.context_tokens < half
            assert np.all(share.attention[before] <= 0.5)
            assert share.attention[share.context_tokens >= half].max() > 0.5


def test_half_is_exact_to_the_token():
    half = decode_share(machine(), 8).half_tokens
    assert half is not None
    cost = RooflineCost(deployment=machine())

    def share_at(context):
        attention = cost.kernels.decode_attention_ms(8, 8 * context)
        return attention / cost.step_ms(
            prefill_tokens=0, decode_tokens=8, decode_context_tokens=8 * context
        )

    assert share_at(half - 1) <= 0.5 < share_at(half)


def test_attention_is_of_slices_and_decodes():
    told = ride(machine(), prefill_tokens=64, start_token=0, decodes=1, context_tokens=64)
    one = told.parts
    np.testing.assert_array_equal(
        attention_ms(one), one.prefill_attention_ms + one.decode_attention_ms
    )
    assert one.prefill_attention_ms[2] == 0
    assert one.decode_attention_ms[0] == 0


@pytest.mark.parametrize(
    ("ask", "field"),
    [
        (lambda: step_curve(machine(), -1), "start_token"),
        (lambda: tile_steps(machine(), 1), "edge_tokens"),
        (lambda: chunk_share(machine(), MOST_TOKENS + 1), "chunk_tokens"),
        (lambda: decode_share(machine(), MOST_DECODES + 1), "decodes"),
        (
            lambda: ride(machine(), prefill_tokens=0, start_token=0, decodes=1, context_tokens=0),
            "prefill_tokens",
        ),
    ],
)
def test_out_of_range_is_refused_by_name(ask, field):
    with pytest.raises(ValueError, match=f"^{field}: "):
        ask()
