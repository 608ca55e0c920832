"""The production page without a browser: table, commands, myths, links good and hostile."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from s11.engine_knobs import ENGINE_KNOBS, ENGINES, chosen_knobs
from s11.ui.compare_link import LINK_CHECKS as COMPARE_CHECKS
from s11.ui.compare_link import from_link
from s11.ui.production_knobs import table_html
from s11.ui.production_links import knob_address
from s11.ui.production_state import KNOB_TITLES, LINK_CHECKS, PRESETS
from s11.ui.simulator_state import LINK_CHECKS as SIMULATOR_CHECKS

ROOT = Path(__file__).resolve().parents[2]
MYTHS = ("flops", "mean", "smaller", "mixing")
SETTINGS = ("budget", "chunk", "seats", "chunking", "mixed", "gpu", "tp", "precision", "config")


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "production.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def meta(app, myth):
    spec = json.loads(app.get("plotly_chart")[MYTHS.index(myth)].proto.spec)
    return spec["layout"]["meta"]


def table(app):
    """The flags in the table, in order."""
    (html,) = [b.proto.body for b in app.get("html") if "Flags of serving" in b.proto.body]
    return re.findall(r'data-head="Flag"><code>([^<]*)</code>', html)


def links(app, start):
    return [
        dict(parse_qsl(urlsplit(unescape(address)).query))
        for block in app.get("html")
        for address in re.findall(r'href="([^"]*)"', block.proto.body)
        if unescape(address).startswith(start)
    ]


def test_arrives_full_without_a_single_click(page):
    app = page()
    assert not app.exception
    assert not app.error
    assert not app.info
    assert [meta(app, myth)["figure"] for myth in MYTHS] == [f"myth-{myth}" for myth in MYTHS]
    assert all(chart.proto.alt for chart in app.get("plotly_chart"))
    budgets = [row.flag for row in chosen_knobs(knob="token_budget")]
    assert table(app) == budgets
    assert len(app.code) == len(ENGINES)
    assert f"5 of {len(ENGINE_KNOBS)} flags" in " ".join(block.value for block in app.markdown)
    assert meta(app, "flops")["flops"][0] == meta(app, "flops")["flops"][1]


def test_filters_of_the_table(page):
    app = page(of_engine="llama.cpp", of_knob="All")
    assert table(app) == ["-b", "-ub", "-np", "-cb", "--cache-prompt", "-c"]
    app = page(of_engine="llama.cpp", of_knob="Chunk cap")
    assert "This engine has no flag" in " ".join(block.value for block in app.markdown)
    app = page(of_knob="Not simulated")
    assert len(table(app)) == len([row for row in ENGINE_KNOBS if row.knob is None])
    app = page(of_knob="All")
    assert len(table(app)) == len(ENGINE_KNOBS)


@pytest.mark.parametrize("row", ENGINE_KNOBS, ids=lambda row: f"{row.engine} {row.flag}")
def test_every_knob_has_a_link_that_its_page_can_hold(row):
    address = knob_address(row)
    if row.knob in (None, "max_model_len"):
        assert address is None
        return
    assert address is not None
    parameters = dict(parse_qsl(urlsplit(address).query))
    checks = COMPARE_CHECKS if address.startswith("./compare?") else SIMULATOR_CHECKS
    for name, value in parameters.items():
        checks[name](value)
    if checks is COMPARE_CHECKS:
        plain, changed = from_link(parameters).entries
        assert [knob for knob, _ in changed.changes] == [row.knob]
        assert plain != changed


def test_table_says_what_is_not_verified_and_escapes():
    (row,) = chosen_knobs(engine="llama.cpp", knob="max_seqs")
    html = table_html((row,))
    assert "<b>Not verified:</b> how many slots automatic gives" in html
    assert "<code>-np</code> <code>--parallel</code>" in html
    assert 'role="table"' in html


def test_knobs_are_in_the_commands(page):
    app = page(
        budget="2048", chunk="512", seats="128", prefix="off", tp="2", mixed="true",
        model="Qwen3-32B",
    )  # fmt: skip
    vllm, sglang, tensorrt, llama, lmdeploy = [block.value for block in app.code]
    assert vllm.startswith("vllm serve Qwen/Qwen3-32B \\\n  --tensor-parallel-size 2")
    assert "--max-num-batched-tokens 2048" in vllm
    assert "--no-enable-prefix-caching" in vllm
    assert "--enable-mixed-chunk" in sglang
    assert "enable_block_reuse: false" in tensorrt
    assert "-b 2048" in llama
    assert "--max-prefill-token-num 512" in lmdeploy
    told = [block.value for block in app.markdown]
    assert sum("No flag for the chunk cap." in text for text in told) == 2
    app.number_input(key="seats").set_value(4096).run()
    assert "refuses a budget of 2,048 below 4,096 seats" in " ".join(
        block.value for block in app.markdown
    )
    app.number_input(key="budget").set_value(None).run()
    assert "batched" not in app.code[0].value
    assert not app.exception


def test_settings_go_to_the_simulator_and_its_names_come_back(page):
    app = page(budget="2048", chunk="768", seats="64", chunking="false", mixed="true", tp="2")
    opened = [link for link in links(app, "./?") if "model" in link]
    (asked,) = opened
    assert asked == {
        "model": "Llama-3.1-8B",
        "gpu": "H100",
        "tp": "2",
        "precision": "bf16",
        "budget": "2048",
        "chunk": "768",
        "seats": "64",
        "chunking": "false",
        "mixed": "true",
    }
    for name, value in asked.items():
        SIMULATOR_CHECKS[name](value)
        LINK_CHECKS[name](value)
    again = page(**asked)
    assert not again.info
    assert [b.value for b in again.code] == [b.value for b in app.code]
    assert all(name in LINK_CHECKS and name in SIMULATOR_CHECKS for name in SETTINGS)


def test_every_control_changes_its_myth(page):
    app = page()
    before = {myth: meta(app, myth) for myth in MYTHS}
    app.select_slider(key="flops_chunk").set_value(256).run()
    assert meta(app, "flops")["read_bytes"][1] > before["flops"]["read_bytes"][1]
    assert meta(app, "flops")["flops"] == before["flops"]["flops"]
    app.select_slider(key="mean_chunk").set_value(256).run()
    assert meta(app, "mean")["longest_ms"][1] < before["mean"]["longest_ms"][1]
    app.select_slider(key="small_chunk").set_value(2048).run()
    assert meta(app, "smaller")["chunk_tokens"] == 2048
    app = page(mix_load="32 prompts, no stream")
    assert meta(app, "mixing")["itl_p50_ms"] == []
    assert len(meta(app, "mixing")["ttft_p50_ms"]) == 3


def test_machine_changes_every_myth(page):
    small, large = page(model="Phi-2", gpu="L4"), page()
    assert not small.exception
    for myth in MYTHS:
        assert meta(small, myth) != meta(large, myth)


def test_model_that_does_not_fit_is_refused_in_a_sentence(page):
    app = page(model="Llama-2-70B")
    assert not app.exception
    assert "does not fit 1 × H100" in app.error[0].value
    assert app.get("plotly_chart") == []
    assert table(app)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_link_that_the_page_can_hold(page, name):
    for key, value in PRESETS[name].items():
        LINK_CHECKS[key](value)
    app = page(**PRESETS[name])
    assert not app.exception
    assert not app.info
    assert not app.error


def test_hostile_links_give_notes_and_defaults(page):
    names = [name for name in LINK_CHECKS if name not in ("picture", "config")]
    for value in ("", "-1", "1e400", "<b>"):
        app = page(**dict.fromkeys(names, value))
        assert not app.exception, value
        assert table(app) == [row.flag for row in chosen_knobs(knob="token_budget")], value
        assert "Parts of this link" in app.info[0].value
    app = page(prompt="8192")
    assert "prompt: this page has no such setting" in app.info[0].value


def test_knobs_of_the_table_all_have_a_name():
    assert set(KNOB_TITLES) == {row.knob for row in ENGINE_KNOBS if row.knob}


def test_the_simulator_links_to_its_commands():
    def simulator():
        import streamlit as st

        from s11.ui.production_link import production_link

        st.session_state.update(budget=4096, chunk=512, seats=None, chunking=True, model="Phi-2")
        production_link()

    app = AppTest.from_function(simulator).run()
    assert not app.exception
    (asked,) = links(app, "./production?")
    assert asked == {"model": "Phi-2", "budget": "4096", "chunk": "512"}
