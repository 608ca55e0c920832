"""The verdict: true whatever happens."""

from dataclasses import replace
from types import SimpleNamespace

import pytest

from s11 import LinearCost
from s11.figures.traffic_attainment import attainment_figure, attainment_info
from s11.figures.traffic_capacity import CapacityCurve, capacity_figure, capacity_info
from s11.figures.traffic_cdf import cdf_figure
from s11.figures.traffic_cdf_info import cdf_info
from s11.figures.traffic_chunk_capacity import (
    TargetCurve,
    chunk_capacity_figure,
    chunk_capacity_info,
)
from s11.figures.traffic_look import (
    LINE_LOOKS,
    RUN_LOOKS,
    legend_name,
    legend_rows,
    traffic_caption,
)
from s11.figures.traffic_over_time import over_time_figure
from s11.figures.traffic_over_time_info import over_time_info
from s11.figures.traffic_words import verdict
from tests.figures.traffic_runs import pair, ran, two_streams_and_a_prompt
from tests.loads import load, request


def told(a, b):
    return verdict(a, b, itl_target_ms=50.0)


def test_chunking_shortens_the_stall_and_costs_ttft():
    # By hand: 104 ms is the step of 400 prompt tokens, 14 ms one of 40.
    found = told(*pair())
    assert found.headline == "Longest stall 104 ms → 14 ms"
    assert found.sentences[:2] == (
        "B (chunked 40) shortens the longest stall from 104 ms to 14 ms (7.4× shorter); "
        "P99 ITL 104 ms → 14 ms.",
        "Requests with a stall over 50 ms: 66.7% → 0%.",
    )
    assert found.sentences[2].startswith("TTFT p50 is ")
    assert found.sentences[3:] == ("Both serve all 3 requests.",)
    assert found.text == " ".join(found.sentences)


def test_where_clients_wait_the_rate_that_is_served_is_told():
    # By hand, 1 ms a step: one client's two requests of a prompt step and a decode step each,
    # 2 ms apart, are 2 in 6 ms; on a clock of 2 ms a step 2 in 10 ms.
    requests = (
        request("A", 4, output_tokens=2),
        replace(request("B", 4, output_tokens=2, arrival_ms=2.0), after="A"),
    )
    slow = LinearCost(fixed_ms=2.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0)
    runs = [ran("a", load(*requests)), ran("b", load(*requests, cost=slow))]
    wait = "Clients wait for their answers: "
    assert f"{wait}A serves 333 requests/s, B serves 200." in told(*runs).sentences
    assert f"{wait}both serve 333 requests/s." in told(runs[0], runs[0]).sentences
    assert not [sentence for sentence in told(*pair()).sentences if sentence.startswith(wait)]


def test_a_rate_that_is_very_low_is_told_too():
    # Two requests, the second ten minutes after the first one's 2 ms: 2 in 600.004 s.
    requests = (
        request("A", 4, output_tokens=2),
        replace(request("B", 4, output_tokens=2, arrival_ms=600_000.0), after="A"),
    )
    run = ran("a", load(*requests))
    assert "both serve 0.0033 requests/s" in told(run, run).text


def test_the_other_way_round_it_is_worse():
    whole, chunked = pair()
    found = told(chunked, whole)
    assert found.sentences[0] == (
        "B (whole prompts) lengthens the longest stall from 14 ms to 104 ms (7.4× longer); "
        "P99 ITL 14 ms → 104 ms."
    )
    assert found.sentences[1] == "Requests with a stall over 50 ms: 0% → 66.7%."


def test_equal_runs_are_equal():
    found = told(pair()[0], pair()[0])
    assert found.headline == "Longest stall 104 ms in both"
    assert found.sentences[0] == (
        "The longest stall is 104 ms under both; P99 ITL is 104 ms either way."
    )
    assert found.sentences[1] == "66.7% of the requests see a stall over 50 ms under both."
    assert "either way; p99 is" in found.sentences[2]
    smooth = told(pair()[1], pair()[1])
    assert smooth.sentences[1] == "No request sees a stall over 50 ms under either."


def test_nobody_streams_where_all_want_one_token():
    run = ran("one", load(request("A", 4)))
    found = told(run, run)
    assert found.headline == "Nobody streams"
    assert found.sentences[0] == (
        "Nobody gets a second token in either, so there is no stall to see."
    )
    assert found.sentences[-1] == "Both serve the 1 request."


def test_one_serves_what_the_other_never_begins():
    requests = (request("A", 9, output_tokens=2), request("B", 2))
    stuck = ran("whole", load(*requests, policy="whole_prompt", budget=4))
    served = ran("chunked", load(*requests, budget=4))
    found = told(stuck, served)
    assert found.headline == "Longest stall 1 ms, in one alone"
    assert found.sentences[0] == (
        "Nobody gets a second token under A; under B the longest stall is 1 ms, P99 ITL 1 ms."
    )
    assert found.sentences[-2:] == (
        "A serves 0 of 2 requests, B serves 2.",
        "A can never begin 2 requests.",
    )
    assert "TTFT p50 none → " in found.text
    both = told(stuck, stuck)
    assert both.sentences[1:] == (
        "No request sees a stall over 50 ms under either.",
        "No request gets a first token.",
        "Both serve 0 of 2 requests.",
        "A can never begin 2 requests.",
        "B can never begin 2 requests.",
    )


def test_a_run_that_was_cut_says_so():
    whole = ran("whole", two_streams_and_a_prompt(policy="whole_prompt"))
    cut = ran("cut", two_streams_and_a_prompt(chunk=40), max_steps=3)
    found = told(whole, cut)
    assert "A serves 3 of 3 requests, B serves 0." in found.sentences
    assert found.sentences[-1] == "B was cut after 3 steps: its figures are of these alone."


def test_no_request_at_all():
    run = ran("none", load())
    found = told(run, run)
    assert found.headline == "No request asks for anything"
    assert len(found.sentences) == 1


def test_streaming_users_alone_have_stalls_and_no_requests():
    run = ran("users", load(users=2, lead_in=3))
    found = told(run, run)
    assert found.sentences == ("The longest stall is 1 ms under both; P99 ITL is 1 ms either way.",)


@pytest.mark.parametrize("number", [1, 2])
def test_headlines_and_captions_fit_a_phone(number):
    runs = pair()[:number]
    assert len(told(*pair()).headline) <= 45
    caption = traffic_caption(runs)
    assert all(len(line) <= 60 for line in caption)
    assert any("simulated by s11" in line for line in caption)
    assert runs[0].experiment.cost.formula() in caption
    long = [ran("x" * 50, load(request("A", 1))) for _ in range(number)]
    assert all(len(line) <= 60 for line in traffic_caption(long))


def test_different_costs_are_both_told():
    other = ran("other", load(request("A", 1)))
    caption = traffic_caption([pair()[0], other])
    assert pair()[0].experiment.cost.formula() in caption
    assert other.experiment.cost.formula() in caption


@pytest.mark.parametrize(
    ("names", "rows"),
    [([], 1), (["a"], 1), (["a", "b"], 1), (["a", "b", "c"], 2), (["a" * 30, "b"], 2)],
)
def test_a_legend_has_as_many_rows_as_a_phone_needs(names, rows):
    assert legend_rows(names) == rows


def test_a_name_too_long_for_a_phone_is_cut_with_a_mark():
    assert legend_name("a" * 48) == "a" * 48
    assert legend_name("a" * 49) == "a" * 47 + "…"


def test_lines_are_told_apart_without_colour():
    assert len({look.dash for look in RUN_LOOKS}) == len(RUN_LOOKS)
    assert len({(look.dash, look.symbol) for look in LINE_LOOKS}) == len(LINE_LOOKS)
    assert len({look.colour for look in LINE_LOOKS}) == len(LINE_LOOKS)


def test_a_hostile_name_is_text_in_every_picture():
    evil = "<b onclick=x>%{y}</b>"
    run = ran(evil, two_streams_and_a_prompt(chunk=40))
    targets = {"itl_target_ms": 50.0, "ttft_target_ms": 100.0}
    point = SimpleNamespace(
        rate_per_s=1.0,
        goodput_per_s=1.0,
        itl_p99_ms=1.0,
        scheduling_delay_p50_ms=1.0,
        holds=True,
    )
    curve = CapacityCurve(label=evil, points=(point,))
    line = TargetCurve(label=evil, chunk_tokens=(64,), highest_per_s=(1.0,))
    for spec in (
        cdf_figure(cdf_info([run, run], **targets)),
        over_time_figure(over_time_info([run, run], itl_target_ms=50.0)),
        attainment_figure(attainment_info([run, run], **targets)),
        capacity_figure(capacity_info([curve], targets=evil, caption=[evil])),
        chunk_capacity_figure(chunk_capacity_info([line], caption=[evil])),
    ):
        read = [note["text"] for note in spec["layout"]["annotations"]]
        read.append(spec["layout"]["title"]["text"])
        for trace in spec["data"]:
            told = trace.get("hovertext", [])
            read += [trace.get("name", ""), trace.get("hovertemplate", ""), *told]
        assert any("onclick" in text for text in read)
        assert not any("<b onclick" in text for text in read)
        assert not any("%{y}</b>" in trace.get("hovertemplate", "") for trace in spec["data"])
