"""The proof that scheduler and mask fit together: served in a batch is as served alone."""

from collections.abc import Mapping, Sequence, Set
from dataclasses import dataclass
from types import MappingProxyType

import numpy as np
from numpy.typing import ArrayLike

from .comparison import same_bits
from .decoder import Decoder
from .execution import execute, generate
from .faults import Fault
from .served import GeneratedTokens


@dataclass(frozen=True)
class RequestComparison:
    """One request served by a schedule against the same request served alone."""

    computed_tokens: int
    output_tokens: int
    tokens_equal: bool
    hidden_identical: bool
    keys_identical: bool
    values_identical: bool

    @property
    def identical(self) -> bool:
        """Same tokens, and the same bits in every state, key and value."""
        return (
            self.tokens_equal
            and self.hidden_identical
            and self.keys_identical
            and self.values_identical
        )


def verify_execution(
    schedule: Sequence[Mapping[str, int]],
    prompts: Mapping[str, ArrayLike],
    *,
    decoder: Decoder,
    output_tokens: Mapping[str, int | None],
    already_prefilled: Set[str] = frozenset(),
    preempted: Mapping[int, Sequence[str]] = MappingProxyType({}),
    cached: Mapping[int, Mapping[str, int]] = MappingProxyType({}),
    faults: Set[Fault] = frozenset(),
) -> dict[str, RequestComparison]:
    """Execute a schedule and compare every request with itself, served alone and correctly.

    Arguments and errors are those of `execute`. A request that the schedule leaves unfinished
    is compared as far as it came. Cost: every request is computed twice.
    """
    executed = execute(
        schedule,
        prompts,
        decoder=decoder,
        output_tokens=output_tokens,
        already_prefilled=already_prefilled,
        preempted=preempted,
        cached=cached,
        faults=faults,
    )
    return {
        request_id: compare_generated(
            generate(prompts[request_id], max(1, len(served.tokens)), decoder=decoder), served
        )
        for request_id, served in executed.items()
    }


def compare_generated(alone: GeneratedTokens, served: GeneratedTokens) -> RequestComparison:
    """Compare what a request got with what it gets alone, as far as it came."""
    outputs, computed = len(served.tokens), served.computed_tokens
    return RequestComparison(
        computed_tokens=computed,
        output_tokens=outputs,
        tokens_equal=bool(np.array_equal(alone.tokens[:outputs], served.tokens)),
        hidden_identical=same_bits(alone.hidden[:outputs], served.hidden),
        keys_identical=same_bits(alone.keys[:, :computed], served.keys),
        values_identical=same_bits(alone.values[:, :computed], served.values),
    )
