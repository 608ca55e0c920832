"""Key press to painted chart: the simulator page against a bare Streamlit page.

Both pages are served and driven side by side in one run, turn by turn, so that a busy machine
slows both; what counts is the ratio of their medians. Needs the development requirements and
a Chromium (CHROMIUM names one, else it is looked for).

    python benchmarks/ui.py [--presses 20] [--json]
"""

import argparse
import contextlib
import json
import os
import socket
import statistics
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from playwright.sync_api import Page, sync_playwright

ROOT = Path(__file__).resolve().parents[1]
PAGES = {"simulator page": "app.py", "bare page": "benchmarks/bare_page.py"}
BROWSER_ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]
START_TIMEOUT_S = 60
WARM_UP_PRESSES = 3

# Resolves with the ms from the key's arrival to the frame after the new chart's first paint.
NEXT_PAINT = """() => new Promise((resolve) => {
    const steps = () => {
        const chart = document.querySelector('.js-plotly-plot');
        return chart?.querySelector('.main-svg') ? chart.layout?.meta?.step_count : undefined;
    };
    const before = steps();
    document.addEventListener('keydown', () => {
        const pressed = performance.now();
        const look = () => {
            const now = steps();
            if (now === undefined || now === before) return requestAnimationFrame(look);
            requestAnimationFrame(() => resolve(performance.now() - pressed));
        };
        requestAnimationFrame(look);
    }, {once: true, capture: true});
    window.s11Armed = true;
})"""


@contextlib.contextmanager
def served(script: str) -> Iterator[str]:
    """Serve a Streamlit script on a free port and yield its address."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, "-m", "streamlit", "run", script, f"--server.port={port}"]
    command += ["--server.address=127.0.0.1", "--server.headless=true"]
    command += ["--server.fileWatcherType=none", "--browser.gatherUsageStats=false"]
    process = subprocess.Popen(
        command,
        cwd=ROOT,
        env={**os.environ, "PYTHONPATH": str(ROOT)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        deadline = time.monotonic() + START_TIMEOUT_S
        while True:
            with contextlib.suppress(OSError), urllib.request.urlopen(f"{url}/_stcore/health"):
                break
            if process.poll() is not None or time.monotonic() > deadline:
                raise SystemExit(f"{script} did not start")
            time.sleep(0.1)
        yield url
    finally:
        process.terminate()
        process.wait()


def press(page: Page, key: str) -> float:
    """Press an arrow key on the chunk slider and return the ms until the chart is painted."""
    page.get_by_role("slider", name="Chunk size").focus()
    page.evaluate(f"() => {{ window.s11Paint = ({NEXT_PAINT})(); }}")
    page.wait_for_function("() => window.s11Armed")
    page.keyboard.press(key)
    return float(page.evaluate("() => window.s11Paint"))


def measure(presses: int) -> dict[str, Any]:
    """Return each page's times, their medians and the ratio."""
    times: dict[str, list[float]] = {name: [] for name in PAGES}
    with contextlib.ExitStack() as stack:
        urls = {name: stack.enter_context(served(script)) for name, script in PAGES.items()}
        playwright = stack.enter_context(sync_playwright())
        found = subprocess.run(
            [ROOT / "scripts" / "find_chromium.sh"], capture_output=True, text=True, check=True
        )
        browser = playwright.chromium.launch(
            executable_path=found.stdout.strip(), args=BROWSER_ARGS
        )
        pages = {}
        for name, url in urls.items():
            pages[name] = browser.new_page(viewport={"width": 1440, "height": 1000})
            pages[name].goto(url)
            pages[name].wait_for_selector(".js-plotly-plot .main-svg")
            pages[name].wait_for_timeout(1000)
        for number in range(presses + WARM_UP_PRESSES):
            for name, page in pages.items():
                page.bring_to_front()
                took = press(page, "ArrowRight" if number % 2 == 0 else "ArrowLeft")
                if number >= WARM_UP_PRESSES:
                    times[name].append(took)
        browser.close()
    medians = {name: statistics.median(values) for name, values in times.items()}
    return {
        "presses": presses,
        "median_ms": medians,
        "p90_ms": {name: sorted(values)[int(0.9 * len(values))] for name, values in times.items()},
        "ratio": medians["simulator page"] / medians["bare page"],
    }


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--presses", type=int, default=20)
    parser.add_argument("--json", action="store_true")
    options = parser.parse_args()
    measured = measure(options.presses)
    if options.json:
        print(json.dumps(measured, indent=2))
        return
    for name, median_ms in measured["median_ms"].items():
        print(f"{name:16} median {median_ms:6.0f} ms   p90 {measured['p90_ms'][name]:6.0f} ms")
    print(f"ratio of the medians: {measured['ratio']:.2f}")


if __name__ == "__main__":
    main()
