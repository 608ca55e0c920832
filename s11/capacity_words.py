"""What a capacity search found, in sentences that are true of it."""

from __future__ import annotations

from collections.abc import Callable, Mapping

from s11.capacity import Capacity, RatePoint
from s11.words import count, ms, times


def rate_words(rate_per_s: float) -> str:
    """Return a rate as people read it, to three digits: 0.0512, 6.24, 128."""
    digits = 4 if rate_per_s < 0.1 else 3 if rate_per_s < 1 else 2 if rate_per_s < 10 else 1
    return f"{rate_per_s:,.{digits}f}"


def capacity_words(capacity: Capacity) -> str:
    """Return the highest rate that holds and what stops the next, in one or two sentences."""
    highest, failing = capacity.highest, capacity.failing
    targets = capacity.targets
    if highest is None and failing is None:
        return "No rate was tried."
    if highest is None and failing is not None:
        return (
            f"No tried rate holds: even at {rate_words(failing.rate_per_s)} requests per s "
            f"{_failure(failing, capacity)}."
        )
    assert highest is not None
    held = (
        f"{rate_words(highest.rate_per_s)} requests per s hold P99 ITL {ms(targets.itl_p99_ms)} "
        f"and a median scheduling delay of {ms(targets.scheduling_delay_p50_ms)}"
    )
    if failing is None:
        return f"{held}, and no higher rate was tried."
    return f"{held}; at {rate_words(failing.rate_per_s)} {_failure(failing, capacity)}."


def too_few_words(capacity: Capacity) -> str | None:
    """Return that the runs are too short for their precision; None where they are not."""
    highest, needed = capacity.highest, capacity.requests_needed
    if highest is None or highest.request_count >= needed:
        return None
    return (
        f"{count(highest.request_count, 'request')} end before a small overload shows in the "
        f"median delay: {needed:,} show one of {100 * capacity.relative_precision:g}%."
    )


def chunking_words(
    by_size: Mapping[int, Capacity],
    whole: Capacity,
    *,
    rate_words: Callable[[float], str] = rate_words,
) -> str:
    """Say what the best chunk size holds beside whole prompts, without a full stop.

    by_size: by chunk size in tokens. Rates within the search's precision count as the same.
    """
    held = {size: one for size, one in by_size.items() if one.highest is not None}
    whole_per_s = whole.highest_per_s
    if not held:
        rate = "none either" if whole_per_s is None else f"{rate_words(whole_per_s)} requests per s"
        return f"no chunk size holds a rate, whole prompts hold {rate}"
    size = max(held, key=lambda size: held[size].highest_per_s or 0.0)
    best_per_s = held[size].highest_per_s or 0.0
    chunks = f"chunks of {count(size, 'token')}"
    best = f"{rate_words(best_per_s)} requests per s"
    if whole_per_s is None:
        return f"whole prompts hold no rate, {chunks} hold {best}"
    if _is_open(held[size]) and _is_open(whole):
        return f"{chunks} and whole prompts both hold {best}, and no higher rate was tried"
    precision = whole.relative_precision
    if best_per_s > whole_per_s * (1 + precision):
        more = _more(best_per_s / whole_per_s, at_least=_is_open(held[size]))
        return (
            f"{chunks} hold {more} requests per s as whole prompts: {rate_words(best_per_s)} "
            f"against {rate_words(whole_per_s)}"
        )
    if whole_per_s > best_per_s * (1 + precision):
        more = _more(whole_per_s / best_per_s, at_least=_is_open(whole))
        return (
            f"whole prompts hold {more} requests per s as the best of these chunk sizes: "
            f"{rate_words(whole_per_s)} against {rate_words(best_per_s)}"
        )
    return (
        f"whole prompts hold {rate_words(whole_per_s)} requests per s, as many as {chunks} to "
        f"within {100 * precision:g}%"
    )


def _is_open(capacity: Capacity) -> bool:
    """Return whether all that was tried holds, so that higher rates may hold too."""
    return capacity.highest is not None and capacity.failing is None


def _more(factor: float, *, at_least: bool) -> str:
    told = f"{factor:.2f}×" if factor < 2 else times(factor)
    return f"{'at least ' if at_least else ''}{told} as many"


def _failure(point: RatePoint, capacity: Capacity) -> str:
    """Return why a rate does not hold, without a full stop."""
    targets = capacity.targets
    delay_ms = point.scheduling_delay_p50_ms
    over = _over("the median scheduling delay", delay_ms, targets.scheduling_delay_p50_ms)
    told = {
        "itl_p99_ms": _over("P99 ITL", point.itl_p99_ms, targets.itl_p99_ms),
        "scheduling_delay_p50_ms": "half of the requests never run" if delay_ms is None else over,
        "never_served": f"{count(point.never_served, 'request')} hang for ever",
        "max_steps": "the run was cut, so it shows too little",
    }
    return " and ".join(told[name] for name in point.fails)


def _over(what: str, value_ms: float | None, target_ms: float) -> str:
    """Return that a value is over its target, however they read."""
    if ms(value_ms) == ms(target_ms):
        return f"{what} is just over {ms(target_ms)}"
    return f"{what} of {ms(value_ms)} is over {ms(target_ms)}"
