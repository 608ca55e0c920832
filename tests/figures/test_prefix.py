"""The prefix page's specs: valid, white, fitting a phone, with what they say drawn."""

import itertools
import json

import numpy as np
import plotly.graph_objects as go
import pytest

from s11.figures.prefix import MOST_BARS, steps_alt, steps_figure
from s11.figures.prefix_blocks import LOOKS, blocks_figure
from s11.figures.prefix_blocks_info import NAMES, blocks_info
from s11.figures.prefix_ttft import ttft_alt, ttft_figure
from s11.figures.theme import IDLE, STALL
from s11.prefix_blocks import BlockKind, admitted_blocks
from s11.prefix_workloads import conversation, shared_system_prompt
from tests.prefix_runs import four_runs, same_prompt_twice

TALK = conversation(
    turns=6,
    system_tokens=2000,
    user_tokens=1000,
    answer_tokens=250,
    gap_ms=2100,
    streaming_users=24,
)
CHATS = conversation(
    turns=4,
    system_tokens=2000,
    user_tokens=1000,
    answer_tokens=250,
    gap_ms=2100,
    conversations=2,
    streaming_users=24,
)
ALONE = shared_system_prompt(requests=1, shared_tokens=0, own_tokens=1, output_tokens=1, gap_ms=0)
MANY = shared_system_prompt(
    requests=30, shared_tokens=1000, own_tokens=9, output_tokens=3, gap_ms=0
)
SCENES = {
    "conversation": four_runs(TALK, chunk=1024),
    "evicted": four_runs(CHATS, chunk=1024, kv_blocks=500),
    "one block too much": same_prompt_twice(users=24),
    "alone, nobody streams": four_runs(ALONE, chunk=1024),
    "many steps, many rows": four_runs(MANY, chunk=2, block_size=2),
}


def blocks_spec(four):
    limits = four.both.experiment.limits
    info = blocks_info(
        admitted_blocks(four.both.experiment, four.both.result),
        request_ids=four.both.result.requests.request_id,
        block_size=limits.block_size,
        kv_blocks=limits.kv_blocks,
    )
    return blocks_figure(info)


def specs(four):
    return [steps_figure(four), ttft_figure(four), blocks_spec(four)]


def named(spec, name):
    return [trace for trace in spec["data"] if trace.get("name") == name]


@pytest.mark.parametrize("scene", SCENES)
def test_specs_are_valid_plotly_and_white(scene):
    for spec in specs(SCENES[scene]):
        go.Figure(spec)  # raises on any unknown name or impossible value
        assert spec["layout"]["paper_bgcolor"] == "#FFFFFF"
        json.dumps(spec["layout"]["meta"], allow_nan=False)


@pytest.mark.parametrize("scene", SCENES)
def test_titles_and_captions_fit_a_phone(scene):
    for spec in specs(SCENES[scene]):
        title, *caption = spec["layout"]["title"]["text"].split("<br>")
        assert len(title) - len("<b></b>") <= 45
        for line in caption:
            assert len(line.split(">")[1].split("<")[0]) <= 60


def test_strips_share_their_scales():
    layout = steps_figure(SCENES["conversation"])["layout"]
    axes = [layout[name] for name in ("yaxis", "yaxis2", "yaxis3", "yaxis4")]
    assert len({tuple(axis["range"]) for axis in axes}) == 1
    domains = [axis["domain"] for axis in axes]
    assert all(upper[0] >= lower[1] for upper, lower in itertools.pairwise(domains))
    for name in ("neither:", "chunking only:", "cache only:", "both:"):
        assert sum(f"<b>{name}</b>" in note["text"] for note in layout["annotations"]) == 1


def test_saved_time_is_hatched_where_the_cache_is_on():
    # By hand (test_prefix_info): 28.736 ms left and 16.128 ms saved, then 32.736 and 20.128.
    data = steps_figure(same_prompt_twice())["data"]
    saved = [t for t in data if t["marker"].get("pattern", {}).get("fgcolor") == IDLE]
    assert [trace["yaxis"] for trace in saved] == ["y3", "y4"]
    assert [trace["width"] for trace in saved] == pytest.approx([16.128, 20.128])
    left = [float(trace["x"][0]) - trace["width"] / 2 for trace in saved]
    assert left == pytest.approx([28.736, 32.736], rel=1e-6)


def test_many_steps_are_an_area():
    # 1,009 tokens in chunks of 2: 505 steps.
    four = SCENES["many steps, many rows"]
    assert len(four.chunking.result.steps) > MOST_BARS
    kinds = [(t["yaxis"], t["type"]) for t in steps_figure(four)["data"]]
    assert ("y", "bar") in kinds
    assert ("y2", "scatter") in kinds


def test_ttft_of_every_request_in_four_lines():
    spec = ttft_figure(same_prompt_twice())
    drawn = {trace["name"]: trace for trace in spec["data"]}
    assert drawn["both"]["y"].tolist() == pytest.approx([26.432, 6.304], rel=1e-6)
    assert drawn["chunking only"]["y"].tolist() == pytest.approx([26.432, 26.432], rel=1e-6)
    # Form as well as colour tells them apart.
    forms = {(t["line"]["dash"], t["line"]["color"]) for t in spec["data"]}
    assert len(forms) == 4
    assert spec["layout"]["title"]["text"].startswith("<b>TTFT 26.4 ms → 6.3 ms</b>")
    assert "both: 26.4 ms, 6.3 ms" in ttft_alt(same_prompt_twice())


def test_requests_are_named_below_their_ttft():
    axis = ttft_figure(SCENES["conversation"])["layout"]["xaxis"]
    assert (axis["ticktext"], axis["title"]["text"]) == (list("123456"), "turn")
    crowded = ttft_figure(SCENES["many steps, many rows"])["layout"]["xaxis"]
    assert crowded["ticktext"][:3] == ["1", "4", "7"]


def test_blocks_are_drawn_where_they_are():
    spec = blocks_spec(same_prompt_twice())
    (hit,), (last,) = named(spec, "hit"), named(spec, "again: last token")
    assert [hit["base"].tolist(), hit["x"].tolist(), hit["y"].tolist()] == [[0], [7], [1]]
    assert [last["base"].tolist(), last["x"].tolist(), last["y"].tolist()] == [[7], [1], [1]]
    assert last["customdata"] == ["request 2, block 7 (tokens 896–1,023)"]
    assert spec["layout"]["yaxis"]["ticktext"] == ["request 1", "request 2"]
    assert spec["layout"]["meta"]["hit"] == 7


def test_evicted_blocks_stand_out():
    spec = blocks_spec(SCENES["evicted"])
    (evicted,) = named(spec, "again: evicted")
    assert evicted["marker"]["color"] == STALL
    assert evicted["marker"]["pattern"]["shape"] == "x"
    assert int(evicted["x"].sum()) == spec["layout"]["meta"]["evicted"] > 0


def test_every_kind_has_a_name_and_a_look_of_its_own():
    assert set(NAMES) == set(LOOKS) == set(BlockKind)
    looks = {(colour, pattern.get("shape")) for colour, pattern in LOOKS.values()}
    assert len(looks) == len(set(NAMES.values())) == len(BlockKind)


def test_rows_that_are_not_drawn_are_counted():
    spec = blocks_spec(SCENES["many steps, many rows"])
    assert "+ 6 more rows" in [note["text"] for note in spec["layout"]["annotations"]]
    assert len(np.unique(np.concatenate([trace["y"] for trace in spec["data"]]))) == 24


def test_alt_has_the_numbers():
    alt = steps_alt(same_prompt_twice(users=1))
    assert "longest stall 22.5 → 13.3 ms" in alt
    assert "both: 3 steps" in alt
