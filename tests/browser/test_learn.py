"""The tour in a real browser: arrow keys, the way back, charts that change in place."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]

MARK = "() => { document.querySelector('.js-plotly-plot').dataset.mark = 'mine'; }"
MARKED = "() => document.querySelectorAll('.js-plotly-plot[data-mark=mine]').length"


def test_keys_turn_scenes_and_move_sliders(open_page: Open, wait_for_chart: Chart):
    page = open_page("/learn?scene=4&streams=256")
    wait_for_chart(page, "m => m.figure === 'learn-budget' && m.streaming_users === 256")
    page.keyboard.press("ArrowRight")
    wait_for_chart(page, "m => m.figure === 'learn-cost' && m.chunk_tokens === 1024")
    expect(page).to_have_url(re.compile(r"/learn\?scene=5$"))
    expect(page.locator("nav.tour a[aria-current]")).to_have_text("5")
    page.evaluate(MARK)
    slider = page.get_by_role("slider", name="Chunk size (tokens)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, "m => m.figure === 'learn-cost' && m.chunk_tokens === 2048")
    assert page.evaluate(MARKED) == 1  # the same chart, drawn anew
    expect(page.get_by_text("after 168 ms instead of 153 ms")).to_be_visible()
    expect(page).to_have_url(re.compile(r"[?&]pieces=2048(&|$)"))
    page.go_back()
    wait_for_chart(page, "m => m.figure === 'learn-budget'")
    expect(page.get_by_role("heading", level=1)).to_contain_text("4. Decodes first")
    page.get_by_role("button", name="Next").click()  # nothing lies over it
    expect(page.get_by_role("heading", level=1)).to_contain_text("5. ")


def test_quick_presses_all_count_and_nothing_loads_anew(
    open_page: Open, wait_until_ready: Callable[[Page], None]
):
    page = open_page("/learn?picture=SVG")
    page.evaluate("window.mark = 'mine'")
    heading = page.get_by_role("heading", level=1)
    for _ in range(5):
        page.keyboard.press("ArrowRight")
    expect(heading).to_contain_text("6. ")
    expect(page).to_have_url(re.compile(r"/learn\?scene=6&picture=SVG$"))
    page.get_by_role("link", name="Scene 9").click()
    expect(heading).to_contain_text("9. ")
    next_scene = page.get_by_role("button", name="Next")
    next_scene.click()
    next_scene.click()
    expect(heading).to_contain_text("11. ")
    page.go_back()
    page.go_back()
    expect(heading).to_contain_text("9. ")  # a stop for each scene
    wait_until_ready(page)
    page.get_by_role("button", name="Turn them off").press("Enter")
    expect(page.get_by_role("button", name="Turn them on")).to_be_focused()
    page.keyboard.press("ArrowLeft")
    page.keyboard.press("s")
    page.get_by_role("button", name="Turn them on").press("Enter")
    page.keyboard.press("ArrowLeft")
    expect(heading).to_contain_text("8. ")  # that press alone
    expect(page).to_have_url(re.compile(r"/learn\?scene=8&picture=SVG$"))  # and no slide
    assert page.evaluate("window.mark") == "mine"


@pytest.mark.parametrize("view", ["phone-dark"])
def test_no_scene_is_too_wide_for_a_phone(view: str, open_page: Open, wait_for_chart: Chart):
    page = open_page("/learn")
    for number in range(1, 12):
        expect(page.get_by_role("heading", level=1)).to_contain_text(f"{number}. ")
        expect(page.locator("nav.tour a[aria-current]")).to_have_text(str(number))
        assert page.evaluate(OVERFLOWING) == []
        if number < 11:
            page.get_by_role("button", name="Next").click()
    wait_for_chart(page, "m => m.figure === 'learn-workers'")
    expect(page.get_by_role("button", name="Next")).to_be_disabled()
    expect(page.get_by_test_id("stException")).to_have_count(0)
