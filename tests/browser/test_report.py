"""The HTML report opened from disk: it draws, asks nobody, and fits a phone."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playwright.sync_api import Browser, ConsoleMessage, Error, Page, Request, expect

from s11 import Experiment, simulate
from s11.figures.report import report_pieces
from s11.figures.traffic_look import TrafficRun
from tests.loads import load, request

Open = Callable[..., Page]
HOSTILE = "</script><img src=http://example.invalid/x onerror=alert(1)>"


@pytest.fixture
def troubles() -> list[str]:
    """What the browser reports; a test that expects a report clears the list."""
    return []


@pytest.fixture
def open_report(browser: Browser, tmp_path: Path, troubles: list[str]) -> Iterator[Open]:
    """Write a report of runs and open it from disk; what the browser reports fails the test."""
    contexts = []

    def on_request(asked: Request) -> None:
        if not asked.url.startswith(("file:", "data:", "blob:")):
            troubles.append(f"request: {asked.url}")

    def on_console(message: ConsoleMessage) -> None:
        troubles.append(f"{message.type}: {message.text}")

    def on_error(error: Error) -> None:
        troubles.append(f"page: {error}")

    def open_(
        *runs: TrafficRun, whole: TrafficRun | None = None, width: int = 1440, dark: bool = False
    ) -> Page:
        path = tmp_path / "report.html"
        pieces = report_pieces(runs, version="1", commands=["python -m s11"], whole=whole)
        path.write_text("".join(pieces), encoding="utf-8")
        context = browser.new_context(
            viewport={"width": width, "height": 900}, color_scheme="dark" if dark else "light"
        )
        contexts.append(context)
        page = context.new_page()
        page.on("console", on_console)
        page.on("pageerror", on_error)
        page.on("request", on_request)
        page.goto(path.as_uri())
        pictures = page.locator(".picture")
        expect(pictures.filter(has=page.locator(".main-svg"))).to_have_count(pictures.count())
        assert pictures.count() > 0
        return page

    yield open_
    for context in contexts:
        context.close()
    assert troubles == []


def run(label: str, experiment: Experiment) -> TrafficRun:
    return TrafficRun.of(label, experiment, simulate(experiment))


FITS = "() => document.documentElement.scrollWidth <= document.documentElement.clientWidth"


@pytest.mark.parametrize("width", [1440, 390])
def test_the_chapters_report(open_report: Open, width: int) -> None:
    experiment = Experiment()
    page = open_report(
        run("Chunked", experiment), whole=run("Whole", experiment.chunking_off()), width=width
    )
    assert page.title() == "No stall over 50 ms"
    assert page.locator(".picture .main-svg").count() >= 2
    label = page.get_by_role("img").first.get_attribute("aria-label") or ""
    assert "23.6 ms" in label
    assert page.evaluate(FITS)


def test_a_request_with_a_hostile_name(open_report: Open) -> None:
    experiment = load(request(HOSTILE, 40), users=2, chunk=8)
    page = open_report(run("Chunked", experiment), whole=run("Whole", experiment.chunking_off()))
    assert page.locator("img").count() == 0


def test_a_script_from_elsewhere_cannot_run(open_report: Open, troubles: list[str]) -> None:
    """The page's own policy stops what its escaping would have missed."""
    experiment = Experiment()
    page = open_report(run("Chunked", experiment), whole=run("Whole", experiment.chunking_off()))
    ran = page.evaluate(
        """() => {
            document.body.insertAdjacentHTML('beforeend', '<b onclick="window.hit = 1">x</b>');
            document.querySelector('b:last-of-type').click();
            return window.hit ?? null;
        }"""
    )
    assert ran is None
    (told,) = troubles
    assert "Content Security Policy" in told
    troubles.clear()


def test_traffic_turns_with_the_window(open_report: Open) -> None:
    """Panels lie in a row where there is room, in a pile on a phone: the picture is taller."""
    many = load(
        *[request(f"r{n}", 40, output_tokens=5, arrival_ms=5.0 * n) for n in range(8)], chunk=8
    )
    page = open_report(run("A", many), run("B", many.chunking_off()))
    picture = page.locator(".picture").first
    wide = picture.bounding_box()
    assert wide is not None
    page.set_viewport_size({"width": 390, "height": 900})
    expect(picture).not_to_have_css("height", f"{wide['height']:g}px")
    narrow = picture.bounding_box()
    assert narrow is not None
    assert narrow["height"] > wide["height"]
    page.wait_for_function(FITS)  # the pictures below turn one after the other


def test_dark_where_the_reader_wants_it(open_report: Open) -> None:
    whole = run("Whole", Experiment().chunking_off())
    for dark, paper in ((False, "rgb(255, 255, 255)"), (True, "rgb(15, 20, 26)")):
        page = open_report(whole, whole=whole, dark=dark)
        for selector in ("body", ".picture .main-svg"):
            background = page.locator(selector).first.evaluate(
                "(element) => getComputedStyle(element).backgroundColor"
            )
            assert background == paper
