"""docs/embed_example.html with the app in its frame, as a page of another site shows it."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

from playwright.sync_api import Page


def test_the_example_page_shows_the_app_and_its_links_change_it(
    visited: None,
    page: Page,
    browser_errors: list[str],
    base_url: str,
    root: Path,
    wait_for_chart: Callable[..., Any],
) -> None:
    example = (root / "docs" / "embed_example.html").read_text(encoding="utf-8")
    page.set_content(example.replace("http://localhost:8501", base_url))
    frame = page.locator("iframe[name=s11]").element_handle().content_frame()
    assert frame is not None

    # 4 + 0.018 · 1,024 + 0.05 · 24 ms, and the same with 32,768
    chunked = wait_for_chart(frame, "meta => meta.figure === 'timeline'")
    assert round(chunked["longest_stall_ms"], 3) == 23.632
    page.get_by_role("link", name="chunking off").click()
    whole = wait_for_chart(frame, "meta => meta.longest_stall_ms > 100")
    assert round(whole["longest_stall_ms"], 3) == 595.024
