"""The trust page without a browser: arrival, every quantity, links good and hostile."""

import json
from pathlib import Path

import pytest
from streamlit.testing.v1 import AppTest

from s11.figures.trust_info import QUANTITIES
from s11.ui.models_state import DEFAULT_QUANTITY, LINK_CHECKS
from s11.validation.snapshot import snapshot

ROOT = Path(__file__).resolve().parents[2]


@pytest.fixture
def page():
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "models.py"), default_timeout=120)
        for name, value in parameters.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def metas(app):
    return [json.loads(c.proto.spec)["layout"]["meta"] for c in app.get("plotly_chart")]


def words(app):
    return " ".join(block.value for block in app.markdown)


def test_arrives_full_without_a_single_click(page):
    app = page()
    assert not app.exception
    assert not app.info
    assert not app.error
    assert [meta["quantity"] for meta in metas(app)] == [DEFAULT_QUANTITY] * 2
    headings = [heading.value for heading in app.header]
    assert headings == [
        "Predicted against measured",
        "All errors",
        "What is modelled, and what is not",
        "Against the papers",
        "Catalog",
        "Sources",
    ]
    tables = [len(table.value) for table in app.dataframe]
    assert tables == [11, len(snapshot().rows), 11, 9, 13]
    assert "nine of ten within" in words(app)
    assert "Apache-2.0" in words(app)


def test_headline_is_what_was_validated(page):
    found = {row.quantity: row for row in snapshot().rows if row.group == "vllm"}
    figures = {metric.label: metric for metric in page().metric}
    for label, quantity in (
        ("TPOT error", "mean_tpot_ms"),
        ("Latency error", "latency_ms"),
        ("TTFT error", "mean_ttft_ms"),
    ):
        row = found[quantity]
        assert figures[label].value == f"{row.median_abs_error_pct:.1f}%"
        assert figures[label].delta == f"p90 {row.p90_abs_error_pct:.1f}%, {row.points} runs"


@pytest.mark.parametrize("title", QUANTITIES)
def test_every_quantity_is_a_link(page, title):
    app = page(quantity=title)
    assert not app.exception
    assert not app.info
    assert [meta["quantity"] for meta in metas(app)] == [title] * 2
    assert title in app.get("plotly_chart")[0].proto.alt
    assert f"{title} (" in words(app)


def test_the_control_changes_the_picture(page):
    app = page()
    before = metas(app)[0]["points"]
    app.get("button_group")[0].set_value("Dense products").run()
    assert not app.exception
    assert metas(app)[0]["quantity"] == "Dense products"
    assert metas(app)[0]["points"] != before


def test_camera_button_saves_what_the_link_says(page):
    config = json.loads(page(picture="SVG").get("plotly_chart")[0].proto.config)
    assert config["toImageButtonOptions"]["format"] == "svg"


def note(app):
    return app.info[0].value.replace("\\", "")


@pytest.mark.parametrize("name", LINK_CHECKS)
@pytest.mark.parametrize("value", ["", "tpot", "1e400", "<b>", "x" * 5000])
def test_hostile_link_gives_a_note_and_defaults(page, name, value):
    app = page(**{name: value})
    assert not app.exception
    assert f"{name}:" in note(app)
    assert metas(app)[0]["quantity"] == DEFAULT_QUANTITY


def test_unknown_parameter_is_named(page):
    app = page(gpu="H100")
    assert "gpu: this page has no such setting" in note(app)
    assert not app.exception
