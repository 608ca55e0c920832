"""What a link may say: every parameter of every page, with what no control can hold."""

import ast
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
from streamlit.testing.v1 import AppTest

from tests.browser.pages import PAGES

ROOT = Path(__file__).resolve().parents[2]
DEFAULT_PAGE = "simulator"

HOSTILE = (
    *("", " ", "\0", "1\0", "-1", "-0", "+1", "1.5", "1e3", "1e400", "-1e400", "1e-400", "nan"),
    *("inf", "-inf", "0x10", "1_000", "9" * 20, "9" * 5_000, "0." + "9" * 5_000),
    *("\u0663", "\uff11\uff12", "\u00b2", "\U0001f984", "\u202e1", "e\u0301" * 50, "\ud800"),
    *("true", "null", "None", "a" * 100_000, "-" * 100_000, "%zz", "%", "&", "=", ";", "../../etc"),
    *("<script>alert(1)</script>", "<img src=x onerror=alert(1)>", "javascript:alert(1)"),
    *("' OR 1=1 --", "{{7*7}}", "${7*7}", "{0}", "%s%n", "[x](javascript:alert(1))", "`", "$x$"),
    *("[" * 100_000, '{"a":' * 20_000, "[" * 500 + "]" * 500, "{}", "[]", "[null]", "[[]]", "0:"),
    *('{"hidden_size": 1e400}', '[{"prompt_tokens": NaN}]', "1:2:3:4:5", "1,2,3", "1:-1", ",,,"),
)


def link_checks(path: str) -> dict[str, Callable[[str], Any]]:
    """A page's checks by parameter: the second argument of its `show_link_notes`."""
    source = (ROOT / "pages" / f"{path.strip('/') or DEFAULT_PAGE}.py").read_text(encoding="utf-8")
    tree = ast.parse(source)
    origin = {
        alias.asname or alias.name: (node.module, alias.name)
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module
        for alias in node.names
    }
    (call,) = [
        node
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "show_link_notes"
    ]
    module, name = origin[ast.unparse(call.args[1])]
    return getattr(import_module(module), name)


@pytest.mark.parametrize("path", PAGES)
def test_every_parameter_answers_hostile_text_with_a_sentence_or_takes_it(path: str) -> None:
    checks = link_checks(path)
    taken: dict[str, list[str]] = {}
    for name, check in checks.items():
        for text in HOSTILE:
            told = "taken"
            try:
                check(text)
            except ValueError as error:
                told = str(error)
            except Exception as error:
                pytest.fail(f"{name}={text[:40]!r}: {error!r}", pytrace=False)
            assert told, f"{name}={text[:40]!r}: refused without a word"
            if told == "taken":
                taken.setdefault(name, []).append(text)
    # What was taken is a value: the page must stand with the strangest of it, all at once.
    app = AppTest.from_file(str(ROOT / "pages" / f"{path.strip('/') or DEFAULT_PAGE}.py"))
    for name, texts in taken.items():
        app.query_params[name] = texts[-1]
    for number in range(20):
        app.query_params[f"unknown<{number}>"] = HOSTILE[number]
    app.query_params[next(iter(checks), "twice")] = ["1", "2"]
    app.run(timeout=120)
    assert [exception.message for exception in app.exception] == []
    assert any("could not be used" in note.value for note in app.info)
    assert app.title
