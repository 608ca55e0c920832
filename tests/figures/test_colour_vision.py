"""The palette, seen with fewer cones and printed in grey; which series need more than colour is
looked at on every page, in tests/browser/test_accessible.py."""

import pytest

from s11.figures import theme
from tests.colour_vision import alike, apart, ciede2000, contrast, lab


@pytest.mark.parametrize(
    ("one", "other", "distance"),
    [  # pairs 1, 7, 15, 17, 20 and 34 of Sharma, Wu, Dalal (2005), table 1
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 0, 0), (50, -1, 2), 2.3669),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (58, 24, 15), 19.4535),
        ((2.0776, 0.0795, -1.1350), (0.9033, -0.0636, -0.5514), 0.9082),
    ],
)
def test_distances_are_those_published(one, other, distance):
    assert ciede2000(one, other) == pytest.approx(distance, abs=1e-4)
    assert ciede2000(other, one) == pytest.approx(distance, abs=1e-4)


def test_white_is_white_and_grey_has_no_hue_to_anybody():
    for sight in ("all cones", "protanopia", "deuteranopia", "tritanopia", "grey print"):
        np_lab = lab("#FFFFFF", sight)
        assert np_lab == pytest.approx([100, 0, 0], abs=0.05)
    assert abs(lab("#E69F00", "grey print")[1:]).max() < 0.05
    assert contrast("#000000", "#FFFFFF") == pytest.approx(21)


PAIRS = [  # what lies side by side, or stands for the two sides of one finding
    (theme.DECODE, theme.PREFILL),
    (theme.DECODE, theme.STALL),
    (theme.DECODE, theme.FIXED),
    (theme.PREFILL, theme.STALL),
    (theme.IDLE, theme.PREFILL),
    (theme.DECODE, theme.IDLE),
]


@pytest.mark.parametrize(("one", "other"), PAIRS)
def test_what_lies_side_by_side_is_told_apart_on_paper_by_everybody(one: str, other: str):
    assert min(apart(one, other).values()) > 8  # 2.3 is said to be just noticeable


def test_text_is_read_on_paper_and_on_the_dark_page():
    for text in (theme.INK, theme.MUTED, theme.STALL_TEXT):
        assert contrast(text, theme.PAPER) >= 4.5
        assert contrast(theme.DARK_TWIN[text], theme.DARK_TWIN[theme.PAPER]) >= 4.5


def test_looks_that_differ_in_colour_alone_are_named():
    red, green = "#D55E00", "#009E73"  # 3.3 apart on a grey print
    looks = [
        {"name": "a", "colour": red, "form": "bar"},
        {"name": "b", "colour": green, "form": "bar"},
        {"name": "c", "colour": green, "form": "bar, striped"},
    ]
    (told,) = alike(looks, 8)
    assert told.startswith("'a' and 'b': 3.3 (grey print)")
