"""How far apart two colours are, also to those who see fewer, and on a grey print.

Simulation: Machado, Oliveira, Fernandes, "A Physiologically-based Model for Simulation of Color
Vision Deficiency", IEEE TVCG 15(6), 2009, the matrices for severity 1.0, on linear RGB. Distance:
CIEDE2000 as in Sharma, Wu, Dalal, Color Research and Application 30(1), 2005.
"""

from itertools import product

import numpy as np

SIGHT = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [
            [0.152286, 1.052583, -0.204868],
            [0.114503, 0.786281, 0.099216],
            [-0.003882, -0.048116, 1.051998],
        ]
    ),
    "deuteranopia": np.array(
        [
            [0.367322, 0.860646, -0.227968],
            [0.280085, 0.672501, 0.047413],
            [-0.011820, 0.042940, 0.968881],
        ]
    ),
    "tritanopia": np.array(
        [
            [1.255528, -0.076749, -0.178779],
            [-0.078411, 0.930809, 0.147602],
            [0.004733, 0.691367, 0.303900],
        ]
    ),
    "grey print": np.tile([0.2126, 0.7152, 0.0722], (3, 1)),  # sRGB's luminance (IEC 61966-2-1)
}
TO_XYZ = np.array(  # sRGB, IEC 61966-2-1
    [[0.4124, 0.3576, 0.1805], [0.2126, 0.7152, 0.0722], [0.0193, 0.1192, 0.9505]]
)
WHITE = TO_XYZ.sum(axis=1)


def linear_rgb(colour: str):
    """Linear light of "#RRGGBB", each 0 to 1."""
    coded = np.array([int(colour[at : at + 2], 16) for at in (1, 3, 5)]) / 255
    return np.where(coded <= 0.04045, coded / 12.92, ((coded + 0.055) / 1.055) ** 2.4)


def lab(colour: str, sight: str = "all cones"):
    """CIE L*a*b* of "#RRGGBB" as somebody sees it, D65."""
    seen = np.clip(SIGHT[sight] @ linear_rgb(colour), 0, 1)
    ratio = TO_XYZ @ seen / WHITE
    x, y, z = np.where(ratio > (6 / 29) ** 3, np.cbrt(ratio), ratio * (29 / 6) ** 2 / 3 + 4 / 29)
    return np.array([116 * y - 16, 500 * (x - y), 200 * (y - z)])


def ciede2000(one, other) -> float:
    """CIEDE2000 of two L*a*b* colours; the numbers in brackets are Sharma's equations."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean_c = (np.hypot(a1, b1) + np.hypot(a2, b2)) / 2  # (3)
    g = 0.5 * (1 - np.sqrt(mean_c**7 / (mean_c**7 + 25.0**7)))  # (4)
    a1, a2 = (1 + g) * a1, (1 + g) * a2  # (5)
    c1, c2 = np.hypot(a1, b1), np.hypot(a2, b2)  # (6)
    h1, h2 = (np.degrees(np.arctan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))  # (7)
    turn = 0.0 if c1 * c2 == 0 else (h2 - h1 + 180) % 360 - 180  # (10)
    d_l, d_c = l2 - l1, c2 - c1  # (8), (9)
    d_h = 2 * np.sqrt(c1 * c2) * np.sin(np.radians(turn / 2))  # (11)
    l_, c_ = (l1 + l2) / 2, (c1 + c2) / 2  # (12), (13)
    h = h1 + h2 if c1 * c2 == 0 else (h1 + turn / 2) % 360  # (14)
    t = (
        1
        - 0.17 * np.cos(np.radians(h - 30))
        + 0.24 * np.cos(np.radians(2 * h))
        + 0.32 * np.cos(np.radians(3 * h + 6))
        - 0.20 * np.cos(np.radians(4 * h - 63))
    )  # (15)
    s_l = 1 + 0.015 * (l_ - 50) ** 2 / np.sqrt(20 + (l_ - 50) ** 2)  # (18)
    s_c, s_h = 1 + 0.045 * c_, 1 + 0.015 * c_ * t  # (19), (20)
    theta = 30 * np.exp(-(((h - 275) / 25) ** 2))  # (16)
    r_c = 2 * np.sqrt(c_**7 / (c_**7 + 25.0**7))  # (17)
    r_t = -np.sin(np.radians(2 * theta)) * r_c  # (21)
    parts = d_l / s_l, d_c / s_c, d_h / s_h
    squared = sum(part**2 for part in parts) + r_t * parts[1] * parts[2]  # (22)
    return float(np.sqrt(squared))


def apart(one: str, other: str) -> dict[str, float]:
    """How far apart two colours are, by who looks."""
    return {sight: ciede2000(lab(one, sight), lab(other, sight)) for sight in SIGHT}


def contrast(one: str, other: str) -> float:
    """WCAG 2's contrast ratio of two colours, 1 to 21."""
    dark, light = sorted(float(SIGHT["grey print"][0] @ linear_rgb(at)) for at in (one, other))
    return (light + 0.05) / (dark + 0.05)


def alike(looks: list[dict], least: float) -> list[str]:
    """Pairs of looks that differ in colour alone, and too little for somebody.

    looks: each has a name, a colour "#RRGGBB", and a form: all else that tells it from others.
    """
    found = []
    for one, other in product(looks, looks):
        if one["name"] >= other["name"] or one["form"] != other["form"]:
            continue
        distances = apart(one["colour"], other["colour"])
        sight = min(distances, key=distances.__getitem__)
        if distances[sight] < least:
            found.append(f"{one['name']!r} and {other['name']!r}: {distances[sight]:.1f} ({sight})")
    return found
