"""The chapter's cost model: a step costs a fixed part, and a part for each token."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import repeat
from typing import Any, ClassVar

import numpy as np

from s11.checks import require_keys, require_ms
from s11.costs.breakdown import CostLine, DecodeTerms, Slice, StepCosts, StepWork

SHORTEST_STEP_MS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearCost:
    """A step takes a fixed time, plus a time for each prefill token and each decode token.

    Source of the defaults: the chapter (4.0 ms a step, 0.018 ms a prefill token, 0.05 ms a
    decode token).

    Raises:
        ValueError: a negative or endless coefficient, or steps of next to no time.
    """

    name: ClassVar[str] = "linear"
    counts_only: ClassVar[bool] = True

    fixed_ms: float = 4.0
    prefill_ms_per_token: float = 0.018
    decode_ms_per_token: float = 0.05

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
    def line(self) -> CostLine:
        """The coefficients, as the engine's loops take them."""
        return CostLine(
            self.fixed_ms,
            self.prefill_ms_per_token,
            self.decode_ms_per_token,
        )

    def step_ms(
        self,
        *,
        prefill_tokens: int,
        decode_tokens: int,
        slices: Sequence[Slice] | None = None,
        decode_context_tokens: int = 0,
    ) -> float:
        """Return one step's duration in ms; what the tokens attend to does not count."""
        return (
            self.fixed_ms
            + self.prefill_ms_per_token * prefill_tokens
            + self.decode_ms_per_token * decode_tokens
        )

    def successive_ms(
        self, *, slices: Sequence[Slice], decode_tokens: int, decode_context_tokens: int
    ) -> Iterator[float]:
        """Yield the same duration without end."""
        prefill_tokens = sum(tokens for _, tokens in slices)
        return repeat(self.step_ms(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens))

    def decode_terms(self, decode_tokens: int) -> DecodeTerms:
        """Return what a step of so many decodes alone takes, as a function of their contexts."""
        return DecodeTerms(self.step_ms(prefill_tokens=0, decode_tokens=decode_tokens))

    def breakdown(self, work: StepWork) -> StepCosts:
        """Return what each step spends on what, in ms, for all steps at once."""
        return StepCosts(
            fixed_ms=np.full(work.prefill_tokens.shape, self.fixed_ms),  # (steps,)
            prefill_ms=np.float64(self.prefill_ms_per_token) * work.prefill_tokens,  # (steps,)
            decode_ms=np.float64(self.decode_ms_per_token) * work.decode_tokens,  # (steps,)
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the coefficients by name, and the model's."""
        return {"model": self.name} | asdict(self)

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> LinearCost:
        """Return the model that `to_dict` described; what is left out takes its default.

        Raises:
            ValueError: an unknown key, a coefficient out of range.
        """
        known = require_keys("cost", data, {field.name for field in fields(cls)} | {"model"})
        return cls(**{key: value for key, value in known.items() if key != "model"})

    def formula(self) -> str:
        """Return the sum that a step costs."""
        return (
            f"step = {self.fixed_ms:g} + {self.prefill_ms_per_token:g}·prefill + "
            f"{self.decode_ms_per_token:g}·decode ms"
        )
