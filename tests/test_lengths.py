"""Lengths against the distributions that they are drawn from."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.lengths import (
    LENGTHS,
    EmpiricalTokens,
    FixedTokens,
    Lengths,
    LognormalTokens,
    lengths_data,
    lengths_from,
)

COUNT = 40_000
SIGMAS = 3.9


def drawn(lengths: Lengths, seed: int = 1, count: int = COUNT) -> Any:
    return lengths.draw(np.random.Generator(np.random.PCG64(seed)), count)


def share_at_most(values: Any, bound: float) -> float:
    return float(np.mean(values <= bound))


@pytest.mark.parametrize("seed", [1, 2, 3])
@pytest.mark.parametrize(("median", "p90"), [(1730, 5696), (415, 834), (7059, 12985), (208, 371)])
def test_median_and_p90_of_the_papers_lengths(median: int, p90: int, seed: int) -> None:
    """The share at or below a quantile q of n draws has standard error √(q(1−q)/n)."""
    values = drawn(LognormalTokens(median=median, p90=p90), seed)
    for share, quantile in ((0.5, median), (0.9, p90)):
        error = SIGMAS * math.sqrt(share * (1 - share) / COUNT)
        assert share_at_most(values, quantile) == pytest.approx(share, abs=error)


def test_the_logarithm_is_normal() -> None:
    """Of many tokens, where rounding up does not show: mean ln m, deviation as stated."""
    lengths = LognormalTokens(median=100_000, p90=200_000)
    sigma = math.log(2) / 1.2815515655446004
    assert lengths.sigma == pytest.approx(sigma, rel=1e-12)
    logs = np.log(drawn(lengths))
    assert logs.mean() == pytest.approx(math.log(100_000), abs=SIGMAS * sigma / math.sqrt(COUNT))
    assert logs.std() == pytest.approx(sigma, abs=SIGMAS * sigma / math.sqrt(2 * COUNT))


def test_p90_of_a_standard_normal() -> None:
    """Φ(1.28155…) = 0.9, by the error function."""
    assert 0.5 * (1 + math.erf(1.2815515655446004 / math.sqrt(2))) == pytest.approx(0.9, abs=1e-15)


def test_lengths_are_rounded_up_to_at_least_one() -> None:
    """Of median 1, half the draws are below 1 and become 1; of 2.5 always, 3."""
    values = drawn(LognormalTokens(median=1, p90=4))
    assert values.min() == 1
    assert share_at_most(values, 1) == pytest.approx(0.5, abs=SIGMAS * 0.5 / math.sqrt(COUNT))
    assert set(drawn(LognormalTokens(median=2.5, p90=2.5), count=9).tolist()) == {3}


def test_lengths_beyond_what_a_request_may_have_are_refused() -> None:
    with pytest.raises(ValueError, match="beyond 16,777,216 tokens"):
        drawn(LognormalTokens(median=1_000_000, p90=16_000_000))
    with pytest.raises(ValueError, match="beyond 16,777,216 tokens"):
        drawn(LognormalTokens(median=1, p90=16_777_216))


def test_fixed_lengths_ask_nothing_of_the_generator() -> None:
    generator = np.random.Generator(np.random.PCG64(1))
    before = generator.bit_generator.state
    assert FixedTokens(tokens=7).draw(generator, 3).tolist() == [7, 7, 7]
    assert generator.bit_generator.state == before


def test_recorded_lengths_lie_between_their_quantiles_as_often_as_they_say() -> None:
    """A quarter of the draws between each two; a value that fills a quarter comes that often."""
    values = drawn(EmpiricalTokens(quantiles=(10, 20, 20, 1_000, 1_002)))
    assert (values.min(), values.max()) == (10, 1_002)
    error = SIGMAS * math.sqrt(0.25 * 0.75 / COUNT)
    # Rounding takes half of a unit at either end of the first quarter, of its ten units.
    exactly_20 = 0.25 + 0.25 * 0.5 / 10 + 0.25 * 0.5 / 980
    assert np.mean(values == 20) == pytest.approx(exactly_20, abs=error)
    assert np.mean(values < 20) == pytest.approx(0.25 * 9.5 / 10, abs=error)
    assert np.mean(values >= 1_000) == pytest.approx(0.25 + 0.25 * 0.5 / 980, abs=error)


@given(
    quantiles=st.lists(st.integers(1, 5_000), min_size=2, max_size=20).map(sorted),
    seed=st.integers(0, 1_000),
)
def test_recorded_lengths_stay_within_what_was_recorded(quantiles: list[int], seed: int) -> None:
    values = drawn(EmpiricalTokens(quantiles=tuple(quantiles)), seed, 50)
    assert values.min() >= quantiles[0]
    assert values.max() <= quantiles[-1]


EXAMPLES: tuple[Lengths, ...] = (
    FixedTokens(tokens=5),
    LognormalTokens(median=10, p90=30),
    EmpiricalTokens(quantiles=(1, 2, 2, 50)),
)


@pytest.mark.parametrize("lengths", EXAMPLES)
def test_there_and_back(lengths: Lengths) -> None:
    back = lengths_from("prompt", lengths_data(lengths))
    assert back == lengths
    assert hash(back) == hash(lengths)


@pytest.mark.parametrize("lengths", EXAMPLES)
def test_a_longer_draw_begins_as_a_shorter_one(lengths: Lengths) -> None:
    assert drawn(lengths, 3, 20).tolist() == drawn(lengths, 3, 100)[:20].tolist()


def test_each_kind_has_an_example() -> None:
    assert {type(lengths) for lengths in EXAMPLES} == set(LENGTHS.values())


@pytest.mark.parametrize(
    ("make", "told"),
    [
        (lambda: FixedTokens(tokens=0), "tokens: 0 is not a whole number from 1"),
        (lambda: LognormalTokens(median=0.5, p90=2), "median: 0.5 "),
        (lambda: LognormalTokens(median=10, p90=9), "p90: 9 is not a number from 10"),
        (lambda: LognormalTokens(median=math.nan, p90=9), "median: nan"),
        (lambda: EmpiricalTokens(quantiles=(3,)), "quantiles: 1 is not a whole number from 2"),
        (lambda: EmpiricalTokens(quantiles=(3, 2)), "quantiles: 2 comes after 3"),
        (lambda: EmpiricalTokens(quantiles=(0, 2)), "quantiles: 0 "),
        (lambda: EmpiricalTokens(quantiles="12"), "quantiles: not a list"),  # type: ignore[arg-type]
        (lambda: lengths_from("prompt", 5), "prompt: not an object"),
        (lambda: lengths_from("prompt", {"kind": "normal"}), "prompt kind: 'normal'"),
        (lambda: lengths_from("output", {"kind": "fixed"}), "output: tokens is missing"),
        (lambda: lengths_from("output", {"kind": "lognormal", "p90": 1}), "median is missing"),
        (lambda: lengths_from("output", {"kind": "fixed", "mean": 1}), "output: 'mean'"),
    ],
)
def test_no_lengths(make: Callable[[], object], told: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is what is tested
        make()
    assert told in str(refused.value)
