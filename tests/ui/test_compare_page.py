"""The compare page without a browser: scenes, engines, knobs, links, refusals, bounds."""

import json
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import pytest
from streamlit.testing.v1 import AppTest

from s11.scenes import SCENES
from s11.ui.compare_link import LINK_CHECKS, Asked
from tests.ui.hostile_links import hostile_links, noted

ROOT = Path(__file__).resolve().parents[2]
LEAD = "Under Chunked, “report” waits 101 ms for its next token"


@pytest.fixture
def page() -> Callable[..., AppTest]:
    def open_page(**parameters: str) -> AppTest:
        app = AppTest.from_file(str(ROOT / "pages" / "compare.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def words(app: AppTest) -> str:
    return " ".join(block.value for block in app.markdown).replace("\\", "")


def meta(app: AppTest) -> dict[str, Any]:
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    found: dict[str, Any] = spec["layout"]["meta"]
    return found


def link(app: AppTest) -> dict[str, str]:
    parameters = dict(app.query_params).items()
    return {name: text if isinstance(text, str) else text[0] for name, text in parameters}


def with_parts_open(app: AppTest, *parts: str) -> AppTest:
    app.session_state["compare_changes"] = list(parts)
    return app.run()


def test_arrives_with_a_difference_between_chunked_and_vllm(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert LEAD in words(app)
    assert meta(app)["engines"] == ["Chunked", "vLLM V1"]
    assert app.get("plotly_chart")[0].proto.alt.startswith("Schedulers compared: report waits 101")
    assert link(app) == {}


OUTCOMES = {
    "kv-pressure": "vLLM V1 keeps it at",
    "figure-7": "since 2 prompt steps in a row carry no decode",
    "one-long-prompt": "since 8 prompt steps in a row carry no decode",
    "budget-monopoly": "Under vLLM V1 (no cap), “short” waits",
    "starvation": "since 20 prompt steps in a row carry no decode",
    "shared-prefix": "since one step carries 14,592 prompt tokens beside the decodes",
}


@pytest.mark.parametrize("slug", SCENES)
def test_scenes_show_what_they_say(page, slug: str):
    app = page(scene=slug)
    assert not app.exception
    assert OUTCOMES[slug] in words(app)
    assert len(meta(app)["engines"]) == len(SCENES[slug].entries)
    assert link(app).get("scene", "kv-pressure") == slug


def test_engines_are_chosen_in_order_and_go_into_the_link(page):
    app = page()
    app.multiselect(key="compare_engines").set_value(["vllm_v1", "sglang-2k", "chunked"]).run()
    assert not app.exception
    assert meta(app)["engines"] == ["vLLM V1", "SGLang, under 20 GB", "Chunked"]
    assert link(app) == {"engines": "vllm_v1~~sglang-2k~~chunked"}


def test_one_engine_is_shown_and_none_is_asked_for(page):
    app = page(engines="chunked")
    assert "Choose a second scheduler" in words(app)
    alt = app.get("plotly_chart")[0].proto.alt
    assert alt.startswith("Schedulers compared: report waits 101 ms under Chunked.")
    app.multiselect(key="compare_engines").set_value([]).run()
    assert not app.exception
    assert "Choose two to four schedulers" in app.info[0].value


def test_identical_runs_are_said_to_be(page):
    app = page(blocks="none")
    assert "Chunked and vLLM V1 do exactly the same in every step here" in app.info[0].value


def test_common_knob_changes_the_runs_and_the_link(page):
    app = with_parts_open(page(), "knobs")
    app.number_input(key="compare_blocks").set_value(400).run()
    assert not app.exception
    assert link(app) == {"blocks": "400"}
    app.toggle(key="compare_caching").set_value(True).run()
    app.number_input(key="compare_itl_target_ms").set_value(20.0).run()
    assert link(app) == {"blocks": "400", "caching": "on", "target": "20.0"}
    app.number_input(key="compare_blocks").set_value(288).run()
    assert "blocks" not in link(app)


def test_knobs_are_kept_while_they_are_folded_away(page):
    app = with_parts_open(page(), "knobs")
    app.number_input(key="compare_budget").set_value(None).run()
    app = with_parts_open(app)
    assert not app.number_input
    assert link(app) == {"budget": "none"}
    assert with_parts_open(app, "knobs").number_input(key="compare_budget").value is None


def test_own_knob_of_one_engine(page):
    app = with_parts_open(page(), "knobs")
    app.text_input(key="compare_own_1_cap").set_value("256").run()
    assert link(app) == {"engines": "chunked~~vllm_v1~cap-256"}
    assert app.multiselect(key="compare_engines").value == ["chunked", "vllm_v1~cap-256"]
    app.text_input(key="compare_own_1_cap").set_value("").run()
    assert link(app) == {}


@pytest.mark.parametrize("text", ["0", "x", "1e400", "-3"])
def test_own_knob_that_is_none_is_refused_in_a_sentence(page, text: str):
    app = with_parts_open(page(), "knobs")
    app.text_input(key="compare_own_1_cap").set_value(text).run()
    assert not app.exception
    assert "Chunk cap (tokens): " in app.error[0].value
    assert "is not a whole number from 1 to 1,048,576. It was left" in app.error[0].value
    assert LEAD in words(app)


def test_flags_of_the_engines_stand_beside_their_knobs(page):
    app = with_parts_open(page(), "knobs")
    assert "`--long-prefill-token-threshold`" in app.text_input(key="compare_own_1_cap").label
    assert "`--max-num-batched-tokens`" in app.number_input(key="compare_budget").help


def test_costs_that_do_not_go_together_are_refused(page):
    app = with_parts_open(page(prefill="0"), "knobs")
    app.number_input(key="compare_fixed_ms").set_value(0.0).run()
    assert not app.exception
    said = "fixed_ms: 0 lets a step of one token take 0 ms"
    assert said in app.error[0].value.replace("\\", "")
    app = page(fixed="0", prefill="0")
    assert not app.exception
    assert said in app.error[0].value.replace("\\", "")


def test_engine_that_does_not_go_with_the_knobs_is_left_out_in_a_sentence(page):
    app = page(engines="chunked~~disaggregated~~vllm_v1")
    assert "Disaggregated is left out: kv" in app.warning[0].value.replace("\\", "")
    assert meta(app)["engines"] == ["Chunked", "vLLM V1"]


def test_disaggregated_has_a_story_of_each_worker(page):
    app = page(engines="chunked~~disaggregated", blocks="none")
    app.session_state["compare_steps_1"] = True
    app.run()
    assert not app.exception
    assert "**prefill worker**" in words(app)
    assert "**decode worker**" in words(app)


def test_edited_table_is_drawn_and_goes_into_the_link(page):
    app = page(requests="A~0~64~4~~B~5~256~2")
    assert not app.exception
    assert link(app) == {"requests": "A~0~64~4~~B~5~256~2"}
    spec = json.loads(app.get("plotly_chart")[0].proto.spec)
    assert spec["layout"]["yaxis"]["ticktext"][:2] == ["A", "B"]
    assert "KV pressure, edited: 2 requests, 320 prompt tokens" in str(spec["layout"]["title"])


def with_rows(app: AppTest, change: Callable[[list[dict[str, Any]]], None]) -> AppTest:
    """The page with other rows in its table, as an editor would hand them over."""
    asked: Asked = app.session_state["compare_asked"]
    rows = [dict(row) for row in asked.rows]
    change(rows)
    app.session_state["compare_asked"] = replace(asked, rows=tuple(rows))
    return app.run()


def test_bad_row_gives_one_sentence_and_nothing_is_lost(page):
    app = with_rows(page(), lambda rows: rows[1].update(prompt_tokens=0))
    assert not app.exception
    (error,) = app.error
    said = error.value.replace("\\", "")
    assert said == "row 2 (chat 1), prompt_tokens: 0 is not a whole number from 1 to 1,000,000."
    assert not app.get("plotly_chart")
    app = with_parts_open(app, "requests")
    assert not app.exception
    assert app.session_state["compare_asked"].rows[2]["name"] == "chat 2"


def test_row_that_is_not_filled_in_is_left_out_with_a_sentence(page):
    new = {"name": "chat 4", "arrival_ms": 0.0, "prompt_tokens": pd.NA, "output_tokens": pd.NA}
    app = with_rows(page(), lambda rows: rows.append(new))
    assert not app.exception
    assert not app.error
    (warning,) = app.warning
    assert warning.value.replace("\\", "") == (
        "Row 5 (“chat 4”) is left out: prompt (1 to 1,000,000 tokens) and output (1 to 10,000 "
        "tokens) are missing."
    )
    assert LEAD in words(app)
    assert link(app) == {}


def test_table_hands_over_what_it_cannot_run(page):
    """An editor that forbids a value drops it without a word: ours forbids none of these."""
    app = with_parts_open(page(), "requests")
    columns = json.loads(app.dataframe[0].proto.columns)
    for name in ("prompt_tokens", "output_tokens", "arrival_ms"):
        assert columns[name]["type_config"]["min_value"] < 0
    assert not any(column.get("required") for column in columns.values())


CHANGES = {
    "requests": {"requests": "A~0~64~4~~B~5~256~2"},
    "engines": {"engines": "chunked~~sglang"},
    "knob": {"cap": "100"},
    "cost": {"fixed": "3"},
}


@pytest.mark.parametrize("change", CHANGES)
def test_scenes_sentence_goes_with_the_first_change(page, change: str):
    about, chip = SCENES["kv-pressure"].about[:40], "aria-current"
    app = page()
    assert about in words(app)
    assert chip in links(app)
    app = page(**CHANGES[change])
    assert about not in words(app)
    assert "Edited from the scene [KV pressure](?scene=kv-pressure)" in words(app)
    assert chip not in links(app)


def links(app: AppTest) -> str:
    return " ".join(block.proto.body for block in app.get("html"))


def test_engine_as_it_comes_shows_its_own_values(page):
    app = with_parts_open(page(engines="vllm-16k~blocks-300~~chunked"), "knobs")
    own, common = (app.text_input(key=f"compare_own_{number}_budget") for number in (0, 1))
    assert own.placeholder == "16,384"
    assert "or empty: its own, 16,384." in own.help
    assert app.text_input(key="compare_own_0_cap").placeholder == "none"
    assert app.text_input(key="compare_own_0_caching").placeholder == "on"
    assert app.text_input(key="compare_own_0_blocks").placeholder == "as common"
    assert common.placeholder == "as common"
    assert "or empty: as common." in common.help


def test_pool_in_tokens_is_said_beside_the_blocks(page):
    app = with_parts_open(page(engines="sglang~blocks-300~~vllm_v1~blocks-200"), "knobs")
    tokens = "(tokens: blocks × block size)"
    assert app.text_input(key="compare_own_0_blocks").label.endswith(tokens)
    assert tokens not in app.text_input(key="compare_own_1_blocks").label
    assert f"`kv_cache_config.max_tokens` {tokens}" in app.number_input(key="compare_blocks").help


def test_rule_of_the_best_stands_where_somebody_is_left_out(page):
    app = page(requests="A~0~64~4~~B~5~5000~2", engines="whole_prompt~~chunked", blocks="none")
    said = "Whole prompts leaves 1 request out, so its figures are not compared."
    assert said in [caption.value for caption in app.caption]
    assert "class='aside'" in links(app)
    assert not any("not compared" in caption.value for caption in page().caption)


def test_table_opens_with_the_scenes_requests(page):
    app = with_parts_open(page(), "requests")
    assert not app.exception
    frame = app.dataframe[0].value
    assert frame["name"].tolist() == ["report", "chat 1", "chat 2", "chat 3"]
    assert frame["prompt_tokens"].tolist() == [3584, 480, 480, 240]
    assert link(app) == {}


def test_every_step_is_told_in_a_table(page):
    app = page()
    app.session_state["compare_steps_1"] = True
    app.run()
    assert not app.exception
    table = app.dataframe[0].value
    assert len(table) == 30
    assert table["what the engine saw"][6].startswith("“chat 3” was preempted just before")


def test_notes_say_what_is_left_out_and_when_two_are_the_same(page):
    app = page()
    app.session_state["compare_notes"] = True
    app.run()
    assert not app.exception
    assert "Leaves out" in words(app)
    assert "Chunked and vLLM V1 give the same step table" in words(app)


def test_step_limit_is_said_when_met(page):
    app = page(requests="A~0~1000000~2", cap="1", blocks="none")
    assert not app.exception
    assert "at most 20,000 steps of each scheduler" in app.warning[0].value


def test_prefix_cache_of_too_many_blocks_is_refused(page):
    app = page(requests="A~0~1000000~2", caching="on", block="1", blocks="none")
    assert not app.exception
    assert "block_size: 1 makes 1,000,002 blocks" in app.warning[0].value.replace("\\", "")


HOSTILE = {
    "scene": ["", "figure 7", "<script>", "x" * 5000],
    "engines": ["", "orca", "chunked~~chunked", "chunked~cap-1e9", "chunked~", "~~", "x" * 5000],
    "requests": ["", "A", "A~0~0~1", "A~0~1e400~1", "A~nan~4~1", "~~~~", "x" * 5000],
    "budget": ["0", "-1", "1e9", "9" * 5000, "<b>", ""],
    "cap": ["0", "nan"],
    "seats": ["0", "4097"],
    "blocks": ["0", "1.5"],
    "block": ["none", "0"],
    "interval": ["0", "none", "1e400"],
    "caching": ["true", "1"],
    "reserve": ["yes"],
    "target": ["0", "nan", "inf", "1e400", "x"],
    "fixed": ["-1", "1e9"],
    "prefill": ["nan"],
    "decode": ["-inf"],
    "picture": ["GIF"],
}


def test_every_parameter_has_hostile_values():
    assert set(HOSTILE) == set(LINK_CHECKS)


@pytest.mark.parametrize("link", hostile_links(HOSTILE))
def test_hostile_link_gives_a_note_and_the_default(page, link: dict[str, str]):
    app = page(**link)
    assert not app.exception
    assert noted(app) == set(link)
    assert LEAD in words(app)


def test_names_cannot_carry_markup(page):
    app = page(requests="**[a](x)**~0~64~4~~<b>~5~256~2")
    assert not app.exception
    shown = " ".join(block.value for block in app.markdown)
    assert "[a](x)" not in shown.replace("\\[", "")
    assert "<b>" not in shown.replace("\\<", "")


def test_link_from_before_the_last_change_does_not_bring_it_back(page):
    """A quick second change is sent with the link from before the first one."""
    app = with_parts_open(page(cap="100"), "knobs")
    app.number_input(key="compare_cap").set_value(200).run()
    app.query_params["cap"] = "100"
    app.number_input(key="compare_budget").set_value(700).run()
    assert link(app) == {"cap": "200", "budget": "700"}


def test_new_link_in_the_same_session_is_read(page):
    app = page()
    app.query_params["scene"] = "figure-7"
    app.run()
    assert meta(app)["engines"][0] == "Request level"
