"""The mask page without a browser: arrival, every bug, the table, links good, hostile and stale."""

import base64
import json
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from streamlit.testing.v1 import AppTest

from s11.attention import Fault, check_chunk_sizes
from s11.ui.mask_checks import MAX_CHUNKS, SIZES, chunk_check, same_bits_rows
from s11.ui.mask_controls import BUG_TOKENS, BUGS, LINK_CHECKS
from s11.ui.mask_table import table_columns, table_html
from tests.ui.hostile_links import hostile_links, noted

ROOT = Path(__file__).resolve().parents[2]
MASK, FAULTY_MASK, KEYS = range(3)

BETWEEN = {"chunk-relative-positions", "cached-keys-hidden", "cache-not-appended"}
# Chunk 8 after 24 cached: 8 x 24 = 192 cached pairs, 8 x 7 / 2 = 28 pairs above the diagonal.
WRONG_PAIRS = {
    "none": 0,
    "chunk-relative-positions": 192,
    "cached-keys-hidden": 192,
    "no-causality-in-chunk": 28,
    "mask-shifted-by-one": 7,
    "cache-not-appended": 192,
}


@pytest.fixture
def page():
    # 64 tokens: the table's cheapest prompt.
    def open_page(**parameters):
        app = AppTest.from_file(str(ROOT / "pages" / "mask.py"), default_timeout=120)
        for name, value in {"tokens": "64", **parameters}.items():
            app.query_params[name] = value
        return app.run()

    return open_page


def chart(app, which):
    return app.get("plotly_chart")[which].proto


def meta(app, which):
    return json.loads(chart(app, which).spec)["layout"]["meta"]


def words(app):
    return " ".join(block.value for block in app.markdown)


def table(app):
    (html,) = [
        element.proto.body for element in app.get("html") if "s11-bits'" in element.proto.body
    ]
    rows = re.findall(r"<tr><th scope='row'>(.*?)</tr>", html)
    return [re.sub(r"<[^>]+>", " ", row).split() for row in rows]


def test_arrives_full_without_a_single_click():
    app = AppTest.from_file(str(ROOT / "pages" / "mask.py"), default_timeout=120)
    app.run()
    assert not app.exception
    assert not app.info
    assert [chart(app, which).alt.split(":")[0] for which in (MASK, FAULTY_MASK, KEYS)] == [
        "Attention mask",
        "Attention mask",
        "Heatmap of |ΔK|",
    ]
    assert meta(app, MASK) == {
        "figure": "mask",
        "chunk_tokens": 8,
        "cached_tokens": 24,
        "bug": "none",
        "wrong_pairs": 0,
    }
    # Chunks of 100, 100 and 56: all but the first are turned by the wrong positions.
    assert meta(app, KEYS)["wrong_positions"] == 156
    assert meta(app, KEYS)["bug"] == "chunk-relative-positions"
    rows = table(app)
    assert [row[0] for row in rows] == ["1", "3", "7", "50", "64", "100", "128", "255", "256"]
    assert all("✓ identical" in " ".join(row) for row in rows)
    assert " ".join(rows[-1]).endswith("✓ identical ✓ identical 0 0 0")


def test_mask_follows_its_sliders(page):
    app = page()
    app.slider(key="mask_chunk").set_value(3)
    app.slider(key="cached").set_value(2).run()
    assert meta(app, MASK)["chunk_tokens"] == 3
    assert "12 of 15 query-key pairs visible" in chart(app, MASK).alt  # 3 x 2 + 6 of 3 x 5
    assert meta(app, FAULTY_MASK)["wrong_pairs"] == 6
    assert "position 2 sees 3 keys and the one at position 4 sees 5" in words(app)


def test_mask_slider_recomputes_no_check(page, monkeypatch):
    app = page()
    counted = []

    def counting(**arguments):
        counted.append(arguments["chunk_sizes"])
        return check_chunk_sizes(**arguments)

    monkeypatch.setattr("s11.ui.mask_checks.check_chunk_sizes", counting)
    app.slider(key="mask_chunk").set_value(31).run()
    assert not app.exception
    assert counted == []
    # The count is of what the page calls: a size that nobody asked for is computed once.
    chunk_check.clear()
    app.slider(key="bug_chunk").set_value(97).run()
    assert counted.count([97]) == 1


@pytest.mark.parametrize("bug", BUGS)
def test_every_bug_shows_in_mask_keys_and_words(page, bug):
    app = page(bug=bug)
    assert not app.exception
    assert not app.info
    assert meta(app, FAULTY_MASK)["wrong_pairs"] == WRONG_PAIRS[bug]
    assert meta(app, MASK)["wrong_pairs"] == 0
    assert (meta(app, KEYS)["bug"], meta(app, FAULTY_MASK)["bug"]) == (bug, bug)
    if bug == "none":
        assert meta(app, KEYS)["largest"] == 0
        assert "The check passes." in words(app)
    else:
        assert meta(app, KEYS)["wrong_positions"] >= 156
        assert "The check catches it." in words(app)
        assert Fault(bug).description in words(app)


@pytest.mark.parametrize("bug", [bug for bug in BUGS if bug != "none"])
def test_button_goes_to_the_chunk_size_that_hides_the_bug(page, bug):
    app = page(bug=bug)
    app.button(key="try_hidden").click().run()
    hiding = BUG_TOKENS if bug in BETWEEN else 1
    assert app.slider(key="bug_chunk").value == hiding
    assert meta(app, KEYS)["wrong_positions"] == 0
    assert "The check passes: " in words(app)
    assert "try_hidden" not in {button.key for button in app.button}


def test_plain_products_round(page):
    app = page(bug="none", path="plain")
    shown = meta(app, KEYS)
    assert shown["wrong_positions"] == 0
    assert 0 < shown["largest"] < 1e-4
    assert "Rounding only" in chart(app, KEYS).alt


def test_own_chunk_size_joins_the_table(page):
    app = page(own_size="20")
    rows = {row[0]: " ".join(row) for row in table(app)}
    assert set(rows) == {"1", "3", "7", "16", "20", "25", "32", "63", "64"}
    assert "uneven: 4 chunks, last of 4, yours" in rows["20"]
    assert "uneven" not in rows["16"]
    longer = {row[0]: " ".join(row) for row in table(page(own_size="500"))}
    assert "1 chunk, yours" in longer["64"]


def test_bound_of_the_page_is_said_when_met(page):
    app = page(tokens="512")
    (note,) = [info.value for info in app.info]
    assert f"at most {MAX_CHUNKS} chunks" in note
    assert "verify --tokens 512 --chunk-tokens 1" in note
    rows = {row[0]: " ".join(row) for row in table(app)}
    assert "not computed on this page" in rows["1"]
    assert "✓ identical" in rows["511"]


LINK = {
    "mask_chunk": "5",
    "cached": "7",
    "tokens": "128",
    "own_size": "33",
    "bug": "mask-shifted-by-one",
    "bug_chunk": "64",
    "path": "plain",
    "picture": "SVG",
}


def test_link_restores_every_control(page):
    app = page(**LINK)
    assert not app.info
    assert set(LINK) == set(LINK_CHECKS)
    sliders = {key: app.slider(key=key).value for key in ("mask_chunk", "cached", "bug_chunk")}
    assert sliders == {"mask_chunk": 5, "cached": 7, "bug_chunk": 64}
    assert app.number_input(key="own_size").value == 33
    chosen = {key: app.session_state[key] for key in ("tokens", "bug", "path", "picture")}
    assert chosen == {
        "tokens": 128, "bug": "mask-shifted-by-one", "path": "plain", "picture": "SVG",
    }  # fmt: skip
    assert meta(app, MASK)["cached_tokens"] == 7
    assert (meta(app, KEYS)["chunk_tokens"], meta(app, KEYS)["path"]) == (64, "plain")
    config = json.loads(chart(app, MASK).config)
    assert config["toImageButtonOptions"]["format"] == "svg"


HOSTILE = {
    "mask_chunk": ["0", "33", "-1", "1.5", "1e400", "nan", "", "x" * 500],
    "cached": ["49", "-1", "NaN", "0x10"],
    "tokens": ["65", "1000000000", "none"],
    "own_size": ["0", "513", "9" * 5000, "1e1"],
    "bug": ["no-such-bug", "CACHED-KEYS-HIDDEN", "<script>alert(1)</script>"],
    "bug_chunk": ["0", "257", "1e400"],
    "path": ["both", ""],
    "picture": ["gif"],
}


@pytest.mark.parametrize("link", hostile_links(HOSTILE))
def test_hostile_link_gives_a_note_and_defaults(page, link):
    app = page(**link)
    assert not app.exception
    assert noted(app) == set(link)
    assert meta(app, MASK)["cached_tokens"] == 24
    assert meta(app, KEYS)["wrong_positions"] == 156


def test_stale_parameter_is_named(page):
    app = page(fault="cached-keys-hidden")
    assert "fault: this page has no such setting" in app.info[0].value.replace("\\", "")
    assert meta(app, KEYS)["bug"] == "chunk-relative-positions"


def test_everything_can_be_taken_away(page):
    labels = [button.proto.label for button in page().get("download_button")]
    assert labels == [
        "Mask as CSV",
        "Mask as HTML",
        "Table as CSV",
        "Faulty mask as CSV",
        "Faulty mask as HTML",
        "|ΔK| as CSV",
        "|ΔK| as HTML",
    ]


def test_mask_travels_as_bytes(page):
    app = page(mask_chunk="32", cached="48")
    spec = json.loads(chart(app, MASK).spec)
    (cached,) = [
        trace
        for trace in spec["data"]
        if trace["type"] == "heatmap" and "(cached)" in trace["hovertemplate"]
    ]
    assert cached["z"]["dtype"] == "u1"
    assert len(base64.b64decode(cached["z"]["bdata"])) == 32 * 48
    assert len(chart(app, MASK).spec) < 25_000


def test_a_row_that_is_still_computed_says_so():
    html = table_html(same_bits_rows(prompt_tokens=64, own_size=10), caption="now")
    assert html.count("computing …") == len(SIZES[64]) + 1
    assert table_columns(same_bits_rows(prompt_tokens=64, own_size=10))["chunk_tokens"] == []


def test_table_says_wrong_where_it_is_wrong():
    (row,) = [row for row in same_bits_rows(prompt_tokens=64, own_size=64) if row.own]
    faulty = chunk_check(prompt_tokens=64, chunk_tokens=64, fault=Fault.NO_CAUSALITY_IN_CHUNK)
    html = table_html([replace(row, check=faulty)], caption="")
    assert "✗ differs" in html
    assert "✗ wrong" in html
    columns = table_columns([replace(row, check=faulty)])
    assert columns["aligned_tiles_identical"] == [0]
    assert columns["plain_verdict"] == ["wrong"]
    assert np.isclose(
        columns["plain_largest_abs_key_difference"][0], max(faulty.plain.max_abs_key_diff)
    )


def test_checks_out_of_bounds_are_refused():
    with pytest.raises(ValueError, match="at most 256 chunks"):
        chunk_check(prompt_tokens=512, chunk_tokens=1, fault=None)
