"""The myths' pictures and words: valid, white, fitting a phone, true to their numbers."""

import json

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.catalog import MODELS, Deployment
from s11.costs import LinearCost, RooflineCost
from s11.figures.myths_bars import Bar, Panel, Part, bars_figure
from s11.figures.myths_flops import (
    amount,
    flops_alt,
    flops_columns,
    flops_figure,
    flops_title,
    flops_words,
)
from s11.figures.myths_itl import change, itl_alt, itl_columns, itl_figure, itl_title, itl_words
from s11.figures.myths_mixing import (
    load_words,
    mixing_alt,
    mixing_columns,
    mixing_figure,
    mixing_title,
    mixing_words,
)
from s11.figures.myths_smaller import (
    smaller_alt,
    smaller_columns,
    smaller_figure,
    smaller_title,
    smaller_words,
)
from s11.myths_flops import prefill_work
from s11.myths_itl import gaps_both
from s11.myths_mixing import Load, ways
from s11.myths_smaller import SizesTried, SizeTried, sizes_tried

H100 = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")
PHONE_TITLE = 33  # characters: 366 px at 18 px bold


def work(chunk, machine=H100):
    return prefill_work(machine, prompt_tokens=2048, chunk_tokens=chunk)


def gaps(chunk=1024, cost=None):
    return gaps_both(
        cost or LinearCost(), prompt_tokens=8192, chunk_tokens=chunk, streaming_users=24
    )


def served(load, cost=None):
    return ways(cost or LinearCost(), load, most_prompt_tokens=131_072, kv_bytes_per_token=131_072)


def tried(*sizes):
    """Sizes made up by hand: chunk, longest stall, TTFT."""
    return SizesTried(
        prompt_tokens=sizes[-1][0],
        streaming_users=24,
        floor_ms=5.0,
        sizes=tuple(
            SizeTried(chunk_tokens=c, longest_stall_ms=s, ttft_ms=t, prefill_steps=1)
            for c, s, t in sizes
        ),
    )


def specs(machine):
    cost = RooflineCost(deployment=machine)
    most, kv = machine.model.max_positions, machine.model.kv_bytes_per_token()
    prompt = min(8192, most)
    sizes = sizes_tried(cost, prompt_tokens=prompt, streaming_users=24)
    yield flops_figure(work(2048, machine), work(256, machine), machine)
    yield itl_figure(
        gaps_both(cost, prompt_tokens=prompt, chunk_tokens=128, streaming_users=24), machine
    )
    yield smaller_figure(sizes, machine, chunk_tokens=16)
    for load in Load:
        yield mixing_figure(
            ways(cost, load, most_prompt_tokens=most, kv_bytes_per_token=kv), machine
        )


@pytest.mark.parametrize(
    ("model", "gpu", "size"),
    [("llama-3.1-8b", "h100", 1), ("phi-2", "b200", 1), ("codellama-34b", "a40", 8)],
)
def test_specs_are_valid_plotly_white_and_fit_a_phone(model, gpu, size):
    for spec in specs(Deployment(model=MODELS[model], gpu=gpu, tensor_parallel=size)):
        go.Figure(spec)  # raises on any unknown name or impossible value
        assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
        json.dumps(spec["layout"]["meta"], allow_nan=False)
        title, *caption = spec["layout"]["title"]["text"].split("<br>")
        assert len(title) - len("<b></b>") <= PHONE_TITLE, title
        for line in caption:
            assert len(line.split(">")[1].split("<")[0]) <= 60, line


def test_bars_are_as_long_as_their_parts_and_a_legend_names_each_once():
    red, blue = Part(name="red", colour="#D55E00"), Part(name="blue", colour="#0072B2")
    panels = (
        Panel(head="A", unit="ms", bars=(Bar(label="x", parts=((red, 2.0),), text="2"),)),
        Panel(
            head="B",
            unit="GB",
            bars=(
                Bar(label="x", parts=((red, 1.0), (blue, 3.0)), text="4"),
                Bar(label="y", parts=(), text="none"),
            ),
        ),
    )
    spec = bars_figure(panels, title="t", caption=[], meta={"figure": "f"}, legend=True)
    assert [(t["name"], t["x"], t["y"], t["xaxis"], t["showlegend"]) for t in spec["data"]] == [
        ("red", [2.0], [0], "x", True),
        ("red", [1.0], [0], "x2", False),
        ("blue", [3.0], [0], "x2", True),
    ]
    layout = spec["layout"]
    assert layout["xaxis2"]["range"][1] > 4.0
    assert layout["yaxis"]["domain"][0] > layout["yaxis2"]["domain"][1]
    texts = {(n["text"], n["x"]) for n in layout["annotations"]}
    assert {("2", 2.0), ("4", 4.0), ("none", 0)} <= texts
    assert layout["yaxis2"]["ticktext"] == ["x", "y"]


def test_flops_are_said_to_be_the_same_and_reads_to_grow():
    whole, cut = work(2048), work(256)
    assert cut.read_bytes > 7 * whole.read_bytes
    assert flops_title(whole, cut).startswith("The same FLOPs, 8")
    words = flops_words(whole, cut, H100)
    assert "In 8 chunks" in words
    assert "exactly as in one piece" in words
    assert "the weights 8 times" in words
    assert "longer" in words
    assert flops_title(whole, whole) == "In one piece: no second read"
    assert "Choose a smaller chunk" in flops_words(whole, whole, H100)
    assert "8 chunks: " in flops_alt(whole, cut, H100)


def test_flops_table_sums_up():
    columns = flops_columns(work(2048), work(1000))
    assert columns["part"] == ["one piece", "3 chunks", "chunk 1", "chunk 2", "chunk 3"]
    assert columns["tokens"] == [2048, 2048, 1000, 1000, 48]
    for name in ("linear_flops", "attention_flops", "weight_bytes", "earlier_kv_bytes"):
        assert columns[name][1] == sum(columns[name][2:])
    assert columns["linear_flops"][0] == columns["linear_flops"][1]


@pytest.mark.parametrize(
    ("value", "text"), [(0.7388, "0.739 GB"), (13.96, "14 GB"), (1234.4, "1,234 GB")]
)
def test_amounts(value, text):
    assert amount(value, "GB") == text


def test_mean_stays_and_longest_falls_in_title_words_and_picture():
    """From 5.2 + 147.456 to 5.2 + 18.432 ms is 85% less; the mean is 6.67 both ways."""
    both = gaps()
    assert itl_title(both) == "Mean 0%, longest gap −85%"
    words = itl_words(both)
    assert "the mean gap does not move: 6.7 ms" in words
    assert "23.6 ms instead of 153 ms, 6.5× shorter" in words
    assert "8 tokens of each stream are slowed instead of 1" in words
    spec = itl_figure(both, H100)
    chunked, whole, *means = spec["data"]
    assert np.sum(whole["y"]) == pytest.approx(np.sum(chunked["y"]), rel=1e-5)
    assert [mean["y"][0] for mean in means] == pytest.approx([6.67456, 6.67456])
    assert "longest 153 ms, 1 slowed token" in itl_alt(both, H100)
    columns = itl_columns(both)
    assert columns["token"] == list(range(1, 101))
    assert columns["one_piece_gap_ms"][10] == pytest.approx(152.656)
    assert columns["chunked_gap_ms"][10:18] == pytest.approx([23.632] * 8)


def test_one_chunk_is_the_whole_prompt():
    both = gaps(8192)
    assert itl_title(both) == "Mean 0%, longest gap 0%"
    assert "1 token of each stream is slowed instead of 1" in itl_words(both)


@pytest.mark.parametrize(
    ("before", "after", "text"),
    [(10, 9.75, "−2.5%"), (10, 11.2, "+12%"), (10, 10, "0%"), (None, 1, "unknown")],
)
def test_changes(before, after, text):
    assert change(before, after) == text


def test_sizes_below_which_nothing_is_gained():
    told = tried((16, 6.0, 900.0), (32, 6.2, 450.0), (64, 6.5, 225.0), (128, 9.0, 150.0))
    assert smaller_title(told) == "Below 64 only the TTFT grows"
    words = smaller_words(told, chunk_tokens=128)
    assert "At 128 tokens the longest gap is 9 ms" in words
    assert "the floor of 5 ms" in words
    assert "From 64 tokens (6.5 ms) down to 16, a smaller chunk shortens it by 0.5 ms" in words
    assert "the TTFT grows 4.0×, from 225 ms to 900 ms" in words
    spec = smaller_figure(told, H100, chunk_tokens=128)
    shaded = [s for s in spec["layout"]["shapes"] if s["type"] == "rect"]
    assert [s["x1"] for s in shaded] == [64]
    assert spec["data"][2]["x"] == [128, 128]
    assert "64: longest gap 6.5 ms, TTFT 225 ms" in smaller_alt(told, H100)
    assert smaller_columns(told)["ttft_ms"] == [900.0, 450.0, 225.0, 150.0]


def test_a_smaller_chunk_can_even_be_rougher_or_still_gain():
    rougher = tried((16, 6.4, 900.0), (32, 6.2, 450.0), (64, 9.0, 225.0))
    assert "even lengthens it by 0.2 ms" in smaller_words(rougher, chunk_tokens=16)
    gaining = tried((16, 6.0, 900.0), (32, 8.0, 450.0))
    assert smaller_title(gaining) == "The gap shrinks down to 16"
    assert "still shortens the gap by more than 10%" in smaller_words(gaining, chunk_tokens=16)
    assert not [
        s
        for s in smaller_figure(gaining, H100, chunk_tokens=16)["layout"]["shapes"]
        if s["type"] == "rect"
    ]


@pytest.mark.parametrize(
    ("load", "title", "sentence"),
    [
        (
            Load.MANY_PROMPTS,  # 14.416 against 5.2
            "Median gap: 2.8× when mixed",
            "The median gap is shortest with steps of their own, and about as short with a GPU for "
            "each: 14.4 ms",
        ),
        (
            Load.PROMPTS_ONLY,  # 845.8 against 605.8
            "Median TTFT: 1.4× when mixed",
            "The median TTFT is shortest with steps of their own, and about as short with a GPU "
            "for each: 846 ms",
        ),
        (
            Load.STREAMS_ONLY,
            "Nothing to mix: all the same",
            "The median gap is much the same every way: 5.2 ms with mixed steps",
        ),
        (
            Load.ONE_PROMPT,  # 230.7 against 151.5
            "Median TTFT: 1.5× when mixed",
            "The longest gap is shortest with a GPU for each: 14.4 ms with mixed steps, 157 ms",
        ),
    ],
)
def test_what_mixing_costs_on_each_load(load, title, sentence):
    told = served(load)
    assert mixing_title(told) == title
    assert sentence in mixing_words(told)
    assert load_words(told) in mixing_alt(told, H100)


def test_mixing_table_and_what_is_not_there():
    columns = mixing_columns(served(Load.PROMPTS_ONLY))
    assert columns["way"] == ["mixed steps", "steps of their own", "a GPU for each"]
    assert columns["itl_p50_ms"] == [None, None, None]
    assert columns["ttft_p50_ms"][:2] == pytest.approx([845.824, 605.824])
    spec = mixing_figure(served(Load.PROMPTS_ONLY), H100)
    heads = [note["text"] for note in spec["layout"]["annotations"] if "<b>" in note["text"]]
    assert heads == ["<b>Prompts: median TTFT (ms)</b>"]
