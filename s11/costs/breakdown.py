"""What a cost model is, and what it says of each step."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


@dataclass(frozen=True, slots=True, eq=False)
class StepCosts:
    """Milliseconds of each step by cause; the three add up to the step's duration."""

    fixed_ms: NDArray[np.float64]  # (steps,)
    prefill_ms: NDArray[np.float64]  # (steps,)
    decode_ms: NDArray[np.float64]  # (steps,)

    def total_ms(self) -> NDArray[np.float64]:  # (steps,)
        """Return the steps' durations."""
        return self.fixed_ms + self.prefill_ms + self.decode_ms


class CostModel(Protocol):
    """How long a step takes. Frozen and hashable; a scalar for the engine, arrays for tables."""

    def step_ms(self, *, prefill_tokens: int, decode_tokens: int) -> float:
        """Return one step's duration in ms, above 0 for a step with any token."""

    def breakdown(
        self, *, prefill_tokens: NDArray[np.int64], decode_tokens: NDArray[np.int64]
    ) -> StepCosts:
        """Return what each step spends on what, in ms, for all steps at once."""
