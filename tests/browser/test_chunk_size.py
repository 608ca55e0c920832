"""The chunk size page in a real browser: its main control, a stop, both widths."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.test_smoke import OVERFLOWING

SMALL = "size_prompt=1024&size_clients=2&size_answer=8"

Open = Callable[..., Page]
Chart = Callable[..., Any]


@pytest.fixture
def open_chunk_size(open_page: Open) -> Open:
    return lambda query=SMALL: open_page(f"/chunk_size?{query}")


def curve(accepts: str) -> str:
    return f"m => m.figure === 'chunk-size' && {accepts}"


def test_target_by_keyboard_changes_picture_and_url(open_chunk_size: Open, wait_for_chart: Chart):
    page = open_chunk_size()
    wait_for_chart(page, curve("m.target_ms === 50"))
    slider = page.get_by_role("slider", name="ITL target (ms)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, curve("m.target_ms === 60"))
    expect(page).to_have_url(re.compile(r"size_target=60"))
    expect(page.get_by_text("--max-num-batched-tokens").first).to_be_visible()


# From within the page, the first time that it is there: the sweep does not wait for a test.
STOP_AT_ONCE = """
    const watch = new MutationObserver(() => {
        const stop = document.querySelector('.st-key-size_memory_stop button');
        if (stop === null) return;
        watch.disconnect();
        stop.click();
    });
    watch.observe(document, {childList: true, subtree: true});
"""


def test_a_sweep_can_be_stopped_and_gone_on_with(
    open_chunk_size: Open, wait_for_chart: Chart, wait_until_ready: Callable[[Page], None]
):
    page = open_chunk_size()
    wait_for_chart(page, "m => m.figure === 'chunk-size-memory'")
    # A load of its own, so that no cache answers; the budgets take seconds.
    page.add_init_script(STOP_AT_ONCE)
    page.goto(
        "/chunk_size?llm=LLaMA-13B&gpu=L40S&size_users=4&size_context=16&size_prompt=64"
        "&size_clients=128&size_busy_prompt=2048&size_answer=512",
        wait_until="domcontentloaded",
    )
    stopped = page.get_by_text(re.compile(r"after \d of 8; what is done is shown"))
    expect(stopped).to_be_visible(timeout=60_000)
    done = wait_for_chart(page, "m => m.figure === 'chunk-size-memory'")
    assert 0 < len(done["kv_tokens"]) < 8
    wait_until_ready(page)
    page.get_by_role("button", name="Go on").click()
    expect(stopped).to_have_count(0, timeout=60_000)
    wait_for_chart(
        page,
        "m => m.figure === 'chunk-size-memory' && m.kv_tokens.length === 8",
        timeout_ms=60_000,
    )


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_no_sideways_scrolling_and_nothing_empty(
    view: str, open_chunk_size: Open, wait_for_chart: Chart
):
    page = open_chunk_size()
    for figure in ("chunk-size", "chunk-size-many", "chunk-size-memory"):
        wait_for_chart(page, f"m => m.figure === '{figure}'")
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
