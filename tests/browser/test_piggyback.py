"""The piggybacking page in a real browser: keyboard, links, a table, both widths."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_smoke import OVERFLOWING

FIGURES = ("curve", "tiles", "ride", "many", "share")

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_piggyback(open_page: Open) -> Open:
    return lambda query="": open_page(f"/piggybacking{query}")


def curve(condition: str) -> str:
    return f"m => m.figure === 'piggyback-curve' && {condition}"


def test_slider_by_keyboard_and_scale_change_chart_sentence_and_url(
    open_piggyback: Open, wait_for_chart: Chart
):
    page = open_piggyback()
    wait_for_chart(page, curve("m.chunk_tokens === 992 && m.logarithmic"))
    slider = page.get_by_role("slider", name="Prefill tokens in the step (chunk size)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, curve("m.chunk_tokens === 1021"))
    expect(page).to_have_url(re.compile(r"/piggybacking\?piggy_chunk=1021$"))
    expect(page.get_by_text("lengthen the step of 1,021 prefill tokens")).to_be_visible()
    choice = page.get_by_role("radio", name="linear")
    choice.focus()
    choice.press("Space")
    wait_for_chart(page, curve("m.chunk_tokens === 1021 && !m.logarithmic"))


def test_link_opens_its_state_and_its_table(open_piggyback: Open, wait_for_chart: Chart):
    page = open_piggyback("?llm=LLaMA-13B&gpu=A6000&piggy_chunk=1021&decodes=3&edge=128")
    wait_for_chart(page, curve("m.chunk_tokens === 1021"))
    wait_for_chart(page, "m => m.figure === 'piggyback-tiles' && m.edge_tokens === 128")
    expect(page.get_by_text("SARATHI's own figures beside ours")).to_be_visible()
    expect(page.get_by_text("Parts of this link")).to_have_count(0)
    page.get_by_text("The three steps as a table").click()
    expect(page.get_by_role("button", name="CSV", exact=True)).to_be_visible()


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_piggyback: Open, wait_for_chart: Chart
):
    page = open_piggyback("?llm=Llama-2-70B&tp=4")
    for figure in FIGURES:
        wait_for_chart(page, f"m => m.figure === 'piggyback-{figure}'")
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
