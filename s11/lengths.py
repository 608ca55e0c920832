"""How long prompts and answers are: fixed, lognormal, or as in a recorded trace."""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, fields
from itertools import pairwise
from statistics import NormalDist
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from s11.checks import MAX_TOKENS, require_choice, require_int, require_keys, require_ms

P90_OF_NORMAL = 1.2815515655446004
MAX_QUANTILES = 10_001
SMALLEST_SHARE = 2.0**-53  # for the one draw in 2^53 that is 0

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True, kw_only=True)
class FixedTokens:
    """The same length every time.

    Raises:
        ValueError: a length out of range.
    """

    kind: ClassVar[str] = "fixed"
    tokens: int

    def __post_init__(self) -> None:
        object.__setattr__(self, "tokens", require_int("tokens", self.tokens, 1, MAX_TOKENS))

    def draw(self, generator: np.random.Generator, count: int) -> Ints:  # (count,)
        """Return `count` lengths; the generator is not asked."""
        return np.full(count, self.tokens, dtype=np.int64)


@dataclass(frozen=True, slots=True, kw_only=True)
class LognormalTokens:
    """Lengths whose logarithm is normal, given by their median and their 90th percentile.

    mu = ln median, sigma = ln(p90 / median) / 1.28155, the normal's own 90th percentile. Drawn
    by the inverse of the normal's distribution, and rounded up to whole tokens.

    Raises:
        ValueError: a median out of range, a p90 below it.
    """

    kind: ClassVar[str] = "lognormal"
    median: float
    p90: float

    def __post_init__(self) -> None:
        median = require_ms("median", self.median, 1, MAX_TOKENS)
        object.__setattr__(self, "median", median)
        object.__setattr__(self, "p90", require_ms("p90", self.p90, median, MAX_TOKENS))

    @property
    def sigma(self) -> float:
        """The standard deviation of a length's logarithm."""
        return math.log(self.p90 / self.median) / P90_OF_NORMAL

    def draw(self, generator: np.random.Generator, count: int) -> Ints:  # (count,)
        """Return `count` lengths.

        Raises:
            ValueError: a drawn length beyond what a request may have.
        """
        inverse = NormalDist(math.log(self.median), self.sigma).inv_cdf if self.sigma else None
        if inverse is None:
            return np.full(count, math.ceil(self.median), dtype=np.int64)
        shares = np.maximum(generator.random(count), SMALLEST_SHARE)
        logs = np.array([inverse(share) for share in shares.tolist()])  # (count,)
        if count and logs.max() > math.log(MAX_TOKENS):
            raise ValueError(
                f"p90: {self.p90:g} tokens beside a median of {self.median:g} draws a length "
                f"beyond {MAX_TOKENS:,} tokens (allowed: a p90 nearer to the median)"
            )
        drawn: Ints = np.maximum(np.ceil(np.exp(logs)), 1).astype(np.int64)
        return drawn


@dataclass(frozen=True, slots=True, kw_only=True)
class EmpiricalTokens:
    """Lengths as they were recorded, given by a table of their quantiles.

    quantiles: lengths at equally spaced shares from 0 (the shortest) to 1 (the longest). Between
        two of them a length is drawn along a straight line and rounded to a whole token.

    Raises:
        ValueError: fewer than two quantiles, out of range or falling.
    """

    kind: ClassVar[str] = "empirical"
    quantiles: tuple[int, ...]

    def __post_init__(self) -> None:
        if not isinstance(self.quantiles, tuple | list):
            raise ValueError("quantiles: not a list of lengths")
        require_int("quantiles", len(self.quantiles), 2, MAX_QUANTILES)
        kept = tuple([require_int("quantiles", q, 1, MAX_TOKENS) for q in self.quantiles])
        for before, after in pairwise(kept):
            if after < before:
                raise ValueError(
                    f"quantiles: {after:,} comes after {before:,} (allowed: as long or longer)"
                )
        object.__setattr__(self, "quantiles", kept)

    def draw(self, generator: np.random.Generator, count: int) -> Ints:  # (count,)
        """Return `count` lengths."""
        levels = np.linspace(0.0, 1.0, len(self.quantiles))  # (quantiles,)
        drawn = np.interp(generator.random(count), levels, self.quantiles)
        return np.rint(drawn).astype(np.int64)


Lengths = FixedTokens | LognormalTokens | EmpiricalTokens
LENGTHS: dict[str, type[Lengths]] = {
    made.kind: made for made in (FixedTokens, LognormalTokens, EmpiricalTokens)
}


def lengths_data(lengths: Lengths) -> dict[str, Any]:
    """Return plain data that `lengths_from` reads back."""
    return {"kind": lengths.kind, **asdict(lengths)}


def lengths_from(what: str, data: Any) -> Lengths:
    """Return the lengths that plain data describes.

    what: "prompt" or "output", for the sentence of a refusal.

    Raises:
        ValueError: an unknown kind or key, a value out of range or missing.
    """
    if not isinstance(data, dict):
        raise ValueError(f"{what}: not an object with named values")
    made = LENGTHS[require_choice(f"{what} kind", data.get("kind"), tuple(LENGTHS))]
    values = {key: value for key, value in data.items() if key != "kind"}
    known = {f.name for f in fields(made)}
    require_keys(what, values, known)
    missing = sorted(known - set(values))
    if missing:
        raise ValueError(f"{what}: {missing[0]} is missing")
    return made(**values)
