"""A running app and a Chromium for the tests in this folder.

A test asks for `open_app` (and `wait_for_chart`), calls `page = open_app("/path")`, and looks. It
sees one view, the 1440 px light one, unless it says `@pytest.mark.parametrize("view", VIEWS)` with
names out of desktop-light, desktop-dark, phone-light, phone-dark. An error that the browser or
the app reports, and a request to another host, fail the test.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

import pytest
from playwright.sync_api import Browser, BrowserContext, ConsoleMessage, Page, Request, WebError

HERE = Path(__file__).resolve().parent
ROOT = HERE.parents[1]

VIEWPORTS = {"desktop": {"width": 1440, "height": 900}, "phone": {"width": 390, "height": 844}}
CHROMIUM_ARGS = [
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]
OPTIONS = [
    "--server.address=127.0.0.1",
    "--server.headless=true",
    "--server.fileWatcherType=none",
    "--browser.gatherUsageStats=false",
]
SERVER_START_TIMEOUT_S = 60
READY_TIMEOUT_MS = 60_000

# Streamlit's client asks for its server below a page's path first, and tries again above it.
PROBE = re.compile(
    r"console: Failed to load resource: .*404.*/[a-z_]+/_stcore/(health|host-config)"
)

# Streamlit loads each kind of widget when it first meets one, and shows a skeleton until then.
APP_READY = """() => {
    const app = document.querySelector('[data-testid=stApp]');
    return app !== null
        && app.dataset.testConnectionState === 'CONNECTED'
        && app.dataset.testScriptState === 'notRunning'
        && app.querySelector('[data-testid=stMain] [data-testid=stElementContainer]') !== null
        && app.querySelector('[data-testid=stSkeleton]') === null;
}"""

# Charts inside a component's shadow root count too.
CHART_META = """() => {
    const charts = (root) => [
        ...root.querySelectorAll('.js-plotly-plot'),
        ...[...root.querySelectorAll('*')].flatMap((e) => e.shadowRoot ? charts(e.shadowRoot) : []),
    ];
    const accepts = %s;
    const painted = charts(document).filter((chart) => chart.querySelector('.main-svg') !== null);
    const metas = painted.map((chart) => chart.layout?.meta).filter((meta) => meta != null);
    return metas.find((meta) => accepts(meta)) ?? null;
}"""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if HERE in item.path.parents:
            item.add_marker(pytest.mark.browser)


@pytest.fixture(scope="session")
def chromium_path(lacking: Callable[[str], NoReturn]) -> str:
    """A Chromium that starts, found the same way as `make test` finds it."""
    found = subprocess.run(
        [ROOT / "scripts" / "find_chromium.sh"], capture_output=True, text=True, check=False
    )
    if found.returncode != 0:
        lacking(found.stderr.strip())
    return found.stdout.strip()


@dataclass(frozen=True)
class Server:
    url: str
    log_path: Path

    def log(self) -> str:
        """What the server has said so far, in plain text."""
        return re.sub(r"\x1b\[[0-9;]*m", "", self.log_path.read_text(errors="replace"))


@pytest.fixture(scope="session")
def server(chromium_path: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    """The app: one server for each worker, on a free port of its own; none without a browser."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port = probe.getsockname()[1]
    log_path = tmp_path_factory.mktemp("streamlit") / "server.log"
    app = Server(f"http://127.0.0.1:{port}", log_path)
    with log_path.open("wb") as log:
        process = subprocess.Popen(
            [sys.executable, "-m", "streamlit", "run", "app.py", f"--server.port={port}", *OPTIONS],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": "1"},
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
        )
    try:
        wait_for_health(process, app)
        yield app
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def wait_for_health(process: subprocess.Popen[bytes], app: Server) -> None:
    deadline = time.monotonic() + SERVER_START_TIMEOUT_S
    while process.poll() is None and time.monotonic() < deadline:
        try:
            with urllib.request.urlopen(f"{app.url}/_stcore/health", timeout=5):
                break
        except OSError:
            time.sleep(0.05)  # a server that does not listen yet has nothing to wait on
    else:
        pytest.fail(f"streamlit did not start:\n{app.log()}", pytrace=False)
    # A misspelt option in .streamlit/config.toml is otherwise ignored.
    if "is not a valid config option" in app.log():
        pytest.fail(app.log(), pytrace=False)


@pytest.fixture(scope="session")
def base_url(server: Server) -> str:
    return server.url


@pytest.fixture(scope="session")
def browser_type_launch_args(
    browser_type_launch_args: dict[str, Any], chromium_path: str
) -> dict[str, Any]:
    return {**browser_type_launch_args, "executable_path": chromium_path, "args": CHROMIUM_ARGS}


@pytest.fixture
def view() -> str:
    """Which of the four views the page opens in; parametrize it for others."""
    return "desktop-light"


@pytest.fixture
def browser_context_args(
    browser_context_args: dict[str, Any], server: Server, view: str
) -> dict[str, Any]:
    device, color_scheme = view.split("-")
    return {
        **browser_context_args,
        "base_url": server.url,
        "viewport": VIEWPORTS[device],
        "has_touch": device == "phone",
        "color_scheme": color_scheme,
        "reduced_motion": "reduce",
        "locale": "en-US",
        "timezone_id": "UTC",
    }


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Iterator[dict[str, BrowserContext]]:
    """The contexts opened so far, by what they were asked for with."""
    opened: dict[str, BrowserContext] = {}
    yield opened
    for context in opened.values():
        context.close()


@pytest.fixture
def context(
    browser: Browser,
    browser_context_args: dict[str, Any],
    contexts: dict[str, BrowserContext],
) -> Iterator[BrowserContext]:
    """One that has the app's scripts, which take a browser a second of work to load anew.

    What a test leaves goes with it: its pages with all that was set for them, and the rest here.
    """
    asked = json.dumps(browser_context_args, sort_keys=True)
    if asked not in contexts:
        contexts[asked] = browser.new_context(**browser_context_args)
    kept = contexts[asked]
    yield kept
    for page in kept.pages:
        page.close()
    kept.unroute_all()
    kept.clear_cookies()
    kept.clear_permissions()


@pytest.fixture
def page(context: BrowserContext, server: Server) -> Page:
    """A new page, whose app finds nothing stored in the browser."""
    page = context.new_page()
    storage = context.new_cdp_session(page)
    storage.send("Storage.clearDataForOrigin", {"origin": server.url, "storageTypes": "all"})
    storage.detach()
    return page


@pytest.fixture
def browser_errors(context: BrowserContext, server: Server) -> Iterator[list[str]]:
    """What browser and app complained of; a test that expects a complaint clears the list."""
    errors: list[str] = []
    own = (server.url, server.url.replace("http", "ws", 1), "data:", "blob:")

    def on_console(message: ConsoleMessage) -> None:
        if message.type == "error":
            errors.append(f"console: {message.text} ({message.location['url']})")

    def on_web_error(error: WebError) -> None:
        errors.append(f"page: {error.error}")

    def on_request(request: Request) -> None:
        # The page must work in a lecture hall without a network.
        if not request.url.startswith(own):
            errors.append(f"request to another host: {request.url}")

    context.on("console", on_console)
    context.on("weberror", on_web_error)
    context.on("request", on_request)
    log_length = len(server.log())
    yield errors
    context.remove_listener("console", on_console)
    context.remove_listener("weberror", on_web_error)
    context.remove_listener("request", on_request)
    if "Traceback" in server.log()[log_length:]:
        errors.append(f"app: {server.log()[log_length:]}")
    if errors:
        pytest.fail("\n".join(errors), pytrace=False)


@pytest.fixture
def wait_until_ready() -> Callable[[Page], None]:
    """Waits until the page is connected, shows something, and its script has run to the end."""

    def wait(page: Page) -> None:
        page.wait_for_function(APP_READY, timeout=READY_TIMEOUT_MS)

    return wait


@pytest.fixture
def open_app(
    page: Page, browser_errors: list[str], wait_until_ready: Callable[[Page], None]
) -> Callable[..., Page]:
    """Goes to a path of the app, such as "/proof?chunk=512", and waits until it is ready."""

    def open_path(path: str = "/") -> Page:
        page.goto(path, wait_until="domcontentloaded")
        wait_until_ready(page)
        return page

    return open_path


@pytest.fixture(scope="session")
def visited(browser: Browser, server: Server) -> None:
    """A server that has served its first visitor: until then it knows no page's address."""
    page = browser.new_page()
    page.goto(server.url, wait_until="domcontentloaded")
    page.wait_for_function(APP_READY, timeout=READY_TIMEOUT_MS)
    page.close()


@pytest.fixture
def open_page(
    visited: None, open_app: Callable[..., Page], browser_errors: list[str]
) -> Iterator[Callable[..., Page]]:
    """Goes to a page by its own address, such as "/mask?cached=5"."""
    yield open_app
    browser_errors[:] = [error for error in browser_errors if not PROBE.match(error)]


@pytest.fixture
def wait_for_chart() -> Callable[..., Any]:
    """Waits for a painted chart whose `layout.meta` a JavaScript predicate accepts; returns meta.

    `wait_for_chart(page, "meta => meta.chunk_tokens === 512")`
    """

    def wait(page: Page, predicate: str, *, timeout_ms: float = READY_TIMEOUT_MS) -> Any:
        return page.wait_for_function(CHART_META % predicate, timeout=timeout_ms).json_value()

    return wait
