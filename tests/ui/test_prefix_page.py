"""The prefix page without a browser: arrival, both loads, every preset, links good and hostile."""

import json
from pathlib import Path
from urllib.parse import parse_qsl, urlencode

import numpy as np
import pytest
import streamlit as st
from streamlit.testing.v1 import AppTest

from s11.ui.prefix_state import BOUNDS, DEFAULTS, LINK_CHECKS, PRESETS, Load, experiment
from s11.ui.runs import run
from tests.ui.hostile_links import hostile_links, noted

ROOT = Path(__file__).resolve().parents[2]
STEPS, TTFT, BLOCKS = range(3)
SHARED = str(Load.SHARED)


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "prefix.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def chart(app, which):
    return app.get("plotly_chart")[which].proto


def meta(app, which):
    return json.loads(chart(app, which).spec)["layout"]["meta"]


def words(app):
    return " ".join(block.value for block in app.markdown)


def figures(app):
    return {metric.label: metric.value for metric in app.metric}


def test_arrives_full_without_a_single_click(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert not app.error
    # Turns of 3,000, 4,250, ... 9,250 tokens: 3 + 5 + 6 + 7 + 8 + 10 chunks of 1,024. Each turn
    # but the first finds the whole blocks of 16 of 3,249, 4,499, 5,749, 6,999 and 8,249 tokens:
    # 3,248 + 4,496 + 5,744 + 6,992 + 8,240 = 28,720 of 36,750, and one chunk each is left.
    assert figures(app)["Skipped chunks"] == "31 of 39"
    assert figures(app)["Computed tokens"] == "8,030"
    assert figures(app)["Hit rate"] == "78.1%"
    assert "28,720 of 36,750 tokens are hits" in words(app)
    assert "8 chunks over 8 steps instead of 6" in words(app)
    # 9,250 tokens whole: 4 + 166.5 + 24 x 0.05 = 171.7; 1,024: 4 + 18.432 + 1.2 = 23.632;
    # 3,000 whole: 4 + 54 + 1.2 = 59.2.
    np.testing.assert_allclose(meta(app, STEPS)["longest_stall_ms"], [171.7, 23.632, 59.2, 23.632])
    assert "falls from 172 ms to **23.6 ms** (cache alone 59.2 ms" in words(app)
    assert [chart(app, which).alt.split(" ")[0] for which in (STEPS, TTFT, BLOCKS)] == [
        "Prefill",
        "TTFT",
        "KV",
    ]


def test_every_turn_comes_after_the_answer_before_it(page):
    for parameters in (
        {},
        {"prefix_chunk": "256", "message": "4096", "answer": "300"},
        {"chats": "2", "turns": "3", "pool": "500", "prefix_users": "128"},
    ):
        app = page(**parameters)
        assert not app.error
        for caching in (False, True):
            for chunking in (False, True):
                asked = experiment_of(app.session_state, caching=caching, chunking=chunking)
                requests = run(asked).result.requests
                assert np.all(requests.arrival_ms[1:] >= requests.last_token_ms[:-1])


def experiment_of(values, *, caching, chunking):
    """The experiment of these controls' values, as the page's own session would say it."""
    kept = {key: values[key] for key in DEFAULTS if key in values}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(st, "session_state", kept)
        return experiment(caching=caching, chunking=chunking)


def test_shared_system_prompt_by_its_own_controls(page):
    app = page(load=SHARED)
    assert not app.exception
    labels = {field.label for field in app.number_input}
    assert {"Requests", "Shared (tokens)", "Own (tokens)", "Between arrivals (ms)"} <= labels
    assert "Turns" not in labels
    # 4,500 tokens: 5 chunks each; 4,000 are 250 whole blocks, so 500 and one chunk are left.
    assert figures(app)["Skipped chunks"] == "20 of 30"
    assert figures(app)["Computed tokens"] == "7,000"
    app.number_input(key="shared").set_value(8_000).run()
    # 8,500 tokens: 9 chunks; 8 of them are skipped in each but the first.
    assert figures(app)["Skipped chunks"] == "40 of 54"


def test_switching_the_load_keeps_the_engine(page):
    app = page(block="64")
    app.get("button_group")[0].set_value(SHARED).run()
    assert not app.exception
    assert "Requests" in {field.label for field in app.number_input}
    assert app.select_slider(key="block").value == 64


def test_exactly_one_block_too_much(page):
    app = page(**PRESETS["Exactly one block too much"])
    # 1,024 tokens are 8 blocks of 128; 7 may be hit. The other three requests compute one again.
    assert meta(app, BLOCKS)["hit"] == 21
    assert meta(app, BLOCKS)["last_token"] == 3
    assert "3 blocks (384 tokens) since at least one token is computed" in words(app)
    app.number_input(key="own").set_value(1).run()
    assert meta(app, BLOCKS)["hit"] == 24
    assert meta(app, BLOCKS)["last_token"] == 0


def test_pool_too_small_evicts(page):
    app = page(**PRESETS["Pool too small: evicted"])
    assert meta(app, BLOCKS)["evicted"] > 0
    assert "since they had been evicted" in words(app)
    app.number_input(key="pool").set_value(2_000).run()
    assert meta(app, BLOCKS)["evicted"] == 0


def test_same_step_sharing(page):
    app = page(**PRESETS["Same-step sharing"])
    # Chunk by chunk: 0, 64, 128 and 192 blocks ahead of them are filled in the first step.
    assert meta(app, BLOCKS)["hit"] == 384
    assert "It hits 6,144 tokens less than whole prompts do (12,288)" in words(app)
    assert "All requests arrive at once." in words(app)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_link_that_the_page_can_hold(page, name):
    parameters = PRESETS[name]
    for key, value in parameters.items():
        LINK_CHECKS[key](value)
    app = page(**dict(parse_qsl(urlencode(parameters))))
    assert not app.exception
    assert not app.info
    assert not app.error
    assert len(app.get("plotly_chart")) == 3


def test_link_sets_every_control(page):
    app = page(
        turns="2", chats="3", system="17", message="33", answer="5", prefix_chunk="256",
        block="32", pool="50", prefix_users="3", picture="SVG",
    )  # fmt: skip
    assert not app.info
    chosen = {key: app.session_state[key] for key in ("turns", "chats", "system", "message")}
    assert chosen == {"turns": 2, "chats": 3, "system": 17, "message": 33}
    assert app.session_state["prefix_chunk"] == 256
    config = json.loads(chart(app, BLOCKS).config)
    assert config["toImageButtonOptions"]["format"] == "svg"
    # 6 requests; prompts of 17 + 33 = 50 and 50 + 5 + 33 = 88 tokens.
    assert (
        "6 prompts of 50 to 88 tokens"
        in json.loads(chart(app, STEPS).spec)["layout"]["title"]["text"]
    )


def test_pool_that_cannot_hold_a_request_is_refused_in_a_sentence(page):
    app = page(pool="593")
    # 9,250 + 249 tokens fill 593.7 blocks of 16.
    assert [error.value for error in app.error] == [
        "Pool: 593 blocks of 16 tokens cannot hold turn 6 (allowed: 594 or more, or none)."
    ]
    assert not app.exception
    assert not page(pool="594").error


def test_prompt_of_no_tokens_is_refused_in_a_sentence(page):
    app = page(load=SHARED, shared="0", own="0")
    assert "prompt_tokens: 0 is not a whole number from 1" in app.error[0].value
    assert not app.exception


@pytest.mark.parametrize(
    "parameters",
    [
        {"turns": "1", "answer": "1", "system": "0", "message": "1"},
        {"prefix_users": "0", "load": SHARED, "requests": "1", "shared": "0", "own": "1"},
        {"load": SHARED, "gap": "0", "requests": "16", "output": "300", "pool": "400"},
        {"load": SHARED, "requests": "1", "output": "1", "prefix_users": "0"},
        {"turns": "8", "chats": "3", "system": "16384", "message": "4096", "answer": "300",
         "prefix_chunk": "256"},
    ],
)  # fmt: skip
def test_ends_of_the_ranges_are_drawn(page, parameters):
    app = page(**parameters)
    assert not app.exception
    assert not app.error
    assert len(app.get("plotly_chart")) == 3


HOSTILE = ["", "-1", "1.5", "1e400", "nan", "0x10", "9" * 5000, "<b>", "1e1"]


HOSTILE_LINKS = hostile_links(
    {
        name: [*HOSTILE, str(BOUNDS[name][1] + 1)] if name in BOUNDS else HOSTILE[:4]
        for name in LINK_CHECKS
        if name != "picture"
    }
)


@pytest.mark.parametrize("link", HOSTILE_LINKS)
def test_hostile_link_gives_a_note_and_defaults(page, link):
    app = page(**{"turns": "1", "message": "1", **link})
    assert not app.exception
    assert noted(app) == set(link)
    assert app.session_state["load"] == DEFAULTS["load"]
    held = {name: app.session_state[name] for name in link if name in app.session_state}
    assert held == {name: DEFAULTS[name] for name in held}


def test_unknown_parameter_is_named(page):
    app = page(chunk="512")
    assert "chunk: this page has no such setting" in app.info[0].value.replace("\\", "")
    assert not app.exception


def test_downloads_are_not_made_before_they_are_asked_for(page):
    app = page(turns="2")
    assert app.get("download_button") == []
