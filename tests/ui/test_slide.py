"""Slide mode: its link, its caption, and how a picture fits."""

import re
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from s11.ui.slide import caption_html, settings_words
from s11.ui.slide_look import picture_css

PAGE = str(Path(__file__).parents[2] / "pages" / "piggybacking.py")


def open_page(**parameters: str) -> AppTest:
    app = AppTest.from_file(PAGE, default_timeout=30)
    for name, value in parameters.items():
        app.query_params[name] = value
    return app.run()


def texts(app: AppTest) -> str:
    return " ".join(block.proto.body for block in app.get("html"))


def test_there_and_back_keeps_the_state() -> None:
    app = open_page(piggy_chunk="1021")
    assert "s11-slide" not in texts(app)
    app.button(key="slide_on").click().run()
    assert "light" in app.query_params["slide"]
    assert "piggy chunk 1021" in texts(app)
    assert "color-scheme:light" in texts(app)
    app.button(key="slide_other").click().run()
    assert "color-scheme:dark" in texts(app)
    assert not app.exception
    app.button(key="slide_off").click().run()
    assert "slide" not in app.query_params
    assert "1021" in app.query_params["piggy_chunk"]
    assert app.select_slider(key="piggy_chunk").value == 1021


def test_a_slide_that_is_none_is_told_and_the_page_shown() -> None:
    app = open_page(slide="pink")
    assert "slide: 'pink'" in app.info[0].value
    assert "slide" not in app.query_params
    app.button(key="slide_on")


def test_a_dark_slide_has_a_dark_picture() -> None:
    charts = open_page(slide="dark").get("plotly_chart")
    assert '"paper_bgcolor":"#0F141A"' in charts[0].proto.spec.replace(" ", "")


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "Settings: all as the page comes."),
        ({"chunk": "512", "chunking": "false"}, "Set: chunk 512, chunking off; the rest as"),
        ({"requests": "A~0~64~9~~B~5~2560~2~~C~1"}, "Set: requests as in the link; the rest"),
        ({f"a{n}": "1" for n in range(10)}, "a7 1, 2 more; the rest"),
    ],
)
def test_settings_in_words(settings: dict[str, str], words: str) -> None:
    assert words in settings_words(settings)


def test_caption_links_to_the_page_with_its_controls() -> None:
    told = caption_html(
        {"slide": "dark", "chunk": "512", "config": '"><b>'}, address="https://a.example/x"
    )
    assert 'href="https://a.example/x?chunk=512&amp;config=%22%3E%3Cb%3E"' in told
    assert "<b>" not in told
    assert 'href="https://a.example/"' in caption_html({}, address="https://a.example")


def scale(css: str, height: int) -> float:
    """The scale by a window's height, of the last rule that applies."""
    rules = re.findall(r"@media \(max-height:(\d+)px\)\{\S+?\{--high:([\d.]+)\}", css)
    return next((float(value) for most, value in reversed(rules) if height <= int(most)), 1.5)


def test_type_is_as_large_as_the_window_allows() -> None:
    figure: dict[str, Any] = {"fixed": False, "phone_px": 600, "lowest_px": 400}
    figure["narrowest_px"] = 366
    later = picture_css("a", **figure, first=False, below_figures=True)
    # Edge and foot take (0.5 + 3.1) rem of 24 px: 86.4 px; 400 px x 1.5 fit from 687 px on.
    assert scale(later, 687) == 1.5
    assert scale(later, 686) == 1.4
    assert scale(later, 647) == 1.4  # 400 x 1.4 + 86.4 = 646.4
    assert scale(later, 646) == 1.3
    first = picture_css("a", **figure, first=True, below_figures=True)
    # Figures take 4.9 rem more, 117.6 px: 804 px is over 800, so the title's 55.2 px count too.
    assert scale(first, 860) == 1.5
    assert scale(first, 859) == 1.4
