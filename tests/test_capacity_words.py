"""What a search found, in words: of points made up here."""

import pytest

from s11.capacity import Capacity, CapacityTargets, RatePoint, capacity_of
from s11.capacity_words import capacity_words, chunking_words, rate_words, too_few_words

TARGETS = CapacityTargets(itl_p99_ms=50)


def point(
    rate_per_s: float,
    *,
    itl_ms: float | None = 20.0,
    delay_ms: float | None = 5.0,
    never_served: int = 0,
    cut: bool = False,
    requests: int = 1_000,
) -> RatePoint:
    return RatePoint(
        rate_per_s=rate_per_s,
        request_count=requests,
        itl_p99_ms=itl_ms,
        scheduling_delay_p50_ms=delay_ms,
        ttft_p50_ms=None,
        ttft_p99_ms=None,
        slo_attainment=1.0,
        goodput_per_s=rate_per_s,
        requests_per_s=None,
        never_served=never_served,
        rejected=0,
        stopped_at_max_steps=cut,
    )


@pytest.mark.parametrize(
    ("rate", "words"),
    [(0.05, "0.0500"), (0.5, "0.500"), (6.244, "6.24"), (12.34, "12.3"), (1_234.5, "1,234.5")],
)
def test_a_rate_reads_to_three_digits(rate: float, words: str) -> None:
    assert rate_words(rate) == words


HELD = "6.24 requests per s hold P99 ITL 50 ms and a median scheduling delay of 2,000 ms"


@pytest.mark.parametrize(
    ("points", "words"),
    [
        ([], "No rate was tried."),
        ([point(6.24)], f"{HELD}, and no higher rate was tried."),
        (
            [point(6.24), point(6.3, itl_ms=63.2)],
            f"{HELD}; at 6.30 P99 ITL of 63.2 ms is over 50 ms.",
        ),
        (
            [point(6.3, itl_ms=50.01), point(6.24)],
            f"{HELD}; at 6.30 P99 ITL is just over 50 ms.",
        ),
        (
            [point(6.24), point(6.3, itl_ms=70, delay_ms=2_100)],
            f"{HELD}; at 6.30 P99 ITL of 70 ms is over 50 ms and the median scheduling delay of "
            "2,100 ms is over 2,000 ms.",
        ),
        ([point(6.24), point(6.3, cut=True)], f"{HELD}; at 6.30 the run was cut, so it shows too "
         "little."),
        (
            [point(0.05, delay_ms=None, never_served=2)],
            "No tried rate holds: even at 0.0500 requests per s half of the requests never run "
            "and 2 requests hang for ever.",
        ),
    ],
)  # fmt: skip
def test_the_sentence_of_a_search(points: list[RatePoint], words: str) -> None:
    assert capacity_words(capacity_of(points, TARGETS)) == words


def test_a_run_too_short_for_its_precision_says_so() -> None:
    """2 * 2 s * 6.24 / 2 % are 1,248 requests."""
    short = capacity_of([point(6.24, requests=1_247)], TARGETS)
    assert too_few_words(short) == (
        "1,247 requests end before a small overload shows in the median delay: 1,248 show one "
        "of 2%."
    )
    assert too_few_words(capacity_of([point(6.24, requests=1_248)], TARGETS)) is None
    assert too_few_words(capacity_of([point(6.24, itl_ms=51)], TARGETS)) is None


def holding(rate_per_s: float | None, *, fails: bool = True) -> Capacity:
    """A search that holds a rate, and fails at twice of it unless all that was tried holds."""
    points = [] if rate_per_s is None else [point(rate_per_s)]
    if fails:
        points.append(point(2 * (rate_per_s or 0.5), itl_ms=99.0))
    return capacity_of(points, TARGETS)


@pytest.mark.parametrize(
    ("by_size", "whole", "words"),
    [
        (
            {128: 4.0, 512: 9.0, 2048: None},
            3.0,
            "chunks of 512 tokens hold 3.0× as many requests per s as whole prompts: 9.00 against "
            "3.00",
        ),
        (
            {512: 3.3},
            3.0,
            "chunks of 512 tokens hold 1.10× as many requests per s as whole prompts: 3.30 against "
            "3.00",
        ),
        (
            {512: 3.0, 1024: 2.0},
            3.3,
            "whole prompts hold 1.10× as many requests per s as the best of these chunk sizes: "
            "3.30 against 3.00",
        ),
        (
            {1: 3.0},
            3.05,
            "whole prompts hold 3.05 requests per s, as many as chunks of 1 token to within 2%",
        ),
        (
            {512: 3.05},
            3.0,
            "whole prompts hold 3.00 requests per s, as many as chunks of 512 tokens to within 2%",
        ),
        (
            {512: 3.0},
            None,
            "whole prompts hold no rate, chunks of 512 tokens hold 3.00 requests per s",
        ),
        ({512: None}, 3.0, "no chunk size holds a rate, whole prompts hold 3.00 requests per s"),
        ({512: None}, None, "no chunk size holds a rate, whole prompts hold none either"),
    ],
)
def test_what_chunking_buys(
    by_size: dict[int, float | None], whole: float | None, words: str
) -> None:
    found = {size: holding(rate) for size, rate in by_size.items()}
    assert chunking_words(found, holding(whole)) == words


def test_a_search_that_ended_at_its_highest_rate_is_told_as_a_bound() -> None:
    end, below = holding(9.0, fails=False), holding(3.0)
    assert chunking_words({512: end}, below).startswith(
        "chunks of 512 tokens hold at least 3.0× as many requests per s as whole prompts"
    )
    assert chunking_words({512: below}, end).startswith(
        "whole prompts hold at least 3.0× as many requests per s as the best of these chunk sizes"
    )
    assert chunking_words({256: below, 512: end}, end) == (
        "chunks of 512 tokens and whole prompts both hold 9.00 requests per s, and no higher rate "
        "was tried"
    )


def test_what_chunking_buys_takes_the_rates_of_its_page() -> None:
    words = chunking_words({512: holding(9.0)}, holding(3.0), rate_words="{:.0f}".format)
    assert words.endswith(": 9 against 3")
