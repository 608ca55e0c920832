"""The traffic page in a real browser: its main control, a zoom that refines, a stall's link."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_smoke import OVERFLOWING

SMALL = "request_count=60"
TRACE = (
    b"TIMESTAMP,ContextTokens,GeneratedTokens\n"
    b"2023-11-16 18:15:46.6805900,374,44\n"
    b"2023-11-16 18:15:50.9951690,396,109\n"
)

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_traffic(open_page: Open) -> Open:
    return lambda query=SMALL: open_page(f"/traffic?{query}")


def figure(name: str, accepts: str = "true") -> str:
    return f"m => m.figure === '{name}' && {accepts}"


def test_rate_by_keyboard_changes_picture_and_url(open_traffic: Open, wait_for_chart: Chart):
    page = open_traffic()
    before = wait_for_chart(page, figure("traffic-over-time"))["end_ms"]
    slider = page.get_by_role("slider", name="Request rate")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, figure("traffic-over-time", f"m.end_ms < {before}"))
    expect(page).to_have_url(re.compile(r"rate=5.5"))


def test_a_zoom_is_answered_with_finer_numbers_and_undone(
    open_traffic: Open, wait_for_chart: Chart
):
    page = open_traffic()
    whole = wait_for_chart(page, figure("traffic-over-time"))
    plot = page.locator(".st-key-traffic_time_live .nsewdrag").first
    plot.scroll_into_view_if_needed()
    box = plot.bounding_box()
    assert box is not None
    page.mouse.move(box["x"] + 0.25 * box["width"], box["y"] + 0.5 * box["height"])
    page.mouse.down()
    page.mouse.move(box["x"] + 0.5 * box["width"], box["y"] + 0.5 * box["height"], steps=4)
    page.mouse.up()
    zoomed = wait_for_chart(page, figure("traffic-over-time", "m.begin_ms > 0"))
    quarter = whole["end_ms"] / 4
    assert abs(zoomed["begin_ms"] - quarter) < 0.1 * quarter
    assert abs(zoomed["end_ms"] - 2 * quarter) < 0.1 * quarter
    expect(page).to_have_url(re.compile(r"look_from=[\d.]+&look_to=[\d.]+"))
    page.get_by_role("button", name="Whole run").click()
    wait_for_chart(page, figure("traffic-over-time", "m.begin_ms === 0"))


def test_a_stall_is_a_link_to_the_steps_around_it(
    open_traffic: Open, wait_for_chart: Chart, wait_until_ready: Callable[[Page], None]
):
    page = open_traffic(f"{SMALL}&rate=3")
    wait_for_chart(page, figure("traffic-over-time"))
    page.get_by_role("link", name="B2", exact=True).click()
    expect(page).to_have_url(re.compile(r"request_count=60.*stall=B2"))
    wait_until_ready(page)
    expect(page.get_by_text("B2.", exact=True)).to_be_visible()
    expect(page).to_have_url(re.compile(r"rate=3"))


def test_an_uploaded_file_is_read_and_its_uploader_emptied(
    open_traffic: Open, wait_for_chart: Chart
):
    page = open_traffic("traffic=Your+own+trace")
    page.locator("input[type=file]").first.set_input_files(
        {"name": "azure.csv", "mimeType": "text/csv", "buffer": TRACE}
    )
    wait_for_chart(page, figure("traffic-cdf"))
    expect(page.get_by_text("2 requests of 2 rows read")).to_be_visible()
    expect(page.get_by_test_id("stFileUploaderFile")).to_have_count(0)


def test_a_search_for_capacity_can_be_stopped_and_gone_on_with(
    open_traffic: Open, wait_for_chart: Chart
):
    page = open_traffic("traffic_mode=Capacity&search_requests=2000")
    page.get_by_role("button", name="Search the highest rates").click()
    stop = page.get_by_role("button", name="Stop")
    expect(page.get_by_text(re.compile("requests/s (holds|does not hold)"))).to_be_visible(
        timeout=60_000
    )
    stop.dispatch_event("click")
    expect(page.get_by_text("Not finished")).to_be_visible(timeout=60_000)
    wait_for_chart(page, figure("traffic-chunk-capacity"))
    expect(page.get_by_role("button", name="Go on searching")).to_be_visible()


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_traffic: Open, wait_for_chart: Chart
):
    page = open_traffic()
    for name in ("traffic-cdf", "traffic-attainment", "traffic-over-time"):
        wait_for_chart(page, figure(name))
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
