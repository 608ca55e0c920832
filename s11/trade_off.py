"""What a smaller and a larger chunk would give, in a sentence with this scenario's figures."""

from __future__ import annotations

from s11.metrics import Metrics
from s11.sweeps import SweepPoint
from s11.words import count, ms


def trade_off(
    smaller: SweepPoint | None, larger: SweepPoint | None, *, now: Metrics | None = None
) -> str:
    """Return what a smaller and a larger chunk would give, each with its figures.

    With `now`, a chunk that gives the same figures as now is said to.
    """

    def same(point: SweepPoint) -> bool:
        mine = now and (now.longest_stall_ms, now.ttft_ms)
        return mine == (point.longest_stall_ms, point.ttft_ms)

    def figures(point: SweepPoint) -> str:
        stall = (
            f"longest stall {ms(point.longest_stall_ms)}, "
            if point.longest_stall_ms is not None
            else ""
        )
        return f"{count(point.chunk_tokens, 'token')}: {stall}TTFT {ms(point.ttft_ms)}"

    def longer(point: SweepPoint) -> bool:
        """Whether the streams wait longer than now, where that is known."""
        if now is None or now.longest_stall_ms is None or point.longest_stall_ms is None:
            return point is larger
        return point.longest_stall_ms > now.longest_stall_ms

    parts = []
    if smaller and smaller.longest_stall_ms is not None and not same(smaller):
        what = "are smoother but repeat the fixed cost"
        if longer(smaller):
            what = "only repeat the fixed cost, and the streams wait for that too"
        parts.append(f"Smaller chunks {what} ({figures(smaller)}).")
    elif smaller and not same(smaller):
        parts.append(f"Smaller chunks repeat the fixed cost more often ({figures(smaller)}).")
    if larger and larger.longest_stall_ms is not None and not same(larger):
        what = "but stall more" if longer(larger) else "and stall no more"
        parts.append(f"Larger chunks finish the prompt sooner {what} ({figures(larger)}).")
    elif larger and not same(larger):
        parts.append(f"Larger chunks finish the prompt sooner ({figures(larger)}).")
    for point in (smaller, larger):
        if point and same(point):
            parts.append(f"Chunks of {count(point.chunk_tokens, 'token')} give the same.")
    return " ".join(parts)
