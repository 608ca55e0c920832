"""What is sent ahead for the slider's stops is what the page shows at each of them."""

import gzip
import json
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from s11.experiment import Experiment
from s11.figures.timeline_info import Axis
from s11.ui import simulator_state as state
from s11.ui.runs import run
from s11.ui.simulator_picture import scenario_name
from s11.ui.simulator_state import View
from s11.ui.simulator_stops import MOST_STEPS_IN_ALL, Stops, slider_stops

ROOT = Path(__file__).resolve().parents[2]
BY_TIME = View(axis=Axis.TIME, zoom_on_target=False)


def unpacked(stops: Stops) -> dict[str, Any]:
    told: dict[str, Any] = json.loads(gzip.decompress(stops.packed))
    return told


def sent(values: dict[str, Any], sizes: tuple[int, ...], *, view: View = BY_TIME) -> Stops:
    return slider_stops(state.experiment(values), view, None, sizes)


@pytest.mark.parametrize(
    "link",
    [
        {},
        {"model": "Llama-3.1-8B", "prompt": "4096", "axis": "by step", "pin": "chunk=512&users=3"},
        {"policy": "SGLang", "prompt": "2000", "prompts": "2", "budget": "1024", "zoom": "true"},
    ],
)
def test_each_stop_is_what_the_page_shows_there(link: dict[str, str]):
    app = AppTest.from_file(str(ROOT / "pages" / "simulator.py"), default_timeout=60)
    for name, value in link.items():
        app.query_params[name] = value
    app.run()
    view = View(axis=Axis(link.get("axis", "by time")), zoom_on_target="zoom" in link)
    checks = state.SCENARIO_CHECKS
    described = state.experiment({n: checks[n](v) for n, v in link.items() if n in checks})
    pinned = state.experiment(state.pinned_values(link["pin"])) if "pin" in link else None
    sizes = tuple(int(option) for option in app.select_slider(key="chunk").options)
    stops = unpacked(slider_stops(described, view, pinned, sizes))["stops"]
    assert sorted(stop["chunk"] for stop in stops) == list(sizes)
    for stop in stops:
        app.select_slider(key="chunk").set_value(stop["chunk"]).run()
        chart = app.get("plotly_chart")[0].proto
        assert json.loads(stop["spec"]) == json.loads(chart.spec)
        assert stop["alt"] == chart.alt
        shown = [(metric.label, metric.value, metric.delta) for metric in app.metric]
        assert shown == [(h["label"], h["value"], h["delta"] or "") for h in stop["headlines"]]
        words, said = stop["words"], " ".join(block.value for block in app.markdown)
        assert f"**{words['headline']}.** {words['sentence']}" in said
        assert words["trade_off"] in said


def test_stops_do_not_depend_on_where_the_slider_is():
    sizes = (512, 1024)
    assert sent({"chunk": 512}, sizes) is sent({"chunk": 1024}, sizes)


def test_another_scenario_has_another_name():
    plain = state.experiment({})
    other = View(axis=Axis.STEP, zoom_on_target=False)
    names = {
        scenario_name(plain, BY_TIME, None),
        scenario_name(plain, other, None),
        scenario_name(plain, BY_TIME, plain),
        scenario_name(state.experiment({"users": 8}), BY_TIME, None),
        scenario_name(plain.chunking_off(), BY_TIME, None),
    }
    assert len(names) == 5
    assert scenario_name(state.experiment({"chunk": 64}), BY_TIME, None) in names


@pytest.mark.parametrize(
    ("values", "sizes", "left_out"),
    [
        # Chunks of 1: 131,072 steps, more than a run may have.
        ({"prompt": 131_072}, (1, 64, 1024), (1,)),
        # One token beside the 24 users: 8,192 steps whatever the chunk; only one such run is made.
        ({"budget": 25}, (64, 1024, 8192), (64, 1024)),
        # A prefill step in every 100: 12,800 steps at 64, 800 at 1,024.
        ({"interval": 100}, (64, 1024), (64,)),
    ],
)
def test_work_is_bounded_by_leaving_the_smallest_chunks_out(
    values: dict[str, Any], sizes: tuple[int, ...], left_out: tuple[int, ...]
):
    stops = sent(values, sizes)
    assert stops.left_out == left_out
    made = [stop["chunk"] for stop in unpacked(stops)["stops"]]
    assert sorted([*made, *left_out]) == list(sizes)

    def steps(chunk_tokens: int) -> int:
        described: Experiment = state.experiment(values)
        return len(run(described.with_chunk_tokens(chunk_tokens)).result.steps)

    assert sum(map(steps, made)) <= MOST_STEPS_IN_ALL


def test_what_is_sent_is_small():
    """The page's own script is some hundred kB; a scenario's stops should cost less than that."""
    sizes = tuple(state.chunk_stops(prompt_tokens=8192, extra=[]))
    assert len(sent({}, sizes).packed) < 100_000
