"""The chunk size page's pictures and sentences, on hand-made sweeps."""

import itertools
import json
from dataclasses import replace

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.budgets import BudgetTried, BusyLoad
from s11.figures.chunk_size import chunk_figure
from s11.figures.chunk_size_info import (
    ChunkCurve,
    curve_alt,
    curve_columns,
    grain_words,
    headline,
    host_stand_in,
    log_axis,
    octaves,
    simulated_words,
)
from s11.figures.chunk_size_many import MachineCurve, many_alt, many_columns, many_figure
from s11.figures.chunk_size_memory import (
    MemoryCost,
    memory_alt,
    memory_columns,
    memory_figure,
    memory_title,
    memory_words,
)
from s11.figures.chunk_size_words import (
    across_words,
    finding,
    knee_words,
    no_knee,
    refused_words,
)
from s11.sweeps import SweepPoint
from s11.tuning import ChunkStep, Tried


def point(size, stall_ms, ttft_ms):
    return SweepPoint(
        chunk_tokens=size,
        itl_p99_ms=stall_ms - 1,
        longest_stall_ms=stall_ms,
        ttft_ms=ttft_ms,
        prefill_tokens_per_s=1000 * 1024 / ttft_ms,
        steps_over_target=0,
        step_count=9,
    )


# Stall x TTFT: 10,000; 7,200; 8,000; 16,000.
POINTS = (
    point(128, 10.0, 1000.0),
    point(256, 12.0, 600.0),
    point(512, 20.0, 400.0),
    point(1024, 50.0, 320.0),
)
STEP = ChunkStep(
    chunk_tokens=256,
    rows=280,
    start_token=768,
    total_ms=12.0,
    without_chunk_ms=8.0,
    compute_ms=4.0,
    memory_ms=5.0,
    products_ms=7.0,
    prefill_attention_ms=2.0,
)
CURVE = ChunkCurve(
    machine="A model on a GPU, bf16",
    simulated="simulated by s11 · vLLM V1",
    calibration="calibrated on measured kernels",
    load="1,024-token prompt beside 24 users of 1,024 tokens",
    policy="vllm_v1",
    mixed=True,
    prompt_tokens=1024,
    streaming_users=24,
    target_ms=25.0,
    tried=tuple(Tried(chunk_tokens=p.chunk_tokens, point=p) for p in POINTS),
    planned=4,
    largest=560,
    block_size=16,
    knee=POINTS[1],
    step=STEP,
    turning_tokens=325,
)
NO_ROOM = Tried(chunk_tokens=1024, point=None, refused="no room for it")
SCENES = {
    "plain": CURVE,
    "partial": replace(CURVE, tried=CURVE.tried[:2], planned=4),
    "nothing yet": replace(
        CURVE, tried=(), largest=None, knee=None, step=None, turning_tokens=None
    ),
    "none meets": replace(CURVE, target_ms=5.0, largest=None),
    "any meets": replace(CURVE, target_ms=60.0, largest=1024),
    "some refused": replace(CURVE, tried=(*CURVE.tried[:3], NO_ROOM)),
    "all refused": replace(CURVE, tried=(NO_ROOM,), planned=1, largest=None, knee=None, step=None),
    "falls to the end": replace(CURVE, tried=CURVE.tried[:2], planned=2, largest=256),
    "SGLang stands still": replace(CURVE, policy="sglang", mixed=False, largest=None),
    "one size": replace(CURVE, tried=CURVE.tried[:1], planned=1, knee=POINTS[0], largest=64),
}


def check_spec(spec):
    go.Figure(spec)  # raises on any unknown name or impossible value
    assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
    json.dumps(spec["layout"]["meta"], allow_nan=False)
    title, *caption = spec["layout"]["title"]["text"].split("<br>")
    assert len(title) - len("<b></b>") <= 45
    for line in caption:
        assert len(line.split(">")[1].split("<")[0]) <= 60


@pytest.mark.parametrize("scene", SCENES)
def test_specs_are_valid_white_and_fit_a_phone(scene):
    check_spec(chunk_figure(SCENES[scene]))
    curve_alt(SCENES[scene])
    finding(SCENES[scene])
    knee_words(SCENES[scene])


def test_three_panels_share_the_chunk_sizes():
    spec = chunk_figure(CURVE)
    drawn = {trace["name"]: trace for trace in spec["data"]}
    assert drawn["longest stall"]["y"].tolist() == [10, 12, 20, 50]
    assert drawn["P99 ITL"]["y"].tolist() == [9, 11, 19, 49]
    assert drawn["TTFT"]["y"].tolist() == [1000, 600, 400, 320]
    np.testing.assert_allclose(
        drawn["prefill tokens/s"]["y"], [1024, 1706.667, 2560, 3200], rtol=1e-6
    )
    assert [trace["yaxis"] for trace in spec["data"]] == ["y", "y", "y2", "y3"]
    assert {trace["xaxis"] for trace in spec["data"]} == {"x"}
    domains = [spec["layout"][name]["domain"] for name in ("yaxis", "yaxis2", "yaxis3")]
    assert all(upper[0] > lower[1] for upper, lower in itertools.pairwise(domains))


def test_target_region_and_knee_are_marked():
    layout = chunk_figure(CURVE)["layout"]
    target, *panels = layout["shapes"]
    assert [shape["yref"] for shape in panels[::3]] == ["y domain", "y2 domain", "y3 domain"]
    region, edge, knee = panels[:3]
    assert target["y0"] == target["y1"] == 25.0
    assert (region["type"], region["x1"]) == ("rect", 560)
    assert edge["x0"] == 560
    assert knee["x0"] == knee["x1"] == 256
    words = " ".join(note["text"] for note in layout["annotations"])
    assert "target 25 ms" in words
    assert "knee: 256" in words
    assert "up to 560 tokens" in words


def test_nothing_is_marked_that_is_not_there():
    assert len(chunk_figure(SCENES["none meets"])["layout"]["shapes"]) == 4  # target and knee
    assert len(chunk_figure(SCENES["SGLang stands still"])["layout"]["shapes"]) == 1
    falls = chunk_figure(SCENES["falls to the end"])["layout"]
    assert falls["meta"]["knee_tokens"] is None


def test_the_axes_stay_while_the_target_moves():
    axes = [
        chunk_figure(replace(CURVE, target_ms=target, largest=largest))["layout"]
        for target, largest in ((20.0, 512), (25.0, 560), (40.0, 900))
    ]
    for name in ("xaxis", "yaxis", "yaxis2", "yaxis3"):
        assert len({tuple(layout[name]["range"]) for layout in axes}) == 1


@pytest.mark.parametrize(
    ("scene", "said"),
    [
        ("plain", "Largest chunk that meets 25 ms: 560"),
        ("none meets", "No chunk meets 5 ms here"),
        ("any meets", "Any chunk meets 60 ms here"),
        ("all refused", "No chunk size runs here"),
        ("nothing yet", "Nothing ran yet"),
    ],
)
def test_the_headline(scene, said):
    assert headline(SCENES[scene]) == said


def test_the_finding_has_its_numbers():
    # 512 is the largest of the sweep within 560; 320 / 400 = 80% of the whole prompt's rate.
    told = finding(CURVE)
    assert "Chunks of up to **560 tokens** keep every gap within 25 ms" in told
    assert "At 512, the largest of the sweep among them, prefill runs at 2,560 tokens/s" in told
    assert "80% of what chunks of 1,024 reach" in told
    assert "20 ms instead of 50 ms" in told
    assert "all sizes of the sweep are larger" in finding(SCENES["one size"])
    assert "shortest longest stall of the sweep is 10 ms" in finding(SCENES["none meets"])
    assert "take 8 ms without any chunk" in finding(SCENES["none meets"])
    assert "asks for no chunking" in finding(SCENES["any meets"])
    assert "stand still" in finding(SCENES["SGLang stands still"])
    assert "no room for it" in finding(SCENES["all refused"])


def test_the_knee_is_told_with_its_sides_and_its_bound():
    told = knee_words(CURVE)
    assert "**Knee at 256 tokens**" in told
    # 10/12 = 17% lower, 600/1000 = 40% lower; 20/12 = 67% higher, 600/400 = 50% higher.
    assert "At 128 the stall is 17% lower and prefill throughput 40% lower." in told
    assert "At 512 the stall is 67% higher and prefill throughput 50% higher." in told
    assert "256 prompt tokens and 24 decodes the products take 7 ms, 4 ms of arithmetic" in told
    assert "against 5 ms of memory traffic: they are bound by the read of the weights" in told
    # 324 rows are the last that the read covers; 24 of them are the decodes'.
    assert "from 325 rows on, so the read covers chunks of up to 300 tokens beside them" in told
    arithmetic = replace(CURVE, step=replace(STEP, compute_ms=5.5), turning_tokens=24)
    assert "bound by arithmetic" in knee_words(arithmetic)
    assert "from 24 rows on, so no chunk beside them is covered" in knee_words(arithmetic)
    never = knee_words(replace(CURVE, turning_tokens=None))
    assert "the read covers steps of up to 16,384 rows" in never
    attention = replace(CURVE, step=replace(STEP, prefill_attention_ms=8.0))
    assert "attention over the 768 tokens before them takes most: 8 ms" in knee_words(attention)
    assert "**No knee**" in knee_words(SCENES["falls to the end"])
    assert knee_words(SCENES["all refused"]) == ""


def test_no_knee_says_why():
    waiting, falling = SCENES["SGLang stands still"], SCENES["falls to the end"]
    assert no_knee(CURVE) == no_knee(SCENES["all refused"]) == ""
    assert no_knee(waiting) == "decodes wait for the prompt"
    assert no_knee(falling) == "larger only gains"
    assert "a smaller chunk does not shorten their stall" in knee_words(waiting)
    assert waiting.told == POINTS[0]  # the shortest stall; else it is the knee's
    assert CURVE.told == POINTS[1]
    flat = tuple(Tried(chunk_tokens=2**n, point=point(2**n, 9.0, 900 / 2**n)) for n in (7, 8, 9))
    last = Tried(chunk_tokens=1024, point=point(1024, 90.0, 1.0))
    level = replace(CURVE, tried=(*flat, last), knee=flat[2].point)
    assert level.balanced is None
    assert no_knee(level) == "smaller stalls no less"
    assert "no smaller chunk of the sweep has a shorter stall" in knee_words(level)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "to a multiple of 16, alone or with the 24 decodes"),
        ({"streaming_users": 32}, "to a multiple of 16"),
        ({"largest": 8}, "to a power of two"),
        ({"policy": "sglang"}, "to a multiple of 16, with the 24 decodes that it counts or"),
        ({"policy": "tensorrt_llm", "block_size": 32}, "in whole blocks of 32 tokens"),
    ],
)
def test_how_finely_the_largest_was_looked_for(changes, said):
    told = grain_words(replace(CURVE, **changes))
    assert told.startswith(said)
    assert f"({told})" in finding(replace(CURVE, **changes))


def test_pictures_name_their_maker_and_the_host_that_stands_in():
    assert simulated_words("vllm_v1") == "simulated by s11 · vLLM V1"
    assert simulated_words("sglang") == "simulated by s11 · SGLang, host as TensorRT-LLM's"
    assert host_stand_in("tensorrt_llm") is None
    for spec in (chunk_figure(CURVE), memory_figure(TIGHT)):
        assert "simulated by s11 · vLLM V1" in spec["layout"]["title"]["text"]


def test_what_does_not_run_is_told():
    told = refused_words(SCENES["some refused"])
    assert told == "Chunks of 1,024 tokens do not run here: no room for it."
    assert refused_words(CURVE) == ""
    columns = curve_columns(SCENES["some refused"])
    assert columns["chunk_tokens"] == [128, 256, 512, 1024]
    assert columns["longest_stall_ms"] == [10.0, 12.0, 20.0, None]
    assert columns["why_not"] == [None, None, None, "no room for it"]


def test_a_stopped_sweep_is_marked():
    spec = chunk_figure(SCENES["partial"])
    assert "stopped after 2 of 4 sizes" in spec["layout"]["title"]["text"]
    assert spec["layout"]["meta"]["partial"] is True


def test_axes_have_round_ends_and_few_marks():
    axis = log_axis([10.0, 50.0])
    assert axis["range"] == pytest.approx([np.log10(5), np.log10(100)])
    assert axis["ticktext"] == ["5", "10", "20", "50", "100"]
    assert log_axis([3.0, 9000.0])["ticktext"] == ["10", "100", "1,000", "10,000"]
    assert octaves(64, 131_072, most=8) == (
        [64, 256, 1024, 4096, 16_384, 65_536],
        ["64", "256", "1k", "4k", "16k", "64k"],
    )
    assert octaves(65, 100, most=8) == ([65], ["65"])


MACHINES = (
    MachineCurve(label="Fast", calibrated=True, points=POINTS, largest=560),
    MachineCurve(label="Slow", calibrated=False, points=POINTS[2:], largest=None),
    MachineCurve(
        label="Small", calibrated=True, points=(), largest=None, refused="x does not fit y"
    ),
    MachineCurve(label="Odd", calibrated=True, points=(), largest=None, refused="tp: 3 heads"),
)


def test_every_machine_has_a_panel_and_a_verdict():
    spec = many_figure(MACHINES, target_ms=25.0, title="T", caption=["c"], planned=4)
    check_spec(spec)
    heads = [note["text"] for note in spec["layout"]["annotations"]]
    assert "<b>Fast</b>" in heads[0]
    assert "up to 560" in heads[0]
    assert "<b>Slow *</b>" in heads[1]
    assert "none meets it" in heads[1]
    assert "does not fit" in heads[2]
    assert "cannot run" in heads[3]
    assert {shape["y0"] for shape in spec["layout"]["shapes"]} == {25.0}
    ranges = {
        axis: {tuple(spec["layout"][f"{axis}{n}"]["range"]) for n in ("", 2, 3, 4)}
        for axis in ("xaxis", "yaxis")
    }
    assert all(len(one) == 1 for one in ranges.values())


def test_form_tells_within_from_over():
    spec = many_figure(MACHINES[:1], target_ms=25.0, title="T", caption=[], planned=1)
    curve, ring = spec["data"]
    assert curve["marker"]["symbol"] == ["circle", "circle", "circle", "x"]
    assert ring["x"].tolist() == [256]
    waits = (replace(MACHINES[0], waiting=True),)
    assert len(many_figure(waits, target_ms=25.0, title="T", caption=[], planned=1)["data"]) == 1


def test_machines_in_words_and_in_a_table():
    assert "Slow (not calibrated): none meets it" in many_alt(MACHINES, target_ms=25.0)
    columns = many_columns(MACHINES)
    assert columns["machine"] == ["Fast"] * 4 + ["Slow"] * 2 + ["Small", "Odd"]
    assert columns["why_not"][-2:] == ["x does not fit y", "tp: 3 heads"]
    assert {len(column) for column in columns.values()} == {8}
    stopped = many_figure(MACHINES, target_ms=25.0, title="T", caption=[], planned=9)
    assert "stopped after 4 of 9" in stopped["layout"]["title"]["text"]
    check_spec(many_figure((), target_ms=25.0, title="T", caption=[], planned=9))


@pytest.mark.parametrize(
    ("named", "unfit", "said"),
    [
        ({"a": 100, "b": 900}, 0, "goes from 100 tokens (a) to 900 (b)."),
        ({"a": 100, "b": None}, 2, "a: up to 100 tokens within 25 ms. On 1 of 2 no chunk meets"),
        ({"a": None, "b": None}, 0, "No chunk meets 25 ms on any of the 2"),
        ({"a": 64, "b": 64}, 0, "All 2: up to 64 tokens within 25 ms."),
        ({}, 3, "3 of 3 cannot run it at all."),
        ({}, 0, "Nothing ran yet."),
    ],
)
def test_machines_apart_in_a_sentence(named, unfit, said):
    assert said in across_words(named, target_ms=25.0, unfit=unfit)


def budget(tokens, kv_tokens, own, same, refused=""):
    return BudgetTried(
        token_budget=tokens,
        kv_tokens=kv_tokens,
        output_tokens_per_s=own,
        same_pool_tokens_per_s=same,
        preemptions=3,
        refused=refused,
    )


TIGHT = MemoryCost(
    machine="A model on a GPU, bf16",
    simulated="simulated by s11 · vLLM V1",
    calibration="calibrated on measured kernels",
    load=BusyLoad(clients=64, prompt_tokens=1000, output_tokens=250),
    tried=(
        budget(512, 20_000, 210.0, 210.0),
        budget(2048, 19_000, 220.0, 225.0),
        budget(8192, 10_000, 150.0, 200.0),
        budget(32_768, 0, None, 200.0, "does not fit"),
    ),
    planned=4,
    set_budget=784,
)
ROOMY = replace(TIGHT, tried=TIGHT.tried[:1], planned=1)
NOTHING = replace(TIGHT, tried=(), set_budget=None)
UNSERVED = replace(TIGHT, tried=TIGHT.tried[3:], planned=1)


@pytest.mark.parametrize("cost", [TIGHT, ROOMY, NOTHING, UNSERVED])
def test_budgets_are_valid_pictures(cost):
    check_spec(memory_figure(cost))
    memory_alt(cost)
    memory_words(cost)


def test_what_a_budget_costs_is_against_the_same_pool():
    """150 of 200 tokens/s: the memory costs 25%; 20,000 tokens hold 16 requests of 1,250."""
    assert memory_title(TIGHT) == "A budget of 8,192 serves 25% less"
    told = memory_words(TIGHT)
    assert "leaves 20,000 KV tokens, 16 of the 64 clients' requests at once" in told
    assert "Output is best at 2,048: 220 tokens/s. At 8,192 it is **150**" in told
    assert "would be 200, so that budget's memory costs **25%**" in told
    assert "Under 32,768 the model no longer fits." in told
    assert "here memory is not what limits" in memory_words(ROOMY)
    assert memory_title(ROOMY) == "Memory is not what limits here"
    assert memory_words(UNSERVED) == "No budget serves this load: does not fit."


def test_budgets_are_drawn_with_what_is_set():
    spec = memory_figure(TIGHT)
    kv, same, own = spec["data"]
    assert kv["y"].tolist() == [20_000, 19_000, 10_000, 0]
    assert same["y"].tolist() == [210, 225, 200, 200]
    assert own["y"].tolist()[:3] == [210, 220, 150]
    assert np.isnan(own["y"][3])
    assert [shape["x0"] for shape in spec["layout"]["shapes"]] == [784, 784]
    words = [note["text"] for note in spec["layout"]["annotations"]]
    assert "set: 784" in words
    assert "does not<br>fit" in words
    assert memory_columns(TIGHT)["why_not"] == [None, None, None, "does not fit"]
