"""The capacity pictures in words and as tables."""

from __future__ import annotations

from s11.figures.traffic_capacity import CapacityInfo, rate_words
from s11.figures.traffic_chunk_capacity import ChunkCapacityInfo
from s11.words import count, ms


def capacity_columns(info: CapacityInfo) -> dict[str, list[object]]:
    """Return every tried rate as a table, by setting and rate."""
    names = (
        "rate_per_s",
        "goodput_per_s",
        "itl_p99_ms",
        "scheduling_delay_p50_ms",
        "holds",
    )
    columns: dict[str, list[object]] = {"setting": [], **{name: [] for name in names}}
    for curve in info.curves:
        for point in curve.in_order:
            columns["setting"].append(curve.label)
            for name in names:
                columns[name].append(getattr(point, name))
    return columns


def capacity_alt(info: CapacityInfo) -> str:
    """Return the picture's findings for those who cannot see it."""
    told = []
    for curve in info.curves:
        if curve.highest is None:
            told.append(f"{curve.label}: none of {count(len(curve.points), 'tried rate')} holds")
            continue
        told.append(
            f"{curve.label}: holds up to {rate_words(curve.highest.rate_per_s)} requests per s, "
            f"with P99 ITL {ms(curve.highest.itl_p99_ms)} and a median delay of "
            f"{ms(curve.highest.scheduling_delay_p50_ms)}"
        )
    return f"Goodput against rate. {info.title}. {'. '.join(info.caption)}. {'; '.join(told)}."


def chunk_capacity_columns(info: ChunkCapacityInfo) -> dict[str, list[object]]:
    """Return the highest rates as a table, a row for each set of targets and chunk size.

    Whole prompts have a row without a size where they were tried.
    """
    rows: list[tuple[object, ...]] = []
    for curve in info.curves:
        for size, rate in zip(curve.chunk_tokens, curve.highest_per_s, strict=True):
            rows.append((curve.label, size, rate, False))
        if curve.whole_prompts:
            rows.append((curve.label, None, curve.whole_prompts.highest_per_s, True))
    names = ("targets", "chunk_tokens", "highest_per_s", "whole_prompts")
    return {name: [row[place] for row in rows] for place, name in enumerate(names)}


def chunk_capacity_alt(info: ChunkCapacityInfo) -> str:
    """Return the picture's findings for those who cannot see it."""
    told = []
    for curve in info.curves:
        if curve.best is None:
            words = f"{curve.label}: no rate holds at any chunk size"
        else:
            rate = curve.highest_per_s[curve.best]
            words = (
                f"{curve.label}: best at {count(curve.chunk_tokens[curve.best], 'token')}, "
                f"up to {rate_words(rate or 0.0)} requests per s"
            )
        if curve.whole_prompts:
            rate = curve.whole_prompts.highest_per_s
            whole = "no rate" if rate is None else f"up to {rate_words(rate)}"
            words += f", with whole prompts {whole}"
        told.append(words)
    head = f"Highest rate by chunk size. {info.title}. {'. '.join(info.caption)}."
    return f"{head} {'; '.join(told)}."
