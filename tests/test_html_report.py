"""The report's page: escaped, closed to the world, and the same for equal runs."""

import base64
import hashlib
import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from typing import Any

import numpy as np
import pytest

from s11.html_report import MOST_TABLE_ROWS, Picture, Report, Table, html_pieces

HOSTILE = "</script><script>alert(1)</script>\" onload='x' <!-- & \x00 \u202e \ud800"


class Read(HTMLParser):
    """Elements with their attributes, and the text of scripts, tables and paragraphs."""

    def __init__(self, page: str) -> None:
        super().__init__(convert_charrefs=True)
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.text: dict[str, list[str]] = {}
        self.open: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.elements.append((tag, dict(attrs)))
        self.open.append(tag)
        self.text.setdefault(tag, []).append("")

    def handle_endtag(self, tag: str) -> None:
        while self.open and self.open.pop() != tag:
            pass

    def handle_data(self, data: str) -> None:
        if self.open:
            self.text[self.open[-1]][-1] += data


def report(text: str = "plain", **changes: Any) -> Report:
    made = Report(
        title=text,
        paragraphs=[text],
        pictures=[
            Picture(
                title=text,
                spec_json=json.dumps({"data": [{"name": text}], "layout": {"height": 100}}),
                config={"displaylogo": False},
                alt=text,
                columns={text: [text, None], "ms": np.array([0.1 + 0.2, np.nan])},
            )
        ],
        tables=[Table(title=text, head=(text,), rows=[(text,)], kinds=("",))],
        commands=[text],
        sources={text: text},
        version=text,
        script="window.Plotly = {};",
        style="<style></style>",
    )
    return replace(made, **changes)


def page(made: Report) -> str:
    return "".join(html_pieces(made))


def test_a_hostile_text_stays_text() -> None:
    """As many elements as with a plain one, and every text as it was."""
    plain, hostile = Read(page(report())), Read(page(report(HOSTILE)))
    assert [tag for tag, _ in hostile.elements] == [tag for tag, _ in plain.elements]
    assert [set(attrs) for _, attrs in hostile.elements] == [
        set(attrs) for _, attrs in plain.elements
    ]
    shown = HOSTILE.replace("\x00", "\\u0000").replace("\u202e", "\\u202e")
    shown = shown.replace("\ud800", "\\ud800")
    assert hostile.text["h1"] == [shown]
    assert hostile.text["td"][0] == shown
    specs = [attrs for _, attrs in hostile.elements if attrs.get("role") == "img"]
    assert specs[0]["aria-label"] == shown
    told = json.loads(hostile.text["script"][0])
    assert told["spec"]["data"][0]["name"] == HOSTILE
    page(report(HOSTILE)).encode()


def test_only_its_own_scripts_may_run_and_nothing_is_fetched() -> None:
    read = Read(page(report()))
    (policy,) = [
        attrs["content"]
        for tag, attrs in read.elements
        if tag == "meta" and attrs.get("http-equiv") == "Content-Security-Policy"
    ]
    assert policy is not None
    assert policy.startswith("default-src 'none'; ")
    kinds = [attrs.get("type") for tag, attrs in read.elements if tag == "script"]
    assert kinds == ["application/json", None, None]
    for script in read.text["script"][1:]:
        digest = base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
        assert f"'sha256-{digest}'" in policy
    assert "unsafe-inline" not in policy.partition("style-src")[0]
    for _, attrs in read.elements:
        assert not {"src", "href", "srcset", "action"} & set(attrs)
    assert not re.search(r"https?://", page(report()))


def test_a_script_with_a_carriage_return_has_the_digest_of_what_a_browser_reads() -> None:
    script = Read(page(report(script="a = 1;\r\nb = 2;\r"))).text["script"][1]
    assert script == "a = 1;\nb = 2;\n"


def test_a_script_that_would_end_itself_is_refused() -> None:
    with pytest.raises(ValueError, match="script: it holds </script"):
        page(report(script='x = "</SCRIPT>"'))


def test_numbers_are_a_table_behind_each_picture() -> None:
    read = Read(page(report()))
    assert read.text["td"][:4] == ["plain", "0.3", "", ""]
    long = {"n": np.arange(MOST_TABLE_ROWS + 5)}
    picture = replace(report().pictures[0], columns=long)
    read = Read(page(report(pictures=[picture], tables=[])))
    assert len(read.text["td"]) == MOST_TABLE_ROWS
    assert read.text["summary"][0] == "plain: the numbers, the first 400 of 405 rows"


def test_a_picture_without_numbers_and_a_report_without_pictures() -> None:
    picture = replace(report().pictures[0], columns={})
    assert len(Read(page(report(pictures=[picture]))).text["summary"]) == 1
    assert "figure" not in Read(page(report(pictures=[]))).text


def test_commands_come_as_they_are_typed() -> None:
    command = "python -m s11 export --request '0:5:2:a b=3'"
    assert Read(page(report(commands=[command]))).text["pre"][0] == command
