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
    by_size: Mapping[int, float | None],
    whole_per_s: float | None,
    *,
    relative_precision: float,
    rate_words: Callable[[float], str] = rate_words,
) -> str:
    """Say what the best chunk size holds beside whole prompts, without a full stop.

    by_size: for each chunk size in tokens the highest rate that holds, None where none does.
    whole_per_s: the same for whole prompts.
    relative_precision: rates that near to each other count as the same.
    """
    held = {size: rate for size, rate in by_size.items() if rate is not None}
    whole = None if whole_per_s is None else f"{rate_words(whole_per_s)} requests per s"
    if not held:
        return f"no chunk size holds a rate, whole prompts hold {whole or 'none either'}"
    size = max(held, key=lambda size: held[size])
    best = rate_words(held[size])
    chunks = f"chunks of {count(size, 'token')}"
    if whole_per_s is None:
        return f"whole prompts hold no rate, {chunks} hold {best} requests per s"
    more = held[size] / whole_per_s
    if more > 1 + relative_precision:
        return (
            f"{chunks} hold {_more(more)} requests per s as whole prompts: {best} against "
            f"{rate_words(whole_per_s)}"
        )
    if 1 / more > 1 + relative_precision:
        return (
            f"whole prompts hold {_more(1 / more)} requests per s as the best of these chunk "
            f"sizes: {rate_words(whole_per_s)} against {best}"
        )
    within = f"{100 * relative_precision:g}%"
    return f"whole prompts hold {whole}, as many as {chunks} to within {within}"


def _more(factor: float) -> str:
    return f"{factor:.2f}× as many" if factor < 2 else f"{times(factor)} as many"


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
