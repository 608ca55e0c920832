"""What the public does to a page: broken links, Back, a lost connection, haste, files too large."""

import re
from collections.abc import Callable
from contextlib import closing
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.conftest import Server
from tests.browser.pages import go_to

Open = Callable[..., Page]
Chart = Callable[..., Any]

MEGABYTE = 1024 * 1024

# What a URL may hold that no control can: broken escapes, NUL, other scripts, markup, sizes.
BROKEN = (
    "chunk=%zz&%00=%00&users=%F0%9F%A6%84&prompt=%C3%28&target=1e400&axis=%3Cscript%3E&a=1&a=2"
    "&chunk=1&=&&&%=%&budget=" + "9" * 60_000
)


def stall(low: float, high: float) -> str:
    return f"m => m.longest_stall_ms > {low} && m.longest_stall_ms < {high}"


def test_a_broken_link_of_sixty_thousand_characters_is_answered(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app(f"/?{BROKEN}")
    wait_for_chart(page, stall(23, 24))  # the defaults
    expect(page.get_by_test_id("stAlert")).to_contain_text("Parts of this link could not be used")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert page.url.endswith("/")


# What the app does with the address when the server was still busy with the page left behind.
LATE_ANSWER = """() => {
    history.pushState({}, '', '/piggybacking?chunk=512&model=Llama-3.1-8B');
    history.pushState({}, '', '/?chunk=512&model=Llama-3.1-8B');
}"""


def test_back_and_forward_lead_to_the_whole_link(
    open_page: Open, wait_for_chart: Chart, wait_until_ready: Callable[[Page], None]
):
    page = open_page("/?chunk=512&model=Llama-3.1-8B&gpu=A100+40+GB")
    left = page.url
    before = wait_for_chart(page, "m => m.figure === 'timeline'")
    go_to(page, "/piggybacking")
    page.wait_for_url(re.compile("/piggybacking"))
    slider = page.get_by_role("slider", name="Prefill tokens in the step")
    slider.focus()
    slider.press("ArrowRight")
    page.wait_for_url(re.compile("piggy_chunk=1021"))
    wait_until_ready(page)
    page.go_back()
    page.evaluate(LATE_ANSWER)
    same = f"m => m.figure === 'timeline' && m.longest_stall_ms === {before['longest_stall_ms']}"
    assert wait_for_chart(page, same) == before
    expect(page).to_have_url(left)  # also the GPU, a name that both pages have
    wait_until_ready(page)
    page.go_forward()
    wait_for_chart(page, "m => m.figure === 'piggyback-curve' && m.chunk_tokens === 1021")
    expect(page).to_have_url(re.compile(r"/piggybacking\?.*piggy_chunk=1021"))


def test_a_lost_connection_comes_back_with_the_page_as_it_was(
    open_app: Open, wait_for_chart: Chart, page: Page
):
    page.add_init_script(
        """const Real = WebSocket; window.sockets = [];
        window.WebSocket = class extends Real {
            constructor(...given) { super(...given); window.sockets.push(this); }
        };"""
    )
    open_app("/?chunk=512")
    wait_for_chart(page, stall(14.4, 14.5))
    page.evaluate("() => window.sockets.at(-1).close()")
    page.wait_for_function(
        "() => window.sockets.length > 1 && window.sockets.at(-1).readyState === 1"
    )
    slider = page.get_by_role("slider", name="Chunk size (tokens)")
    expect(slider).to_have_attribute("aria-valuetext", "512")
    slider.focus()
    slider.press("ArrowRight")  # 768 tokens: 5.2 + 13.824 = 19.024 ms
    wait_for_chart(page, stall(19, 19.1))
    expect(page.get_by_test_id("stException")).to_have_count(0)


def test_haste_between_pages_ends_on_the_last_one(
    open_page: Open, wait_until_ready: Callable[[Page], None]
):
    page = open_page("/traffic")
    slider = page.get_by_role("slider", name="Request rate")
    slider.focus()
    slider.press("ArrowRight")  # a run of a second or so
    for path in ("/compare", "/chunk_size", "/mask", "/prefix"):
        go_to(page, path)
    expect(page.get_by_role("heading", level=1)).to_contain_text("Prefix cache")
    wait_until_ready(page)
    expect(page).to_have_url(re.compile(r"/prefix$"))
    expect(page.get_by_role("heading", level=1)).to_have_count(1)
    expect(page.get_by_test_id("stException")).to_have_count(0)
    expect(page.get_by_text("could not be finished")).to_have_count(0)


@pytest.mark.parametrize(
    ("path", "name", "megabytes"),
    [("/measurements", "steps.csv", 5), ("/traffic?traffic=Your+own+trace", "trace.csv", 200)],
)
def test_a_file_over_the_limit_gets_one_sentence(
    path: str, name: str, megabytes: int, open_page: Open, tmp_path: Path
):
    with (tmp_path / name).open("wb") as file:
        file.truncate(megabytes * MEGABYTE + 1)  # takes no room on the disk
    page = open_page(path)
    page.locator("input[type=file]").first.set_input_files(tmp_path / name)
    expect(page.get_by_text(f"{megabytes}.0MB or smaller")).to_have_count(1)
    expect(page.get_by_test_id("stException")).to_have_count(0)


def answer(server: Server, path: str, method: str = "GET", **headers: str) -> tuple[int, bytes]:
    with closing(HTTPConnection(server.url.removeprefix("http://"), timeout=30)) as connection:
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        return response.status, response.read()


def test_server_gives_no_file_and_takes_nothing_from_other_sites(server: Server):
    for path in ("/app/static/..%2fapp.py", "/app/static/%2e%2e/app.py", "/../../etc/passwd"):
        status, body = answer(server, path)
        assert status in {400, 404}
        assert b"import" not in body
        assert b"root:" not in body
    upload = "/_stcore/upload_file/session/file"
    assert answer(server, upload, "PUT")[0] == 403  # no XSRF token
    assert answer(server, upload, "PUT", Origin="http://other.example")[0] == 403
    upgrade = {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"}
    key = {"Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Protocol": "streamlit"}
    other = {**upgrade, **key, "Origin": "http://other.example"}
    assert answer(server, "/_stcore/stream", **other)[0] == 403
    assert answer(server, "/_stcore/agent/interact", "POST")[0] >= 400  # switched off
