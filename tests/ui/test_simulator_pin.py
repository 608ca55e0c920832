"""The pinned state A on the simulator page: in the link, in the figures, in the picture."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

import pytest
from streamlit.testing.v1 import AppTest

from s11.ui.simulator_state import pinned_values

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page() -> Callable[..., AppTest]:
    def open_page(**parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / "simulator.py"), default_timeout=30)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def figures(app: AppTest) -> dict[str, tuple[str, str]]:
    return {metric.label: (metric.value, metric.delta) for metric in app.metric}


def layout(app: AppTest) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]
    return shown


def pin(app: AppTest) -> dict[str, list[str]]:
    text = app.query_params["pin"]
    return parse_qs(text[0] if isinstance(text, list) else text)


def test_figures_are_held_against_the_pinned_state(page):
    """4,096-token chunks: two steps of 5.2 + 73.728 = 78.928 ms, TTFT 157.856 ms; 1,024: eight of
    23.632 ms, TTFT 189.056. 24 tokens in each of 7 and 13 steps of 183.856 and 215.056 ms."""
    app = page(pin="chunk=4096")
    assert not app.exception
    assert figures(app) == {
        "Longest stall": ("23.6 ms", "-55.3 ms"),
        "TTFT, long prompt": ("189 ms", "+31.2 ms"),
        "Steps over target": ("0", "-2"),
        "Decode throughput": ("1,451 tok/s", "+537 tok/s"),
    }
    told = layout(app)["title"]["text"]
    assert "A, outlined: 4,096-token chunks, stall 78.9 ms, TTFT 158 ms" in told
    assert "A: prompt" in layout(app)["yaxis2"]["ticktext"]


def test_the_pinned_state_itself_does_as_a(page):
    app = page(pin="chunk=1024")
    assert {delta for _, delta in figures(app).values()} == {"as with A"}


def test_chunking_off_can_be_held_against_a(page):
    app = page(pin="chunk=1024", chunking="false")
    # 152.656 - 23.632
    assert figures(app)["Longest stall"] == ("153 ms", "+129 ms")


def test_a_pin_keeps_what_was_set_and_the_controls_go_on(page):
    app = page(users="8", target="30", model="Llama-3.1-8B", tp="2")
    app.button(key="pin_a").click().run()
    settings = {"users": ["8"], "target": ["30.0"], "model": ["Llama-3.1-8B"], "tp": ["2"]}
    assert pin(app) == {"chunk": ["1024"], **settings}
    assert {delta for _, delta in figures(app).values()} == {"as with A"}
    app.number_input(key="users").set_value(9).run()
    assert "8 users" in layout(app)["title"]["text"]
    app.button(key="unpin_a").click().run()
    assert "pin" not in app.query_params
    assert "A: prompt" not in layout(app)["yaxis2"]["ticktext"]


def test_a_pinned_state_that_cannot_run_is_said_and_left_out(page):
    app = page(pin="chunk=1024&budget=10")
    assert not app.exception
    said = app.error[0].value.replace("\\", "")
    assert "A, the pinned state, cannot run: token_budget: 10 is less" in said
    assert figures(app)["Longest stall"] == ("23.6 ms", "-129 ms")


def test_values_of_a_pin_have_the_types_of_the_controls():
    values = pinned_values("chunk=512&chunking=false&target=12.5&policy=SGLang&tp=2")
    assert values == {
        "chunk": 512, "chunking": False, "target": 12.5, "policy": "SGLang", "tp": "2",
    }  # fmt: skip


@pytest.mark.parametrize("text", ["chunk", "chunk=0", "chunk=1&chunk=2", "pin=chunk%3D1"])
def test_what_is_no_state_cannot_be_pinned(text: str):
    with pytest.raises(ValueError, match="value: "):
        pinned_values(text)


def test_an_empty_pin_is_none(page):
    labels = [button.label for button in page(pin="").button]
    assert "Pin as A" in labels
    assert "Unpin" not in labels
