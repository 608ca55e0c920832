"""The tour as a whole: what every scene must have, whatever it tells."""

import json
import re

import pytest

from s11.entries import Entry
from s11.figures.drawn import as_json
from s11.learn_orders import ORDERS, queued, reorder
from s11.learn_scene import Control
from s11.learn_scenes import SCENES
from s11.ui import chunk_size_state, compare_link, mask_controls, piggyback_state, simulator_state

# By address, what a page's link may hold.
CHECKS = {
    "": simulator_state.LINK_CHECKS,
    "compare": compare_link.LINK_CHECKS,
    "mask": mask_controls.LINK_CHECKS,
    "piggybacking": piggyback_state.LINK_CHECKS,
    "chunk_size": chunk_size_state.LINK_CHECKS,
}
NUMBERS_OF_THE_TOUR = [
    "freeze",
    "reorder",
    "divide",
    "stall-free",
    "cost",
    "mix",
    "choose",
    "mask",
    "positions",
    "production",
    "next",
]
MOST_TITLE, MOST_CAPTION = 38, 60  # letters that fit a phone of 390 px
# What an axis shows changes with what is looked at.
NOT_FIXED = {("mask", "yaxis"), ("next", "xaxis"), ("next", "yaxis"), ("next", "yaxis2")}


def tried(control):
    """The ends of a slider and where it stands, or every choice."""
    if not control.slides:
        return control.options
    return tuple(dict.fromkeys((control.options[0], control.default, control.options[-1])))


@pytest.fixture(scope="module")
def shown():
    return {
        scene.slug: {option: scene.show(option) for option in tried(scene.control)}
        for scene in SCENES
    }


def test_order_that_other_pages_link_to():
    assert [scene.slug for scene in SCENES] == NUMBERS_OF_THE_TOUR


def test_controls_have_names_of_their_own():
    keys = [scene.control.key for scene in SCENES]
    assert len(set(keys)) == len(keys)
    # Streamlit would keep a value of the same name from another page.
    assert not set(keys) & set().union(*CHECKS.values())


def test_default_must_be_an_option():
    with pytest.raises(ValueError, match="default: 3 is not one of"):
        Control(key="k", label="l", options=(1, 2), default=3, about="a")


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.slug)
def test_scene_is_whole_at_every_end_of_its_control(scene, shown):
    titles = set()
    for option, one in shown[scene.slug].items():
        layout = one.spec["layout"]
        title, *caption = re.sub("<(?!br).*?>", "", layout["title"]["text"]).split("<br>")
        titles.add(title)
        assert len(title) <= MOST_TITLE, title
        assert max(map(len, caption)) <= MOST_CAPTION
        assert 2 <= len(one.sentences) <= 3
        assert all(re.search(r"[.!]$", sentence) for sentence in one.sentences)
        assert re.search(r"\d", " ".join(one.sentences))
        assert re.search(r"\d", one.alt)
        assert len({len(column) for column in one.columns.values()}) == 1
        assert layout["meta"]["wide"]["height"] >= 400
        assert "NaN" not in json.dumps(json.loads(as_json(one.spec)))
        for name, text in one.link.parameters.items():
            CHECKS[one.link.page][name](text)
        assert option in scene.control.options
    assert len(titles) > 1, "the control changes nothing"


@pytest.mark.parametrize("scene", SCENES, ids=lambda scene: scene.slug)
def test_axes_stay_while_the_control_moves(scene, shown):
    ranges = [
        {
            name: tuple(axis["range"])
            for name, axis in one.spec["layout"].items()
            if name.startswith(("xaxis", "yaxis")) and (scene.slug, name) not in NOT_FIXED
        }
        for one in shown[scene.slug].values()
    ]
    assert all(each == ranges[0] for each in ranges)


@pytest.mark.parametrize("name", ORDERS)
def test_link_to_the_comparison_is_the_same_queue(name):
    experiment, _ = queued(name)
    asked = compare_link.from_link(reorder(name).link.parameters)
    assert asked.entries[0] == Entry(engine=experiment.policy)
    assert asked.entries[0].of(asked.common()) == experiment
