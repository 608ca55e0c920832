"""Slide mode in a real browser: what is hidden, how large type is, what is saved; A above B."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]

TIMELINE = "m => m.figure === 'timeline'"
WINDOWS = ((1920, 1080), (1440, 900), (1024, 768))

FIGURE = "[data-testid=stMetric], .s11_texts .card"

# px on the screen: of the title's letters, and where the picture stands.
TITLE_PX = """() => {
    const text = document.querySelector('.js-plotly-plot .gtitle tspan') ??
        document.querySelector('.js-plotly-plot .gtitle');
    const chart = document.querySelector('.js-plotly-plot');
    return parseFloat(getComputedStyle(text).fontSize)
        * chart.getBoundingClientRect().width / chart.clientWidth;
}"""
PLACES = """(figure) => {
    const box = (e) => e.getBoundingClientRect();
    const chart = box(document.querySelector('.js-plotly-plot'));
    return {
        figures: box(document.querySelector(figure)).bottom,
        top: chart.top, bottom: chart.bottom, right: chart.right,
        caption: box(document.querySelector('.s11-slide')).top,
        scroll: document.querySelector('.stMain').scrollHeight,
    };
}"""
# The chart is drawn as large as its place.
FILLS = """() => {
    const chart = document.querySelector('.js-plotly-plot'), drawn = chart?._fullLayout;
    return drawn && Math.abs(drawn.width - chart.clientWidth) < 2
        && Math.abs(drawn.height - chart.clientHeight) < 2;
}"""


def saved(page: Page, folder: Path, click: Callable[[], None]) -> bytes:
    with page.expect_download() as waiting:
        click()
    path = folder / waiting.value.suggested_filename
    waiting.value.save_as(path)
    return path.read_bytes()


def png_size(data: bytes) -> tuple[int, int]:
    assert data[:8] == b"\x89PNG\r\n\x1a\n"
    return int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big")


@pytest.mark.parametrize("view", ["desktop-light"])
def test_a_page_becomes_a_slide_and_a_page_again(
    view: str, open_app: Open, wait_for_chart: Chart, tmp_path: Path
):
    page = open_app("/?chunk=512&users=7")
    wait_for_chart(page, TIMELINE)
    on_page = page.evaluate(TITLE_PX)
    page.keyboard.press("s")
    expect(page).to_have_url(re.compile("slide=light"))
    assert {"chunk=512", "users=7"} < set(page.url.partition("?")[2].split("&"))
    expect(page.get_by_role("slider", name="Chunk size")).to_be_hidden()
    expect(page.get_by_role("navigation", name="Presets")).to_be_hidden()
    expect(page.get_by_role("button", name="Take it with you")).to_be_hidden()
    expect(page.get_by_test_id("stHeader")).to_be_hidden()
    expect(page.locator(FIGURE).filter(visible=True)).to_have_count(4)
    expect(page.locator(".s11-slide")).to_contain_text("chunk 512, users 7")
    link = page.locator(".s11-slide a").get_attribute("href")
    assert link is not None
    assert link.startswith("http://127.0.0.1:")
    assert link.endswith("/?chunk=512&users=7")
    page.wait_for_function(FILLS)  # before any window changes its size
    for width, height in WINDOWS:
        page.set_viewport_size({"width": width, "height": height})
        page.wait_for_function(FILLS)
        at = page.evaluate(PLACES, FIGURE)
        assert at["figures"] <= at["top"] < at["bottom"] <= at["caption"] + 1
        assert at["right"] <= width
        assert at["scroll"] <= height
        assert page.evaluate(OVERFLOWING) == []
        larger = page.evaluate(TITLE_PX) / on_page
        assert larger == pytest.approx(1.5 if width > 1024 else 1.3, rel=1e-3)
    page.keyboard.press("d")
    page.wait_for_function(
        "() => getComputedStyle(document.querySelector('.stApp')).backgroundColor"
        " === 'rgb(15, 20, 26)'"
    )
    wait_for_chart(page, TIMELINE)
    page.wait_for_function(
        "() => document.querySelector('.js-plotly-plot').layout.paper_bgcolor === '#0F141A'"
    )
    camera = page.locator('[data-title^="Download plot"]').first
    assert png_size(saved(page, tmp_path, camera.click)) == (1920, 1080)
    page.keyboard.press("Escape")
    expect(page.get_by_role("slider", name="Chunk size")).to_be_visible()
    expect(page).to_have_url(re.compile(r"\?(?!.*slide)"))
    expect(page.get_by_role("spinbutton", name="Streaming users")).to_have_value("7")


@pytest.mark.parametrize("view", ["phone-dark"])
def test_an_embedded_slide_keeps_its_white_and_has_no_way_back(
    view: str, open_app: Open, wait_for_chart: Chart
):
    page = open_app("/?embed=true&slide=light&chunking=false")
    wait_for_chart(page, "m => m.longest_stall_ms > 152 && m.longest_stall_ms < 153")
    expect(page.locator(".s11-slide a")).to_have_attribute("href", re.compile(r"/\?chunking=false"))
    expect(page.get_by_role("button", name="Back")).to_have_count(0)
    white = "() => getComputedStyle(document.querySelector('%s')).backgroundColor"
    assert page.evaluate(white % ".stApp") == "rgb(255, 255, 255)"
    assert page.evaluate(OVERFLOWING) == []


def test_two_states_are_one_picture(open_app: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_app("/?chunk=512&chunking=false")
    wait_for_chart(page, TIMELINE)
    page.get_by_role("button", name="A/B picture").click()
    # 512-token chunks: 4 + 24 x 0.05 + 512 x 0.018 = 14.416 ms; the whole prompt: 152.656 ms.
    meta = wait_for_chart(page, "m => m.figure === 'timeline-pair'")
    assert meta["longest_stall_ms"] == pytest.approx([14.416, 152.656])
    dialog = page.get_by_role("dialog")
    camera = dialog.locator('[data-title^="Download plot"]')
    assert png_size(saved(page, tmp_path, camera.click)) == (1920, 1080)
    dialog.get_by_text("The numbers as a table").click()
    html = saved(page, tmp_path, dialog.get_by_role("button", name="Two states as HTML").click)
    assert html.startswith(b"<!doctype html>")
    assert b"Chunking on" in html
    assert page.evaluate(OVERFLOWING) == []
    page.set_viewport_size({"width": 1920, "height": 1080})
    page.set_content(html.decode())
    picture = page.locator("#picture")
    expect(picture.locator(".main-svg").first).to_be_visible()
    assert picture.bounding_box() == {"x": 0, "y": 0, "width": 1920, "height": 1080}
    assert page.evaluate(TITLE_PX) == pytest.approx(27, rel=1e-3)  # 18 px x 1.5
    expect(picture).to_contain_text("Longest stall 14.4 ms above, 153 ms below")
