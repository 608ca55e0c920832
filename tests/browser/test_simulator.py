"""The simulator page in a real browser: keyboard, links, downloads, both widths."""

import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playwright.sync_api import Page, expect

from tests.browser.pages import go_to
from tests.browser.test_smoke import OVERFLOWING

Open = Callable[..., Page]
Chart = Callable[..., Any]


def stall(low: float, high: float) -> str:
    return f"m => m.longest_stall_ms > {low} && m.longest_stall_ms < {high}"


def test_slider_by_keyboard_changes_chart_numbers_and_url(open_app: Open, wait_for_chart: Chart):
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    slider = page.get_by_role("slider", name="Chunk size (tokens)")
    slider.focus()
    slider.press("ArrowRight")  # 1,536 tokens: 5.2 + 27.648 = 32.848 ms
    wait_for_chart(page, stall(32.8, 32.9))
    expect(page.get_by_test_id("stMetricValue").first).to_have_text("32.8 ms")
    expect(page).to_have_url(re.compile(r"\?chunk=1536$"))
    slider.press("ArrowLeft")
    wait_for_chart(page, stall(23, 24))
    expect(page).to_have_url(re.compile(r"/$"))


STATE = {
    "chunk": "1000",
    "prompt": "16384",
    "users": "7",
    "target": "30",
    "budget": "4096",
    "seats": "9",
    "fixed": "5.5",
    "axis": "by step",
    "zoom": "true",
    "picture": "SVG",
}


def test_copied_link_restores_the_page_exactly(open_app: Open, wait_for_chart: Chart):
    page = open_app("/?" + "&".join(f"{name}={value}" for name, value in STATE.items()))
    # 5.5 + 7 x 0.05 + 1,000 x 0.018 = 23.85 ms; 2 + 17 + 3 steps.
    meta = wait_for_chart(page, stall(23.84, 23.86))
    assert meta["step_count"] == 22
    assert meta["axis"] == "by step"
    first = page.url
    again = page.context.new_page()
    again.goto(first)
    assert wait_for_chart(again, stall(23.84, 23.86)) == meta
    expect(again.get_by_role("spinbutton", name="Prompt length")).to_have_value("16384")
    expect(again.get_by_role("spinbutton", name="Streaming users")).to_have_value("7")
    expect(again.get_by_role("slider", name="Chunk size")).to_have_attribute(
        "aria-valuetext", "1000"
    )
    assert again.url == first
    for name, value in STATE.items():
        assert f"{name}={value.replace(' ', '+')}" in first.replace("%20", "+")


def test_presets_are_links(open_app: Open, wait_for_chart: Chart):
    page = open_app("/?users=3&chunk=64")
    for label, predicate in (
        ("32k, chunking off", stall(595, 595.1)),
        ("Longer than the budget: never runs", "m => m.ttft_ms === null"),
    ):
        page.get_by_role("link", name=label).click()
        wait_for_chart(page, predicate)
        assert "users" not in page.url  # a preset is a whole state


def test_snap_button_reaches_slider_and_url(open_app: Open, wait_for_chart: Chart):
    page = open_app()
    page.get_by_role("button", name="Largest chunk within the target").click()
    wait_for_chart(page, stall(49.9, 50))
    expect(page.get_by_role("slider", name="Chunk size")).to_have_attribute(
        "aria-valuetext", "2488"
    )
    expect(page).to_have_url(re.compile("chunk=2488"))


def test_hostile_link_is_answered_in_a_sentence(open_app: Open, wait_for_chart: Chart):
    page = open_app("/?users=1e400&chunk=-5&nonsense=%3Cscript%3E")
    wait_for_chart(page, stall(23, 24))
    note = page.get_by_test_id("stAlert")
    for name in ("users", "chunk", "nonsense"):
        expect(note).to_contain_text(f"{name}:")
    expect(page.get_by_test_id("stException")).to_have_count(0)
    assert "users" not in page.url


def test_switching_pages_and_back_keeps_nothing_broken(open_app: Open, wait_for_chart: Chart):
    page = open_app("/?chunk=512")
    wait_for_chart(page, stall(14.4, 14.5))
    go_to(page, "/mask")
    page.wait_for_url(re.compile("/mask"))
    page.get_by_role("link", name="Simulator").click()
    wait_for_chart(page, "m => m.figure === 'timeline'")
    expect(page.get_by_test_id("stException")).to_have_count(0)


@pytest.mark.parametrize("kind", ["PNG", "SVG"])
def test_camera_saves_a_white_slide(
    kind: str, open_app: Open, wait_for_chart: Chart, tmp_path: Path
):
    page = open_app(f"/?picture={kind}")
    wait_for_chart(page, stall(23, 24))
    with page.expect_download() as waiting:
        page.locator('[data-title^="Download plot"]').first.click()
    path = tmp_path / waiting.value.suggested_filename
    waiting.value.save_as(path)
    assert path.name == f"s11-timeline.{kind.lower()}"
    if kind == "PNG":
        data = path.read_bytes()
        size = (int.from_bytes(data[16:20], "big"), int.from_bytes(data[20:24], "big"))
        assert size == (1920, 1080)
        return
    svg = path.read_text()
    assert "No stream waits over 50 ms" in svg
    assert "1,024-token chunks" in svg
    assert "light-dark" not in svg


@pytest.mark.parametrize("view", ["desktop-dark"])
def test_picture_is_white_from_the_dark_page_too(
    view: str, open_app: Open, wait_for_chart: Chart, tmp_path: Path
):
    page = open_app("/?picture=SVG")
    wait_for_chart(page, stall(23, 24))
    shown = "() => getComputedStyle(document.querySelector('.js-plotly-plot .main-svg')).background"
    assert "rgb(15, 20, 26)" in page.evaluate(shown)
    with page.expect_download() as waiting:
        page.locator('[data-title^="Download plot"]').first.click()
    waiting.value.save_as(tmp_path / "picture.svg")
    svg = (tmp_path / "picture.svg").read_text()
    assert "rgb(255, 255, 255)" in svg
    assert "#0F141A" not in svg
    assert "rgb(15, 20, 26)" not in svg


DOWNLOADS = {
    "Steps as CSV": "start_ms,end_ms,duration_ms,prefill_tokens,decode_tokens",
    "Run as JSON": '{\n  "experiment"',
    "Picture as HTML": "<!doctype html>",
}


def test_downloads_arrive(open_app: Open, wait_for_chart: Chart, tmp_path: Path):
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    page.get_by_role("button", name="Take it with you").click()
    for label, start in DOWNLOADS.items():
        with page.expect_download() as waiting:
            page.get_by_role("button", name=label).click()
        waiting.value.save_as(tmp_path / label)
        assert (tmp_path / label).read_text().startswith(start), label


@pytest.mark.parametrize("view", ["phone-dark"])  # the wide page: test_accessible
def test_nothing_scrolls_sideways(view: str, open_app: Open, wait_for_chart: Chart):
    page = open_app("/?chunking=false&prompt=131072&prompts=8&users=1024&target=0.1")
    wait_for_chart(page, "m => m.figure === 'timeline'")
    assert page.evaluate(OVERFLOWING) == []


def test_chart_tells_its_numbers_to_a_screen_reader_and_in_a_table(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    expect(page.get_by_role("figure")).to_have_attribute(
        "aria-label", re.compile("Longest stall 23.6 ms")
    )
    page.get_by_role("button", name="The numbers as a table").click()
    expect(page.get_by_test_id("stDataFrame")).to_be_visible()


CHART = "document.querySelector('.js-plotly-plot')"
STOPS_ARE_THERE = "document.querySelector('.s11_stops')?.dataset.scenario"


def slide(page: Page, to: int, of: int = 15) -> None:
    """Move the pointer to one of the chunk slider's stops."""
    slider = page.get_by_role("slider", name="Chunk size")
    track = page.get_by_role("group", name="Chunk size").bounding_box()
    thumb = slider.bounding_box()
    assert track is not None
    assert thumb is not None
    expect(slider).to_have_attribute("max", str(of))
    page.mouse.move(track["x"] + track["width"] * to / of, thumb["y"] + thumb["height"] / 2)


def test_everything_follows_the_dragged_slider_without_the_server(
    page: Page, open_app: Open, wait_for_chart: Chart
):
    sent: list[object] = []
    page.on("websocket", lambda socket: socket.on("framesent", lambda frame: sent.append(frame)))
    open_app()
    wait_for_chart(page, stall(23, 24))
    page.wait_for_function(STOPS_ARE_THERE)
    page.evaluate(f"{CHART}.dataset.same = 'yes'")
    area = page.locator(".js-plotly-plot .nsewdrag").first.bounding_box()
    assert area is not None
    page.mouse.move(area["x"] + 100, area["y"] + 60)
    page.mouse.down()
    page.mouse.move(area["x"] + 400, area["y"] + 62, steps=4)
    page.mouse.up()
    zoomed = page.evaluate(f"{CHART}.layout.xaxis.range")
    assert zoomed[1] < 150

    value, said = page.get_by_test_id("stMetricValue"), page.get_by_text("Each of")
    slide(page, 8)  # 1,024 tokens
    page.mouse.down()
    before = len(sent)
    for stop, size, stall_ms, shown in (
        (9, 1536, 32.848, "32.8 ms"),
        (7, 768, 19.024, "19 ms"),
        (1, 96, 6.928, "6.9 ms"),
    ):
        slide(page, stop)
        meta = wait_for_chart(page, f"m => m.chunk_tokens === {size}")
        assert abs(meta["longest_stall_ms"] - stall_ms) < 1e-6
        expect(value.first).to_have_text(shown)
        expect(said).to_contain_text(f"carries at most {size:,} prompt tokens")
        assert page.evaluate(f"{CHART}.layout.xaxis.range") == zoomed
    expect(page.get_by_role("figure")).to_have_attribute("aria-label", re.compile("stall 6.9 ms"))
    assert sent[before:] == []  # nothing was asked of the server
    assert "chunk" not in page.url
    page.mouse.up()
    expect(page).to_have_url(re.compile(r"\?chunk=96$"))
    assert wait_for_chart(page, "m => m.chunk_tokens === 96")["step_count"] == 2 + 86 + 3
    assert page.evaluate(f"{CHART}.layout.xaxis.range") == zoomed
    assert page.evaluate(f"{CHART}.dataset.same") == "yes"


def test_axis_stays_while_the_slider_is_held_and_holds_all_after(
    open_app: Open, wait_for_chart: Chart
):
    """Chunks of 64: 10.4 + 128 x 6.352 + 15.6 = 839 ms, beyond the first picture's end."""
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    page.wait_for_function(STOPS_ARE_THERE)
    first = page.evaluate(f"{CHART}.layout.xaxis.range")
    slide(page, 8)
    page.mouse.down()
    slide(page, 0)
    wait_for_chart(page, "m => m.chunk_tokens === 64")
    assert page.evaluate(f"{CHART}.layout.xaxis.range") == first
    assert first[1] < 300
    expect(page.locator(".annotation-text").filter(has_text="TTFT 813 ms →")).to_be_visible()
    page.mouse.up()
    page.wait_for_function(f"{CHART}.layout.xaxis.range[1] > 839")


def test_a_pinned_state_is_in_the_link_and_dragging_is_held_against_it(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app("/?chunk=4096")
    wait_for_chart(page, stall(78, 79))
    page.get_by_role("button", name="Pin as A").click()
    expect(page).to_have_url(re.compile("pin=chunk%3D4096"))
    expect(page.get_by_test_id("stMetricDelta").first).to_have_text("as with A")
    again = page.context.new_page()  # no pointer on the button, whose help lies over the slider
    again.goto(page.url)
    again.wait_for_function(STOPS_ARE_THERE)
    slide(again, 13)
    again.mouse.down()
    slide(again, 8)
    wait_for_chart(again, "m => m.chunk_tokens === 1024")
    delta = again.get_by_test_id("stMetricDelta").first
    expect(delta).to_have_text("↓ -55.3 ms")
    assert again.url == page.url
    again.mouse.up()
    expect(again).to_have_url(re.compile(r"\?pin=chunk%3D4096$"))
    expect(delta).to_have_text("↓ -55.3 ms")
    go_to(again, "/learn")
    expect(again).not_to_have_url(re.compile("pin"))
    go_to(again, "/")
    expect(again).to_have_url(re.compile(r"\?pin=chunk%3D4096$"))  # kept over the switch
    again.get_by_role("button", name="Unpin").click()
    expect(again).not_to_have_url(re.compile("pin"))
    expect(delta).to_have_text("↓ -129 ms")


def test_the_timeline_plays_by_steps_where_less_motion_is_asked_for(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    group = page.get_by_role("group", name="Play the timeline")
    expect(group.get_by_role("button", name="Play")).to_be_hidden()
    on = group.get_by_role("button", name="Step on")
    first_token = page.locator(".annotation").filter(has_text="TTFT 189 ms")
    on.focus()
    for _ in range(9):
        on.press("Enter")
    # Two steps of 5.2 ms and seven of 23.632: the eighth chunk is still to come.
    expect(group).to_contain_text("176 ms, 9 of 13 steps done")
    expect(first_token).to_be_hidden()
    on.press("Enter")
    expect(first_token).to_be_visible()
    group.get_by_role("button", name="Step back").press("Enter")
    expect(first_token).to_be_hidden()
    page.emulate_media(reduced_motion="no-preference")
    group.get_by_role("button", name="Show all").press("Enter")
    group.get_by_role("button", name="Play").press("Enter")
    expect(group).to_contain_text(re.compile("[1-9] of 13 steps done"))
    group.get_by_role("button", name="Pause").press("Enter")
    expect(group.get_by_role("button", name="Resume")).to_be_visible()
    expect(first_token).to_be_hidden()
    group.get_by_role("button", name="Show all").press("Enter")
    expect(first_token).to_be_visible()
    expect(group.get_by_role("button", name="Play")).to_be_focused()
    clipped = "[...document.querySelectorAll('.overplot')].filter((part) => part.style.clipPath)"
    assert page.evaluate(f"{clipped}.length") == 0


def test_chart_stands_in_where_plotly_cannot_be_loaded(
    open_app: Open, wait_for_chart: Chart, page: Page, browser_errors: list[str]
):
    page.route("**/app/static/plotly*", lambda route: route.fulfill(status=404, body=""))
    open_app()
    wait_for_chart(page, stall(23, 24))
    expect(page.get_by_test_id("stPlotlyChart")).to_have_count(1)
    slider = page.get_by_role("slider", name="Chunk size (tokens)")
    slider.focus()
    slider.press("ArrowRight")
    wait_for_chart(page, stall(32.8, 32.9))
    browser_errors[:] = [error for error in browser_errors if "404" not in error]


def test_a_machine_is_chosen_by_pills_and_comes_with_the_link(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app()
    wait_for_chart(page, stall(23, 24))
    page.get_by_role("button", name="Model & GPU").click()
    page.get_by_role("radio", name="Llama-3.1-8B", exact=True).or_(
        page.get_by_role("button", name="Llama-3.1-8B", exact=True)
    ).first.click()
    expect(page).to_have_url(re.compile(r"\?model=Llama-3\.1-8B$"))
    expect(page.locator("svg text").filter(has_text="Llama-3.1-8B on H100").first).to_be_visible()
    meta = wait_for_chart(page, "m => m.longest_stall_ms > 25")
    again = page.context.new_page()
    again.goto(page.url)
    assert wait_for_chart(again, "m => m.longest_stall_ms > 25") == meta


def test_a_pasted_text_that_is_no_config_is_refused_beside_the_field(
    open_app: Open, wait_for_chart: Chart
):
    page = open_app("/?model=Own+model")
    expect(page.get_by_text("nothing is pasted yet")).to_be_visible()
    page.get_by_role("button", name="Model & GPU").click()
    field = page.get_by_role("textbox", name="Or paste it")
    field.fill('{"hidden_size": 3584')
    field.press("Control+Enter")
    expect(page.get_by_text("no JSON at line 1")).to_be_visible()
    expect(page.get_by_test_id("stException")).to_have_count(0)
    field.fill(
        '{"model_type":"llama","hidden_size":2048,"num_hidden_layers":16,"intermediate_size":8192,'
        '"num_attention_heads":32,"num_key_value_heads":8,"head_dim":64,"vocab_size":128256,'
        '"max_position_embeddings":131072}'
    )
    field.press("Control+Enter")
    wait_for_chart(page, "m => m.longest_stall_ms > 0")
    expect(page).to_have_url(re.compile("config=%7B%22hidden_size%22%3A2048"))
