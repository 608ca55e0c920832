"""What links and files say is shown as it is."""

import pytest
import streamlit as st

from s11.ui.frame import link_row, plain


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("token_budget: 10 is less", "token_budget: 10 is less"),
        ("[a](b) **c** `d` $e$", r"\[a\](b) \*\*c\*\* \`d\` \$e\$"),
        (":red[hi] :smile: _a_", r"\:red\[hi\] \:smile: \_a\_"),
        ("<b> # | ~", r"\<b\> \# \| \~"),
        ("https://x.example www.x.example a@x.example", None),
    ],
)
def test_markup_loses_its_power(text: str, shown: str | None) -> None:
    found = plain(text)
    if shown is not None:
        assert found == shown
    for address in ("://", "www.", "@x"):
        assert address not in found


def test_nothing_but_marks_is_added() -> None:
    text = "what [a](https://b.c) says_it: **is**"
    assert plain(text).replace("\\", "").replace("\u200b", "") == text


def test_links_of_an_embedded_page_stay_embedded(monkeypatch: pytest.MonkeyPatch) -> None:
    links = {"small": {"chunk": "64"}}
    assert 'href="?chunk=64"' in link_row("Try", "Presets", links)
    monkeypatch.setattr(type(st.context), "is_embedded", True)
    assert 'href="?chunk=64&amp;embed=true"' in link_row("Try", "Presets", links)
