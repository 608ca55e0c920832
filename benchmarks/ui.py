"""Input to painted chart: the simulator page against a bare Streamlit page, and its slider dragged.

Pages are served and driven side by side in one run, turn by turn, so that a busy machine slows
both; what counts is the ratio of their medians. Keys: an arrow key on the chunk slider, the
simulator page and the bare page. Drag: the pointer moves the held slider from stop to stop; each
move that changes the picture is one time, from the event to the end of the frame that shows it.
Beside it, the plain path: the slider is let go at another stop of the bare page, and the server
draws. Needs the development requirements and a Chromium (CHROMIUM names one, else it is looked
for).

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
WAYS = ("key, simulator page", "key, bare page", "dragged", "let go, by the server")
BROWSER_ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
]
START_TIMEOUT_S = 60
WARM_UP_PRESSES = 3
DRAGGED = [8, 9, 10, 12, 13, 14, 15, 13, 11, 9, 7, 6, 5, 4, 3, 2, 1, 0, 2]  # of 16 stops

# Resolves with the ms from the input event to the end of the frame that paints the new chart.
NEXT_PAINT = """(kind) => {
    const drawn = () => {
        const chart = document.querySelector('.js-plotly-plot');
        const meta = chart?.querySelector('.main-svg') ? chart.layout?.meta : undefined;
        return meta?.chunk_tokens ?? meta?.step_count;
    };
    const before = drawn();
    window.s11Paint = new Promise((resolve) => {
        document.addEventListener(kind, (event) => {
            const look = () => {
                const now = drawn();
                if (now === undefined || now === before) return requestAnimationFrame(look);
                const {port1, port2} = new MessageChannel();  // heard when the frame is done
                port1.onmessage = () => resolve(performance.now() - event.timeStamp);
                port2.postMessage(null);
            };
            requestAnimationFrame(look);
        }, {once: true, capture: true});
    });
}"""
READY = "() => document.querySelector('.s11_stops')?.dataset.scenario"
HOLD_BACK = "() => { document.querySelector('.s11_stops').s11Held = null; }"


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


def arm(page: Page, kind: str) -> None:
    """Begin to wait for the chart after the next event of a kind."""
    page.evaluate(NEXT_PAINT, kind)


def painted(page: Page) -> float:
    """Return the ms from the event that was waited for to the painted chart."""
    return float(page.evaluate("() => window.s11Paint"))


def press(page: Page, key: str) -> float:
    """Press an arrow key on the chunk slider and return the ms until the chart is painted."""
    page.bring_to_front()
    page.get_by_role("slider", name="Chunk size").focus()
    arm(page, "keydown")
    page.keyboard.press(key)
    return painted(page)


def place_of(page: Page, stop: int) -> tuple[float, float]:
    """Return where on the page the slider's stop of this number is."""
    track = page.get_by_role("group", name="Chunk size").bounding_box()
    last = int(page.get_by_role("slider", name="Chunk size").get_attribute("max") or 1)
    thumb = page.get_by_role("slider", name="Chunk size").bounding_box()
    assert track
    assert thumb
    return track["x"] + track["width"] * stop / last, thumb["y"] + thumb["height"] / 2


def drag(page: Page, stops: list[int]) -> list[float]:
    """Hold the slider, move it from stop to stop, and return each move's ms to the paint."""
    page.bring_to_front()
    places = {stop: place_of(page, stop) for stop in stops}
    page.mouse.move(*places[stops[0]])
    page.mouse.down()
    page.wait_for_timeout(500)
    times = []
    for stop in stops[1:]:
        arm(page, "pointermove")
        page.mouse.move(*places[stop])
        times.append(painted(page))
    page.mouse.up()
    return times


def let_go(page: Page, start: int, stop: int) -> float:
    """Drag with nothing drawn on the way, let go, and return the ms to the paint."""
    page.bring_to_front()
    page.wait_for_timeout(500)
    page.evaluate(HOLD_BACK)
    page.mouse.move(*place_of(page, start))
    page.mouse.down()
    page.mouse.move(*place_of(page, stop), steps=3)
    arm(page, "pointerup")
    page.mouse.up()
    return painted(page)


def measure(presses: int) -> dict[str, Any]:
    """Return the medians and p95 of each way, and their ratios."""
    times: dict[str, list[float]] = {way: [] for way in WAYS}
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
        for name, url in [*urls.items(), ("let go", urls["simulator page"])]:
            pages[name] = browser.new_page(viewport={"width": 1440, "height": 1000})
            pages[name].goto(url)
            pages[name].wait_for_selector(".js-plotly-plot .main-svg")
            pages[name].wait_for_timeout(1000)
        ours, bare, plain = pages["simulator page"], pages["bare page"], pages["let go"]
        for page in (ours, plain):
            page.wait_for_function(READY)
        for number in range(presses + WARM_UP_PRESSES):
            key = "ArrowRight" if number % 2 == 0 else "ArrowLeft"
            took: dict[str, list[float]] = {
                "key, simulator page": [press(ours, key)],
                "key, bare page": [press(bare, key)],
            }
            ours.wait_for_timeout(500)
            took["dragged"] = drag(ours, DRAGGED if number % 2 == 0 else DRAGGED[::-1])
            ours.wait_for_timeout(500)
            there, back = DRAGGED[0], DRAGGED[-1]
            start, stop = (there, back) if number % 2 == 0 else (back, there)
            took["let go, by the server"] = [let_go(plain, start, stop)]
            if number >= WARM_UP_PRESSES:
                for way, values in took.items():
                    times[way] += values
        browser.close()
    medians = {way: statistics.median(values) for way, values in times.items()}
    return {
        "presses": presses,
        "median_ms": medians,
        "p95_ms": {way: sorted(values)[int(0.95 * len(values))] for way, values in times.items()},
        "least_ms": {way: min(values) for way, values in times.items()},
        "key_ratio": medians["key, simulator page"] / medians["key, bare page"],
        "drag_ratio": medians["dragged"] / medians["let go, by the server"],
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
    for way, median_ms in measured["median_ms"].items():
        p95_ms, least_ms = measured["p95_ms"][way], measured["least_ms"][way]
        print(
            f"{way:22} median {median_ms:5.0f} ms  p95 {p95_ms:5.0f} ms  least {least_ms:5.0f} ms"
        )
    print(f"key, simulator page to bare page: {measured['key_ratio']:.2f}")
    print(f"dragged to let go: {measured['drag_ratio']:.2f}")


if __name__ == "__main__":
    main()
