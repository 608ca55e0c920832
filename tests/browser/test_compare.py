"""The compare page in a real browser: scenes, stories under the pointer, the table, links."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Error, Locator, Page, expect

from s11.scenes import SCENES
from tests.browser.pages import go_to
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]

HOVERED = "() => document.querySelector('.hoverlayer .hovertext')?.textContent ?? null"


@pytest.fixture
def open_compare(open_page: Open) -> Open:
    return lambda query="": open_page(f"/compare{query}")


def engines(*labels: str) -> str:
    return f"m => m.figure === 'compare' && m.engines.join() === '{','.join(labels)}'"


@pytest.mark.parametrize("slug", SCENES)
def test_scene_opens_and_tells_every_step(slug: str, open_compare: Open, wait_for_chart: Chart):
    page = open_compare(f"?scene={slug}")
    wait_for_chart(page, "m => m.figure === 'compare'")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert page.evaluate(OVERFLOWING) == []
    chart = page.locator(".js-plotly-plot").first
    chart.scroll_into_view_if_needed()
    box = chart.bounding_box()
    assert box
    page.mouse.move(box["x"] + box["width"] * 0.13, box["y"] + 150)
    page.wait_for_function(HOVERED)
    assert re.search(r"Step \d+: .* ms, .*(prefill|decode)", page.evaluate(HOVERED))


def test_scene_links_are_links_that_open_their_scene(open_compare: Open, wait_for_chart: Chart):
    page = open_compare()
    wait_for_chart(page, engines("Chunked", "vLLM V1"))
    page.get_by_role("link", name="Figure 7").click()
    wait_for_chart(page, engines("Request level", "Prefill first", "Whole prompts", "Chunked"))
    expect(page).to_have_url(re.compile(r"/compare\?scene=figure-7$"))


LINK = (
    "?scene=budget-monopoly&engines=chunked~~sglang~cap-4096&requests=A~0~64~9~~B~5~2560~2"
    "&budget=1024&blocks=300&target=25.0"
)


def test_copied_link_restores_the_page_exactly(open_compare: Open, wait_for_chart: Chart):
    page = open_compare(LINK)
    wait_for_chart(page, engines("Chunked", "SGLang"))
    copied = page.url
    again = page.context.new_page()
    again.goto(copied)
    wait_for_chart(again, engines("Chunked", "SGLang"))
    expect(again.get_by_text("Budget monopoly, edited: 2 requests")).to_be_visible()
    again.get_by_role("button", name="Knobs").click()
    expect(again.get_by_role("spinbutton", name="KV blocks")).to_have_value("300")
    expect(again.get_by_role("textbox", name="Chunk cap (tokens)").nth(1)).to_have_value("4096")
    assert again.url == copied
    expect(again.get_by_text("Parts of this link")).to_have_count(0)


def type_first_prompt(page: Page, table: Locator, typed: str) -> Locator:
    """Types into the first row's prompt; anew where the page moved or was drawn again meanwhile."""
    cell = page.locator("#portal input, #portal textarea").first
    for patience_ms in (2_000, 4_000, 8_000, 16_000, 30_000):
        expect(table).to_be_visible()
        box = table.bounding_box()
        assert box
        page.mouse.click(box["x"] + box["width"] * 0.4, box["y"] + 35 * 1.5)
        page.keyboard.press("Enter")
        try:
            expect(cell).to_be_focused(timeout=patience_ms)
            cell.fill(typed, timeout=patience_ms)
            expect(cell).to_have_value(typed, timeout=patience_ms)
        except (AssertionError, Error):
            page.keyboard.press("Escape")
        else:
            return cell
    raise AssertionError(f"{typed!r} could not be typed")


def test_cell_of_the_table_changes_picture_and_link(open_compare: Open, wait_for_chart: Chart):
    page = open_compare()
    wait_for_chart(page, engines("Chunked", "vLLM V1"))
    page.get_by_role("button", name="Edit the requests").click()
    table = page.get_by_test_id("stDataFrame").locator("canvas").first
    cell = type_first_prompt(page, table, "800")
    cell.press("Tab")
    expect(page).to_have_url(re.compile(r"requests=report~0~800~10~~chat"))
    expect(page.get_by_text("KV pressure, edited: 4 requests, 2,000 prompt tokens")).to_be_visible()
    expect(page.get_by_text("Edited from the scene KV pressure.")).to_be_visible()
    expect(page.locator("nav.presets a[aria-current]")).to_have_count(0)
    page.get_by_role("button", name="Edit the requests").click()
    expect(table).to_have_count(0)
    expect(page).to_have_url(re.compile(r"requests=report~0~800~10~~chat"))


def test_cell_that_no_request_can_have_is_said_to_be(open_compare: Open, wait_for_chart: Chart):
    page = open_compare()
    wait_for_chart(page, engines("Chunked", "vLLM V1"))
    page.get_by_role("button", name="Edit the requests").click()
    table = page.get_by_test_id("stDataFrame").locator("canvas").first
    for typed, said in (
        ("0", "row 1 (report), prompt_tokens: 0 is not a whole number from 1 to 1,000,000."),
        ("", "Row 1 (“report”) is left out: prompt (1 to 1,000,000 tokens) is missing."),
    ):
        cell = type_first_prompt(page, table, typed)
        cell.press("Tab")
        expect(page.get_by_text(said)).to_be_visible()


@pytest.mark.parametrize(("view", "narrow"), [("desktop-light", False), ("phone-light", True)])
def test_chunks_are_numbered_by_the_room_of_the_screen(
    view: str, narrow: bool, open_compare: Open, wait_for_chart: Chart
):
    page = open_compare("?scene=one-long-prompt")
    wait_for_chart(page, "m => m.figure === 'compare'")
    shown = page.locator(".js-plotly-plot .textpoint text").evaluate_all(
        "all => all.filter((e) => getComputedStyle(e).display !== 'none'"
        " && getComputedStyle(e).fillOpacity !== '0').map((e) => e.textContent)"
    )
    assert ("32 chunks" in shown) == narrow
    assert ("32" in shown) == (not narrow)


def test_knob_by_keyboard_changes_figures_and_url(open_compare: Open, wait_for_chart: Chart):
    page = open_compare()
    wait_for_chart(page, engines("Chunked", "vLLM V1"))
    page.get_by_role("button", name="Knobs").click()
    field = page.get_by_role("spinbutton", name="KV blocks")
    field.fill("400")
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/compare\?blocks=400$"))
    expect(page.get_by_text("do exactly the same in every step here")).to_be_visible()
    field.fill("288")
    field.press("Enter")
    expect(page).to_have_url(re.compile(r"/compare$"))


def test_page_is_as_it_was_left_after_a_look_at_another(open_compare: Open, wait_for_chart: Chart):
    page = open_compare("?scene=figure-7")
    wait_for_chart(page, engines("Request level", "Prefill first", "Whole prompts", "Chunked"))
    page.get_by_role("link", name="Simulator").first.click()
    wait_for_chart(page, "m => m.figure === 'timeline'")
    go_to(page, "/compare")
    wait_for_chart(page, engines("Request level", "Prefill first", "Whole prompts", "Chunked"))
    expect(page).to_have_url(re.compile(r"/compare\?scene=figure-7$"))


def test_steps_and_metrics_leave(open_compare: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_compare()
    wait_for_chart(page, engines("Chunked", "vLLM V1"))
    page.get_by_text("Every step of vLLM V1").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Steps as CSV").click()
    download.value.save_as(tmp_path / "steps.csv")
    with (tmp_path / "steps.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["step"] for row in rows] == [str(number) for number in range(1, 31)]
    assert rows[6]["what the engine saw"].startswith("“chat 3” was preempted just before")
    page.get_by_role("button", name="Take it with you").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Metrics as CSV").click()
    download.value.save_as(tmp_path / "metrics.csv")
    with (tmp_path / "metrics.csv").open() as file:
        metrics = {row["metric"]: row for row in csv.DictReader(file)}
    assert metrics["Preemptions"]["vLLM V1"] == "1.0"


@pytest.mark.parametrize("view", ["desktop-light", "phone-dark"])
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_compare: Open, wait_for_chart: Chart
):
    page = open_compare("?scene=shared-prefix")
    wait_for_chart(page, "m => m.figure === 'compare' && m.engines.length === 4")
    assert page.evaluate(OVERFLOWING) == []
    table = page.locator(".s11-metrics")
    expect(table).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    legend = page.locator(".js-plotly-plot .legend").first.bounding_box()
    chart = page.locator(".js-plotly-plot").first.bounding_box()
    assert legend
    assert chart
    assert legend["y"] + legend["height"] <= chart["y"] + chart["height"] + 1
