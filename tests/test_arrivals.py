"""Arrivals against the distributions that they are drawn from."""

import math
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from s11.arrivals import (
    ARRIVALS,
    Arrivals,
    ClosedLoopArrivals,
    GammaArrivals,
    PoissonArrivals,
    arrivals_data,
    arrivals_from,
)
from s11.lengths import FixedTokens
from s11.traffic import Traffic

COUNT = 40_000
SEEDS = (1, 2, 3)
# A check that holds for one seed in 10,000 too few is a normal's 3.9 standard errors.
SIGMAS = 3.9


def gaps_s(arrivals: PoissonArrivals | GammaArrivals, seed: int, count: int = COUNT) -> Any:
    times_ms = arrivals.times_ms(np.random.Generator(np.random.PCG64(seed)), count)
    return np.diff(times_ms, prepend=0.0) / 1000


@pytest.mark.parametrize("seed", SEEDS)
@pytest.mark.parametrize("burstiness", [1.0, 0.1, 0.5, 4.0, 100.0])
def test_mean_and_variance_of_gaps(burstiness: float, seed: int) -> None:
    """A gamma of shape b and mean m has variance m²/b and fourth central moment (3/b² + 6/b³) m⁴.

    So a sample of n has a mean with standard error m/√(bn), and a variance with standard error
    √((μ4 − σ⁴)/n) = m² √((2/b² + 6/b³)/n).
    """
    rate = 2.5
    gaps = gaps_s(GammaArrivals(rate_per_s=rate, burstiness=burstiness), seed)
    mean_s = 1 / rate
    b, n = burstiness, COUNT
    assert gaps.mean() == pytest.approx(mean_s, abs=SIGMAS * mean_s / math.sqrt(b * n))
    error = mean_s**2 * math.sqrt((2 / b**2 + 6 / b**3) / n)
    assert gaps.var() == pytest.approx(mean_s**2 / b, abs=SIGMAS * error)


@pytest.mark.parametrize("seed", SEEDS)
def test_poisson_gaps_have_the_exponentials_distribution(seed: int) -> None:
    """Kolmogorov–Smirnov: the largest distance of n draws exceeds 1.95/√n once in 1,000."""
    gaps = np.sort(gaps_s(PoissonArrivals(rate_per_s=3), seed))
    exact = 1 - np.exp(-3 * gaps)
    ranks = np.arange(COUNT)
    distance = max(np.max(exact - ranks / COUNT), np.max((ranks + 1) / COUNT - exact))
    assert distance < 1.95 / math.sqrt(COUNT)


@pytest.mark.parametrize("seed", SEEDS)
def test_the_count_in_a_second_is_poisson(seed: int) -> None:
    """Of a Poisson process the counts' variance is their mean: here 5, within its error."""
    times_s = np.cumsum(gaps_s(PoissonArrivals(rate_per_s=5), seed))
    seconds = int(times_s[-1])
    counts = np.bincount(times_s.astype(int))[:seconds]
    assert counts.mean() == pytest.approx(5, abs=SIGMAS * math.sqrt(5 / seconds))
    # The fourth central moment of Poisson(λ) is λ + 3λ².
    assert counts.var() == pytest.approx(5, abs=SIGMAS * math.sqrt((5 + 2 * 25) / seconds))


def test_a_burstiness_of_1_is_the_poisson_process_itself() -> None:
    poisson, gamma = PoissonArrivals(rate_per_s=2), GammaArrivals(rate_per_s=2, burstiness=1)
    assert gaps_s(poisson, 7).tolist() == gaps_s(gamma, 7).tolist()


@pytest.mark.parametrize(
    "arrivals", [PoissonArrivals(rate_per_s=1), GammaArrivals(rate_per_s=1, burstiness=0.3)]
)
def test_another_rate_scales_the_same_times(arrivals: PoissonArrivals | GammaArrivals) -> None:
    """Exactly, where the factor is a power of two."""
    assert (gaps_s(arrivals, 5, 100) / 4).tolist() == gaps_s(arrivals.at_rate(4.0), 5, 100).tolist()
    assert arrivals.at_rate(1.0) == arrivals


def test_uniform_numbers_become_exponential_gaps() -> None:
    """The method that the docstring states, on PCG64's own numbers of 53 bits."""
    raw = np.random.PCG64(9).random_raw(4) >> np.uint64(11)
    by_hand = [-math.log1p(-int(bits) * 2.0**-53) for bits in raw]
    assert gaps_s(PoissonArrivals(rate_per_s=1), 9, 4) == pytest.approx(by_hand, rel=1e-14)


def test_an_infinite_rate_sends_all_at_once() -> None:
    for arrivals in (PoissonArrivals(rate_per_s=math.inf), GammaArrivals(rate_per_s=math.inf)):
        assert not gaps_s(arrivals, 1, 50).any()
        assert arrivals_data(arrivals)["rate_per_s"] == "inf"
        assert arrivals_from(arrivals_data(arrivals)) == arrivals


EXAMPLES: tuple[Arrivals, ...] = (
    PoissonArrivals(rate_per_s=0.25),
    GammaArrivals(rate_per_s=3, burstiness=0.5),
    ClosedLoopArrivals(clients=3, think_ms=20),
)


@pytest.mark.parametrize("arrivals", EXAMPLES)
def test_there_and_back(arrivals: Arrivals) -> None:
    assert arrivals_from(arrivals_data(arrivals)) == arrivals
    assert hash(arrivals_from(arrivals_data(arrivals))) == hash(arrivals)


def test_each_kind_has_an_example() -> None:
    assert {type(arrivals) for arrivals in EXAMPLES} == set(ARRIVALS.values())


def test_clients_have_no_rate() -> None:
    with pytest.raises(ValueError, match="rate_per_s: 2 does not go with closed-loop clients"):
        ClosedLoopArrivals(clients=3).at_rate(2)
    traffic = Traffic(
        request_count=3,
        arrivals=ClosedLoopArrivals(clients=3),
        prompt=FixedTokens(tokens=1),
        output=FixedTokens(tokens=1),
    )
    with pytest.raises(ValueError, match="closed-loop"):
        traffic.at_rate(2)


@pytest.mark.parametrize("value", [0, -1, math.nan, 1e7, -math.inf, "2", None, True, "infinity"])
def test_no_rate(value: Any) -> None:
    with pytest.raises(ValueError, match=r"rate_per_s: .* above 0 to 1e\+06, or inf"):
        PoissonArrivals(rate_per_s=value)
    with pytest.raises(ValueError, match="rate_per_s: "):
        replace(GammaArrivals(rate_per_s=1), rate_per_s=value)


@pytest.mark.parametrize(
    ("data", "told"),
    [
        ([], "arrivals: not an object"),
        ({}, "arrivals kind: None is not one of poisson, gamma, closed_loop"),
        ({"kind": "uniform"}, "arrivals kind: 'uniform'"),
        ({"kind": "poisson"}, "arrivals: rate_per_s is missing"),
        ({"kind": "closed_loop"}, "arrivals: clients is missing"),
        ({"kind": "poisson", "rate_per_s": 1, "burstiness": 2}, "'burstiness' is not a known key"),
        ({"kind": "gamma", "rate_per_s": 1, "burstiness": 0}, "burstiness: 0 "),
        ({"kind": "closed_loop", "clients": 0}, "clients: 0 "),
        ({"kind": "closed_loop", "clients": 1, "think_ms": -1}, "think_ms: -1 "),
    ],
)
def test_no_arrivals(data: Any, told: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011 - the sentence is what is tested
        arrivals_from(data)
    assert told in str(refused.value)
