"""Many browser sessions at once on the traffic page: errors, and how soon a control is answered.

Each session is a headless browser page of its own with its own seed, so that no cache answers for
another. They open the page a few at a time; when all are there, each turns its request rate up
and down; what is measured is the time from an arrow key to the picture with the new numbers.
Needs the development requirements and a Chromium (CHROMIUM names one, else it is looked for).

    python benchmarks/sessions.py [--sessions 20] [--turns 5] [--pause-s 1.0] [--json]
"""

import argparse
import asyncio
import json
import random
import statistics
import subprocess
import time
from collections.abc import Coroutine
from typing import Any

from playwright.async_api import Browser, ConsoleMessage, Error, Page, async_playwright
from ui import BROWSER_ARGS, ROOT, served  # type: ignore[import-not-found]  # its neighbour

PATIENCE_MS, LOOK_MS = 120_000, 50
OPENING = 2  # at a time: a page's own start-up is the browser's work, on the same cores
P99_ITLS = """() => {
    const charts = [...document.querySelectorAll('.js-plotly-plot')];
    const found = charts.find((chart) => chart.layout?.meta?.figure === 'traffic-cdf');
    return found ? JSON.stringify(found.layout.meta.p99_ms) : null;
}"""
PROBE = "_stcore/"  # Streamlit's client first asks below a page's path, gets 404, and goes on


class Session:
    """One visitor: a page, its errors and its waits in seconds."""

    def __init__(self, number: int) -> None:
        self.number = number
        self.errors: list[str] = []
        self.waits_s: list[float] = []
        self.opened_s = 0.0

    async def tried(self, doing: Coroutine[Any, Any, None]) -> None:
        """Do something; what takes too long is an error of this session's alone."""
        try:
            await doing
        except Error as error:
            self.errors.append(str(error).splitlines()[0])

    async def open(self, browser: Browser, url: str) -> None:
        """Open the page and wait for its first picture."""
        context = await browser.new_context(viewport={"width": 1280, "height": 900})
        self.page: Page = await context.new_page()
        self.page.on("console", self._on_console)
        self.page.on("pageerror", lambda error: self.errors.append(str(error)))
        begun_s = time.perf_counter()
        await self.page.goto(f"{url}/traffic?seed={self.number + 1}", timeout=PATIENCE_MS)
        await self.page.wait_for_function(
            f"({P99_ITLS})() !== null", timeout=PATIENCE_MS, polling=LOOK_MS
        )
        self.opened_s = time.perf_counter() - begun_s

    def _on_console(self, message: ConsoleMessage) -> None:
        if message.type == "error" and PROBE not in message.location["url"]:
            self.errors.append(message.text)

    async def turn(self, turns: int, pause_s: float) -> None:
        """Turn the rate up and down, and note how long each answer takes."""
        draw = random.Random(self.number)
        slider = self.page.get_by_role("slider", name="Request rate")
        for number in range(turns):
            await asyncio.sleep(pause_s * draw.uniform(0.5, 1.5))
            before = await self.page.evaluate(P99_ITLS)
            await slider.focus()
            begun_s = time.perf_counter()
            await slider.press("ArrowRight" if number % 2 == 0 else "ArrowLeft")
            await self.page.wait_for_function(
                f"(before) => ({P99_ITLS})() !== before",
                arg=before,
                timeout=PATIENCE_MS,
                polling=LOOK_MS,
            )
            self.waits_s.append(time.perf_counter() - begun_s)
        if await self.page.get_by_test_id("stException").count():
            self.errors.append("the page shows a traceback")


async def visit(url: str, *, sessions: int, turns: int, pause_s: float) -> dict[str, Any]:
    """Return what all sessions saw."""
    found = subprocess.run(
        [ROOT / "scripts" / "find_chromium.sh"], capture_output=True, text=True, check=True
    )
    async with async_playwright() as playwright:
        browser = await playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=BROWSER_ARGS
        )
        await Session(sessions).open(browser, url)  # the server's first visitor waits for imports
        visitors = [Session(number) for number in range(sessions)]
        doors = asyncio.Semaphore(OPENING)

        async def enter(one: Session) -> None:
            async with doors:
                await one.tried(one.open(browser, url))

        await asyncio.gather(*[enter(one) for one in visitors])
        opened = [one for one in visitors if one.opened_s]
        await asyncio.gather(*[one.tried(one.turn(turns, pause_s)) for one in opened])
        await browser.close()
    if not opened:
        raise SystemExit(f"no session opened: {visitors[0].errors}")
    waits_s = sorted([wait for one in visitors for wait in one.waits_s])
    return {
        "sessions": sessions,
        "answers": len(waits_s),
        "errors": [error for one in visitors for error in one.errors],
        "opened": len(opened),
        "opened_s_median": statistics.median([one.opened_s for one in opened]),
        "opened_s_longest": max([one.opened_s for one in visitors]),
        "answer_s_p50": waits_s[int(0.50 * (len(waits_s) - 1))],
        "answer_s_p95": waits_s[int(0.95 * (len(waits_s) - 1))],
        "answer_s_longest": waits_s[-1],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--sessions", type=int, default=20)
    parser.add_argument("--turns", type=int, default=5)
    parser.add_argument("--pause-s", type=float, default=1.0)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    with served("app.py") as url:
        measured = asyncio.run(
            visit(url, sessions=options.sessions, turns=options.turns, pause_s=options.pause_s)
        )
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        print(
            f"{measured['sessions']} sessions, {measured['answers']} answers, "
            f"{len(measured['errors'])} errors; opened in {measured['opened_s_median']:.1f} s "
            f"(median), answered in {measured['answer_s_p50']:.2f} s (p50), "
            f"{measured['answer_s_p95']:.2f} s (p95), {measured['answer_s_longest']:.2f} s at most"
        )
    raise SystemExit(1 if measured["errors"] else 0)


if __name__ == "__main__":
    main()
