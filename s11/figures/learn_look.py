"""What the tour's pictures share: large type where there is room, and plain axes.

A picture is drawn for a phone. Its `meta.wide` is the same layout in larger type, which the
chart takes where it has the room (a projector is seen from the last row).
"""

from __future__ import annotations

import re
from typing import Any

from s11.figures.theme import INK, PAPER, Spec, axis, bottom_legend, layout

LARGER = 1.35
IN_PX = ("xshift", "yshift", "standoff", "borderpad", "entrywidth")
PIXELS = re.compile(r"font-size:(\d+)px")


def scene_layout(*, title: str, caption: list[str], meta: Spec, height: int) -> Spec:
    """Return the layout that the tour's own pictures start from, in type that can grow.

    title: 40 characters at most. caption: lines of 48 at most: a phone is 390 px wide.
    """
    spec = layout(title=title, caption=caption, meta=meta, height=height)
    spec |= {"legend": bottom_legend(), "hovermode": "closest", "dragmode": False}
    return spec


def plain_axis(**changes: Any) -> Spec:
    """Return an axis that nobody zooms, whose ticks are in the picture's own type size."""
    spec = axis(fixedrange=True, **changes)
    spec["tickfont"] = {"color": INK}
    return spec


def label(text: str, *, x: Any, y: Any, **changes: Any) -> Spec:
    """Return words in the picture, on paper so that no mark runs through them."""
    return {
        "text": text,
        "x": x,
        "y": y,
        "xref": "x",
        "yref": "y",
        "showarrow": False,
        "font": {"size": 13, "color": INK},
        "bgcolor": PAPER,
        "borderpad": 2,
        **changes,
    }


def projected(figure: Spec, *, height: int | None = None) -> Spec:
    """Return a figure with the larger layout that it takes where there is room.

    height: px there; None: as much larger as its margins.
    """
    spec = figure["layout"]
    wide = {key: _grown(value, key) for key, value in spec.items() if key != "meta"}
    wide["height"] = height or spec["height"] + _grow(spec["margin"]["t"]) - spec["margin"]["t"]
    return {**figure, "layout": {**spec, "meta": {**spec["meta"], "wide": wide}}}


def _grown(value: Any, key: str) -> Any:
    if isinstance(value, dict):
        sized = key in ("font", "tickfont")
        return {
            name: _grow(each)
            if (sized and name == "size") or name in IN_PX or key in ("margin", "pad")
            else _grown(each, name)
            for name, each in value.items()
        }
    if isinstance(value, list):
        return [_grown(each, "") for each in value]
    if isinstance(value, str) and "font-size" in value:
        return PIXELS.sub(lambda found: f"font-size:{_grow(int(found[1]))}px", value)
    return value


def _grow(value: Any) -> Any:
    return round(value * LARGER) if isinstance(value, int | float) else value
