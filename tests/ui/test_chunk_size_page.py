"""The chunk size page without a browser: arrival, engines, presets, stops, good and bad links."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlencode, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from s11.ui.chunk_size_state import BOUNDS, DEFAULTS, ENGINES, LINK_CHECKS, PRESETS, Across
from s11.ui.simulator_state import LINK_CHECKS as SIMULATOR_CHECKS
from tests.ui.hostile_links import hostile_links, noted

ROOT = Path(__file__).resolve().parents[2]
CURVE, MANY, MEMORY = range(3)
SMALL = {"size_prompt": "512", "size_clients": "2", "size_answer": "8"}


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "chunk_size.py"), default_timeout=120)
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
    largest = meta(app, CURVE)["largest_chunk_tokens"]
    assert figures(app)["Largest chunk"] == f"{largest:,} tokens"
    assert f"Chunks of up to **{largest:,} tokens** keep every gap within 50 ms" in words(app)
    # 64 ... 8,192: eight powers of two and the seven halves between.
    assert meta(app, CURVE)["sizes"][:4] == [64, 96, 128, 192]
    assert len(meta(app, CURVE)["sizes"]) == 15
    assert f"--max-num-batched-tokens {largest + 24}" in app.code[0].value
    assert meta(app, MANY)["largest"]["H100"] == largest
    assert len(meta(app, MANY)["largest"]) == 9
    kv_tokens = meta(app, MEMORY)["kv_tokens"]
    assert kv_tokens == sorted(kv_tokens, reverse=True)
    assert [chart(app, which).alt.split(" ")[0] for which in (CURVE, MANY, MEMORY)] == [
        "Chunk-size",
        "Largest",
        "Token",
    ]
    assert app.get("download_button") == []


def test_a_looser_target_allows_no_smaller_chunk(page):
    app = page(**{**SMALL, "size_prompt": "4096", "size_target": "15"})
    tight = meta(app, CURVE)["largest_chunk_tokens"] or 0
    app.select_slider(key="size_target").set_value(100).run()
    assert not app.exception
    assert meta(app, CURVE)["largest_chunk_tokens"] >= tight
    assert meta(app, CURVE)["target_ms"] == 100.0


@pytest.mark.parametrize("engine", ENGINES)
def test_every_engine_has_its_command(page, engine):
    app = page(**SMALL, size_engine=engine)
    assert not app.exception
    assert not app.error
    begins = {"vLLM V1": "vllm", "SGLang": "python", "TensorRT-LLM": "trtllm-serve"}
    assert app.code[0].value.startswith(begins.get(engine, "python -m s11"))


def simulator_link(app):
    (link,) = [
        unescape(address)
        for block in app.get("html")
        for address in re.findall(r'href="([^"]*)"', block.proto.body)
        if address.startswith("./")
    ]
    parameters = dict(parse_qsl(urlsplit(link).query))
    for name, value in parameters.items():
        SIMULATOR_CHECKS[name](value)
    return parameters


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_advised_opens_in_the_simulator(page, engine):
    app = page(**SMALL, size_engine=engine, precision="fp8", tp="2")
    asked = simulator_link(app)
    assert (asked["model"], asked["gpu"], asked["tp"]) == ("Llama-3.1-8B", "H100", "2")
    assert (asked["precision"], asked["prompt"], asked["users"]) == ("fp8", "512", "24")
    assert asked["policy"] == ("Chunked" if engine == "Chapter's" else engine)
    assert asked["target"] == "50"
    assert ("budget" in asked) == (engine in ("vLLM V1", "TensorRT-LLM"))
    assert asked.get("mixed") == ("true" if engine == "SGLang" else None)
    simulator = AppTest.from_file(str(ROOT / "pages" / "simulator.py"), default_timeout=120)
    for name, value in asked.items():
        simulator.query_params[name] = value
    simulator.run()
    assert not simulator.exception
    assert not simulator.error
    assert not simulator.info


def test_tensorrt_llms_chunk_is_the_same_everywhere(page):
    app = page(size_engine="TensorRT-LLM", size_prompt="4096", size_target="25", size_users="20")
    largest = meta(app, CURVE)["largest_chunk_tokens"]
    assert largest % 32 == 0
    assert figures(app)["Largest chunk"] == f"{largest:,} tokens"
    assert f"{largest:,} is the largest chunk within 25 ms, in whole blocks of 32" in words(app)
    assert f"--max_num_tokens {largest + 20}" in app.code[0].value
    assert meta(app, MANY)["largest"]["H100"] == largest
    assert simulator_link(app)["chunk"] == str(largest)


def test_a_pool_below_the_models_longest_bounds_the_sequences(page):
    app = page(**PRESETS["Qwen3-32B on one H100: tight memory"])
    (told,) = re.findall(r"--max-model-len (\d+)", app.code[0].value)
    left = int(re.findall(r"It leaves ([\d,]+) KV tokens", words(app))[0].replace(",", ""))
    assert 8192 + 256 <= int(told) <= left
    assert "without it vLLM does not start" in words(app)
    assert "--max-model-len" not in page().code[0].value


def test_sglangs_host_is_not_called_measured(page):
    app = page(**SMALL, size_engine="SGLang")
    assert "SGLang's own time on the host was not measured: TensorRT-LLM's stands in" in words(app)
    assert "not measured" not in words(page(**SMALL))


def test_without_mixed_chunks_there_is_no_knee_anywhere(page):
    app = page(**PRESETS["SGLang as it comes: decodes wait"])
    assert meta(app, CURVE)["knee_tokens"] is None
    assert figures(app)["Knee"] == "none"
    many = json.loads(chart(app, MANY).spec)["data"]
    assert [trace for trace in many if trace["mode"] == "markers"] == []
    assert "a smaller chunk does not shorten their stall" in words(app)
    assert "where the sweep's longest stall is shortest" in words(app)
    assert "stall × TTFT is least" not in words(app)


def test_sglang_without_mixed_chunks_lets_the_streams_wait(page):
    app = page(**SMALL, size_engine="SGLang", size_mixed="false", size_target="5")
    assert "stand still until the whole prompt is done" in words(app)
    assert "--enable-mixed-chunk" not in app.code[0].value
    app.toggle(key="size_mixed").set_value(True).run()
    assert not app.exception
    assert "--enable-mixed-chunk" in app.code[0].value


def test_all_models_on_one_gpu(page):
    app = page(**SMALL, across=str(Across.MODELS), gpu="L4")
    assert not app.exception
    assert len(meta(app, MANY)["largest"]) == 13
    assert "Llama-3.1-70B" in meta(app, MANY)["refused"]
    assert any("cannot run it" in fold.label for fold in app.expander)


def test_a_model_that_does_not_fit_says_so_and_the_rest_goes_on(page):
    app = page(**SMALL, llm="Llama-3.1-70B")
    assert not app.exception
    (error,) = app.error
    assert error.value.startswith("model: llama-3.1-70b (bf16) does not fit 1 × H100")
    assert "No settings for a machine that cannot run this load." in words(app)
    assert "No budget leaves room for the model on this machine." in words(app)
    (panels,) = app.get("plotly_chart")
    assert "H100: does not fit" in panels.proto.alt


def test_no_model_yet_and_contexts_that_do_not_fit_are_said_once(page):
    for parameters, said in (
        ({"llm": "Own model"}, "config: nothing is pasted yet"),
        ({"size_users": "255", "size_context": "131072"}, "streaming_users: 255 with 131,072"),
    ):
        app = page(**{**SMALL, **parameters})
        assert not app.exception
        (error,) = app.error
        assert error.value.startswith(said)


def test_a_prompt_longer_than_the_model_was_made_for_is_said(page):
    app = page(**{**SMALL, "llm": "Phi-2", "size_prompt": "4096"})
    assert "Phi-2 was made for sequences of up to 2,048 tokens." in words(app)


def test_memory_costs_throughput_where_it_is_tight(page):
    app = page(**PRESETS["Qwen3-32B on one H100: tight memory"])
    rates = meta(app, MEMORY)["output_tokens_per_s"]
    ran = [rate for rate in rates if rate]
    assert ran[-1] < 0.8 * max(ran)
    assert "memory costs **" in words(app)
    assert meta(app, MEMORY)["kv_tokens"][-1] == 0
    assert "no longer fits" in words(app)


def test_a_stopped_sweep_shows_what_is_done_and_goes_on(page):
    app = page(**SMALL)
    asked, done = app.session_state["size_sweep_kept"]
    assert len(done) == 7
    app.session_state["size_sweep_kept"] = (asked, {n: done[n] for n in range(3)})
    app.session_state["size_sweep_stopped"] = asked
    app.run()
    assert not app.exception
    assert "**Stopped** after 3 of 7" in words(app)
    assert meta(app, CURVE)["sizes"] == [64, 96, 128]
    assert meta(app, CURVE)["partial"] is True
    app.button(key="size_sweep_go").click().run()
    assert len(meta(app, CURVE)["sizes"]) == 7
    assert "Stopped" not in words(app)


def test_another_load_begins_anew_after_a_stop(page):
    app = page(**SMALL)
    asked, done = app.session_state["size_sweep_kept"]
    app.session_state["size_sweep_kept"] = (asked, {n: done[n] for n in range(3)})
    app.session_state["size_sweep_stopped"] = asked
    app.number_input(key="size_users").set_value(8).run()
    assert len(meta(app, CURVE)["sizes"]) == 7


@pytest.mark.parametrize("name", PRESETS)
def test_every_preset_is_a_link_that_the_page_can_hold(page, name):
    parameters = PRESETS[name]
    for key, value in parameters.items():
        LINK_CHECKS[key](value)
    app = page(**dict(parse_qsl(urlencode({**parameters, "size_clients": "2"}))))
    assert not app.exception
    assert not app.info
    assert not app.error
    assert len(app.get("plotly_chart")) == 3


@pytest.mark.parametrize(
    "parameters",
    [
        {key: str(low) for key, (low, _, _) in BOUNDS.items()},
        {**SMALL, "size_prompt": "131072", "size_users": "255", "tp": "8"},
    ],
)
def test_ends_of_the_ranges_are_drawn(page, parameters):
    app = page(**parameters)
    assert not app.exception
    assert not app.error
    assert len(app.get("plotly_chart")) == 3


HOSTILE = ["", "-1", "1.5", "1e400", "9" * 5000, "<b>"]


HOSTILE_LINKS = hostile_links(
    {
        name: [*HOSTILE, str(BOUNDS[name][1] + 1)] if name in BOUNDS else HOSTILE[:2]
        for name in LINK_CHECKS
        if name.startswith("size_") or name == "across"
    }
)


@pytest.mark.parametrize("link", HOSTILE_LINKS)
def test_hostile_link_gives_a_note_and_defaults(page, link):
    app = page(**{**SMALL, "size_engine": "SGLang", **link})
    assert not app.exception
    assert noted(app) == set(link)
    # Whether chunks are mixed is asked of SGLang alone.
    held = {name: app.session_state[name] for name in link if name in app.session_state}
    assert held == {name: DEFAULTS[name] for name in held}
    assert set(link) - set(held) <= {"size_mixed"}


def test_unknown_parameter_is_named(page):
    app = page(**SMALL, chunk="512")
    assert "chunk: this page has no such setting" in app.info[0].value.replace("\\", "")
    assert not app.exception
