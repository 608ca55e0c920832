"""The measurements page in a real browser: both parts, own files, what leaves, both widths."""

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from s11.sample_measurements import sample_benchmark
from tests.browser.test_smoke import OVERFLOWING

# By hand: 5 + 0.02 · prefill + 0.1 · decode + 0.0001 · context ms.
ROWS = "prefill_tokens,decode_tokens,context_tokens,duration_ms\n" + "".join(
    f"{prefill},{decode},{context},{5 + 0.02 * prefill + 0.1 * decode + 0.0001 * context:.6f}\n"
    for prefill in (0, 512, 2048)
    for decode in (4, 32)
    for context in (8_000, 40_000)
)

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_measurements(open_page: Open) -> Open:
    return lambda query="": open_page(f"/measurements{query}")


def upload(page: Page, name: str, text: str) -> None:
    page.locator("input[type=file]").first.set_input_files(
        {"name": name, "mimeType": "text/plain", "buffer": text.encode()}
    )


def test_own_rows_are_fitted_and_open_the_simulator(
    open_measurements: Open, wait_for_chart: Chart, tmp_path: Path
):
    page = open_measurements()
    wait_for_chart(page, "m => m.figure === 'fit' && m.rows === 55")
    expect(page.get_by_text("made-up sample")).to_be_visible()
    upload(page, "my_rows.csv", ROWS)
    wait_for_chart(page, "m => m.figure === 'fit' && m.rows === 12")
    expect(page).to_have_url(re.compile(r"/measurements$"))
    page.get_by_role("button", name="Take it with you").click()
    with page.expect_download() as download:
        page.get_by_role("button", name="Rows as CSV").click()
    download.value.save_as(tmp_path / "rows.csv")
    assert len((tmp_path / "rows.csv").read_text().splitlines()) == 13
    page.keyboard.press("Escape")
    upload(page, "broken.csv", "prefill_tokens\n1\n")
    expect(page.get_by_text("the column decode_tokens is missing")).to_be_visible()
    page.get_by_role("button", name="Use the sample").click()
    wait_for_chart(page, "m => m.figure === 'fit' && m.rows === 55")
    link = page.get_by_role("link", name="Open the simulator with this cost")
    assert re.search(r"/\?fixed=5\.\d+&prefill=0\.02\d+&decode=0\.01\d+&attended=0\.0000\d+$",
                     link.evaluate("a => a.href"))  # fmt: skip


def test_a_benchmark_is_laid_over_its_simulation(open_measurements: Open, wait_for_chart: Chart):
    page = open_measurements()
    choice = page.get_by_role("radio", name="Lay a benchmark over")
    choice.focus()
    choice.press("Space")
    first = wait_for_chart(page, "m => m.figure === 'overlay-itl'")
    expect(page).to_have_url(re.compile(r"part=Lay"))
    page.get_by_role("radio", name="L40S").click()
    itl_ms = first["simulated_p50_p99_ms"][0]
    moved = wait_for_chart(
        page, f"m => m.figure === 'overlay-itl' && m.simulated_p50_p99_ms[0] > 1.5 * {itl_ms}"
    )
    assert moved["measured_p50_p99_ms"] == first["measured_p50_p99_ms"]
    expect(page).to_have_url(re.compile(r"gpu=L40S"))
    closed = json.loads(sample_benchmark()) | {"max_concurrency": 3}
    upload(page, "bench.json", json.dumps(closed))
    expect(page.get_by_text("3 clients in a closed loop")).to_be_visible()


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling(view: str, open_measurements: Open, wait_for_chart: Chart):
    page = open_measurements()
    wait_for_chart(page, "m => m.figure === 'residuals'")
    assert page.evaluate(OVERFLOWING) == []
    page = open_measurements("?part=Lay+a+benchmark+over&gpu=A40")
    wait_for_chart(page, "m => m.figure === 'overlay-ttft'")
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
