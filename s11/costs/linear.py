"""The chapter's cost model: a step costs a fixed part, and a part for each token."""

from __future__ import annotations

from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

from s11.checks import require_ms
from s11.costs.breakdown import StepCosts

SHORTEST_STEP_MS = 1e-6


@dataclass(frozen=True, slots=True, kw_only=True)
class LinearCost:
    """A step takes a fixed time, plus a time for each prefill token and each decode token.

    Source of the defaults: the chapter (4.0 ms a step, 0.018 ms a prefill token, 0.05 ms a
    decode token).

    Raises:
        ValueError: a negative or endless coefficient, or steps of next to no time.
    """

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

    def step_ms(self, *, prefill_tokens: int, decode_tokens: int) -> float:
        """Return one step's duration in ms."""
        return (
            self.fixed_ms
            + self.prefill_ms_per_token * prefill_tokens
            + self.decode_ms_per_token * decode_tokens
        )

    def breakdown(
        self, *, prefill_tokens: NDArray[np.int64], decode_tokens: NDArray[np.int64]
    ) -> StepCosts:  # (steps,), (steps,)
        """Return what each step spends on what, in ms, for all steps at once."""
        return StepCosts(
            fixed_ms=np.full(prefill_tokens.shape, self.fixed_ms),  # (steps,)
            prefill_ms=np.float64(self.prefill_ms_per_token) * prefill_tokens,  # (steps,)
            decode_ms=np.float64(self.decode_ms_per_token) * decode_tokens,  # (steps,)
        )
