"""What the tour's pictures share: large type where there is room, and plain axes.

A picture is drawn for a phone. Its `meta.wide` is the same layout in larger type, which the
chart takes where it has the room (a projector is seen from the last row).
"""

from __future__ import annotations

import re
from typing import Any

from s11.figures.theme import INK, PAPER, Spec, axis, bottom_legend, layout

LARGER = 1.35
TITLE_PX, WIDE_TITLE_PX = 15, 25
LEGEND_FOOT, WIDE_LEGEND_FOOT = 116, 100  # px: three rows of a phone's legend, one where it is wide
IN_PX = ("xshift", "yshift", "standoff", "borderpad")
PIXELS = re.compile(r"font-size:(\d+)px")


def scene_layout(*, title: str, caption: list[str], meta: Spec, height: int) -> Spec:
    """Return the layout that the tour's own pictures start from, in type that can grow.

    title: 36 characters at most. caption: lines of 48 at most: a phone is 390 px wide.
    """
    spec = layout(title=title, caption=caption, meta=meta, height=height)
    spec |= {"legend": bottom_legend(), "hovermode": "closest"}
    return spec


def plain_axis(**changes: Any) -> Spec:
    """Return an axis whose ticks are in the picture's own type size."""
    spec = axis(**changes)
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


def projected(figure: Spec, *, height: int) -> Spec:
    """Return a figure that nobody zooms, with the larger layout that it takes where there is room.

    height: px there.
    """
    spec = figure["layout"] | {"dragmode": False}
    for name in spec:
        if name.startswith(("xaxis", "yaxis")):
            spec[name] = {**spec[name], "fixedrange": True}
    if "legend" in spec:
        spec["margin"] = {**spec["margin"], "b": LEGEND_FOOT}
    wide = {key: _grown(value, key) for key, value in spec.items() if key != "meta"}
    if "legend" in spec:
        wide["legend"].pop("entrywidth", None)  # made for a phone's two columns
        wide["margin"]["b"] = WIDE_LEGEND_FOOT
    wide["height"] = height
    for each, size in ((spec, TITLE_PX), (wide, WIDE_TITLE_PX)):
        each["title"] = {**each["title"], "font": {**each["title"]["font"], "size": size}}
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
