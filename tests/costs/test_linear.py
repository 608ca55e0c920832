import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11 import LinearCost
from s11.costs import COST_MODELS, StepWork

COEFFICIENTS = ("fixed_ms", "prefill_ms_per_token", "decode_ms_per_token")


@pytest.mark.parametrize(
    ("prefill_tokens", "decode_tokens", "duration_ms"),
    [
        (0, 24, 5.2),  # 4 + 1.2
        (1024, 24, 23.632),  # 4 + 18.432 + 1.2
        (8192, 24, 152.656),  # 4 + 147.456 + 1.2
        (1, 0, 4.018),
        (0, 0, 4.0),
    ],
)
def test_the_chapters_steps(prefill_tokens: int, decode_tokens: int, duration_ms: float) -> None:
    step_ms = LinearCost().step_ms(prefill_tokens=prefill_tokens, decode_tokens=decode_tokens)
    assert step_ms == pytest.approx(duration_ms, abs=1e-12)


def work(prefill_tokens: list[int], decode_tokens: list[int]) -> StepWork:
    """Steps whose prefill is one slice from the prompt's start."""
    prefilling = np.flatnonzero(prefill_tokens)
    return StepWork(
        prefill_tokens=np.array(prefill_tokens),
        decode_tokens=np.array(decode_tokens),
        decode_context_tokens=1000 * np.array(decode_tokens),
        slice_step=prefilling,
        slice_start_token=np.zeros_like(prefilling),
        slice_tokens=np.array(prefill_tokens)[prefilling],
    )


def test_the_breakdown_is_by_cause_for_all_steps_at_once() -> None:
    cost = LinearCost(fixed_ms=2, prefill_ms_per_token=0.5, decode_ms_per_token=0.25)
    parts = cost.breakdown(work([0, 10, 3], [4, 0, 1]))
    assert parts.fixed_ms.tolist() == [2, 2, 2]
    assert parts.prefill_ms.tolist() == [0, 5, 1.5]
    assert parts.decode_ms.tolist() == [1, 0, 0.25]
    assert parts.total_ms().tolist() == [3, 7, 3.75]


token_counts = st.integers(0, 10_000_000)
coefficients = st.floats(0, 1e6, allow_subnormal=False)


@given(token_counts, token_counts, coefficients, coefficients, st.floats(1e-3, 1e6))
def test_a_steps_parts_add_up_to_the_engines_duration(
    prefill: int, decode: int, per_prefill: float, per_decode: float, fixed: float
) -> None:
    cost = LinearCost(
        fixed_ms=fixed, prefill_ms_per_token=per_prefill, decode_ms_per_token=per_decode
    )
    parts = cost.breakdown(work([prefill], [decode]))
    duration_ms = cost.step_ms(prefill_tokens=prefill, decode_tokens=decode)
    assert parts.total_ms()[0] == pytest.approx(duration_ms, rel=1e-12)
    assert duration_ms >= fixed


@pytest.mark.parametrize("field", COEFFICIENTS)
@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf"), 1e7, "4", None, True])
def test_a_coefficient_out_of_range_is_refused(field: str, value: object) -> None:
    shown = re.escape(repr(value))
    with pytest.raises(ValueError, match=rf"^{field}: {shown} is not a number from 0 to 1e\+06$"):
        LinearCost(**{field: value})  # type: ignore[arg-type]


@pytest.mark.parametrize("free", ["prefill_ms_per_token", "decode_ms_per_token"])
def test_time_may_not_stand_still(free: str) -> None:
    with pytest.raises(ValueError, match=r"^fixed_ms: 0 lets .* take 0 ms \(allowed: 1e-06 ms"):
        LinearCost(**{"fixed_ms": 0, free: 0})
    with pytest.raises(ValueError, match=r"^fixed_ms: 9e-07 lets"):
        LinearCost(**{"fixed_ms": 9e-7, free: 0})
    assert LinearCost(**{"fixed_ms": 1e-6, free: 0}).fixed_ms == 1e-6
    assert LinearCost(fixed_ms=0).fixed_ms == 0
    assert LinearCost(fixed_ms=1, prefill_ms_per_token=0, decode_ms_per_token=0).fixed_ms == 1


def test_coefficients_are_values() -> None:
    assert LinearCost(fixed_ms=4) == LinearCost()
    assert hash(LinearCost(fixed_ms=4)) == hash(LinearCost())
    assert COST_MODELS["linear"] is LinearCost
