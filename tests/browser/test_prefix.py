"""The prefix page in a real browser: keyboard, links, presets, downloads, both widths."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import PROBE
from tests.browser.pages import go_to
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_prefix(open_page: Open) -> Open:
    return lambda query="": open_page(f"/prefix{query}")


def skipped(chunks: int) -> str:
    return f"m => m.figure === 'prefix-steps' && m.skipped_chunks === {chunks}"


def blocks(kind: str, count: int) -> str:
    return f"m => m.figure === 'prefix-blocks' && m.{kind} === {count}"


def test_slider_by_keyboard_changes_charts_sentence_and_url(
    open_prefix: Open, wait_for_chart: Chart
):
    page = open_prefix()
    wait_for_chart(page, skipped(31))
    slider = page.get_by_role("slider", name="Chunk size (tokens)")
    slider.focus()
    slider.press("ArrowRight")
    # Chunks of 2,048: 2 + 3 + 3 + 4 + 4 + 5 = 21; 2 for the first turn and 1 for each other stay.
    wait_for_chart(page, skipped(14))
    expect(page).to_have_url(re.compile(r"/prefix\?prefix_chunk=2048$"))
    expect(page.get_by_text("it skips 14 of 21 chunks")).to_be_visible()
    slider.press("ArrowLeft")
    wait_for_chart(page, skipped(31))
    expect(page).to_have_url(re.compile(r"/prefix$"))


def test_load_by_keyboard_changes_controls_and_url(open_prefix: Open, wait_for_chart: Chart):
    page = open_prefix()
    wait_for_chart(page, skipped(31))
    choice = page.get_by_role("radio", name="shared system prompt")
    choice.focus()
    choice.press("Space")
    wait_for_chart(page, skipped(20))
    expect(page).to_have_url(re.compile(r"/prefix\?load=shared(\+|%20)system(\+|%20)prompt$"))
    expect(page.get_by_role("spinbutton", name="Own (tokens)")).to_have_value("500")
    expect(page.get_by_role("spinbutton", name="Turns")).to_have_count(0)


def test_copied_link_restores_the_page_exactly(open_prefix: Open, wait_for_chart: Chart):
    page = open_prefix("?turns=4&chats=2&pool=500&picture=SVG")
    meta = wait_for_chart(page, "m => m.figure === 'prefix-blocks' && m.evicted > 0")
    again = page.context.new_page()
    again.goto(page.url)
    assert wait_for_chart(again, "m => m.figure === 'prefix-blocks'") == meta
    expect(again.get_by_role("spinbutton", name="Pool size (KV blocks)")).to_have_value("500")
    assert again.url == page.url
    expect(again.get_by_text("Parts of this link")).to_have_count(0)


def test_preset_is_a_whole_state(open_prefix: Open, wait_for_chart: Chart):
    page = open_prefix("?turns=2")
    page.get_by_role("link", name="Exactly one block too much").click()
    wait_for_chart(page, blocks("last_token", 3))
    expect(page.get_by_text("3 blocks (384 tokens)")).to_be_visible()
    assert "turns" not in page.url


def test_link_made_after_coming_from_another_page_restores_too(
    open_app: Open, wait_for_chart: Chart, browser_errors: list[str]
):
    page = open_app("/?chunk=512")
    go_to(page, "/prefix")
    wait_for_chart(page, skipped(31))
    expect(page).to_have_url(re.compile(r"/prefix$"))
    turns = page.get_by_role("spinbutton", name="Turns")
    turns.fill("3")
    turns.press("Enter")
    # Turns of 3, 5 and 6 chunks; 4 + 5 are skipped.
    wait_for_chart(page, skipped(9))
    expect(page).to_have_url(re.compile(r"/prefix\?turns=3$"))
    again = page.context.new_page()
    again.goto(page.url)
    wait_for_chart(again, skipped(9))
    browser_errors[:] = [error for error in browser_errors if not PROBE.match(error)]


def test_data_and_pictures_leave(open_prefix: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_prefix("?turns=2")
    wait_for_chart(page, blocks("hit", 203))
    page.get_by_role("button", name="Take it with you").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Requests as CSV").click()
    download.value.save_as(tmp_path / "requests.csv")
    with (tmp_path / "requests.csv").open() as file:
        rows = list(csv.DictReader(file))
    # 3,249 tokens are computed before turn 2 comes: 203 whole blocks of 16.
    assert [(row["request"], row["hit_tokens"], row["computed_tokens"]) for row in rows] == [
        ("turn 1", "0", "3000"),
        ("turn 2", "3248", "1002"),
    ]
    with page.expect_download() as download:
        page.get_by_role("button", name="Blocks as HTML").click()
    download.value.save_as(tmp_path / "blocks.html")
    html = (tmp_path / "blocks.html").read_text()
    assert "prompt blocks are hits" in html
    assert len(html) > 1_000_000  # plotly.js is in it


NUMBERS = "The numbers as a table"


def test_numbers_are_there_as_a_table(open_prefix: Open, wait_for_chart: Chart):
    page = open_prefix("?turns=2")
    wait_for_chart(page, blocks("hit", 203))
    fold = page.get_by_test_id("stExpander").filter(has=page.get_by_text(NUMBERS, exact=True))
    fold.get_by_text(NUMBERS, exact=True).click()
    expect(fold.get_by_test_id("stDataFrame").first).to_be_visible()


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_prefix: Open, wait_for_chart: Chart
):
    page = open_prefix("?turns=4&chats=2&pool=500")
    for figure in ("prefix-steps", "prefix-ttft", "prefix-blocks"):
        wait_for_chart(page, f"m => m.figure === '{figure}'")
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
