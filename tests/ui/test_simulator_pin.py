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


def sentence(app: AppTest) -> str:
    return next(block.value for block in app.markdown if "Against A" in block.value)


def test_the_sentence_tells_now_against_a_and_no_more_against_chunking_off(page):
    """78.928 / 23.632 = 3.34; 189.056 - 157.856 = 31.2; 152.656 / 78.928 is below 2."""
    told = sentence(page(pin="chunk=4096"))
    assert told.endswith(
        "Against A, the pinned run: longest stall 23.6 ms instead of 78.9 ms, 3.3× less; "
        "TTFT 189 ms instead of 158 ms, 31.2 ms more."
    )
    assert "chunking off" not in told
    told = sentence(page(pin="chunk=4096", chunking="false"))
    assert "longest stall 153 ms instead of 78.9 ms, 73.7 ms more; TTFT 153 ms instead" in told
    told = sentence(page(pin="chunk=1024", chunking="false"))  # 152.656 / 23.632 = 6.46
    assert "longest stall 153 ms instead of 23.6 ms, 6.5× as long" in told
    off = page().markdown
    assert any("of chunking off" in block.value for block in off)
    assert not any("Against A" in block.value for block in off)


def test_the_sentence_holds_where_a_or_now_has_no_figure(page):
    told = sentence(page(pin="chunk=1024&users=0", users="0"))  # 8 * 4 + 147.456
    assert told.endswith("longest stall none, as there; TTFT 179 ms, as there.")
    assert "chunking off" not in told
    assert "Against A, the pinned run: longest stall 23.6 ms instead of none; TTFT" in sentence(
        page(pin="chunk=1024&users=0")
    )
    never = "chunk=8192&chunking=false&budget=4096"
    told = sentence(page(pin=never))
    assert "Against A, the pinned run, which leaves a prompt waiting for ever: longest" in told
    assert told.endswith("TTFT 189 ms instead of never.")
    told = sentence(page(pin="chunk=1024", chunking="false", budget="4096"))
    assert told.endswith("TTFT never instead of 189 ms.")


def test_the_table_has_the_figures_and_steps_of_both(page):
    app = page(pin="chunk=4096", users="0")
    app.session_state["table"] = True
    its_steps, steps = (frame.value for frame in app.run().dataframe)
    (figures_of_both,) = (table.value for table in app.table)
    both = dict(zip(figures_of_both["figure"], figures_of_both["A, pinned"], strict=True))
    assert both["longest stall (ms)"] == "78.928"
    now = dict(zip(figures_of_both["figure"], figures_of_both["now"], strict=True))
    assert now["TTFT (ms)"] == "179.456"  # 8 * 4 + 0.018 * 8,192
    assert (now["longest stall (ms)"], now["steps"]) == ("none", "8")
    assert its_steps["prefill_tokens"].tolist() == [0, 0, 4096, 4096, 0, 0, 0]
    assert steps["prefill_tokens"].tolist() == [1024] * 8
    assert [c.value for c in app.caption][-2:] == [
        "The steps of A, the pinned run",
        "The steps of what is set now",
    ]
    app.button(key="unpin_a").click().run()
    assert len(app.dataframe) == 1


def test_a_stays_pinned_over_a_link_that_lost_it_until_it_is_unpinned(page):
    app = page(pin="chunk=4096")
    del app.query_params["pin"]  # as a switch to another page and back leaves it
    app.run()
    assert pin(app) == {"chunk": ["4096"]}
    assert figures(app)["Longest stall"] == ("23.6 ms", "-55.3 ms")
    app.button(key="unpin_a").click().run()
    app.run()
    assert "pin" not in app.query_params
    assert figures(app)["Longest stall"] == ("23.6 ms", "-129 ms")


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
