"""The measurements page without a browser: samples, own rows, refusals, links good and hostile."""

import json
from pathlib import Path
from types import SimpleNamespace

import pytest
from streamlit.testing.v1 import AppTest

from s11.costs import FittedCost
from s11.sample_measurements import sample_benchmark
from s11.ui import measurements_state as state
from s11.ui.measurements_panels import plain, simulator_link
from s11.ui.measurements_state import BENCHMARK, LINK_CHECKS, Part

ROOT = Path(__file__).resolve().parents[2]
HEADER = "prefill_tokens,decode_tokens,context_tokens,duration_ms\n"
# By hand: 5 + 0.02 · prefill + 0.1 · decode + 0.0001 · context ms.
EXACT = HEADER + "".join(
    f"{prefill},{decode},{context},{5 + 0.02 * prefill + 0.1 * decode + 0.0001 * context:.6f}\n"
    for prefill in (0, 512, 2048)
    for decode in (4, 32)
    for context in (8_000, 40_000)
)


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "measurements.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


@pytest.fixture
def overlay_page(page):
    return lambda **parameters: page(part=str(Part.OVERLAY), **parameters)


def paste(app, text):
    return app.text_area[0].set_value(text).run()


def words(app):
    return " ".join(block.value for block in [*app.markdown, *app.info, *app.warning])


def figures(app):
    return {metric.label: metric.value for metric in app.metric}


def metas(app):
    return [json.loads(c.proto.spec)["layout"]["meta"] for c in app.get("plotly_chart")]


def title(app):
    return json.loads(app.get("plotly_chart")[0].proto.spec)["layout"]["title"]["text"]


def with_benchmark(app, text, **more):
    """The page with an uploaded benchmark, as its callback keeps it."""
    app.session_state[BENCHMARK] = state.read_benchmark("mine.json", text, **more)
    return app.run()


def sample_with(**changed):
    return json.dumps(json.loads(sample_benchmark()) | changed)


def test_arrives_full_with_a_sample_that_is_marked_as_made_up(page):
    app = page()
    assert not app.exception
    assert not app.error
    assert "made-up sample" in app.info[0].value
    assert [meta["figure"] for meta in metas(app)] == ["fit", "residuals"]
    assert len(app.metric) == 6
    assert "Row 25 took 89.33 ms" in words(app)
    assert "no measurement" in title(app)


def test_pasted_rows_are_fitted(page):
    app = paste(page(), EXACT)
    assert not app.exception
    assert not app.info
    assert figures(app) == {
        "Every step": "5 ms",
        "A prefill token": "0.02 ms",
        "A decode token": "0.1 ms",
        "A cached token": "0.0001 ms",
        "Error, these rows": "0.0%",
        "Error, left out": "0.0%",
    }
    assert "From 12 rows at 12 settings" in words(app)
    assert "`pasted rows`, 12 rows" in words(app)
    (link,) = [block.proto.body for block in app.get("html") if "simulator" in block.proto.body]
    assert 'href="./?fixed=5&amp;prefill=0.02&amp;decode=0.1&amp;attended=0.0001"' in link
    assert app.code[0].value == ("python -m s11 simulate --cost fitted --measurements FILE.csv")
    # Back to the sample.
    next(button for button in app.button if button.label == "Use the sample").click()
    app.run()
    assert "made-up sample" in app.info[0].value


@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        ("nonsense", "measurements: the column prefill_tokens is missing"),
        (HEADER + "512,4,x,9\n", "row 2, context_tokens: 'x' is not a whole number"),
        (HEADER + "512,4,100,9\n", "measurements: 1 row cannot settle 4 terms"),
        (
            HEADER + "".join(f"512,{n},{n * n},{9 + n}\n" for n in range(20)),
            "prefill_tokens: 512 is the only value beside 0",
        ),
        (HEADER, "measurements: no row below the header"),
    ],
)
def test_what_cannot_be_fitted_is_refused_in_a_sentence(page, text, sentence):
    app = paste(page(), text)
    assert not app.exception
    assert app.error[0].value.startswith(sentence)
    assert app.error[0].value.endswith(".")
    assert not app.get("plotly_chart")
    assert any(block.value.startswith("Not shown: `pasted rows`") for block in app.markdown)
    # The other part is untouched.
    app.get("button_group")[0].set_value(str(Part.OVERLAY)).run()
    assert not app.error
    assert len(metas(app)) == 2


def test_own_rows_stay_when_the_other_part_is_looked_at(page):
    app = paste(page(), EXACT)
    app.get("button_group")[0].set_value(str(Part.OVERLAY)).run()
    app.get("button_group")[0].set_value(str(Part.FIT)).run()
    assert figures(app)["Every step"] == "5 ms"
    assert "5 + 0.02" in words(app)


def test_nothing_of_an_own_file_goes_into_the_link(page):
    app = paste(page(), EXACT)
    assert set(app.query_params) <= set(LINK_CHECKS)


def test_the_simulators_link_holds_what_its_controls_can():
    cost = FittedCost(
        fixed_ms=1234.5, prefill_ms_per_token=1.0, decode_ms_per_token=1.0, context_ms_per_token=0
    )
    assert simulator_link(cost) is None
    small = FittedCost(
        fixed_ms=5.4966348, prefill_ms_per_token=0.02444, decode_ms_per_token=0,
        context_ms_per_token=1.18784708e-5,
    )  # fmt: skip
    assert (
        simulator_link(small) == "./?fixed=5.49663&prefill=0.02444&decode=0&attended=0.0000118785"
    )
    assert [plain(value, 3) for value in (0, 1234.5, 0.00001187, 5.0)] == [
        "0", "1,230", "0.0000119", "5",
    ]  # fmt: skip


def test_overlay_of_the_sample(overlay_page):
    app = overlay_page()
    assert not app.exception
    assert not app.error
    assert [meta["figure"] for meta in metas(app)] == ["overlay-ttft", "overlay-itl"]
    assert "made-up sample" in app.info[0].value
    assert "(open loop)" in words(app)
    assert "The simulated ITLs" in words(app)
    # The measured side is the file's, whatever is simulated.
    first = metas(app)[1]
    again = metas(overlay_page(gpu="L40S"))[1]
    assert first["measured_p50_p99_ms"] == again["measured_p50_p99_ms"]
    assert again["simulated_p50_p99_ms"][0] > first["simulated_p50_p99_ms"][0]


def test_a_machine_that_is_not_calibrated_says_so(overlay_page):
    app = overlay_page(gpu="B200")
    assert "not calibrated" in words(app)
    assert "B200, bf16, not calibrated" in title(app)


def test_an_engine_that_comes_otherwise_on_this_gpu_is_named(overlay_page):
    told = "it comes as “vLLM V1, smaller GPU”"
    assert told in words(overlay_page(gpu="A40"))
    assert told in words(overlay_page(gpu="A100 80 GB"))  # by its name, whatever its memory
    assert told not in words(overlay_page(gpu="A40", bench_engine="vLLM V1, smaller GPU"))
    assert told not in words(overlay_page())


@pytest.mark.parametrize(
    ("parameters", "sentence"),
    [
        ({"llm": "Llama-2-70B"}, "model: llama-2-70b (bf16) does not fit"),
        ({"llm": "Phi-2", "tp": "8"}, None),
        ({"llm": "Own model"}, "config: nothing is pasted yet"),
    ],
)
def test_a_machine_that_cannot_be_is_refused(overlay_page, parameters, sentence):
    app = overlay_page(**parameters)
    assert not app.exception
    if sentence:
        assert app.error[0].value.startswith(sentence)
    assert bool(app.error) != bool(app.get("plotly_chart"))


def test_a_closed_loop_is_said_to_be_one(overlay_page):
    app = with_benchmark(overlay_page(), sample_with(max_concurrency=4))
    assert not app.exception
    assert "4 clients in a closed loop" in words(app)
    assert "at most 4 under way" in words(app)
    assert "9 requests/s" in words(app)


def test_a_files_own_words_are_shown_as_plain_text(overlay_page):
    text = sample_with(model_id="<img src=x>`**", date="](http://x)")
    app = with_benchmark(overlay_page(), text)
    assert not app.exception
    assert "<img" not in words(app)
    assert "`_img src_x____`" in words(app)
    assert state.plain_name("a<b>`c`$.csv") == "a_b__c__.csv"
    assert len(state.plain_name("x" * 99)) == state.MOST_NAME


def test_too_many_requests_are_cut_and_said_so(overlay_page, monkeypatch):
    monkeypatch.setattr(state, "MOST_REQUESTS", 10)
    app = with_benchmark(overlay_page(), sample_with())
    assert "the first 10 of 80 requests" in words(app)


def test_too_many_steps_are_cut_and_said_so(overlay_page, monkeypatch):
    monkeypatch.setattr(state, "MOST_STEPS", 400)
    app = with_benchmark(overlay_page(), sample_with())
    assert not app.exception
    assert "The simulation was cut at 400 steps" in words(app)


def test_a_broken_benchmark_is_refused(overlay_page):
    app = with_benchmark(overlay_page(), '{"input_lens": [1]')
    assert not app.exception
    assert app.error[0].value.startswith("benchmark: not JSON text")
    assert "Not shown: `" in words(app)


def test_a_file_of_several_runs_lets_one_be_chosen(overlay_page):
    two = sample_with(request_rate=3.0) + "\n" + sample_with(request_rate=7.0)
    app = with_benchmark(overlay_page(), two)
    assert "7 requests/s" in words(app)
    app.number_input[0].set_value(1).run()
    assert "3 requests/s" in words(app)


def test_one_output_token_each_has_no_itl(overlay_page):
    text = sample_with(output_lens=[1] * 80, itls=[[]] * 80)
    app = with_benchmark(overlay_page(), text)
    assert not app.exception
    assert [meta["figure"] for meta in metas(app)] == ["overlay-ttft"]
    assert "There is no ITL" in words(app)


def test_files_that_are_too_large_or_no_text_are_refused():
    big = SimpleNamespace(size=6 * 2**20, getvalue=lambda: b"")
    with pytest.raises(ValueError, match=r"6\.0 MB are too much .* \(allowed: 5 MB\)"):
        state.text_of(big, most_mb=5)
    binary = SimpleNamespace(size=3, getvalue=lambda: b"\xff\xfe\x00")
    with pytest.raises(ValueError, match="not a text in UTF-8"):
        state.text_of(binary, most_mb=5)


@pytest.mark.parametrize(
    ("parameters", "name"),
    [
        ({"part": "nothing"}, "part"),
        ({"bench_engine": "vLLM V9"}, "bench_engine"),
        ({"gpu": "TPU"}, "gpu"),
        ({"unheard_of": "1"}, "unheard"),
    ],
)
def test_bad_links_get_a_sentence(page, parameters, name):
    app = page(**parameters)
    assert not app.exception
    assert any(name in info.value.replace("\\", "") for info in app.info)


def test_link_sets_every_control(overlay_page):
    app = overlay_page(
        llm="Qwen3-32B", gpu="H200", tp="2", precision="fp8", bench_engine="TensorRT-LLM",
        picture="SVG",
    )  # fmt: skip
    assert not app.exception
    assert not app.error
    assert app.selectbox(key="bench_engine").value == "TensorRT-LLM"
    assert "TensorRT-LLM; open loop" in title(app)
    assert (
        json.loads(app.get("plotly_chart")[0].proto.config)["toImageButtonOptions"]["format"]
        == "svg"
    )
