"""The trust page in a real browser: keyboard, link, widths, data that leave."""

import csv
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from s11.validation.snapshot import snapshot
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_models(open_page: Open) -> Open:
    return lambda query="": open_page(f"/models{query}")


def drawn(figure: str, quantity: str) -> str:
    return f"m => m.figure === '{figure}' && m.quantity === '{quantity}'"


def test_choice_by_keyboard_changes_both_pictures_and_the_link(
    open_models: Open, wait_for_chart: Chart
):
    page = open_models()
    wait_for_chart(page, drawn("trust-scatter", "TPOT"))
    choice = page.get_by_role("radio", name="Dense products")
    choice.focus()
    choice.press("Space")
    wait_for_chart(page, drawn("trust-scatter", "Dense products"))
    wait_for_chart(page, drawn("trust-errors", "Dense products"))
    expect(page).to_have_url(re.compile(r"/models\?quantity=Dense(\+|%20)products$"))
    expect(page.get_by_text("Dense products (one product of a layer), off by")).to_be_visible()


def test_errors_leave_as_csv(open_models: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_models("?quantity=TTFT")
    wait_for_chart(page, drawn("trust-scatter", "TTFT"))
    with page.expect_download() as download:
        page.get_by_role("button", name="Errors as CSV").click()
    download.value.save_as(tmp_path / "errors.csv")
    with (tmp_path / "errors.csv").open() as file:
        rows = list(csv.DictReader(file))
    assert [row["file"] for row in rows] == [row.file for row in snapshot().rows]


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_models: Open, wait_for_chart: Chart
):
    page = open_models("?quantity=All-reduce")
    for figure in ("trust-scatter", "trust-errors"):
        wait_for_chart(page, drawn(figure, "All-reduce"))
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
