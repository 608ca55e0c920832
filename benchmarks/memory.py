"""The server's memory over a thousand reruns of a page by one visitor.

A headless browser moves the page's first slider a stop down and up, and now and then
a number beside it too, so that new runs are worked out too and the caches fill. What is measured is
the server's resident memory (Linux's /proc); a rerun is a message to the server that the page has
answered. Needs the development requirements and a Chromium (CHROMIUM names one, else it is looked
for).

    python benchmarks/memory.py [--reruns 1000] [--new-every 10] [--path /] [--json]
"""

import argparse
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, WebSocket, sync_playwright
from ui import BROWSER_ARGS, ROOT, served  # type: ignore[import-not-found]  # its neighbour

PATIENCE_MS = 60_000
SAMPLES = 10
STANDS = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    return app?.dataset.testConnectionState === 'CONNECTED'
        && app.dataset.testScriptState === 'notRunning'
        && document.querySelector('.js-plotly-plot .main-svg') !== null;
}"""


def server_pid() -> int:
    """Return the process that `served` has started."""
    me = os.getpid()
    for child in Path(f"/proc/{me}/task/{me}/children").read_text().split():
        if b"streamlit" in Path(f"/proc/{child}/cmdline").read_bytes():
            return int(child)
    raise SystemExit("no server is running")


def resident_mb(pid: int) -> float:
    """Return a process's resident memory in MB (10^6 bytes)."""
    pages = int(Path(f"/proc/{pid}/statm").read_text().split()[1])
    return pages * os.sysconf("SC_PAGE_SIZE") / 1e6


class Visitor:
    """One page, and how many messages it has sent to the server."""

    def __init__(self, page: Page) -> None:
        self.page, self.sent = page, 0
        self.errors: list[str] = []
        page.on("websocket", self._count)
        page.on("pageerror", lambda error: self.errors.append(str(error)))

    def _count(self, socket: WebSocket) -> None:
        def sent(_: object) -> None:
            self.sent += 1

        socket.on("framesent", sent)

    def rerun(self, number: int, *, new_every: int) -> None:
        """Move the slider, now and then the number beside it too, and wait for the answer."""
        before = self.sent
        if new_every and number % new_every == new_every - 1:
            field = self.page.get_by_role("spinbutton").first
            field.focus()
            field.press("ArrowUp")
            field.press("Enter")
        slider = self.page.get_by_role("slider").first
        slider.focus()
        slider.press("ArrowRight" if number % 2 else "ArrowLeft")
        deadline = time.monotonic() + PATIENCE_MS / 1_000
        while self.sent == before:
            if time.monotonic() > deadline:
                raise SystemExit(f"rerun {number}: the page asked the server for nothing")
            self.page.wait_for_timeout(5)
        self.page.wait_for_function(STANDS, timeout=PATIENCE_MS)


def measure(*, reruns: int, path: str, new_every: int) -> dict[str, Any]:
    """Return the server's memory by how many reruns there were."""
    found = subprocess.run(
        [ROOT / "scripts" / "find_chromium.sh"], capture_output=True, text=True, check=True
    )
    with served("app.py") as url, sync_playwright() as playwright:
        pid = server_pid()
        browser = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=BROWSER_ARGS
        )
        page = browser.new_page(viewport={"width": 1440, "height": 1000}, reduced_motion="reduce")
        visitor = Visitor(page)
        page.goto(url, timeout=PATIENCE_MS)  # the server's first visitor waits for imports
        page.wait_for_function(STANDS, timeout=PATIENCE_MS)
        if path != "/":
            page.goto(url + path, timeout=PATIENCE_MS)
            page.wait_for_function(STANDS, timeout=PATIENCE_MS)
        memory_mb = {0: resident_mb(pid)}
        for number in range(reruns):
            visitor.rerun(number, new_every=new_every)
            if (number + 1) % max(1, reruns // SAMPLES) == 0:
                memory_mb[number + 1] = resident_mb(pid)
                print(number + 1, round(memory_mb[number + 1], 1), file=sys.stderr, flush=True)
        if page.get_by_test_id("stException").count():
            visitor.errors.append("the page shows a failure")
        browser.close()
    return {"path": path, "resident_mb": memory_mb, "errors": visitor.errors}


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--reruns", type=int, default=1_000)
    parser.add_argument("--new-every", type=int, default=10, help="reruns; 0: never a new run")
    parser.add_argument("--path", default="/", help="of the page, with its parameters")
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = measure(reruns=options.reruns, path=options.path, new_every=options.new_every)
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        for reruns, megabytes in measured["resident_mb"].items():
            print(f"after {reruns:5,} reruns: {megabytes:6.1f} MB")
    raise SystemExit(1 if measured["errors"] else 0)


if __name__ == "__main__":
    main()
