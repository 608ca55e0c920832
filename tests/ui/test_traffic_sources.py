"""The traffic page's closed-loop clients and sample traces, without a browser."""

import csv
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from s11.cli import _parser
from s11.commands import experiment_from
from s11.traces import SAMPLES, sample_path
from s11.ui import traffic_runs, traffic_samples
from s11.ui.traffic_command import export_command, simulate_command
from s11.ui.traffic_controls import closed_loop_words
from s11.ui.traffic_page import NEEDS_A_RATE
from s11.ui.traffic_setup import ClosedLoopTraffic, SampleTrace, Setup, Side
from s11.ui.traffic_state import CLOSED, OPEN, SAMPLE

ROOT = Path(__file__).resolve().parents[2]
CLIENTS = {"arrivals": CLOSED, "clients": "4", "think_ms": "250", "request_count": "40"}
# Rows of the files, and those of them that got an answer, counted by hand.
ROWS = {"Azure": (32, 31), "BurstGPT": (28, 26), "Mooncake": (24, 24), "vllm bench": (14, 13)}


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "traffic.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def words(app):
    return " ".join(block.value for block in app.markdown).replace("\\", "")


def setup(source, **changes):
    asked: dict[str, Any] = {
        "source": source,
        "side": Side(policy="chunked", chunk_tokens=512),
        "most_running": 64,
        "prefix_caching": False,
        "machine": None,
        "ttft_target_ms": 2_000.0,
        "itl_target_ms": 50.0,
    }
    return Setup(**asked | changes)


def clients(**changes):
    asked: dict[str, Any] = {"preset": "openchat", "clients": 4, "think_ms": 250.0}
    return ClosedLoopTraffic(**asked | {"request_count": 22, "seed": 3} | changes)


def test_clients_who_wait_are_run_and_told(page):
    app = page(**CLIENTS)
    assert not app.exception
    assert not app.error
    assert not app.info  # the link is whole
    told = words(app)
    assert "4 clients, 10 requests each" in told
    assert "Clients wait for their answers: " in told
    assert "Both serve all 40 requests" in told
    for code in app.code:
        assert " --clients 4 --think-ms 250 --requests 40 " in code.value
        assert "--rate-per-s" not in code.value
        assert "--burstiness" not in code.value
    assert app.number_input(key="burstiness").disabled
    assert len(app.get("plotly_chart")) == 3


def test_the_arrivals_can_be_changed_and_changed_back(page):
    app = page(request_count="40")
    before = {metric.label: metric.value for metric in app.metric}
    app.segmented_control(key="arrivals").set_value(CLOSED).run()
    assert "32 clients, 1 or 2 requests each" in words(app)
    app.segmented_control(key="arrivals").set_value(OPEN).run()
    assert not app.exception
    assert {metric.label: metric.value for metric in app.metric} == before
    assert "clients" not in words(app)


def test_each_next_request_is_sent_the_think_time_after_an_answer():
    table = traffic_runs.run(setup(clients())).result.requests
    sent, ended = table.arrival_ms, table.last_token_ms
    assert np.array_equal(sent[:4], np.zeros(4))  # all begin at once
    np.testing.assert_allclose(sent[4:], ended[:-4] + 250.0, rtol=0, atol=1e-6)
    for moment in sent:  # never more than four are under way
        assert np.count_nonzero((sent <= moment) & (moment < ended)) <= 4


@pytest.mark.parametrize(
    ("clients_", "requests", "told"),
    [
        (4, 40, "4 clients, 10 requests each."),
        (32, 600, "32 clients, 18 or 19 requests each."),  # 600 = 8 x 18 + 24 x 19
        (8, 3, "3 clients, 1 request each; the other 5 have none to send."),
        (3, 3, "3 clients, 1 request each."),
    ],
)
def test_who_sends_how_many(clients_, requests, told):
    assert closed_loop_words(clients_, requests).startswith(told)


@pytest.mark.parametrize("think_ms", [0.0, 0.5, 60_000.0])
def test_the_commands_of_clients_give_the_same_experiment(think_ms):
    asked = setup(clients(think_ms=think_ms))
    commands = [
        simulate_command(asked),
        export_command(asked, format_name="chrome", output="out.json", trace_name="TRACE"),
    ]
    for command in commands:
        told = experiment_from(_parser().parse_args(command.split(" ")[3:]))
        assert told == asked.experiment(traffic_runs.workload(asked.source))


def test_capacity_says_that_clients_have_no_rate(page):
    app = page(**CLIENTS, traffic_mode="Capacity")
    assert not app.exception
    assert not app.error
    assert [info.value for info in app.info] == [NEEDS_A_RATE]
    assert "traffic_search" not in [button.key for button in app.button]
    app.segmented_control(key="arrivals").set_value(OPEN).run()
    assert not app.info
    assert app.button(key="traffic_search").label == "Search the highest rates"


def test_clients_cannot_be_brought_to_a_rate():
    with pytest.raises(ValueError, match="rate_per_s: 2 does not go with closed-loop clients"):
        traffic_runs.at_rate(clients(), 2.0)


def test_the_samples_on_the_page_are_those_that_are_shipped():
    assert sorted(traffic_samples.TITLES.values()) == sorted(SAMPLES)
    assert traffic_samples.DEFAULT in traffic_samples.TITLES
    with sample_path("made-up-azure.csv").open() as file:
        rows = [*csv.DictReader(file)]
    answered = [row for row in rows if row["GeneratedTokens"] != "0"]
    assert (len(rows), len(answered)) == ROWS["Azure"]
    bench = json.loads(sample_path("made-up-bench.json").read_text())
    assert (len(bench["input_lens"]), bench["completed"]) == ROWS["vllm bench"]


@pytest.mark.parametrize("title", traffic_samples.TITLES)
def test_a_sample_is_run_without_an_upload(page, title):
    rows, requests = ROWS[title]
    app = page(traffic=SAMPLE, sample=title)
    assert not app.exception
    assert not app.error
    assert not app.info
    told = words(app)
    assert f"{requests} requests of {rows} rows read" in told
    assert f"Both serve all {requests} requests" in told
    name = traffic_samples.TITLES[title]
    assert f"--trace {name} --first 2000 --time-scale 1" in app.code[0].value
    assert "not the uploaded file" not in told
    (table, _) = [html for html in app.get("html") if 'class="stalls"' in html.proto.body]
    assert "traffic=A+sample+trace" in table.proto.body  # a link carries a sample


def test_a_sample_is_cut_and_played_like_any_trace(page):
    # Of the Mooncake sample, 0.56 s is the first request: from 2 s on (2.56 s) the third is first.
    app = page(
        traffic=SAMPLE, sample="Mooncake", trace_from="2", trace_first="2", trace_scale="0.5"
    )
    assert not app.exception
    assert "Both serve all 2 requests" in words(app)
    source = SampleTrace(name="made-up-mooncake.jsonl", begin_s=2.0, first=2, time_scale=0.5)
    requests = traffic_runs.workload(source).requests
    assert [request.prompt_tokens for request in requests] == [2994, 3279]
    assert [request.arrival_ms for request in requests] == [380.0, 1690.0]  # half of 760, 3380


@pytest.mark.parametrize("name", SAMPLES)
def test_the_command_of_a_sample_gives_the_same_experiment(name, monkeypatch):
    monkeypatch.chdir(sample_path(name).parent)  # where the saved file would lie
    asked = setup(SampleTrace(name=name, time_scale=0.5), prefix_caching=True)
    command = simulate_command(asked).split(" ")
    told = experiment_from(_parser().parse_args(command[3:]))
    assert told == asked.experiment(traffic_runs.workload(asked.source))


def test_capacity_of_a_sample_says_how_little_it_can_tell(page):
    app = page(traffic=SAMPLE, traffic_mode="Capacity")
    assert not app.exception
    assert "31 requests will do up to 0.39 per second" in words(app)  # 31 / 80
    assert "--trace made-up-azure.csv" in app.code[0].value


def test_an_empty_part_of_a_sample_is_one_sentence(page):
    app = page(traffic=SAMPLE, trace_from="500")
    assert not app.exception
    assert len(app.error) == 1
    assert "no request between 500 s" in app.error[0].value
