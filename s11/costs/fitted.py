"""A cost model whose coefficients come from a user's own measured steps."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import count
from typing import Any, ClassVar, NamedTuple

import numpy as np

from s11.checks import require_keys, require_ms
from s11.costs.breakdown import CostLine, DecodeTerms, Slice, StepCosts, StepWork
from s11.costs.linear import SHORTEST_STEP_MS


class Term(NamedTuple):
    """One addend of the model: `ms` a step, or `ms` for each unit of what `column` counts.

    column: of a measured table; None for the fixed time.
    coefficient: the field of `FittedCost` that holds `ms`.
    """

    column: str | None
    coefficient: str
    ms: float


@dataclass(frozen=True, slots=True, kw_only=True)
class FittedCost:
    """A step takes a fixed time, plus a time for each token computed and each token attended to.

    duration_ms = fixed_ms + prefill_ms_per_token · prefill_tokens
        + decode_ms_per_token · decode_tokens + context_ms_per_token · context_tokens,
    where `context_tokens` are the cached tokens that the step's requests attend to: the
    decodes' contexts, and what was computed of each prompt before its slice of this step.
    `s11.costs.least_squares.fit` finds the coefficients. A straight line through measured
    steps: what grows otherwise (a chunk's attention with its length times what is before it,
    the tiles of a product) is met on average, near the sizes that were measured.

    Raises:
        ValueError: a negative or endless coefficient, or steps of next to no time.
    """

    name: ClassVar[str] = "fitted"
    counts_only: ClassVar[bool] = False

    fixed_ms: float
    prefill_ms_per_token: float
    decode_ms_per_token: float
    context_ms_per_token: float = 0.0

    def __post_init__(self) -> None:
        for name in (field.name for field in fields(self)):
            object.__setattr__(self, name, require_ms(name, getattr(self, name), 0, 1e6))
        shortest_ms = self.fixed_ms + min(self.prefill_ms_per_token, self.decode_ms_per_token)
        if shortest_ms < SHORTEST_STEP_MS:
            raise ValueError(
                f"fixed_ms: {self.fixed_ms:g} lets a step of one token take {shortest_ms:g} ms "
                f"(allowed: {SHORTEST_STEP_MS:g} ms a step or more)"
            )

    @property
    def terms(self) -> tuple[Term, ...]:
        """The addends in order: the fixed time, prefill, decode and context tokens."""
        return (
            Term(None, "fixed_ms", self.fixed_ms),
            Term("prefill_tokens", "prefill_ms_per_token", self.prefill_ms_per_token),
            Term("decode_tokens", "decode_ms_per_token", self.decode_ms_per_token),
            Term("context_tokens", "context_ms_per_token", self.context_ms_per_token),
        )

    @property
    def line(self) -> CostLine:
        """The coefficients, as the engine's loops take them."""
        return CostLine(
            self.fixed_ms,
            self.prefill_ms_per_token,
            self.decode_ms_per_token,
            self.context_ms_per_token,
        )

    def step_ms(
        self,
        *,
        prefill_tokens: int,
        decode_tokens: int,
        slices: Sequence[Slice] | None = None,
        decode_context_tokens: int = 0,
    ) -> float:
        """Return one step's duration in ms."""
        context_tokens = decode_context_tokens
        for start_token, _ in slices or ():
            context_tokens += start_token
        return (
            self.fixed_ms
            + self.prefill_ms_per_token * prefill_tokens
            + self.decode_ms_per_token * decode_tokens
            + self.context_ms_per_token * context_tokens
        )

    def successive_ms(
        self, *, slices: Sequence[Slice], decode_tokens: int, decode_context_tokens: int
    ) -> Iterator[float]:
        """Yield the durations of steps that follow each other without end."""
        prefill_tokens = sum(tokens for _, tokens in slices)
        before_context_ms = self.step_ms(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens)
        context_tokens = decode_context_tokens + sum(start for start, _ in slices)
        for attended_tokens in count(context_tokens, prefill_tokens + decode_tokens):
            yield before_context_ms + self.context_ms_per_token * attended_tokens

    def decode_terms(self, decode_tokens: int) -> DecodeTerms:
        """Return what a step of so many decodes alone takes, as a function of their contexts."""
        return DecodeTerms(
            self.step_ms(prefill_tokens=0, decode_tokens=decode_tokens), self.context_ms_per_token
        )

    def breakdown(self, work: StepWork) -> StepCosts:
        """Return what each step spends on what, in ms, for all steps at once.

        The time for cached tokens stands with the prefill slices or the decodes that attend
        to them.
        """
        steps = len(work.prefill_tokens)
        slice_context_tokens = np.bincount(
            work.slice_step, weights=work.slice_start_token, minlength=steps
        )  # (steps,)
        return StepCosts(
            fixed_ms=np.full(steps, self.fixed_ms),  # (steps,)
            prefill_ms=self.prefill_ms_per_token * work.prefill_tokens
            + self.context_ms_per_token * slice_context_tokens,  # (steps,)
            decode_ms=self.decode_ms_per_token * work.decode_tokens
            + self.context_ms_per_token * work.decode_context_tokens,  # (steps,)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the coefficients by name, and the model's."""
        return {"model": self.name} | asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> FittedCost:
        """Return the model that `to_dict` described.

        Raises:
            ValueError: a key that is unknown or missing, a coefficient out of range.
        """
        names = [field.name for field in fields(cls)]
        known = require_keys("cost", data, {*names, "model"})
        for name in names:
            if name not in known:
                raise ValueError(f"cost: {name} is missing (allowed: {', '.join(names)})")
        return cls(**{name: known[name] for name in names})

    def formula(self) -> str:
        """Return the sum that a step costs."""
        parts = [f"{self.fixed_ms:.3g}"]
        for name, ms in (
            ("prefill", self.prefill_ms_per_token),
            ("decode", self.decode_ms_per_token),
        ):
            if ms:
                parts.append(f"{ms:.3g}·{name}")
        attended = self.context_ms_per_token  # a cached token costs nanoseconds
        context = f" + {1e6 * attended:,.3g} ns·context" if attended else ""
        return f"step = {' + '.join(parts)} ms{context}, fitted"
