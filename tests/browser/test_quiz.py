"""The quiz and the exercises in a real browser: keyboard, live regions, page switches, widths."""

import re
from collections.abc import Callable
from typing import Any

from playwright.sync_api import Page, expect

from tests.browser.pages import go_to
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]


def test_quiz_by_keyboard_and_its_score_over_pages(
    open_page: Open, wait_until_ready: Callable[[Page], None]
) -> None:
    page = open_page("/check_yourself")
    group = page.get_by_role("radiogroup", name=re.compile("Why does chunking end that"))
    radios = group.get_by_role("radio")
    expect(radios).to_have_count(4)
    radios.first.focus()
    page.keyboard.press("Space")
    page.keyboard.press("ArrowDown")  # the first answer on the way is not an attempt
    page.keyboard.press("ArrowDown")
    expect(radios.nth(2)).to_be_checked()
    page.keyboard.press("Tab")
    expect(page.get_by_role("button", name="Check answer 1")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.get_by_role("status").filter(has_text="Right: “It takes")).to_be_visible()
    score = page.get_by_role("status").filter(has_text="1 of 6 answered, 1 of them right")
    expect(score).to_be_visible()
    page.get_by_role("button", name="Check answer 2").click()
    expect(page.get_by_role("alert")).to_contain_text("Choose one of the four answers first")
    tour = page.get_by_role("link", name="Tour, scene 3")
    expect(tour).to_have_attribute("href", "./learn?scene=3")
    expect(tour).to_have_attribute("target", "_blank")
    go_to(page, "/exercises")
    expect(page.get_by_role("heading", name="Exercises: predict, then check")).to_be_visible()
    wait_until_ready(page)
    go_to(page, "/check_yourself")
    expect(score).to_be_visible()
    expect(radios.nth(2)).to_be_checked()


def test_pages_fit_a_phone_in_the_dark(open_page: Open, page: Page, wait_for_chart: Chart) -> None:
    page.emulate_media(color_scheme="dark")
    page.set_viewport_size({"width": 390, "height": 844})
    open_page("/exercises?cut_budget=1024&bug_case=D")
    wait_for_chart(page, "m => m.figure === 'exercise-bug' && m.case === 'D'")
    field = page.get_by_role("textbox", name="Largest chunk (tokens)")
    field.fill("2489")
    field.press("Enter")
    judged = page.get_by_role("alert").filter(has_text="a little too large")
    expect(judged).to_be_visible()
    for number in (1, 2):
        page.get_by_text(f"Worked solution of exercise {number}").click()
    wait_for_chart(page, "m => m.figure === 'exercise-target' && m.yours === 2489")
    # 1,024 - 128 = 896 tokens a step: 32,768 / 896 = 36.6.
    wait_for_chart(page, "m => m.figure === 'exercise-budget' && m.steps === 37")
    assert page.evaluate(OVERFLOWING) == []
    open_page("/check_yourself?question=6")
    expect(page.get_by_role("button", name="Check answer 6")).to_be_visible()
    assert page.evaluate(OVERFLOWING) == []
