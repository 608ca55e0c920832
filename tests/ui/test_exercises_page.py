"""The exercises page without a browser: predictions, other numbers, solutions, links."""

import json
import re
from html import unescape
from pathlib import Path
from urllib.parse import parse_qsl, urlsplit

import pytest
from streamlit.testing.v1 import AppTest

from s11.attention import Fault
from s11.exercises_bug import CASES, NAMES
from s11.ui import mask_controls, simulator_state
from s11.ui.exercises_state import DEFAULTS, LINK_CHECKS, SETS, STOPS

ROOT = Path(__file__).resolve().parents[2]
CHUNK, STALL, TTFT = range(3)
FOLDS = ("work_target_fold", "work_budget_fold", "work_bug_fold")


@pytest.fixture
def page():
    def open_page(*, unfolded=False, **parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "exercises.py"), default_timeout=60)
        for name, value in parameters.items():
            app.query_params[name] = value
        for fold in FOLDS if unfolded else ():
            app.session_state[fold] = True
        return app.run()

    return open_page


def check(app, name, *values):
    fields = [each for each in app.text_input if each.key.startswith(f"guess {name} ")]
    for field, value in zip(fields, values, strict=False):
        if value is not None:
            field.set_value(str(value))
    return app.button(key=f"check_{name}").click().run()


def words(app):
    return " ".join(block.value for block in app.markdown)


def metas(app):
    return [json.loads(c.proto.spec)["layout"]["meta"] for c in app.get("plotly_chart")]


def starts(app):
    bodies = [block.proto.body for block in app.get("html")]
    return [unescape(a) for body in bodies for a in re.findall(r'<nav.*?href="([^"]*)"', body)]


def test_arrives_with_three_tasks_and_folded_solutions(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert [each.value for each in app.header] == [
        "1. The largest chunk that keeps the target",
        "2. A budget, a prompt that never runs, and the cure",
        "3. Find the bug in the picture of |ΔK|",
    ]
    assert len(app.text_input) == 3 + 4 + 2
    assert all(not field.value for field in app.text_input)
    assert [meta["figure"] for meta in metas(app)] == ["exercise-bug"]
    assert "2,488" not in words(app)  # the answers are behind the folds
    assert not app.error
    assert not app.success


def test_predictions_are_judged_one_by_one(page):
    app = check(page(), "target", 2_555, 49.98)
    said = app.error[0].value
    assert "**Largest chunk**: ✗ not yet, too large: the decodes ride in the same step" in said
    assert "**Longest stall with it**: ✓ right, near enough to 49.984 ms" in said
    assert "**TTFT of the prompt with it**: no prediction yet" in said
    app = check(app, "target", 2_488, 49.984, 662.6)
    assert app.success[0].value.count("✓ right") == 3
    assert not app.error


def test_nothing_typed_asks_for_a_prediction(page):
    assert check(page(), "budget").warning[0].value == "Type a prediction first."


@pytest.mark.parametrize("text", ["2000000000", "-1", "x*y"])
def test_a_number_out_of_range_takes_the_verdict_before_it_away(page, text):
    app = check(page(), "target", 2_488, 49.984, 662.624)
    assert app.success
    app = check(app, "target", text)
    assert not app.success
    said = app.warning[0].value.replace("\\", "")
    assert f"**Largest chunk**: “{text}” is not a whole number from 0 to 1,000,000,000." in said
    assert said.count("✓ right") == 2  # the other fields'
    assert "2,488 tokens" not in said
    fields = [each.value for each in app.text_input if each.key.startswith("guess target ")]
    assert fields[CHUNK] == text  # what was typed is not lost
    assert not app.exception


def test_a_number_out_of_range_alone_is_said_too(page):
    app = check(page(unfolded=True), "target", "1e10")
    assert "“1e10” is not a whole number from 0" in app.warning[0].value
    shown = {meta["figure"]: meta for meta in metas(app)}
    assert shown["exercise-target"]["yours"] is None


def test_budget_predictions(page):
    # Beside 128 decodes a budget of 512 leaves 384: 86 steps, 86 * 10.4 + 589.824 = 1,484.224 ms.
    app = check(page(), "budget", 0, 512, 86, 1_484.0)
    assert "too many: each decode takes a token of the budget first" in app.error[0].value
    assert app.error[0].value.count("✓ right") == 3
    assert check(app, "budget", None, 384).success


def test_the_bug_is_named_when_it_is_found(page):
    app = page()
    (choice,) = app.radio
    choice.set_value(NAMES[Fault.CHUNK_RELATIVE_POSITIONS])
    app = check(app, "bug", 0, 156)
    assert "**Which bug is it?** ✗ Not yet." in app.error[0].value
    app.radio[0].set_value(NAMES[Fault.CACHED_KEYS_HIDDEN])
    app = check(app, "bug")
    assert "✓ Right." in app.success[0].value
    assert Fault.CACHED_KEYS_HIDDEN.description in app.success[0].value


def test_other_numbers_make_a_new_exercise_with_empty_fields(page):
    app = check(page(), "target", 2_488, 49.984, 662.624)
    assert app.success
    app.button(key="other_target").click().run()
    assert not app.success
    values = {key: app.session_state[key] for key in SETS["target"][1]}
    assert values == SETS["target"][1]
    assert all(not field.value for field in app.text_input)
    # (30 - 4 - 3.2) / 0.018 = 1,266.7; 7.2 + 0.018 * 1,266 = 29.988; 13 steps:
    # 13 * 7.2 + 294.912 = 388.512.
    assert check(app, "target", 1_266, 29.988, 388.512).success
    for _ in SETS["target"][1:]:
        app.button(key="other_target").click().run()
    assert {key: app.session_state[key] for key in SETS["target"][0]} == SETS["target"][0]


def test_solutions_are_worked_out_with_the_present_numbers(page):
    app = page(unfolded=True, fit_target="30", fit_users="64", fit_prompt="16384", bug_case="D")
    assert not app.exception
    assert "`30 − 7.2 = 22.8 ms`" in words(app)
    assert "`512 − 128 = 384 tokens`" in words(app)
    assert "`256 − 56 = 200 positions`" in words(app)
    assert f"**{NAMES[Fault.CACHE_NOT_APPENDED]}**" in words(app)
    shown = {meta["figure"]: meta for meta in metas(app)}
    assert shown["exercise-target"]["best_tokens"] == 1_266
    assert shown["exercise-target"]["yours"] is None
    assert shown["exercise-budget"]["steps"] == 86
    assert shown["mask"]["bug"] == "cache-not-appended"
    assert all(chart.proto.alt for chart in app.get("plotly_chart"))
    app = check(app, "target", 2_000)
    assert {m["figure"]: m for m in metas(app)}["exercise-target"]["yours"] == 2_000


def test_every_start_is_a_link_that_its_page_takes(page):
    checks = {"./": simulator_state.LINK_CHECKS, "./mask": mask_controls.LINK_CHECKS}
    numbers = {key: str(stops[-1]) for key, stops in STOPS.items()}
    for app in (page(), page(**numbers, bug_case="C")):
        links = starts(app)
        assert len(links) == 3
        for link in links:
            parts = urlsplit(link)
            for name, text in parse_qsl(parts.query, strict_parsing=True):
                checks[parts.path][name](text)


def test_link_restores_every_control(page):
    link = {
        "fit_prompt": "8192",
        "fit_users": "96",
        "fit_target": "10",
        "cut_prompt": "65536",
        "cut_users": "448",
        "cut_budget": "512",
        "bug_size": "48",
        "bug_case": "B",
        "picture": "SVG",
    }
    assert set(link) == set(LINK_CHECKS)
    app = page(**link)
    assert not app.info
    assert not app.exception
    held = {key: str(app.session_state[key]) for key in link}
    assert held == link
    assert "10 ms between two tokens" in words(app)
    assert metas(app)[0]["case"] == "B"


@pytest.mark.parametrize("value", ["1", "1e400", "x" * 500])
def test_hostile_link_gives_notes_and_defaults(page, value):
    app = page(fit_target=value, cut_users=value, bug_size=value, bug_case=value)
    assert not app.exception
    note = app.info[0].value.replace("\\", "")
    assert all(f"{name}:" in note for name in ("fit_target", "cut_users", "bug_size", "bug_case"))
    assert app.select_slider(key="fit_target").value == DEFAULTS["fit_target"]
    assert app.select_slider(key="bug_size").value == DEFAULTS["bug_size"]


def test_every_set_of_numbers_is_one_of_the_stops():
    for sets in SETS.values():
        for numbers in sets:
            for key, value in numbers.items():
                assert value in (CASES if key == "bug_case" else STOPS[key])
