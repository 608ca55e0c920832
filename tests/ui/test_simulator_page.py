"""The simulator page without a browser: controls, presets, figures, refusals."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from s11.presets import TITLES
from s11.ui.simulator_state import ENGINES, LINK_CHECKS, PRESETS, chunk_stops
from tests.ui.hostile_links import hostile_links, noted

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


def spec(app: AppTest) -> dict[str, Any]:
    shown: dict[str, Any] = json.loads(app.get("plotly_chart")[0].proto.spec)
    return shown


def words(app: AppTest) -> str:
    return " ".join(block.value for block in app.markdown)


def test_arrives_with_the_chapters_figures(page):
    app = page()
    assert not app.exception
    assert figures(app) == {
        "Longest stall": ("23.6 ms", "-129 ms"),
        "TTFT, long prompt": ("189 ms", "+36.4 ms"),
        "Steps over target": ("0", "-1"),
        "Decode throughput": ("1,451 tok/s", "+645 tok/s"),
    }
    assert spec(app)["layout"]["meta"]["step_count"] == 13
    assert "**No stall over 50 ms.**" in words(app)
    assert app.get("plotly_chart")[0].proto.alt.startswith("Step timeline: No stream waits")


PRESET_OUTCOMES = {
    "32k, chunking off": ("595 ms", "595 ms", "A 595 ms freeze"),
    "32k in 1,024-token chunks": ("23.6 ms", "756 ms", "No stall"),
    "Chunk = prompt": ("153 ms", "153 ms", "the same as chunking off"),
    "Longer than the budget: never runs": ("5.2 ms", "never", "never scheduled"),
}


def test_every_preset_has_an_outcome_or_a_machine():
    """Those with a machine are looked at in test_simulator_machine."""
    assert {name for name in PRESETS if "model" not in PRESETS[name]} == set(PRESET_OUTCOMES)


@pytest.mark.parametrize("preset", PRESET_OUTCOMES)
def test_presets_show_what_they_say(page, preset: str):
    stall, ttft, said = PRESET_OUTCOMES[preset]
    app = page(**PRESETS[preset])
    assert not app.exception
    assert figures(app)["Longest stall"][0] == stall
    assert figures(app)["TTFT, long prompt"][0] == ttft
    assert said in words(app)
    assert not app.info


def test_chunk_slider_changes_figures_and_picture(page):
    app = page()
    app.select_slider(key="chunk").set_value(4096).run()
    assert figures(app)["Longest stall"] == ("78.9 ms", "-73.7 ms")
    assert figures(app)["Steps over target"] == ("2", "+1")
    assert "2 freezes, up to 78.9 ms" in str(spec(app)["layout"]["annotations"])


def test_snap_takes_the_largest_chunk_within_the_target(page):
    app = page(chunking="false")
    # (50 - 4 - 24 x 0.05) / 0.018 = 2,488.9
    assert "2,488 tokens" in app.button(key="snap").label
    app.button(key="snap").click().run()
    assert app.select_slider(key="chunk").value == 2488
    assert app.toggle(key="chunking").value is True
    assert figures(app)["Longest stall"][0] == "50 ms"
    assert figures(app)["Steps over target"][0] == "0"


def test_snap_says_when_no_chunk_will_do(page):
    app = page(target="5")
    assert app.button(key="snap").disabled
    assert "No chunk size can meet 5 ms" in words(app)


def test_any_chunk_size_can_be_typed(page):
    app = page()
    app.number_input(key="exact_chunk").set_value(1000).run()
    assert app.select_slider(key="chunk").value == 1000
    # Eight chunks of 1,000 and one of 192: 18 + 5.2 = 23.2 ms.
    assert figures(app)["Longest stall"][0] == "23.2 ms"
    assert spec(app)["layout"]["meta"]["step_count"] == 14


def test_chunk_size_of_a_link_need_not_be_a_stop(page):
    app = page(chunk="1000")
    assert app.select_slider(key="chunk").value == 1000
    assert not app.info


def test_changing_the_prompt_keeps_the_chunk(page):
    app = page(chunk="4096")
    app.number_input(key="prompt").set_value(1000).run()
    assert not app.exception
    assert app.select_slider(key="chunk").value == 4096
    assert "the same as chunking off" in words(app)


def test_one_token_and_nobody(page):
    app = page(prompt="1", users="0")
    assert not app.exception
    assert figures(app)["Longest stall"][0] == "none"
    assert "Nobody is streaming" in words(app)


def test_several_prompts(page):
    app = page(prompts="3")
    # Three 1,024-token slices in a step: 5.2 + 3 x 18.432 = 60.496 ms.
    assert figures(app)["Longest stall"][0] == "60.5 ms"


def test_bound_is_said_when_met(page):
    app = page(prompt="131072", chunk="1")
    assert not app.exception
    assert "at most 20,000 steps" in app.warning[0].value


@pytest.mark.parametrize(
    ("parameters", "said"),
    [
        ({"budget": "10"}, "token_budget: 10 is less than the 24 streaming users need"),
        ({"seats": "3"}, "max_seqs: 3 is less than the 24 streaming users need"),
        ({"fixed": "0", "prefill": "0"}, "fixed_ms: 0 lets a step of one token take 0 ms"),
    ],
)
def test_contradictions_are_refused_in_a_sentence_and_controls_stay(page, parameters, said: str):
    app = page(**parameters)
    assert not app.exception
    assert said in app.error[0].value
    assert app.select_slider(key="chunk").value == 1024


# A decode step of 24 users takes 5.2 ms, a chunk of 1,024 by itself 22.432 ms, beside them 23.632.
SCHEDULERS = {
    "vllm_v1": ({}, "23.6 ms", "189 ms"),
    "tensorrt_llm": ({}, "23.6 ms", "189 ms"),
    # One prompt step of 151.456 ms by itself, and the decode step after it.
    "prefill_first": ({}, "157 ms", "151 ms"),
    # Eight chunks by themselves, 179.456 ms, and the decode step after them.
    "sglang": ({}, "185 ms", "179 ms"),
    # 1,024 less 24 decodes, in whole pages of 16: 992. Eight of 23.056 ms, the last 9.808 ms.
    "sglang, mixed": ({"mixed": "true"}, "23.1 ms", "194 ms"),
    "request_level": ({}, "5.2 ms", "never"),
    # 5.2 + 0.018 n within 50 ms: 2,488 tokens, three times, then 728.
    "slo_adaptive": ({"chunk": "8192"}, "50 ms", "168 ms"),
    # The chunks alone, and 131,072 bytes a token over 50 GB/s, and 1 ms: 22.475 ms.
    "disaggregated": ({}, "5.2 ms", "202 ms"),
    # Seven times three decode steps between the chunks.
    "chunked, every 4th": ({"interval": "4"}, "23.6 ms", "298 ms"),
}


@pytest.mark.parametrize("name", SCHEDULERS)
def test_each_scheduler_serves_the_chapters_prompt_in_its_own_way(page, name: str):
    parameters, stall, ttft = SCHEDULERS[name]
    app = page(policy=TITLES[name.split(",")[0]], **parameters)
    assert not app.exception
    assert figures(app)["Longest stall"][0] == stall
    assert figures(app)["TTFT, long prompt"][0] == ttft


def test_a_scheduler_of_whole_prompts_has_no_chunk_size(page):
    app = page(policy="Prefill first")
    assert app.select_slider(key="chunk").disabled
    assert app.toggle(key="chunking").disabled
    assert app.button(key="snap").label == "This scheduler has no chunk size"


@pytest.mark.parametrize(
    ("title", "flags"),
    [
        ("vLLM V1", ("token budget `--max-num-batched-tokens`", "`--prefill-schedule-interval`")),
        ("SGLang", ("chunk cap `--chunked-prefill-size`", "`--enable-mixed-chunk`")),
        ("TensorRT-LLM", ("token budget `max_num_tokens`", "chunking `enable_chunked_prefill`")),
        ("Chunked", ()),
    ],
)
def test_an_engines_own_names_stand_by_the_knobs(page, title: str, flags: tuple[str, ...]):
    app = page(policy=title)
    told = [caption.value for caption in app.caption if "calls them" in caption.value]
    assert len(told) == bool(flags)
    assert all(flag in told[0] for flag in flags)


def test_prompts_that_run_by_themselves_are_said_to(page):
    app = page(policy="SGLang")
    assert "For 8 steps in a row prompts run by themselves and no stream gets a token" in words(app)
    assert "frozen 185 ms" in str(spec(app)["layout"]["annotations"])
    # Sixteen chunks of 13.216 ms and four of 40.864, and the decode step after: 217 and 169 ms.
    assert "Smaller chunks only repeat the fixed cost, and the streams wait for that too" in words(
        app
    )
    assert (
        "Larger chunks finish the prompt sooner, and the streams wait less (2,048 tokens"
        in words(app)
    )


@pytest.mark.parametrize("engine", ENGINES)
def test_engines_as_they_come_open_without_a_note(page, engine: str):
    app = page(**ENGINES[engine])
    assert not app.exception
    assert not app.info
    assert app.selectbox(key="policy").value == ENGINES[engine]["policy"]


def test_vllm_as_it_comes_takes_what_the_budget_leaves(page):
    """Budget 2,048 beside 24 decodes: 2,024 a step, so 8,192 tokens take five."""
    app = page(**ENGINES["vLLM V1, smaller GPU"])
    assert spec(app)["layout"]["meta"]["step_count"] == 2 + 5 + 3


HOSTILE = {
    "policy": ["chunked", "SGLang ", ""],
    "mixed": ["yes"],
    "interval": ["0", "101", "x"],
    "kv_bytes": ["0", "16777217", "1.5"],
    "link": ["0", "10001", "fast"],
    "latency": ["-1", "10001"],
    "chunk": ["0", "-1", "1e9", "<script>", "1,024", "9" * 5000, ""],
    "chunking": ["maybe", "1"],
    "prompt": ["0", "131073", "nan", "inf"],
    "prompts": ["9", "x"],
    "users": ["-1", "1025", "1e400"],
    "target": ["0", "nan", "inf", "-5"],
    "budget": ["0", "none"],
    "seats": ["0"],
    "fixed": ["-1", "nan"],
    "prefill": ["1e9"],
    "decode": ["x"],
    "attended": ["-1", "nan", "1e400"],
    "context": ["-1", "131073", "1.5"],
    "model": ["llama-3.1-8b", "GPT-9", ""],
    "gpu": ["h100", "H1000"],
    "tp": ["3", "16", "1.0"],
    "precision": ["int4"],
    "config": ["{}", "[" * 3000, "{" + "x" * 5000, '{"hidden_size": 1e999}'],
    "axis": ["sideways"],
    "zoom": ["2"],
    "picture": ["GIF"],
}


def test_every_parameter_has_hostile_values():
    assert set(HOSTILE) == set(LINK_CHECKS)


@pytest.mark.parametrize("link", hostile_links(HOSTILE))
def test_hostile_link_gives_a_note_and_defaults(page, link: dict[str, str]):
    app = page(**link)
    assert not app.exception
    assert noted(app) == set(link)
    assert figures(app)["Longest stall"][0] == "23.6 ms"


def test_stale_parameter_is_named(page):
    app = page(chunk_size="512")
    assert "chunk_size: this page has no such setting" in app.info[0].value.replace("\\", "")


def test_doubled_parameter_is_named(page):
    app = AppTest.from_file(str(ROOT / "pages" / "simulator.py"), default_timeout=30)
    app.query_params["prompt"] = ["1000", "2000"]
    app.run()
    assert "prompt: given 2 times" in app.info[0].value.replace("\\", "")
    assert figures(app)["TTFT, long prompt"][0] == "189 ms"


def test_note_cannot_carry_markup(page):
    app = page(**{"prompt": "[a](http://b)<b>"})
    assert "[a](http" not in app.info[0].value


def test_stops_hold_prompt_powers_and_extras():
    assert chunk_stops(prompt_tokens=1000, extra=[77]) == [
        64, 77, 96, 128, 192, 256, 384, 512, 768, 1000,
    ]  # fmt: skip
    assert chunk_stops(prompt_tokens=1, extra=[]) == [1, 64, 96, 128, 192, 256, 384, 512]


def test_the_link_between_two_workers_can_be_set(page):
    """8,192 tokens of 1,000 bytes over 0.1 GB/s are 81.92 ms, and 5: with 179.456 ms of chunks,
    266 ms."""
    app = page(policy="Disaggregated", kv_bytes="1000", link="0.1", latency="5")
    assert not app.info
    assert figures(app)["TTFT, long prompt"][0] == "266 ms"
    assert {"KV of a token (bytes)", "Link (GB/s)", "Link latency (ms)"} <= {
        field.label for field in app.number_input
    }
    assert "Link (GB/s)" not in {field.label for field in page().number_input}


@pytest.mark.parametrize(("title", "alike"), [("vLLM V1", True), ("SGLang", False)])
def test_a_scheduler_that_does_the_same_as_the_chapters_is_said_to(page, title: str, alike: bool):
    assert ("does just what the chapter's scheduler does" in words(page(policy=title))) == alike


def test_the_caption_names_the_chunks_that_were_cut_not_the_cap(page):
    """A budget of 2,048 beside 24 decodes leaves 2,024; a target of 50 ms leaves 2,488."""
    caption = str(spec(page(**ENGINES["vLLM V1, smaller GPU"]))["layout"]["title"]["text"])
    assert "chunks of up to 2,024 tokens" in caption
    caption = str(spec(page(policy="SLO-adaptive", chunk="8192"))["layout"]["title"]["text"])
    assert "chunks of up to 2,488 tokens" in caption


def test_two_workers_gain_nothing_from_chunks(page):
    app = page(policy="Disaggregated")
    assert "Chunking costs the long prompt 28 ms more TTFT here, and nobody gains by it" in words(
        app
    )
    assert "Smaller chunks repeat the fixed cost and are no smoother" in words(app)
    assert app.button(key="snap").label == "Every chunk size meets the target"


def test_steps_within_target_are_no_comfort_to_streams_that_stand_still(page):
    app = page(policy="SGLang")
    assert figures(app)["Steps over target"] == ("0", "but streams stand still")
