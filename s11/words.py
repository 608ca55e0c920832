"""Figures as people read them: milliseconds, counts, factors."""

from __future__ import annotations


def ms(value: float | None) -> str:
    """Return milliseconds as people read them: 0.05 ms, 5.2 ms, 50 ms, 153 ms, 1,024 ms."""
    if value is None:
        return "none"
    if 0 < abs(value) < 0.1:
        return f"{value:.3g} ms"
    if abs(value) < 99.95:
        return f"{value:.1f}".removesuffix(".0") + " ms"
    return f"{value:,.0f} ms"


def count(number: int, noun: str) -> str:
    """Return a count with its noun: 1 step, 1,024 steps."""
    return f"{number:,} {noun}" if number == 1 else f"{number:,} {noun}s"


def times(factor: float) -> str:
    """Return a factor as people read it: 6.5x, 25x."""
    return f"{factor:.1f}×" if factor < 10 else f"{factor:,.0f}×"


def quoted(name: str) -> str:
    """Return a request's name as it stands in a sentence."""
    return f"“{name}”"
