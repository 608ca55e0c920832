"""When requests arrive: at random, in bursts, or when a client's last one has ended.

The gaps of an open process are drawn for a rate of one a second and divided by the rate, so that
a seed gives the same requests, only closer together, at every rate. An infinite rate sends all
of them at once, as `vllm bench serve --request-rate inf` does.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TIME_MS, MAX_USERS, require_choice, require_int, require_keys, require_ms

MAX_RATE_PER_S = 1e6
MIN_BURSTINESS, MAX_BURSTINESS = 1e-3, 1e6

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class PoissonArrivals:
    """Arrivals at random: gaps are exponential with mean 1 / `rate_per_s` seconds.

    Gaps come from uniform numbers by the inverse of the exponential's distribution.

    Raises:
        ValueError: a rate out of range.
    """

    kind: ClassVar[str] = "poisson"
    rate_per_s: float

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate_per_s", require_rate(self.rate_per_s))

    def times_ms(self, generator: np.random.Generator, count: int) -> Floats:  # (count,)
        """Return when `count` requests arrive, the first after one gap from 0."""
        return _times_ms(_exponential(generator, count), self.rate_per_s)

    def at_rate(self, rate_per_s: float) -> PoissonArrivals:
        """Return the same process at another rate."""
        return replace(self, rate_per_s=rate_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class GammaArrivals:
    """Bursty arrivals: gaps are gamma-distributed with mean 1 / `rate_per_s` seconds.

    burstiness: the gamma's shape. 1 is a Poisson process (the very same arrivals), less is
        burstier, more is steadier: a gap's squared coefficient of variation is 1 / burstiness.

    Gaps are NumPy's `Generator.standard_gamma` (Marsaglia and Tsang's method). Source of the
    knob: vLLM, vllm/benchmarks/serve.py (`get_request`); vLLM then also stretches all gaps so
    that the last request falls on its expected time, which is not done here.

    Raises:
        ValueError: a rate or burstiness out of range.
    """

    kind: ClassVar[str] = "gamma"
    rate_per_s: float
    burstiness: float = 1.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "rate_per_s", require_rate(self.rate_per_s))
        burstiness = require_ms("burstiness", self.burstiness, MIN_BURSTINESS, MAX_BURSTINESS)
        object.__setattr__(self, "burstiness", burstiness)

    def times_ms(self, generator: np.random.Generator, count: int) -> Floats:  # (count,)
        """Return when `count` requests arrive, the first after one gap from 0."""
        if self.burstiness == 1:
            return _times_ms(_exponential(generator, count), self.rate_per_s)
        gaps = generator.standard_gamma(self.burstiness, count) / self.burstiness
        return _times_ms(gaps, self.rate_per_s)

    def at_rate(self, rate_per_s: float) -> GammaArrivals:
        """Return the same process at another rate."""
        return replace(self, rate_per_s=rate_per_s)


@dataclass(frozen=True, slots=True, kw_only=True)
class ClosedLoopArrivals:
    """Clients that each send their next request `think_ms` after their last one has ended.

    They all begin at once. Never are more than `clients` requests in the system.

    Raises:
        ValueError: a count or time out of range.
    """

    kind: ClassVar[str] = "closed_loop"
    clients: int
    think_ms: float = 0.0

    def __post_init__(self) -> None:
        object.__setattr__(self, "clients", require_int("clients", self.clients, 1, MAX_USERS))
        think_ms = require_ms("think_ms", self.think_ms, 0, MAX_TIME_MS)
        object.__setattr__(self, "think_ms", think_ms)

    def at_rate(self, rate_per_s: float) -> ClosedLoopArrivals:
        """Refuse: answers set the pace of clients who wait for them.

        Raises:
            ValueError: always.
        """
        raise ValueError(
            f"rate_per_s: {rate_per_s:g} does not go with closed-loop clients, who send when "
            "their last request has ended (allowed: Poisson or gamma arrivals)"
        )


Arrivals = PoissonArrivals | GammaArrivals | ClosedLoopArrivals
ARRIVALS: dict[str, type[Arrivals]] = {
    made.kind: made for made in (PoissonArrivals, GammaArrivals, ClosedLoopArrivals)
}


def arrivals_data(arrivals: Arrivals) -> dict[str, Any]:
    """Return plain data that `arrivals_from` reads back; an infinite rate is "inf"."""
    values = asdict(arrivals)
    if values.get("rate_per_s") == math.inf:
        values["rate_per_s"] = "inf"
    return {"kind": arrivals.kind, **values}


def arrivals_from(data: Any) -> Arrivals:
    """Return the arrivals that plain data describes.

    Raises:
        ValueError: an unknown kind or key, a value out of range or missing.
    """
    if not isinstance(data, dict):
        raise ValueError("arrivals: not an object with named values")
    made = ARRIVALS[require_choice("arrivals kind", data.get("kind"), tuple(ARRIVALS))]
    values = {key: value for key, value in data.items() if key != "kind"}
    needed = "clients" if made is ClosedLoopArrivals else "rate_per_s"
    require_keys("arrivals", values, {f.name for f in fields(made)})
    if needed not in values:
        raise ValueError(f"arrivals: {needed} is missing")
    return made(**values)


def require_rate(value: object) -> float:
    """Return a request rate: a number, or `inf` (as text too) for all requests at once.

    Raises:
        ValueError: no number above 0, or a finite one beyond `MAX_RATE_PER_S`.
    """
    if value == "inf" or (isinstance(value, float) and value == math.inf):
        return math.inf
    try:
        return require_ms("rate_per_s", value, 0, MAX_RATE_PER_S, above=True)
    except ValueError as error:
        raise ValueError(f"{error}, or inf") from error


def _exponential(generator: np.random.Generator, count: int) -> Floats:  # (count,)
    return np.asarray(-np.log1p(-generator.random(count)), dtype=np.float64)


def _times_ms(unit_gaps: Floats, rate_per_s: float) -> Floats:  # (count,)
    return np.cumsum(unit_gaps) * (1000.0 / rate_per_s)
