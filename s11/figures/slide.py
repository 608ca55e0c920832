"""A figure fit for a slide: how large it is saved, how low it may be drawn, and its dark twin."""

from __future__ import annotations

import re
from dataclasses import dataclass
from math import ceil
from typing import Any

from s11.figures.theme import DARK_TWIN, Spec

SLIDE_WIDTH, SLIDE_HEIGHT = 1920, 1080  # px
TYPE_SCALE = 1.5  # of a slide's type to a page's
LOWEST, LOWEST_SQUARE = 0.72, 0.85  # of a figure's own height: lower, and its rows would touch
NARROW, NARROW_PANELS = 366, 1080  # px: a phone's width; panels that lie side by side
_ROUNDING = 1e-9  # a canvas takes whole pixels, and rounds down

_DARK = {light.upper(): dark for light, dark in DARK_TWIN.items()}
_COLOUR = re.compile("|".join(_DARK), re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class PictureSize:
    """A picture's own size in px and the factor by which it is saved."""

    width: int
    height: int
    scale: float


def picture_size(layout: Spec) -> PictureSize:
    """Return the size at which a figure is drawn and saved as 1920 x 1080 pixels, never cut.

    Type is `TYPE_SCALE` times the page's; less only where a figure is higher than a slide's
    720 px, more where its places are fixed and it is lower.
    """
    broad = ceil(narrowest_width(layout) * SLIDE_HEIGHT / SLIDE_WIDTH)
    height = max(natural_height(layout), broad)
    if not has_fixed_places(layout):
        height = max(height, round(SLIDE_HEIGHT / TYPE_SCALE))
    return PictureSize(
        width=ceil(height * SLIDE_WIDTH / SLIDE_HEIGHT),
        height=height,
        scale=SLIDE_HEIGHT / height + _ROUNDING,
    )


def natural_height(layout: Spec) -> int:
    """Return the height in px that a figure asks for where there is room."""
    wide: Spec = layout["meta"].get("wide") or {}
    return int({**layout, **wide}["height"])


def lowest_height(layout: Spec) -> int:
    """Return the least height in px at which a figure still reads well."""
    height = natural_height(layout)
    if has_fixed_places(layout):
        return height
    square = any("scaleanchor" in axis for axis in layout.values() if isinstance(axis, dict))
    return ceil((LOWEST_SQUARE if square else LOWEST) * height)


def narrowest_width(layout: Spec) -> int:
    """Return the least width in px at which a figure reads as it does where there is room."""
    return NARROW_PANELS if layout["meta"].get("wide") else NARROW


def has_fixed_places(layout: Spec) -> bool:
    """Return whether a figure is laid out for its own height alone.

    Its legend then stands at a share of the height that was worked out from pixels.
    """
    legend = layout.get("legend") or {}
    return legend.get("yref") == "container" and legend.get("y") not in (0, 1)


def on_slide(spec: Spec, *, dark: bool) -> Spec:
    """Return a figure as a slide shows it: as high as its place where it may be, dark if asked."""
    layout = dict(spec["layout"])
    if not has_fixed_places(layout):
        del layout["height"]
        wide = layout["meta"].get("wide")
        if wide:
            rest = {key: value for key, value in wide.items() if key != "height"}
            layout["meta"] = {**layout["meta"], "wide": rest}
    shown = {**spec, "layout": layout}
    return dark_twin(shown) if dark else shown


def dark_twin(value: Any) -> Any:
    """Return a spec with each colour of the theme replaced by its dark twin, in texts too."""
    if isinstance(value, str):
        return _COLOUR.sub(lambda found: _DARK[found[0].upper()], value)
    if isinstance(value, dict):
        return {key: dark_twin(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [dark_twin(item) for item in value]
    return value
