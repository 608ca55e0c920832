"""The report of runs: which pictures it has, and that it is the same for equal runs."""

import json
import re
from dataclasses import replace

import plotly.graph_objects as go
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment, simulate
from s11.figures.report import report_pieces
from s11.figures.traffic_look import TrafficRun
from tests.loads import load, random_kv_experiment, random_policy_experiment, request
from tests.test_html_report import Read

RANDOM = st.randoms(use_true_random=False)


def run(experiment: Experiment, label: str = "Chunked") -> TrafficRun:
    return TrafficRun.of(label, experiment, simulate(experiment))


def whole_of(experiment: Experiment) -> TrafficRun:
    return run(experiment.chunking_off(), "Whole")


def text(*runs: TrafficRun, whole: TrafficRun | None = None) -> str:
    """The page without plotly.js, which is 5 MB of it."""
    page = "".join(report_pieces(runs, version="1.2.3", commands=["python -m s11"], whole=whole))
    page, libraries = re.subn(
        r"<script>.{100000,}?</script>", "<script></script>", page, flags=re.S
    )
    assert libraries == 1
    return page


def figures(page: str) -> list[str]:
    """Which figures a page holds; each is one that plotly.js takes."""
    names = []
    for script in Read(page).text["script"]:
        if not script.startswith('{"config"'):
            continue
        spec = json.loads(script)["spec"]
        go.Figure(spec)
        names.append(spec["layout"]["meta"]["figure"])
    return names


MANY = load(*[request(f"r{n}", 40, output_tokens=5, arrival_ms=5.0 * n) for n in range(8)], chunk=8)


def test_the_chapters_scenario_has_its_two_timelines() -> None:
    experiment = Experiment()
    page = text(run(experiment), whole=whole_of(experiment))
    assert figures(page) == ["timeline", "timeline"]
    read = Read(page)
    assert read.text["h1"] == ["No stall over 50 ms"]
    assert "23.6 ms" in read.text["p"][0]
    cells = read.text["td"]
    assert cells[cells.index("Longest stall") + 1] == "23.632"
    assert "Simulated by s11 1.2.3." in page
    source = read.text["pre"][-1]
    assert Experiment.from_dict(json.loads(source)) == experiment


def test_whole_prompts_have_one_timeline() -> None:
    whole = whole_of(Experiment())
    assert figures(text(whole, whole=whole)) == ["timeline"]


def test_traffic_has_its_distributions() -> None:
    names = ["traffic-cdf", "traffic-attainment", "traffic-over-time"]
    assert figures(text(run(MANY))) == names
    assert figures(text(run(MANY, "A"), run(MANY.chunking_off(), "B"))) == names
    beside = replace(MANY, workload=replace(MANY.workload, streaming_users=2))
    page = text(run(beside), whole=whole_of(beside))
    assert figures(page) == ["timeline", "timeline", *names]


def test_two_runs_stand_side_by_side() -> None:
    read = Read(text(run(MANY, "as is"), run(MANY.with_chunk_tokens(4), "small")))
    assert read.text["th"][-4:] == ["", "A: as is", "B: small", "unit"]
    cells = read.text["td"]
    at = cells.index("Chunk cap of one prompt")
    assert cells[at : at + 4] == ["Chunk cap of one prompt", "8", "4", "tokens"]


def test_equal_runs_give_equal_pages() -> None:
    experiment = Experiment()
    both = [text(run(experiment), whole=whole_of(experiment)) for _ in range(2)]
    assert both[0] == both[1]
    assert not re.search(r"\b20[0-9]{2}-[01][0-9]-[0-3][0-9]\b", both[0])


def test_a_hostile_request_stays_text() -> None:
    name = "</script><img src=x onerror=alert(1)>"
    experiment = load(request(name, 30), users=2, chunk=8)
    read = Read(text(run(experiment), whole=whole_of(experiment)))
    assert "img" not in [tag for tag, _ in read.elements]


def test_a_large_workload_is_not_spelled_out() -> None:
    many = load(*[request(str(n), 3, arrival_ms=float(n)) for n in range(201)])
    assert len(Read(text(run(many))).text["pre"]) == 1  # the command


def test_no_run_and_three_runs_are_refused() -> None:
    one = run(MANY)
    for runs in ([], [one, one, one]):
        with pytest.raises(ValueError, match="runs: "):
            report_pieces(runs, version="1")


@settings(max_examples=12)
@given(st.one_of(RANDOM.map(random_kv_experiment), RANDOM.map(random_policy_experiment)))
def test_any_run_has_a_report(experiment: Experiment) -> None:
    whole = whole_of(experiment) if experiment.chunking else run(experiment)
    page = text(run(experiment), whole=whole)
    assert figures(page)
    assert Read(page).text["h1"][0]
