"""The piggybacking page's specs and words: valid, white, fitting a phone, true to their infos."""

import itertools
import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.catalog import GPUS, MODELS, Deployment
from s11.costs.roofline import StepParts
from s11.figures import piggyback_words as words
from s11.figures.piggyback_curve import curve_alt, curve_figure, curve_title, linear_end
from s11.figures.piggyback_looks import machine_line, nice_above, operators
from s11.figures.piggyback_many import edge_words, many_alt, many_figure, many_title, tick_below
from s11.figures.piggyback_ride import ride_alt, ride_figure, ride_title
from s11.figures.piggyback_share import share_alt, share_figure, share_title
from s11.figures.piggyback_tiles import jump_words, tiles_alt, tiles_figure
from s11.piggyback import (
    LinearTimes,
    StepCurve,
    step_curve,
    tile_steps,
)
from s11.piggyback_rides import (
    AttentionShare,
    Ride,
    RideByDecodes,
    chunk_share,
    decode_share,
    ride,
    ride_by_decodes,
)

H100 = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")
MACHINES = {
    "H100": H100,
    "fp8": Deployment(model=MODELS["llama-3.1-8b"], gpu="h100", precision="fp8"),
    "eight A40": Deployment(model=MODELS["codellama-34b"], gpu="a40", tensor_parallel=8),
    "no fp8 arithmetic": Deployment(model=MODELS["qwen3-32b"], gpu="a100-80", precision="fp8"),
    "small": Deployment(model=MODELS["phi-2"], gpu="b200"),
}
ZERO = np.zeros(3)


def by_hand(linear, prefill=(0, 0, 0), decode=(0, 0, 0), rest=(0, 0, 0)):
    """Three steps' parts."""
    return StepParts(
        linear_ms=np.array(linear, float),
        elementwise_ms=np.array(rest, float),
        all_reduce_ms=ZERO,
        lm_head_ms=ZERO,
        prefill_attention_ms=np.array(prefill, float),
        decode_attention_ms=np.array(decode, float),
        host_ms=ZERO,
    )


RIDE = Ride(
    prefill_tokens=1021,
    start_token=0,
    decodes=3,
    context_tokens=1024,
    parts=by_hand([220, 220.6, 44], prefill=[10, 10, 0], decode=[0, 3, 3], rest=[20, 20, 3]),
    edge_tokens=1022,
    edge_ms=0.3,
)
CURVE = StepCurve(
    start_token=0,
    linear=LinearTimes(
        tokens=np.array([1, 128, 16_384]),
        compute_ms=np.array([1.0, 5.0, 640.0]),
        memory_ms=np.array([4.0, 5.0, 20.0]),
        linear_ms=np.array([5.0, 6.0, 650.0]),
    ),
    parts=by_hand([5, 6, 650], prefill=[0.5, 0.5, 100], rest=[2, 2, 50]),
    turning_tokens=128,
    free_tokens=100,
    token_ms=0.04,
)


def specs(deployment, *, chunk=992, start=0, decodes=32, context=1024, edge=256):
    curve, steps = step_curve(deployment, start), tile_steps(deployment, edge)
    told = ride(
        deployment,
        prefill_tokens=chunk,
        start_token=start,
        decodes=decodes,
        context_tokens=context,
    )
    many = ride_by_decodes(
        deployment, prefill_tokens=chunk, start_token=start, context_tokens=context
    )
    sizes = {"chunk_tokens": chunk, "decode_tokens": decodes}
    shares = chunk_share(deployment, chunk), decode_share(deployment, decodes)
    return [
        curve_figure(curve, deployment, chunk_tokens=chunk, logarithmic=True),
        curve_figure(curve, deployment, chunk_tokens=chunk, logarithmic=False),
        tiles_figure(steps, deployment, edge_tokens=edge),
        ride_figure(told, deployment),
        many_figure(many, deployment, decodes=decodes),
        share_figure(*shares, deployment, **sizes),
    ]


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    "values",
    [
        {},
        {"chunk": 16, "decodes": 1, "context": 128, "edge": 64},
        {"chunk": 16_384, "start": 131_072, "decodes": 512, "context": 131_072, "edge": 1024},
    ],
)
def test_specs_are_valid_plotly_white_and_fit_a_phone(machine, values):
    for spec in specs(MACHINES[machine], **values):
        go.Figure(spec)  # raises on any unknown name or impossible value
        assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
        json.dumps(spec["layout"]["meta"], allow_nan=False)
        title, *caption = spec["layout"]["title"]["text"].split("<br>")
        assert len(title) - len("<b></b>") <= 45
        for line in caption:
            assert len(line.split(">")[1].split("<")[0]) <= 60
        for name in ("xaxis", "yaxis"):
            assert spec["layout"][name].get("title", {}).get("text") or name == "yaxis"


def test_machine_lines_of_the_whole_catalog_fit():
    for model, gpu, precision in itertools.product(MODELS.values(), GPUS, ("bf16", "fp8")):
        line = machine_line(Deployment(model=model, gpu=gpu, precision=precision))
        assert len(line) <= 60
    a6000 = Deployment(model=MODELS["llama-13b"], gpu="a6000", tensor_parallel=2)
    assert machine_line(a6000) == "LLaMA-13B on 2 × RTX A6000 48 GB, bf16, not calibrated"


@pytest.mark.parametrize(
    ("value", "above"), [(0.9, 1.0), (1.0, 1.2), (7.9, 10.0), (99, 120.0), (203, 250.0)]
)
def test_axes_end_at_round_numbers(value, above):
    assert nice_above(value) == pytest.approx(above)


@pytest.mark.parametrize(("value", "below"), [(0.0967, 0.05), (0.2, 0.2), (1.9, 1.0), (70, 50)])
def test_log_axes_begin_at_a_tick(value, below):
    assert tick_below(value) == pytest.approx(below)


def test_operators_without_time_are_left_out():
    assert [each.name for each in operators(RIDE.parts)] == [
        "linear operators",
        "rest",
        "prefill attention",
        "decode attention",
    ]
    looks = {(each.colour, each.pattern.get("shape")) for each in operators(RIDE.parts)}
    assert len(looks) == 4


def test_curve_marks_its_turn_and_the_chunk():
    spec = curve_figure(CURVE, H100, chunk_tokens=512, logarithmic=True)
    assert {shape["x0"] for shape in spec["layout"]["shapes"]} == {128, 512}
    texts = [note["text"] for note in spec["layout"]["annotations"]]
    assert texts == ["◀ memory-bound", "compute-bound ▶", "chunk 512"]
    assert curve_title(CURVE) == "Below 128 tokens, the read is the time"
    lines = {trace["name"]: trace["y"].tolist() for trace in spec["data"]}
    assert lines["memory time"] == [4, 5, 20]
    assert lines["whole step"] == pytest.approx([7.5, 8.5, 800])


def test_linear_axis_ends_where_the_turn_is_seen():
    assert linear_end(CURVE) == 1024  # 4 x 128 is less
    spec = curve_figure(CURVE, H100, chunk_tokens=2048, logarithmic=False)
    assert spec["layout"]["xaxis"]["range"] == [0, 1024]
    assert {shape["x0"] for shape in spec["layout"]["shapes"]} == {128}  # the chunk is outside
    assert spec["data"][0]["x"].tolist() == [1, 128]


def test_axes_stay_while_the_chunk_moves():
    figures = [
        curve_figure(CURVE, H100, chunk_tokens=chunk, logarithmic=True)["layout"]
        for chunk in (16, 16_384)
    ]
    for name in ("xaxis", "yaxis"):
        assert figures[0][name]["range"] == figures[1][name]["range"]


def test_jump_in_words():
    times = LinearTimes(
        tokens=np.arange(255, 260),
        compute_ms=np.ones(5),
        memory_ms=np.ones(5),
        linear_ms=np.array([9.0, 10.0, 12.5, 12.46, 12.46]),
    )
    assert jump_words(times, 256) == "256 → 257 tokens: +2.5 ms"
    assert jump_words(times, 257) == "257 → 258 tokens: −0.04 ms"
    assert jump_words(times, 258) == "258 → 259 tokens: no step"
    spec = tiles_figure(times, H100, edge_tokens=256)
    assert "+25.0% here" in spec["layout"]["title"]["text"]
    assert spec["data"][0]["line"]["shape"] == "hvh"
    assert "from 10 ms to 12.5 ms" in tiles_alt(times, H100, edge_tokens=256)
    told = words.tiles(times, H100, edge_tokens=256)
    assert told.startswith("**256 → 257 tokens: +2.5 ms** (+25.0%). It is the largest step")
    assert "255 → 256" not in told


def test_ride_in_words_and_bars():
    # 250 and 253.6 ms together with 3 decodes, 50 alone: 1.2 ms aboard, 16.7 alone, 13.9 times.
    assert ride_title(RIDE) == "Decode: 1.2 ms aboard, 16.7 alone"
    told = words.riding(RIDE)
    assert "from 250 ms to 254 ms: **next to nothing: 1.2 ms a decode, against 16.7 ms" in told
    assert "14× less" in told
    assert "0.6 ms are linear operators, 0.3 ms of it one tile more (1,022 → 1,023 rows)" in told
    assert "3 ms are the decodes' attention" in told
    assert "Alone, 44 ms of 50 ms are linear operators, for 3 rows." in told
    spec = ride_figure(RIDE, H100)
    assert sum(float(trace["x"][1]) for trace in spec["data"]) == pytest.approx(253.6)
    assert [note["text"] for note in spec["layout"]["annotations"]] == [
        "250 ms",
        "254 ms",
        "50 ms",
    ]
    assert "decodes alone 50 ms (linear operators 44 ms, rest 3 ms" in ride_alt(RIDE, H100)


def test_rows_that_end_at_an_edge_by_luck_say_so():
    lucky = replace(RIDE, next_ms=2.5)
    told = words.riding(lucky)
    assert "(here, because 1,024 rows end at a tile's edge; one more would add 2.5 ms)" in told
    assert "because" not in words.riding(replace(RIDE, next_ms=0.5))
    tiny = replace(RIDE, parts=by_hand([220, 220.0001, 44], decode=[0, 3, 3]), edge_ms=0.0001)
    assert "under 0.001 ms are linear operators: the weights" in words.riding(tiny)


def many_by_hand(**changes):
    values = {
        "prefill_tokens": 992,
        "context_tokens": 1024,
        "decodes": np.array([1, 32, 33, 512]),
        "aboard_ms": np.array([0.5, 0.1, 0.2, 0.3]),
        "alone_ms": np.array([7.0, 0.4, 0.4, 0.15]),
        "edge_decodes": 32,
        "edge_ms": 2.0,
        "usual_ms": 0.02,
    }
    return RideByDecodes(**{**values, **changes})


def test_decodes_by_their_number_speak_of_the_chosen_number():
    many = many_by_hand()
    assert many_title(many, decodes=32) == "32 decodes: 4.0× cheaper aboard"
    assert many_title(many, decodes=1) == "1 decode: 14× cheaper aboard"
    assert many_title(many, decodes=512) == "512 decodes: 2.0× dearer aboard"
    assert many_title(many_by_hand(aboard_ms=np.zeros(4)), decodes=1) == "1 decode: free aboard"


def test_a_decode_that_is_dearest_aboard_is_on_the_axis():
    dear = many_by_hand(aboard_ms=np.array([40.0, 0.1, 0.2, 0.3]))
    low, high = many_figure(dear, H100, decodes=1)["layout"]["yaxis"]["range"]
    assert low <= np.log10(0.1)
    assert high >= np.log10(40)


def test_the_jump_is_named_where_it_is_one():
    many = many_by_hand()
    assert edge_words(many) == "tile edge at 1,024 rows:<br>decode 33 adds 2 ms"
    spec = many_figure(many, H100, decodes=32)
    chosen, edge = spec["layout"]["annotations"]
    assert chosen["text"] == "chosen: 32 decodes"
    assert (edge["text"], edge["x"]) == (edge_words(many), pytest.approx(np.log10(33)))
    assert "Tile edge at 1,024 rows: decode 33 adds 2 ms" in many_alt(many, H100)
    even = many_by_hand(edge_ms=0.1)
    assert edge_words(even) == ""
    assert len(many_figure(even, H100, decodes=32)["layout"]["annotations"]) == 1


def test_every_picture_says_who_made_it():
    for spec in specs(H100):
        assert "simulated by s11 · vLLM's time on the host" in spec["layout"]["title"]["text"]


def test_a_decode_that_is_dearer_in_fp8_says_why():
    # 3 rows add 0.6 ms in bf16 and 3 in fp8: 0.3 of them quantisation, one row 1.6 without its own.
    fp8 = replace(
        RIDE,
        parts=by_hand([220, 223, 22], prefill=[10, 10, 0], decode=[0, 3, 3], rest=[20, 20, 3]),
        edge_ms=1.7,
        quantise_ms=0.3,
    )
    told = words.otherwise((CURVE, RIDE), (CURVE, fp8), precision="fp8")
    assert "dearer in fp8: 3 rows more add 3 ms to the linear operators, in bf16 0.6 ms" in told
    assert "turning the activations of 3 rows more into fp8 takes 0.3 ms" in told
    assert "1,022 → 1,023 rows begin takes 1.6 ms, in bf16 no row takes more than 0.3 ms" in told
    assert words.otherwise((CURVE, fp8), (CURVE, RIDE), precision="bf16").endswith(
        told.partition(" A decode aboard")[2]
    )
    assert "dearer" not in words.otherwise((CURVE, RIDE), (CURVE, RIDE), precision="fp8")


def test_a_ride_that_costs_nothing_says_so():
    free = Ride(
        prefill_tokens=1021,
        start_token=0,
        decodes=3,
        context_tokens=1024,
        parts=by_hand([20, 17, 4], decode=[0, 1, 1]),
        edge_tokens=1022,
        edge_ms=0.1,
    )
    assert ride_title(free) == "Decode: free aboard, 1.67 ms alone"
    assert "no longer: 20 ms alone, 18 ms with them" in words.riding(free)
    assert "free" not in ride_title(RIDE)


def test_turning_in_words():
    told = words.turning(CURVE, H100)
    assert told.startswith("**Below 128 tokens, reading the weights is the time")
    assert "14.0 GB of weights at" in told
    assert "Up to **100 tokens**" in told
    assert "295 tokens" in told


@pytest.mark.parametrize(("turn", "begins"), [(None, "**Up to 16,384"), (1, "**Even one token")])
def test_machines_that_never_or_always_compute(turn, begins):
    curve = StepCurve(
        start_token=0,
        linear=CURVE.linear,
        parts=CURVE.parts,
        turning_tokens=turn,
        free_tokens=64,
        token_ms=0.04,
    )
    assert words.turning(curve, H100).startswith(begins)
    go.Figure(curve_figure(curve, H100, chunk_tokens=512, logarithmic=False))
    assert curve_title(curve) != curve_title(CURVE)


def share_of(*attention, half):
    parts = by_hand(100 - np.array(attention, float), prefill=attention)
    contexts = np.array([1024, 16_384, 131_072])
    return AttentionShare(context_tokens=contexts, parts=parts, half_tokens=half)


def test_share_names_where_attention_passes_half():
    crossing, low = share_of(10, 40, 90, half=20_000), share_of(1, 2, 30, half=None)
    high = share_of(60, 70, 90, half=1024)
    assert share_title(crossing) == "Attention passes half at 20,000 tokens"
    assert share_title(low) == "Attention stays below half: 30% at most"
    assert share_title(high) == "Attention is over half from 1,024 tokens on"
    sizes = {"chunk_tokens": 512, "decode_tokens": 32}
    told = words.share(crossing, low, **sizes)
    assert "passes half at **20,000 tokens** before it (10% at 1,024, 90% at 131,072)" in told
    assert "stays below half: 1% at 1,024 tokens of context each, 30% at 131,072" in told
    spec = share_figure(crossing, low, H100, **sizes)
    assert "half at 20,000" in [note["text"] for note in spec["layout"]["annotations"]]
    stacks = {trace["stackgroup"] for trace in spec["data"]}
    for stack in stacks:
        total = sum(trace["y"] for trace in spec["data"] if trace["stackgroup"] == stack)
        np.testing.assert_allclose(total, 100, rtol=1e-5)
    alt = share_alt(crossing, low, H100, **sizes)
    assert "10% at 1,024" in alt
    assert "over half from 20,000 tokens on" in alt


def test_legend_names_each_operator_once():
    spec = specs(H100)[-1]
    shown = [trace["name"] for trace in spec["data"] if trace["showlegend"]]
    assert len(shown) == len(set(shown)) == 4


def test_alts_tell_numbers():
    many = ride_by_decodes(H100, prefill_tokens=512, start_token=0, context_tokens=1024)
    assert "1 decode: " in many_alt(many, H100)
    assert "512 decodes: " in many_alt(many, H100)
    alt = curve_alt(CURVE, H100, chunk_tokens=128)
    assert "128 tokens: whole step 8.5 ms, linear operators 6 ms" in alt


def test_other_precision_in_a_sentence():
    told = words.otherwise((CURVE, RIDE), (CURVE, RIDE), precision="fp8")
    assert told.startswith("**In fp8 instead**, it turns at 128 tokens (here: 128)")
    assert "1.2 ms aboard, 16.7 ms alone" in told
