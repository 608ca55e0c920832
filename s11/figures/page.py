"""A figure as a page of its own: one HTML file that needs nothing else."""

from __future__ import annotations

from html import escape
from typing import Any


def self_contained_html(spec: dict[str, Any], *, title: str) -> str:
    """Return an HTML page with the figure and all of plotly.js in it (about 5 MB)."""
    import plotly.io

    figure = plotly.io.to_html(
        spec,
        include_plotlyjs=True,
        full_html=False,
        validate=False,
        config={"responsive": True},
    )
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1">'
        f"<title>{escape(title)}</title></head><body>{figure}</body></html>"
    )
