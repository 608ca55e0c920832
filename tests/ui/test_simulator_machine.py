"""The simulator page on a machine: model, GPU, tensor parallelism and precision count."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from s11.catalog import MODELS
from s11.ui.machine import GPU_LABELS, compact_config
from s11.ui.simulator_state import PRESETS

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page() -> Callable[..., AppTest]:
    def open_page(**parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / "simulator.py"), default_timeout=30)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def figures(app: AppTest) -> tuple[str, ...]:
    return tuple(metric.value for metric in app.metric)


def stall(app: AppTest) -> str:
    return next(metric.value for metric in app.metric if metric.label == "Longest stall")


def caption(app: AppTest) -> str:
    layout = json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]
    return str(layout["title"]["text"])


def words(app: AppTest) -> str:
    return " ".join(block.value for block in app.markdown)


@pytest.mark.parametrize("name", [name for name in PRESETS if "model" in PRESETS[name]])
def test_presets_with_a_machine_name_it(page, name: str):
    app = page(**PRESETS[name])
    assert not app.exception
    assert not app.info
    assert f"{PRESETS[name]['model']} on" in caption(app)
    assert "its KV cache holds" in words(app)
    assert "calibrated on measured kernels" in words(app)


def test_every_choice_changes_what_is_simulated(page):
    plain = {"model": "Llama-3.1-8B"}
    machines = [
        plain,
        plain | {"model": "Llama-2-13B"},
        plain | {"gpu": "A100 80 GB"},
        plain | {"tp": "2"},
        plain | {"precision": "fp8"},
        plain | {"context": "4096"},
        {},
    ]
    shown = [figures(page(**machine)) for machine in machines]
    assert len(set(shown)) == len(machines)


def test_the_picture_says_that_it_is_simulated(page):
    told = caption(page(model="Llama-3.1-8B", context="2048"))
    assert "contexts of 2,048 tokens, simulated by s11" in told


def test_a_stall_is_held_against_chunking_off(page):
    """Chunked, Llama-3.1-70B on four H100 stalls longer than 50 ms, and far less than whole."""
    app = page(model="Llama-3.1-70B", tp="4", prompt="32768")
    assert re.search(r"[0-9.]+× less than the [0-9,]+ ms with chunking off", words(app))
    whole = page(model="Llama-3.1-70B", tp="4", prompt="32768", chunking="false")
    assert "less than the" not in words(whole)


def test_a_gpu_without_measurements_says_whose_efficiencies_it_takes(page):
    told = words(page(model="Llama-3.1-8B", gpu="B200"))
    assert "B200 180 GB SXM: not calibrated. It takes the efficiencies of H100 80 GB SXM" in told


def test_a_model_that_does_not_fit_is_refused_with_the_numbers(page):
    app = page(model="Llama-3.1-70B", gpu="L4")
    assert not app.exception
    assert not app.metric
    # 70.6e9 parameters in bf16.
    assert "llama-3.1-70b (bf16) does not fit 1 × L4 24 GB" in app.error[0].value
    assert "weights take 141.1" in app.error[0].value


def test_heads_that_cannot_be_shared_are_refused(page):
    app = page(model="LLaMA-13B", tp="8")  # 40 heads go into 8, the MLP's 13,824 too
    assert not app.error
    own = compact_config(MODELS["phi-2"]).replace(
        '"num_attention_heads":32,"num_key_value_heads":32',
        '"num_attention_heads":10,"num_key_value_heads":10',
    )
    app = page(model="Own model", config=own, tp="4")
    assert "tensor_parallel: 4 GPUs cannot share" in app.error[0].value


def test_an_own_model_comes_with_the_link(page):
    like_llama = compact_config(MODELS["llama-3.1-8b"])
    app = page(model="Own model", config=like_llama)
    assert not app.error
    assert stall(app) == stall(page(model="Llama-3.1-8B"))


def test_an_own_model_without_a_config_is_asked_for_one(page):
    app = page(model="Own model")
    assert "nothing is pasted yet" in app.error[0].value


def test_what_is_pasted_is_kept_in_few_words_or_refused(page):
    app = page(model="Own model")
    config = json.dumps(
        json.loads(compact_config(MODELS["mistral-7b"])) | {"rope_theta": 1e6, "torch_dtype": "x"},
        indent=4,
    )
    app.text_area(key="config_text").set_value(config).run()
    assert not app.exception
    assert not app.error
    kept = compact_config(MODELS["mistral-7b"])
    assert app.text_area(key="config_text").value == kept
    assert app.query_params["config"] in (kept, [kept])
    shown = stall(app)
    for refused in ('{"model_type": "mixtral"}', '{"hidden_size": 3584', "\ufeff[]"):
        app.text_area(key="config_text").set_value(refused).run()
        assert not app.exception
        assert not app.info
        assert len(app.error) == 1
        assert app.text_area(key="config_text").value == refused  # to be mended by hand
        assert stall(app) == shown  # the last good one stays
    app.text_area(key="config_text").set_value(config).run()
    assert not app.error


def test_engines_as_they_come_keep_the_machine(page):
    app = page(model="Yi-34B", gpu="H200", tp="2")
    links = next(block.proto.body for block in app.get("html") if "As it comes" in block.proto.body)
    engines = links.partition("As it comes")[2]
    assert engines.count("model=Yi-34B&amp;gpu=H200&amp;tp=2") == engines.count("href")
    plain = next(block.proto.body for block in page().get("html") if "comes" in block.proto.body)
    assert "gpu=" not in plain.partition("As it comes")[2]


def test_cached_tokens_can_have_a_cost(page):
    """In the eighth of eight chunks (the tenth step) 24 users attend to 1,024 + 9 tokens each,
    and the prompt to 7,168: 31,960 tokens at 0.0001 ms on top of 23.632 ms are 26.828 ms.
    """
    app = page(attended="0.0001")
    assert stall(app) == "26.8 ms"
    assert "0.05·decode ms + 100 ns·context, fitted" in caption(app)


def test_every_gpu_of_the_catalog_can_be_chosen():
    from s11.catalog import GPUS

    assert set(GPU_LABELS) == set(GPUS)
