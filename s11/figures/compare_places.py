"""Where everything in the comparison stands, in px from its top: y is drawn one to one."""

from __future__ import annotations

from dataclasses import dataclass
from html import escape

from s11.figures.compare_info import Band, CompareInfo
from s11.figures.compare_rows import RequestRow
from s11.figures.theme import MUTED

TITLE, KNOBS, ROW, FOLD, STRIP, GAP = 20.0, 18.0, 23.0, 17.0, 22.0, 16.0
KNOBS_LINE, NOTE = 14.0, 15.0  # for a second line of knobs, and for a note under a row
STRIP_BAR = 15.0
MOST_NAME_LETTERS = 11


@dataclass(frozen=True, slots=True)
class BandPlaces:
    """One band's places, as middles of its lines."""

    top: float
    title: float
    knobs: float
    rows: tuple[float, ...]
    fold: float | None
    strips: tuple[float, ...]
    bottom: float


def places(info: CompareInfo) -> list[BandPlaces]:
    """Return the bands' places, one under the other."""
    found, at = [], 0.0
    for band in info.bands:
        found.append(_band(band, at))
        at = found[-1].bottom + GAP
    return found


def _band(band: Band, top: float) -> BandPlaces:
    head = KNOBS + KNOBS_LINE * (len(band.knobs) - 1)
    at = top + TITLE + head
    middles = []
    for row in band.rows:
        middles.append(at + ROW / 2)
        at += ROW + (NOTE if row.note_below else 0.0)
    rows = tuple(middles)
    fold = at + FOLD / 2 if band.folded else None
    at += FOLD if band.folded else 0.0
    strips = tuple([at + (number + 0.5) * STRIP for number in range(len(band.strips))])
    return BandPlaces(
        top=top,
        title=top + TITLE / 2,
        knobs=top + TITLE + head / 2 - 2,
        rows=rows,
        fold=fold,
        strips=strips,
        bottom=at + len(strips) * STRIP,
    )


def placed_rows(info: CompareInfo, where: list[BandPlaces]) -> list[tuple[RequestRow, float]]:
    """Return all rows of all engines, each with its place."""
    return [
        (row, y)
        for band, place in zip(info.bands, where, strict=True)
        for row, y in zip(band.rows, place.rows, strict=True)
    ]


def tick_names(info: CompareInfo, where: list[BandPlaces]) -> tuple[list[float], list[str]]:
    """Return the places and texts of the names at the left."""
    at: list[float] = []
    names: list[str] = []
    for band, place in zip(info.bands, where, strict=True):
        at += place.rows
        names += [short_name(row.name) for row in band.rows]
        if place.fold is not None:
            at.append(place.fold)
            names.append(_quiet(f"+ {band.folded:,} more"))
        at += place.strips
        names += [_quiet(strip.name) for strip in band.strips]
    return at, names


def short_name(name: str) -> str:
    """Return a request's name as it fits at the left, its own markup shown as text."""
    short = name if len(name) <= MOST_NAME_LETTERS else f"{name[: MOST_NAME_LETTERS - 1]}…"
    return escape(short, quote=False)


def _quiet(text: str) -> str:
    return f'<span style="color:{MUTED}">{text}</span>'
