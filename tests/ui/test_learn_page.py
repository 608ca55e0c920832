"""The tour's page without a browser: the way through it, its controls, its links."""

import json
import re
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from s11.learn_scenes import SCENES

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page():
    def open_page(name="learn", **parameters):
        app = AppTest.from_file(str(ROOT / "pages" / f"{name}.py"), default_timeout=120)
        for key, value in parameters.items():
            app.query_params[key] = value
        return app.run()

    return open_page


def meta(app):
    (chart,) = app.get("plotly_chart")
    assert chart.proto.alt
    return json.loads(chart.proto.spec)["layout"]["meta"]


def html(app):
    return " ".join(block.proto.body for block in app.get("html"))


def current(app):
    (number,) = re.findall(r'aria-current="step"[^>]*>(\d+)</a>', html(app))
    return int(number)


def turn(app, label):
    return next(button for button in app.button if button.label == label)


def test_arrives_at_the_freeze_with_the_whole_way_in_sight(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert app.title[0].value == f"1. {SCENES[0].headline}"
    assert meta(app)["longest_stall_ms"] == pytest.approx(152.656)
    assert re.findall(r'href="\?scene=(\d+)"', html(app)) == [str(n) for n in range(1, 12)]
    assert current(app) == 1
    assert turn(app, "Previous").disabled
    assert "every stream waits 153 ms" in " ".join(block.value for block in app.markdown)
    assert 'href="./?prompt=8192&amp;chunking=false"' in html(app)


def test_buttons_turn_the_scenes_and_the_link(page):
    app = page()
    for number in range(1, len(SCENES) + 1):
        assert not app.exception
        assert current(app) == number
        assert app.title[0].value == f"{number}. {SCENES[number - 1].headline}"
        assert len(app.select_slider) + len(app.get("button_group")) == 1
        meta(app)
        assert turn(app, "Next").disabled == (number == len(SCENES))
        if number < len(SCENES):
            turn(app, "Next").click().run()
            assert app.query_params["scene"] == str(number + 1)
    turn(app, "Previous").click().run()
    assert current(app) == len(SCENES) - 1


def test_scene_is_as_it_comes_when_turned_to(page):
    app = page(scene="10", served="SGLang")
    assert meta(app)["longest_stall_ms"] == pytest.approx(611.024)
    turn(app, "Next").click().run()
    assert "served" not in app.query_params
    turn(app, "Previous").click().run()
    assert meta(app)["longest_stall_ms"] == pytest.approx(299.68)


def test_a_scene_that_the_address_turns_to_is_as_it_comes_too(page):
    app = page(scene="5", picture="SVG")
    assert 'href="?scene=6&amp;picture=SVG"' in html(app)
    app.select_slider(key="pieces").set_value(2_048).run()
    assert meta(app)["chunk_tokens"] == 2_048
    assert "pieces" not in html(app)  # no number's link takes it along
    for scene in ("6", "5"):  # as the browser's address goes, without a button
        app.query_params.clear()
        app.query_params["scene"] = scene
        app.run()
    assert current(app) == 5
    assert meta(app)["chunk_tokens"] == 1_024
    assert not app.exception


def test_link_opens_a_scene_at_its_control(page):
    app = page(scene="4", streams="256")
    assert not app.info
    assert meta(app)["streaming_users"] == 256
    app.select_slider(key="streams").set_value(24).run()
    assert meta(app)["longest_gap_ms"] == pytest.approx(13.984)


@pytest.mark.parametrize("text", ["12", "1e400", "<script>"])
def test_scene_that_is_none_says_so(page, text):
    app = page(scene=text)
    assert not app.exception
    assert "scene" in app.info[0].value
    assert current(app) == 1


def test_other_settings_that_cannot_be_used_are_named(page):
    app = page(scene="3", cut="5", chapter="2")
    assert not app.exception
    assert "cut" in app.info[0].value
    assert "chapter: this page has no such setting" in app.info[0].value
    assert current(app) == 3
    assert meta(app)["chunk_tokens"] == 50


def test_numbers_are_a_fold_away(page):
    app = page(scene="5")
    assert not app.dataframe
    app.session_state["learn_cost_table"] = True
    app.run()
    assert not app.exception
    assert list(app.dataframe[0].value["ttft_ms"]) == pytest.approx([152.656, 189.056])


@pytest.mark.parametrize(
    ("number", "option", "figure", "same"),
    [
        (4, 256, "longest_stall_ms", "longest_gap_ms"),
        (10, "SGLang", "longest_stall_ms", "longest_stall_ms"),
        (11, "Two workers", "ttft_ms", "two_ttft_ms"),
    ],
)
def test_simulator_shows_the_same(page, number, option, figure, same):
    shown = SCENES[number - 1].show(option)
    simulator = page("simulator", **shown.link.parameters)
    assert not simulator.info
    assert meta(simulator)[figure] == pytest.approx(shown.spec["layout"]["meta"][same])
