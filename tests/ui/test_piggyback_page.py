"""The piggybacking page without a browser: arrival, presets, machines, links good and hostile."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from s11.catalog import MODELS, Deployment
from s11.piggyback import step_curve
from s11.piggyback_rides import ride
from s11.ui.piggyback_state import CHUNKS, DEFAULTS, LINK_CHECKS, PRESETS
from s11.ui.simulator_state import LINK_CHECKS as SIMULATOR_CHECKS
from s11.words import count
from tests.ui.hostile_links import hostile_links, noted

ROOT = Path(__file__).resolve().parents[2]
CURVE, TILES, RIDE, MANY, SHARE = range(5)
H100 = Deployment(model=MODELS["llama-3.1-8b"], gpu="h100")


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "piggybacking.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def chart(app, which):
    return app.get("plotly_chart")[which].proto


def meta(app, which):
    return json.loads(chart(app, which).spec)["layout"]["meta"]


def caption(app, which):
    return json.loads(chart(app, which).spec)["layout"]["title"]["text"]


def words(app):
    return " ".join(block.value for block in app.markdown)


def figures(app):
    return {metric.label: metric.value for metric in app.metric}


def test_arrives_full_without_a_single_click(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert not app.error
    assert not app.warning
    names = ("curve", "tiles", "ride", "many", "share")
    assert [meta(app, which)["figure"] for which in range(5)] == [
        f"piggyback-{name}" for name in names
    ]
    assert all(chart(app, which).alt for which in range(5))
    turn = step_curve(H100, 0).turning_tokens
    assert turn is not None
    assert figures(app)["Turning point"] == count(turn, "token")
    told = ride(H100, prefill_tokens=992, start_token=0, decodes=32, context_tokens=1024)
    assert meta(app, RIDE)["aboard_ms"] == pytest.approx(told.aboard_ms)
    assert "32 decodes with 1,024 tokens of context each lengthen the step of 992" in words(app)
    assert "**In fp8 instead**" in words(app)
    assert "Llama-3.1-8B on H100" in caption(app, CURVE)


def test_every_control_changes_its_picture(page):
    app = page()
    before = [meta(app, which) for which in range(5)]
    app.select_slider(key="piggy_chunk").set_value(256).run()
    assert meta(app, CURVE)["chunk_tokens"] == 256
    assert meta(app, RIDE)["step_ms"][0] < before[RIDE]["step_ms"][0]
    assert meta(app, SHARE)["decode_half_tokens"] == before[SHARE]["decode_half_tokens"]
    chunk = meta(app, RIDE)
    app.select_slider(key="decodes").set_value(256).run()
    assert meta(app, RIDE)["alone_ms"] < chunk["alone_ms"]
    assert meta(app, MANY)["decodes"] == 256
    decodes = meta(app, RIDE)
    app.select_slider(key="context").set_value(8192).run()
    assert meta(app, RIDE)["step_ms"][2] > decodes["step_ms"][2]
    assert meta(app, RIDE)["step_ms"][0] == decodes["step_ms"][0]
    app.select_slider(key="start").set_value(65_536).run()
    assert meta(app, RIDE)["step_ms"][0] > decodes["step_ms"][0]
    assert "a chunk after 65,536 tokens" in caption(app, CURVE)
    assert not app.exception


def test_axes_and_edge(page):
    app = page(scale="linear", edge="512")
    assert not app.info
    assert meta(app, CURVE)["logarithmic"] is False
    assert meta(app, TILES)["edge_tokens"] == 512
    assert "512 → 513 tokens" in words(app)


def test_machine_changes_everything(page):
    app, small = page(), page(llm="Phi-2", gpu="L4")
    assert not small.exception
    for which in (CURVE, RIDE, SHARE):
        assert meta(small, which) != meta(app, which)
    assert "Phi-2 on L4 24 GB, bf16, not calibrated" in caption(small, SHARE)
    assert "not calibrated" in words(small)


@pytest.mark.parametrize(
    ("parameters", "prompt"),
    [({}, "992"), ({"start": "2048"}, "3040"), ({"start": "131072"}, "131072")],
)
def test_the_step_opens_in_the_simulator(page, parameters, prompt):
    app = page(**parameters, llm="Qwen3-32B", tp="4", precision="fp8")
    (link,) = [
        unescape(address)
        for block in app.get("html")
        for address in re.findall(r'href="([^"]*)"', block.proto.body)
        if address.startswith("./")
    ]
    asked = dict(parse_qsl(urlsplit(link).query))
    for name, value in asked.items():
        SIMULATOR_CHECKS[name](value)
    assert asked == {
        "model": "Qwen3-32B",
        "gpu": "H100",
        "tp": "4",
        "precision": "fp8",
        "prompt": prompt,
        "chunk": "992",
        "users": "32",
        "context": "1024",
    }


def test_fp8_is_set_against_bf16(page):
    app = page(**PRESETS["fp8 against bf16"])
    assert "**In bf16 instead**" in words(app)
    assert meta(app, RIDE)["step_ms"] != meta(page(), RIDE)["step_ms"]


def test_sarathis_figures_beside_ours_only_on_its_machine(page):
    app = page(**PRESETS["SARATHI: LLaMA-13B on A6000"])
    assert not app.exception
    assert not app.info
    (table,) = [frame.value for frame in app.dataframe]
    rows = table.set_index("LLaMA-13B on A6000")
    assert rows.loc["a decode aboard", "SARATHI (ms)"] == 1.2
    assert rows.loc["a decode alone", "SARATHI (ms)"] == 12.49
    assert "SARATHI's own figures" in words(app)
    assert "SARATHI's own figures" not in words(page())
    assert "3 decodes with 1,024 tokens of context each lengthen the step of 1,021" in words(app)


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_link_that_the_page_can_hold(page, name):
    parameters = PRESETS[name]
    for key, value in parameters.items():
        LINK_CHECKS[key](value)
    app = page(**dict(parse_qsl(urlencode(parameters))))
    assert not app.exception
    assert not app.info
    assert not app.error
    assert not app.warning
    assert len(app.get("plotly_chart")) == 5


def test_model_that_does_not_fit_is_refused_in_a_sentence(page):
    app = page(llm="Llama-2-70B")
    assert not app.exception
    assert "does not fit 1 × H100" in app.error[0].value
    assert app.get("plotly_chart") == []
    app = page(llm="Llama-2-70B", tp="8", gpu="A40")
    assert not app.error
    assert len(app.get("plotly_chart")) == 5


def test_heads_that_cannot_be_shared_are_refused_in_a_sentence(page):
    config = {"hidden_size": 768, "num_hidden_layers": 2, "intermediate_size": 3072}
    config |= {"num_attention_heads": 6, "vocab_size": 1000, "max_position_embeddings": 2048}
    own = {"llm": "Own model", "config": json.dumps({**config, "model_type": "llama"})}
    app = page(**own, tp="4")
    assert not app.exception
    assert "4 GPUs cannot share" in app.error[0].value
    assert app.get("plotly_chart") == []
    assert len(page(**own, tp="2").get("plotly_chart")) == 5


def test_own_model_without_a_config_is_asked_for_one(page):
    app = page(llm="Own model")
    assert "nothing is pasted yet" in app.error[0].value
    assert not app.exception


def test_more_kv_than_the_pool_is_told(page):
    app = page(decodes="512", context="131072")
    # 512 x 131,073 + 992 tokens.
    assert "This step holds 67,110,368 tokens of KV" in app.warning[0].value
    assert len(app.get("plotly_chart")) == 5


@pytest.mark.parametrize(
    "parameters",
    [
        {"piggy_chunk": "16", "decodes": "1", "context": "128", "start": "0", "edge": "64"},
        {"piggy_chunk": "16384", "decodes": "512", "context": "131072", "start": "131072",
         "edge": "1024", "scale": "linear", "precision": "fp8"},
        {"llm": "Phi-2", "gpu": "A100 80 GB", "precision": "fp8", "scale": "linear"},
    ],
)  # fmt: skip
def test_ends_of_the_ranges_are_drawn(page, parameters):
    app = page(**parameters)
    assert not app.exception
    assert not app.error
    assert len(app.get("plotly_chart")) == 5


def test_tables_and_downloads_are_not_made_before_they_are_asked_for(page):
    app = page()
    assert app.get("download_button") == []
    assert len(app.dataframe) == 0


HOSTILE = ("", "-1", "1e400", "9" * 5000, "<b>")
HOSTILE_LINKS = hostile_links(
    {name: HOSTILE for name in LINK_CHECKS if name not in ("picture", "config")}
)


@pytest.mark.parametrize("link", HOSTILE_LINKS)
def test_hostile_link_gives_a_note_and_defaults(page, link):
    app = page(**link)
    assert not app.exception
    assert noted(app) == set(link)
    assert meta(app, CURVE)["chunk_tokens"] == DEFAULTS["piggy_chunk"]


def test_unknown_parameter_and_chunk_between_the_stops_are_named(page):
    app = page(chunk="512", piggy_chunk="700")
    notes = app.info[0].value.replace("\\", "")
    assert "chunk: this page has no such setting" in notes
    assert "piggy_chunk:" in notes
    assert 700 not in CHUNKS
    assert not app.exception
