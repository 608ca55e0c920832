"""The production page in a real browser: arriving from the simulator, keyboard, both widths."""

import re
from collections.abc import Callable
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import go_to
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]


def test_from_the_simulators_machine_and_back_by_links(open_page: Open, wait_for_chart: Chart):
    page = open_page("/?model=Qwen3-32B&tp=2&chunk=512")
    go_to(page, "/production")
    wait_for_chart(page, "m => m.figure === 'myth-mixing'")
    expect(page.get_by_text("vllm serve meta-llama/Llama-3.1-8B")).to_be_visible()
    page.go_back()
    wait_for_chart(page, "m => m.figure === 'timeline'")
    page.get_by_role("link", name="These settings as launch commands").click()
    wait_for_chart(page, "m => m.figure === 'myth-mixing'")
    expect(page.get_by_text("Parts of this link")).to_have_count(0)
    slider = page.get_by_role("slider", name="Chunk size of a long prompt (tokens)")
    slider.focus()
    slider.press("ArrowLeft")
    wait_for_chart(page, "m => m.figure === 'myth-flops' && m.chunk_tokens === 512")
    expect(page).to_have_url(re.compile(r"/production\?.*flops_chunk=512"))
    page.get_by_role("link", name="token budget: 8,192").click()
    wait_for_chart(page, "m => m.figure === 'timeline'")
    expect(page.get_by_text("Parts of this link")).to_have_count(0)


@pytest.mark.parametrize("view", ["phone-dark"])
def test_no_sideways_scrolling_and_nothing_empty(view: str, open_page: Open, wait_for_chart: Chart):
    page = open_page("/production?of_knob=All&model=Llama-2-70B&tp=4&budget=2048&seats=64")
    for figure in ("flops", "mean", "smaller", "mixing"):
        wait_for_chart(page, f"m => m.figure === 'myth-{figure}'")
    assert page.evaluate(OVERFLOWING) == []
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_role("row")).to_have_count(52)  # 51 flags and their heads
