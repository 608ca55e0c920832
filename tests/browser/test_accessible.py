"""Every page for everybody: axe-core's rules, the keyboard, tables behind pictures, 200% zoom.

One visit per page looks at all of it: wide and light with its folds open, then as narrow as 200%
zoom makes it, then as a dark phone.
"""

from collections.abc import Callable, Iterator
from contextlib import suppress
from importlib.resources import files
from itertools import pairwise
from typing import Any

import pytest
from playwright.sync_api import (
    Browser,
    ConsoleMessage,
    Page,
    TimeoutError,
    ViewportSize,
    expect,
)

from tests.browser.conftest import APP_READY, PROBE, READY_TIMEOUT_MS, Server
from tests.browser.pages import PAGES
from tests.browser.test_smoke import OVERFLOWING
from tests.colour_vision import alike

AXE = files("axe_playwright_python").joinpath("axe.min.js").read_text(encoding="utf-8")
WIDE: ViewportSize = {"width": 1440, "height": 900}
ZOOMED: ViewportSize = {"width": 720, "height": 450}  # the same at 200%
PHONE: ViewportSize = {"width": 390, "height": 844}
MOST_TABS = 400  # Tab goes through a table cell by cell, and out of it
# A table marks its cell; the main part is where the skip link leads.
OWN_MARK = ("<canvas", "<main")

# What is Streamlit's own and cannot be mended from here: (rule, part of the element's HTML) and
# why. Its minor findings (a drop zone that is presentational and has a name) are not looked at.
INACTIVE = "<!-- of a control that is switched off -->"
DRAWER = "<!-- of the phone's list of pages -->"
SECTIONED = "in sections, Streamlit lays headings and list items apart: its own markup, on a phone"
KNOWN = {
    ("list", DRAWER): SECTIONED,
    ("listitem", DRAWER): SECTIONED,
    ("color-contrast", INACTIVE): "WCAG 1.4.3 leaves inactive controls out; Streamlit fades the "
    "label with the control, and axe does not see that the two belong together",
}

SERIOUS = """async (where) => {
    const asked = {resultTypes: ['violations'], elementRef: true};
    const found = await axe.run(where ?? document, asked);
    const told = (node) => node.html
        + (node.element.closest('label[disabled]') ? INACTIVE : '')
        + (node.element.closest('[data-testid=stSidebarNavItems]') ? DRAWER : '');
    return found.violations
        .filter((rule) => ['serious', 'critical'].includes(rule.impact))
        .flatMap((rule) => rule.nodes.map((node) => [rule.id, told(node), node.failureSummary]));
}""".replace("INACTIVE", repr(INACTIVE)).replace("DRAWER", repr(DRAWER))

# Every picture is painted, every open fold has its content, nothing is fading.
FULL = f"""() => ({APP_READY})()
    && document.getAnimations().every((change) => change.playState !== 'running')
    && [...document.querySelectorAll('.s11-chart')].every((e) => e.querySelector('.main-svg'))
    && [...document.querySelectorAll('main details[open] > [data-testid=stExpanderDetails]')]
        .every((e) => e.querySelector('[data-testid=stElementContainer]'))"""
CLOSED = "main details:not([open]) > summary"
OPEN_FOLDS = f"() => document.querySelectorAll('{CLOSED}').forEach((fold) => fold.click())"
TABLES = "() => document.querySelectorAll('[data-testid=stDataFrame], main table').length"
HEADINGS = """() => [...document.querySelectorAll('main :is(h1,h2,h3,h4,h5,h6)')]
    .map((e) => Number(e.tagName[1]))"""
LABELS = """() => [...document.querySelectorAll('.js-plotly-plot')]
    .map((e) => (e.closest('[role=figure]')?.getAttribute('aria-label') ?? ''))"""

# What a legend tells apart: a colour, and all else that is not colour. Translucent ones are left
# out, and those with a colour for each mark.
LOOKS = """() => {
    const pen = document.createElement('canvas').getContext('2d');
    const look = (trace) => {
        const line = trace.mode?.includes('lines') && trace.line?.width > 0;
        const colour = trace.type === 'bar' ? trace.marker.color
            : line ? trace.line.color : trace.marker?.color ?? trace.fillcolor;
        pen.fillStyle = typeof colour === 'string' ? colour : 'rgba(0,0,0,0.5)';
        const form = [trace.type, trace.mode, line && [trace.line.dash, trace.line.width],
            trace.mode?.includes('markers') && [trace.marker.symbol, trace.marker.size],
            trace.marker?.pattern?.shape, trace.width, trace.fill, trace.fillpattern?.shape];
        return {name: trace.name, colour: pen.fillStyle, form: JSON.stringify(form)};
    };
    return [...document.querySelectorAll('.js-plotly-plot')]
        .filter((chart) => chart._fullLayout.showlegend)
        .map((chart) => chart._fullData
            .filter((trace) => trace.visible === true && trace.showlegend).map(look)
            .filter((look) => look.colour.startsWith('#')));
}"""
LEAST_APART = 8
# The same tokens, once in a request's row and once in the strip of steps below.
MEANT_ALIKE = "'prefill step' and 'prompt chunk': 0.0"

# What a keyboard should reach; of a group of buttons to choose from, any: arrow keys do the rest.
# A table's or code's own toolbar comes into being where it is pointed at or has the focus.
REACHABLE = """() => {
    const all = [...document.querySelectorAll(
            'a[href], button, input, select, textarea, summary, [tabindex="0"]')]
        .filter((e) => e.tabIndex >= 0 && !e.disabled && e.type !== 'file')
        .filter((e) => e.checkVisibility() && e.closest('[inert]') === null)
        .filter((e) => e.getAttribute('kind') !== 'elementToolbar');
    const group = (e) => e.dataset.variant || e.type === 'radio'
        ? e.closest('[data-testid=stButtonGroup], [role=radiogroup]') ?? e : e;
    const groups = [...new Set(all.map(group))];
    for (const e of all) e.dataset.reach = groups.indexOf(group(e));
    return groups.length;
}"""
FOCUSED = """() => {
    const here = document.activeElement;
    if (here === null || here === document.body) return null;
    let marked = false;
    for (let e = here, up = 0; e !== null && up < 4; e = e.parentElement, up++) {
        const look = getComputedStyle(e);
        marked ||= look.outlineStyle === 'solid' && parseFloat(look.outlineWidth) >= 2;
    }
    return {reach: here.dataset.reach, marked, html: here.outerHTML.slice(0, 160)};
}"""


@pytest.fixture(scope="module")
def tab(browser: Browser, server: Server, visited: None) -> Iterator[tuple[Page, list[str]]]:
    """One tab for all pages, and what its console complains of."""
    context = browser.new_context(base_url=server.url, reduced_motion="reduce", locale="en-US")
    page = context.new_page()
    errors: list[str] = []

    def on_console(said: ConsoleMessage) -> None:
        if said.type == "error":
            errors.append(f"console: {said.text} ({said.location['url']})")

    page.on("console", on_console)
    yield page, errors
    context.close()


def serious(page: Page, where: str | None = None) -> list[list[str]]:
    """What axe finds against the rules, but for what is known."""
    if not page.evaluate("() => 'axe' in window"):
        page.evaluate(AXE)
    return [
        [rule, html, why]
        for rule, html, why in page.evaluate(SERIOUS, where)
        if not any(rule == known and part in html for known, part in KNOWN)
    ]


def walk(page: Page) -> tuple[set[str], list[str]]:
    """Press Tab through the page; return what was reached, and what shows no focus."""
    page.evaluate("() => { document.activeElement.blur(); window.scrollTo(0, 0); }")
    reached: set[str] = set()
    unmarked = []
    for _ in range(MOST_TABS):
        page.keyboard.press("Tab")
        at = page.evaluate(FOCUSED)
        if at is None:  # past the last
            break
        if at["reach"] is not None and at["reach"] not in reached:
            reached.add(at["reach"])
            if not at["marked"] and not at["html"].startswith(OWN_MARK):
                unmarked.append(at["html"])
    return reached, unmarked


def wide(page: Page) -> list[str]:
    """What is wider than the page once its pictures had time to turn."""
    with suppress(TimeoutError):
        page.wait_for_function(f"() => ({OVERFLOWING})().length === 0", timeout=READY_TIMEOUT_MS)
    return page.evaluate(OVERFLOWING)


def popovers(page: Page, look: Callable[[], None]) -> None:
    """Open one popover after the other, look, and close it."""
    for button in page.get_by_test_id("stPopoverButton").all():
        button.press("Enter")
        body = page.get_by_test_id("stPopoverBody")
        expect(body.get_by_test_id("stElementContainer").first).to_be_visible()
        if "table" in button.inner_text():
            expect(body.get_by_test_id("stDataFrame").first).to_be_visible()
        page.wait_for_function(FULL, timeout=READY_TIMEOUT_MS)
        look()
        page.keyboard.press("Escape")
        expect(body).to_have_count(0)


@pytest.mark.parametrize("path", PAGES)
def test_page_is_for_everybody(path: str, tab: tuple[Page, list[str]]) -> None:
    page, errors = tab
    page.set_viewport_size(WIDE)
    page.emulate_media(color_scheme="light")
    page.goto(path, wait_until="domcontentloaded")
    page.wait_for_function(FULL, timeout=READY_TIMEOUT_MS)

    expect(page).to_have_title(f"{PAGES[path]} · s11")
    assert page.evaluate("() => document.documentElement.lang") == "en"
    for landmark in ("banner", "navigation", "main"):
        expect(page.get_by_role(landmark).first).to_be_attached()
    levels = page.evaluate(HEADINGS)
    assert levels[0] == 1
    assert levels.count(1) == 1
    assert all(after <= before + 1 for before, after in pairwise(levels))

    expected = {str(number) for number in range(page.evaluate(REACHABLE))}
    reached, unmarked = walk(page)
    missed = [
        page.locator(f"[data-reach='{number}']").first.evaluate("(e) => e.outerHTML.slice(0, 160)")
        for number in expected - reached
    ]
    assert missed == []
    assert unmarked == []

    while page.locator(CLOSED).count():  # a fold may hold others
        page.evaluate(OPEN_FOLDS)
        page.wait_for_function(FULL, timeout=READY_TIMEOUT_MS)
    found = serious(page)
    tables = page.evaluate(TABLES)

    def look() -> None:
        nonlocal tables
        found.extend(serious(page, "[data-testid=stPopoverBody]"))
        tables += page.get_by_test_id("stPopoverBody").get_by_test_id("stDataFrame").count()

    popovers(page, look)
    labels: list[Any] = page.evaluate(LABELS)
    assert all(any(sign.isdigit() for sign in label) for label in labels)
    assert tables >= len(labels)
    for looks in page.evaluate(LOOKS):
        told = [pair for pair in alike(looks, LEAST_APART) if not pair.startswith(MEANT_ALIKE)]
        assert told == []

    page.set_viewport_size(ZOOMED)
    assert wide(page) == []
    page.set_viewport_size(PHONE)
    page.emulate_media(color_scheme="dark")
    page.wait_for_function(FULL, timeout=READY_TIMEOUT_MS)
    assert wide(page) == []
    found.extend(serious(page))
    assert {(rule, html) for rule, html, _ in found} == set()
    assert [error for error in errors if not PROBE.match(error)] == []
