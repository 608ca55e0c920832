"""The app opens, in both widths and both themes, with nothing broken in sight."""

from collections.abc import Callable

import pytest
from playwright.sync_api import Page, expect

# The page scrolls in an inner element, so every ancestor of the content is measured.
OVERFLOWING = """() => {
    const main = document.querySelector('[data-testid=stMainBlockContainer]');
    const wide = [];
    for (let e = main; e !== null; e = e.parentElement) {
        if (e.scrollWidth > e.clientWidth) {
            wide.push(`${e.dataset.testid ?? e.tagName}: ${e.scrollWidth} > ${e.clientWidth}`);
        }
    }
    return wide;
}"""
BACKGROUND = "() => getComputedStyle(document.querySelector('[data-testid=stApp]')).backgroundColor"


@pytest.mark.parametrize("view", ["desktop-dark", "phone-light"])  # others: test_accessible
def test_app_opens_without_errors_or_sideways_scrolling(
    view: str, open_app: Callable[..., Page]
) -> None:
    page = open_app()

    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert page.evaluate(OVERFLOWING) == []
    # .streamlit/config.toml
    white, near_black = "rgb(255, 255, 255)", "rgb(15, 20, 26)"
    assert page.evaluate(BACKGROUND) == (near_black if view.endswith("dark") else white)
