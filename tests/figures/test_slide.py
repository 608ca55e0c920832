"""What of a figure changes on a slide: its size, its height, its colours."""

import numpy as np
import pytest

from s11.figures.slide import (
    dark_twin,
    lowest_height,
    narrowest_width,
    natural_height,
    on_slide,
    picture_size,
)
from s11.figures.theme import bottom_legend


def layout(height: int, **more: object) -> dict[str, object]:
    return {"height": height, "meta": {}, **more}


@pytest.mark.parametrize(
    ("height", "more", "size"),
    [
        (590, {}, (1280, 720)),  # 1.5 times larger
        (720, {}, (1280, 720)),
        (1080, {}, (1920, 1080)),
        (903, {}, (1606, 903)),  # 903 x 16 / 9 = 1605.3
        # A legend at a share of the height would leave its place at another height.
        (540, {"legend": bottom_legend() | {"y": 0.1}}, (960, 540)),
        # Panels side by side take 1,080 px: 1,080 x 9 / 16 = 607.5.
        (
            505,
            {"legend": bottom_legend() | {"y": 0.1}, "meta": {"wide": {"height": 505}}},
            (1081, 608),
        ),
        (1100, {"meta": {"wide": {"height": 450}}}, (1280, 720)),
    ],
)
def test_a_picture_is_saved_as_a_whole_slide(
    height: int, more: dict[str, object], size: tuple[int, int]
) -> None:
    found = picture_size(layout(height, **more))
    assert (found.width, found.height) == size
    # A canvas has whole pixels, rounded down.
    assert (int(found.width * found.scale), int(found.height * found.scale)) == (1920, 1080)


def test_only_a_figure_that_can_gets_lower() -> None:
    assert lowest_height(layout(600)) == 432  # 0.72 of it
    assert lowest_height(layout(600, legend=bottom_legend())) == 432
    assert lowest_height(layout(600, legend=bottom_legend() | {"y": 0.2})) == 600
    assert lowest_height(layout(600, yaxis={"scaleanchor": "x"})) == 510  # 0.85 of it
    assert natural_height(layout(900, meta={"wide": {"height": 300}})) == 300
    assert narrowest_width(layout(900, meta={"wide": {"height": 300}})) > narrowest_width(
        layout(900)
    )


def test_a_slide_says_how_high_a_figure_is() -> None:
    own = layout(600, meta={"wide": {"height": 300, "a": 1}, "figure": 2})
    shown = on_slide({"data": [], "layout": own}, dark=False)
    assert shown["layout"] == {"meta": {"wide": {"a": 1}, "figure": 2}}
    assert own["height"] == 600  # the page's own is as it was
    assert own["meta"] == {"wide": {"height": 300, "a": 1}, "figure": 2}
    fixed = {"data": [], "layout": layout(600, legend=bottom_legend() | {"y": 0.2})}
    assert on_slide(fixed, dark=False)["layout"]["height"] == 600


def test_dark_twin_takes_each_colour_once_and_leaves_the_rest() -> None:
    values = np.arange(3)
    spec = {
        "x": values,
        "colour": "#ffffff",  # paper, however written
        "list": ["#0072B2", "#E69F00", None, 3],  # decode turns lighter, prefill stays
        "text": '<span style="color:#5A6675">say #1B2430</span>',
        "see-through": "rgba(213,94,0,0.16)",
    }
    dark = dark_twin(spec)
    assert dark["x"] is values
    assert dark["colour"] == "#0F141A"
    assert dark["list"] == ["#56B4E9", "#E69F00", None, 3]
    assert dark["text"] == '<span style="color:#A3AFBD">say #E6EBF1</span>'
    assert dark["see-through"] == spec["see-through"]
