import re
from itertools import islice
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from s11.costs.breakdown import CostModel, StepWork, successive_ms
from s11.costs.fitted import FittedCost, Term

COEFFICIENTS = {
    "fixed_ms": 6.0,
    "prefill_ms_per_token": 0.02,
    "decode_ms_per_token": 0.04,
    "context_ms_per_token": 0.0001,
}
COST = FittedCost(**COEFFICIENTS)


@pytest.mark.parametrize(
    ("work", "duration_ms"),
    [
        ({"prefill_tokens": 0, "decode_tokens": 24}, 6.96),  # 6 + 0.96
        ({"prefill_tokens": 512, "decode_tokens": 0}, 16.24),  # 6 + 10.24, from the start
        (  # 6 + 0.96 + 2.4
            {"prefill_tokens": 0, "decode_tokens": 24, "decode_context_tokens": 24_000},
            9.36,
        ),
        (  # 6 + 10.24 + 0.04 + 0.0001 · (1000 + 4096)
            {
                "prefill_tokens": 512,
                "decode_tokens": 1,
                "slices": [(4096, 256), (0, 256)],
                "decode_context_tokens": 1000,
            },
            16.7896,
        ),
    ],
)
def test_a_step_costs_what_it_computes_and_what_it_attends_to(
    work: dict[str, Any], duration_ms: float
) -> None:
    assert COST.step_ms(**work) == pytest.approx(duration_ms, rel=1e-12)


def test_the_breakdown_puts_context_with_whoever_attends_to_it() -> None:
    work = StepWork(
        prefill_tokens=np.array([0, 512, 0]),
        decode_tokens=np.array([24, 1, 2]),
        decode_context_tokens=np.array([24_000, 1000, 0]),
        slice_step=np.array([1, 1]),
        slice_start_token=np.array([4096, 0]),
        slice_tokens=np.array([256, 256]),
    )
    parts = COST.breakdown(work)
    assert parts.fixed_ms.tolist() == [6, 6, 6]
    assert parts.prefill_ms == pytest.approx([0, 10.24 + 0.4096, 0], rel=1e-12)
    assert parts.decode_ms == pytest.approx([0.96 + 2.4, 0.04 + 0.1, 0.08], rel=1e-12)


counts = st.integers(0, 1_000_000)
slices = st.lists(st.tuples(counts, st.integers(1, 100_000)), max_size=3)


@given(slices, counts, counts)
def test_scalar_and_table_agree(
    cut: list[tuple[int, int]], decode_tokens: int, decode_context_tokens: int
) -> None:
    prefill_tokens = sum(tokens for _, tokens in cut)
    work = StepWork(
        prefill_tokens=np.array([prefill_tokens]),
        decode_tokens=np.array([decode_tokens]),
        decode_context_tokens=np.array([decode_context_tokens]),
        slice_step=np.zeros(len(cut), dtype=np.int64),
        slice_start_token=np.array([start for start, _ in cut], dtype=np.int64),
        slice_tokens=np.array([tokens for _, tokens in cut], dtype=np.int64),
    )
    duration_ms = COST.step_ms(
        prefill_tokens=prefill_tokens,
        decode_tokens=decode_tokens,
        slices=cut,
        decode_context_tokens=decode_context_tokens,
    )
    assert COST.breakdown(work).total_ms()[0] == pytest.approx(duration_ms, rel=1e-12)


@given(slices, counts, counts)
def test_steps_that_follow_each_other_cost_what_each_costs_alone(
    cut: list[tuple[int, int]], decode_tokens: int, decode_context_tokens: int
) -> None:
    run: dict[str, Any] = {
        "slices": cut,
        "decode_tokens": decode_tokens,
        "decode_context_tokens": decode_context_tokens,
    }
    at_once = list(islice(COST.successive_ms(**run), 5))
    assert at_once == list(islice(successive_ms(COST, **run), 5))


def test_equal_models_are_one_key() -> None:
    model: CostModel = FittedCost(**COEFFICIENTS)
    assert model == COST
    assert len({model, COST, FittedCost(**COEFFICIENTS | {"fixed_ms": 7})}) == 2


def test_the_terms_name_their_columns() -> None:
    assert COST.terms == (
        Term(None, "fixed_ms", 6.0),
        Term("prefill_tokens", "prefill_ms_per_token", 0.02),
        Term("decode_tokens", "decode_ms_per_token", 0.04),
        Term("context_tokens", "context_ms_per_token", 0.0001),
    )


def test_the_formula_leaves_out_what_costs_nothing() -> None:
    assert COST.formula() == "step = 6 + 0.02·prefill + 0.04·decode ms + 100 ns·context, fitted"
    without = FittedCost(**COEFFICIENTS | {"prefill_ms_per_token": 0, "context_ms_per_token": 0})
    assert without.formula() == "step = 6 + 0.04·decode ms, fitted"


def test_plain_data_comes_back_as_the_same_model() -> None:
    assert FittedCost.from_dict(COST.to_dict()) == COST
    assert COST.to_dict() == {"model": "fitted"} | COEFFICIENTS


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (COEFFICIENTS | {"slope": 1}, "cost: 'slope' is not a known key"),
        ({"fixed_ms": 6.0}, "cost: prefill_ms_per_token is missing"),
        ([], "cost: not an object"),
    ],
)
def test_data_of_another_shape_is_refused(data: Any, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}"):
        FittedCost.from_dict(data)


@pytest.mark.parametrize("field", COEFFICIENTS)
@pytest.mark.parametrize("value", [-1e-9, float("nan"), float("inf"), 1e7, "4", None, True])
def test_a_coefficient_out_of_range_is_refused(field: str, value: Any) -> None:
    shown = re.escape(repr(value))
    with pytest.raises(ValueError, match=rf"^{field}: {shown} is not a number from 0 to 1e\+06$"):
        FittedCost(**COEFFICIENTS | {field: value})


@pytest.mark.parametrize("free", ["prefill_ms_per_token", "decode_ms_per_token"])
def test_a_step_that_takes_no_time_is_refused(free: str) -> None:
    with pytest.raises(ValueError, match=r"^fixed_ms: 0 lets a step of one token take 0 ms"):
        FittedCost(**COEFFICIENTS | {"fixed_ms": 0, free: 0})
