"""What a cost model is, what it is told of each step, and what it says."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

Slice = tuple[int, int]
"""A prefill slice as a cost model sees it: the tokens before it that are computed, its own."""


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepWork:
    """What is in each step, for all steps at once; slices are told by the number of their step."""

    prefill_tokens: Ints  # (steps,)
    decode_tokens: Ints  # (steps,)
    decode_context_tokens: Ints  # (steps,) cached tokens of all that decodes, summed
    slice_step: Ints  # (slices,)
    slice_start_token: Ints  # (slices,)
    slice_tokens: Ints  # (slices,)


@dataclass(frozen=True, slots=True, eq=False)
class StepCosts:
    """Milliseconds of each step by cause; the three add up to the step's duration.

    fixed_ms: what a step costs however little is in it: launches, and the read of the weights.
    decode_ms: what its decodes add to that.
    prefill_ms: what its prefill adds to both.
    """

    fixed_ms: Floats  # (steps,)
    prefill_ms: Floats  # (steps,)
    decode_ms: Floats  # (steps,)

    def total_ms(self) -> Floats:  # (steps,)
        """Return the steps' durations."""
        return self.fixed_ms + self.prefill_ms + self.decode_ms


class DecodeTerms(NamedTuple):
    """base_ms + (token_ms · x + ramp_ms · x / (x + ramp_tokens)) ms for x tokens of context."""

    base_ms: float
    token_ms: float = 0.0
    ramp_ms: float = 0.0
    ramp_tokens: float = 1.0


class CostLine(NamedTuple):
    """A step's ms: fixed + prefill · its prefill tokens + decode · its decodes + context · x.

    x: the cached tokens that its requests attend to, the decodes' and those before each slice.
    """

    fixed_ms: float
    prefill_ms_per_token: float
    decode_ms_per_token: float
    context_ms_per_token: float = 0.0

    def durations_ms(self, work: StepWork) -> Floats:  # (steps,)
        """Return the durations of all steps at once, to the bit as `step_ms` gives them."""
        before = np.bincount(
            work.slice_step, weights=work.slice_start_token, minlength=len(work.prefill_tokens)
        )  # (steps,) whole numbers below 2^53
        durations_ms: Floats = (
            self.fixed_ms
            + self.prefill_ms_per_token * work.prefill_tokens
            + self.decode_ms_per_token * work.decode_tokens
            + self.context_ms_per_token * (work.decode_context_tokens + before)
        )
        return durations_ms


class CostModel(Protocol):
    """How long a step takes. Frozen and hashable; a scalar for the engine, arrays for tables.

    name: what it is called in links, files and on the command line.
    counts_only: a step's tokens alone say what it costs, not what they attend to: steps of
        equal counts take equally long.
    """

    name: ClassVar[str]
    counts_only: ClassVar[bool]

    @property
    def line(self) -> CostLine | None:
        """The coefficients, where a step's time is a line in its counts and contexts."""

    def step_ms(
        self,
        *,
        prefill_tokens: int,
        decode_tokens: int,
        slices: Sequence[Slice] | None = None,
        decode_context_tokens: int = 0,
    ) -> float:
        """Return one step's duration in ms, above 0 for a step with any token.

        slices: the prefill slices; None: all prefill tokens are one prompt's first.
        decode_context_tokens: cached tokens of all that decodes, summed.
        """

    def successive_ms(
        self, *, slices: Sequence[Slice], decode_tokens: int, decode_context_tokens: int
    ) -> Iterator[float]:
        """Yield the durations of steps that follow each other without end.

        From each to the next, every slice begins where it ended, and each decode has one more
        token in its context.
        """

    def decode_terms(self, decode_tokens: int) -> DecodeTerms:
        """Return what a step of so many decodes alone takes, as a function of their contexts."""

    def breakdown(self, work: StepWork) -> StepCosts:
        """Return what each step spends on what, in ms, for all steps at once."""

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that the class's `from_dict` reads back to an equal model."""

    def formula(self) -> str:
        """Return what a step costs, in a few words for the foot of a picture."""


def successive_ms(
    cost: CostModel, *, slices: Sequence[Slice], decode_tokens: int, decode_context_tokens: int
) -> Iterator[float]:
    """Yield the durations of successive steps, one question at a time."""
    prefill_tokens = sum(tokens for _, tokens in slices)
    while True:
        yield cost.step_ms(
            prefill_tokens=prefill_tokens,
            decode_tokens=decode_tokens,
            slices=slices,
            decode_context_tokens=decode_context_tokens,
        )
        slices = [(start + tokens, tokens) for start, tokens in slices]
        decode_context_tokens += decode_tokens
