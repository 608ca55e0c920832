"""What a smaller and a larger chunk would give, in a sentence with this scenario's figures."""

from __future__ import annotations

from s11.metrics import Metrics
from s11.sweeps import SweepPoint
from s11.words import count, ms


def trade_off(
    smaller: SweepPoint | None,
    larger: SweepPoint | None,
    *,
    now: Metrics | None = None,
    repeated: str = "the fixed cost",
) -> str:
    """Return what a smaller and a larger chunk would give, each with its figures.

    repeated: what every further step costs again. With `now`, a chunk that gives the same
    figures as now is said to.
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

    def wait(point: SweepPoint) -> str | None:
        """How the streams' longest wait compares with now's; None where nobody streams."""
        stall_ms = point.longest_stall_ms
        if stall_ms is None:
            return None
        if now is None or now.longest_stall_ms is None:
            return "less" if point is smaller else "more"
        if stall_ms == now.longest_stall_ms:
            return "the same"
        return "less" if stall_ms < now.longest_stall_ms else "more"

    def sooner(point: SweepPoint) -> bool:
        if now is None or now.ttft_ms is None or point.ttft_ms is None:
            return True
        return point.ttft_ms < now.ttft_ms

    parts = []
    if smaller and not same(smaller):
        what = {
            "less": f"are smoother but repeat {repeated}",
            "the same": f"repeat {repeated} and are no smoother",
            "more": f"only repeat {repeated}, and the streams wait for that too",
            None: f"repeat {repeated} more often",
        }[wait(smaller)]
        parts.append(f"Smaller chunks {what} ({figures(smaller)}).")
    if larger and not same(larger):
        what = {
            "less": ", and the streams wait less",
            "the same": ", and the streams wait no longer",
            "more": " but stall more" if sooner(larger) else ", and the streams wait longer",
            None: "",
        }[wait(larger)]
        when = "finish the prompt sooner" if sooner(larger) else "finish the prompt no sooner"
        parts.append(f"Larger chunks {when}{what} ({figures(larger)}).")
    for point in (smaller, larger):
        if point and same(point):
            parts.append(f"Chunks of {count(point.chunk_tokens, 'token')} give the same.")
    return " ".join(parts)
