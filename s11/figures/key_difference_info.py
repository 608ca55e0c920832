"""Where the keys of a chunked prefill differ from those of the whole prompt: |ΔK|."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.attention import ChunkSizeCheck, Fault
from s11.figures.mask_info import counted, span

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
ORDINALS = ("first", "second", "third", "fourth", "fifth", "sixth")
MOST_SPANS = 6


class Path(StrEnum):
    """How the matrix products lay out their rows."""

    TILES = "tiles"
    PLAIN = "plain"

    @property
    def words(self) -> str:
        """As it is read."""
        return "aligned tiles" if self is Path.TILES else "plain products"


@dataclass(frozen=True, slots=True)
class ZeroRun:
    """Neighbouring positions of one layer whose keys have the same bits."""

    layer: int
    start: int
    end: int


@dataclass(frozen=True, slots=True, eq=False)
class KeyDifferenceInfo:
    """What the picture shows; `wrong` is what rounding cannot explain."""

    chunk_tokens: int
    chunk_lengths: tuple[int, ...]
    fault: Fault | None
    path: Path
    abs_diff: NDArray[np.float32]  # (layers, positions), largest over heads and dimensions
    tolerance: float

    @property
    def wrong(self) -> NDArray[np.bool_]:
        """(layers, positions): above what rounding explains (above 0 in aligned tiles)."""
        return self.abs_diff > self.tolerance

    @property
    def zero_runs(self) -> tuple[ZeroRun, ...]:
        """Every run of neighbouring zeros, layer by layer."""
        runs = []
        for layer, row in enumerate(self.abs_diff):
            edges = np.flatnonzero(np.diff(np.concatenate(([0], row == 0, [0])))).tolist()
            runs += [ZeroRun(layer, *edge) for edge in zip(edges[::2], edges[1::2], strict=True)]
        return tuple(runs)

    @property
    def title(self) -> str:
        """The finding, in about 45 characters."""
        positions, largest = self.abs_diff.shape[1], float(self.abs_diff.max())
        if wrong := int(self.wrong.any(axis=0).sum()):
            return f"{wrong:,} of {positions:,} keys wrong, by up to {number(largest)}"
        if self.fault is not None:
            return "K is right: this chunk size hides the bug"
        return (
            f"Rounding only: |ΔK| ≤ {number(largest)}" if largest else "K is the same, bit for bit"
        )

    @property
    def caption(self) -> list[str]:
        """The parameters, lines of about 60 characters."""
        lengths = self.chunk_lengths
        chunks = counted(len(lengths), "chunk")
        if len(lengths) == 1:
            size = f"one chunk of {counted(lengths[0], 'token')}"
        elif lengths[-1] != lengths[0]:
            size = f"{chunks} of {counted(lengths[0], 'token')}, the last of {lengths[-1]}"
        else:
            size = f"{chunks} of {counted(lengths[0], 'token')}"
        return [
            f"prompt {counted(self.abs_diff.shape[1], 'token')}, {size}",
            f"bug: {self.fault or 'none'}; {self.path.words}, float32",
        ]

    @property
    def finding(self) -> str:
        """Which positions of which layers are right and wrong, in computed sentences."""
        layers, positions = self.abs_diff.shape
        wrong = self.wrong
        if not wrong.any():
            if not self.abs_diff.any():
                return f"K of all {positions:,} positions has the same bits in every layer."
            return (
                f"K differs by at most {number(float(self.abs_diff.max()))}, below the "
                f"{number(self.tolerance)} that rounding explains."
            )
        groups: dict[bytes, list[int]] = {}
        for layer in range(layers):
            groups.setdefault(wrong[layer].tobytes(), []).append(layer)
        said = []
        for members in groups.values():
            said.append(f"{_layer_names(members, layers)}, K is {_where(wrong[members[0]])}")
            if wrong[members[0]].any():
                said[-1] += f", by up to {number(float(self.abs_diff[members].max()))}"
        return ". ".join(part[0].upper() + part[1:] for part in said) + "."


def key_difference_info(check: ChunkSizeCheck, *, path: Path) -> KeyDifferenceInfo:
    """Take one path's |ΔK| out of a check."""
    compared = check.tiled if path is Path.TILES else check.plain
    return KeyDifferenceInfo(
        chunk_tokens=check.chunk_tokens,
        chunk_lengths=check.chunk_lengths,
        fault=check.fault,
        path=path,
        abs_diff=compared.key_abs_diff_by_position,
        tolerance=0.0 if path is Path.TILES else check.rounding_tolerance,
    )


def number(value: float) -> str:
    """Return a difference in two digits, as 8.2, 0.21 or 2.1·10⁻⁶."""
    if value == 0 or value >= 0.01:
        return f"{value:,.{1 if value >= 1 else 2}f}" if value else "0"
    digits, exponent = f"{value:.1e}".split("e")
    return f"{digits}·10{str(int(exponent)).translate(SUPERSCRIPTS)}"


def key_difference_alt(info: KeyDifferenceInfo) -> str:
    """Return the picture's numbers for those who cannot see it."""
    return f"Heatmap of |ΔK|: {info.title}. {'; '.join(info.caption)}. {info.finding}"


def key_difference_columns(info: KeyDifferenceInfo) -> dict[str, list[Any]]:
    """Return the picture's data, one row per layer and position."""
    layers, positions = np.indices(info.abs_diff.shape)
    chunks = np.repeat(np.arange(len(info.chunk_lengths)) + 1, info.chunk_lengths)
    return {
        "layer": (layers.ravel() + 1).tolist(),
        "position": positions.ravel().tolist(),
        "chunk": chunks[positions.ravel()].tolist(),
        "largest_abs_key_difference": info.abs_diff.ravel().tolist(),
    }


def _layer_names(members: list[int], layers: int) -> str:
    if len(members) == layers:
        return "in every layer"
    names = [ORDINALS[layer] if layer < len(ORDINALS) else f"{layer + 1}th" for layer in members]
    if len(names) == 1:
        return f"in the {names[0]} layer"
    return f"in the {', '.join(names[:-1])} and {names[-1]} layers"


def _where(wrong: NDArray[np.bool_]) -> str:
    """Say where one layer is wrong: ranges where there are few, else how many."""
    if not wrong.any():
        return "right at every position"
    if wrong.all():
        return "wrong at every position"
    bad, good = _spans(wrong), _spans(~wrong)
    if len(bad) == 1 and len(good) == 1:
        right = f"right at {_positions(good)}"
        return f"{right} and wrong at {_positions(bad)}"
    if len(good) <= MOST_SPANS:
        return (
            f"wrong at {int(wrong.sum()):,} of {len(wrong):,} positions (right at {_listed(good)})"
        )
    return f"wrong at {int(wrong.sum()):,} of {len(wrong):,} positions"


def _spans(flags: NDArray[np.bool_]) -> list[tuple[int, int]]:
    edges = np.flatnonzero(np.diff(np.concatenate(([False], flags, [False])).astype(np.int8)))
    return list(zip(edges[::2].tolist(), edges[1::2].tolist(), strict=True))


def _positions(spans: list[tuple[int, int]]) -> str:
    start, end = spans[0]
    return f"position{'' if end - start == 1 else 's'} {span(start, end)}"


def _listed(spans: list[tuple[int, int]]) -> str:
    return ", ".join(span(*each) for each in spans)
