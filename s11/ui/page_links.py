"""Links from one page to states of others that open beside it, so that this session stays."""

from __future__ import annotations

from collections.abc import Iterable
from html import escape

from s11.quiz import PageLink

NEW_TAB = (
    '<span aria-hidden="true">&nbsp;↗</span><span class="s11-aside"> (opens in a new tab)</span>'
)


def page_links(lead: str, label: str, links: Iterable[PageLink]) -> str:
    """Return a row of links; label: what it is called to those who hear the page."""
    anchors = [
        f'<a href="{escape(link.address)}" target="_blank" rel="noopener">'
        f"{escape(link.label)}{NEW_TAB}</a>"
        for link in links
    ]
    return (
        f'<nav class="presets" aria-label="{escape(label)}">{escape(lead)}: {" ".join(anchors)}'
        "</nav>"
    )
