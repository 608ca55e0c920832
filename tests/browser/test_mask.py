"""The mask page in a real browser: keyboard, links, downloads, both widths."""

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
def open_mask(open_page: Open) -> Open:
    return lambda query="": open_page(f"/mask{query}")


def mask(cached: int, chunk: int) -> str:
    return f"m => m.figure === 'mask' && m.cached_tokens === {cached} && m.chunk_tokens === {chunk}"


def keys(bug: str, wrong: int) -> str:
    return (
        f"m => m.figure === 'key-difference' && m.bug === '{bug}' && m.wrong_positions === {wrong}"
    )


def test_slider_by_keyboard_changes_chart_sentence_and_url(open_mask: Open, wait_for_chart: Chart):
    page = open_mask()
    wait_for_chart(page, mask(24, 8))
    slider = page.get_by_role("slider", name="Cached length (tokens)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, mask(25, 8))
    expect(page).to_have_url(re.compile(r"/mask\?cached=25$"))
    expect(page.get_by_text("The query at position 25 sees 26 keys")).to_be_visible()
    expect(page.get_by_role("figure", name=re.compile("8 tokens.*25 tokens")).first).to_be_visible()
    slider.press("ArrowLeft")
    wait_for_chart(page, mask(24, 8))
    expect(page).to_have_url(re.compile(r"/mask$"))


def test_bug_by_keyboard_changes_keys_and_url(open_mask: Open, wait_for_chart: Chart):
    page = open_mask()
    wait_for_chart(page, keys("chunk-relative-positions", 156))
    choice = page.get_by_role("radio", name="no-causality-in-chunk")
    choice.focus()
    choice.press("Space")
    wait_for_chart(page, keys("no-causality-in-chunk", 256))
    expect(page).to_have_url(re.compile(r"\?bug=no-causality-in-chunk$"))


LINK = (
    "?mask_chunk=5&cached=7&tokens=64&own_size=33&bug=cached-keys-hidden&bug_chunk=64"
    "&path=plain&picture=SVG"
)


def test_copied_link_restores_the_page_exactly(open_mask: Open, wait_for_chart: Chart):
    page = open_mask(LINK)
    wait_for_chart(page, mask(7, 5))
    wait_for_chart(page, keys("cached-keys-hidden", 192))  # all after the first 64 of 256
    copied = page.url
    again = page.context.new_page()
    again.goto(copied)
    wait_for_chart(again, mask(7, 5))
    wait_for_chart(again, "m => m.path === 'plain' && m.chunk_tokens === 64")
    expect(again.get_by_role("spinbutton", name="A chunk size of your own")).to_have_value("33")
    expect(again.get_by_text("Prompt of 64 tokens")).to_be_visible()
    expect(again.get_by_role("radio", name="SVG")).to_be_checked()
    assert again.url == copied
    expect(again.get_by_text("Parts of this link")).to_have_count(0)


def test_link_made_after_coming_from_the_other_page_restores_too(
    open_app: Open, wait_for_chart: Chart, browser_errors: list[str]
):
    page = open_app("/?chunk=512")
    go_to(page, "/mask")
    wait_for_chart(page, mask(24, 8))
    expect(page).to_have_url(re.compile(r"/mask$"))
    slider = page.get_by_role("slider", name="Chunk length (tokens)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, mask(24, 9))
    expect(page).to_have_url(re.compile(r"/mask\?mask_chunk=9$"))
    again = page.context.new_page()
    again.goto(page.url)
    wait_for_chart(again, mask(24, 9))
    browser_errors[:] = [error for error in browser_errors if not PROBE.match(error)]


def test_data_and_picture_leave(open_mask: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_mask("?mask_chunk=2&cached=1")
    wait_for_chart(page, mask(1, 2))
    with page.expect_download() as download:
        page.get_by_role("button", name="Mask as CSV", exact=False).first.click()
    download.value.save_as(tmp_path / "mask.csv")
    with (tmp_path / "mask.csv").open() as file:
        pairs = {
            (int(row["query_position"]), int(row["key_position"])): int(row["visible"])
            for row in csv.DictReader(file)
        }
    assert pairs == {(1, 0): 1, (1, 1): 1, (1, 2): 0, (2, 0): 1, (2, 1): 1, (2, 2): 1}
    with page.expect_download() as download:
        page.get_by_role("button", name="|ΔK| as HTML").click()
    download.value.save_as(tmp_path / "keys.html")
    html = (tmp_path / "keys.html").read_text()
    assert "keys wrong, by up to" in html
    assert len(html) > 1_000_000  # plotly.js is in it


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(view: str, open_mask: Open, wait_for_chart: Chart):
    page = open_mask()
    wait_for_chart(page, mask(24, 8))
    wait_for_chart(page, keys("chunk-relative-positions", 156))
    expect(page.locator(".s11-bits tbody tr")).to_have_count(9)
    expect(page.get_by_text("computing …")).to_have_count(0)
    assert page.evaluate(OVERFLOWING) == []
    table = page.locator(".s11-bits")
    assert table.evaluate("e => e.scrollWidth <= e.clientWidth")
    expect(page.get_by_test_id("stException")).to_have_count(0)
