import re
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from s11.costs.fitted import FittedCost
from s11.costs.least_squares import fit
from s11.costs.measurements import Measurements

TRUE = FittedCost(
    fixed_ms=6.0, prefill_ms_per_token=0.02, decode_ms_per_token=0.04, context_ms_per_token=3e-5
)


def measurements(
    prefill: NDArray[np.int64],
    decode: NDArray[np.int64],
    context: NDArray[np.int64],
    duration_ms: NDArray[np.floating],
) -> Measurements:
    return Measurements(
        file_row=np.arange(len(prefill)) + 2,
        prefill_tokens=prefill.copy(),
        decode_tokens=decode.copy(),
        context_tokens=context.copy(),
        duration_ms=np.asarray(duration_ms, dtype=np.float64).copy(),
    )


def steps(
    rows: int = 120, *, noise: float = 0.0, seed: int = 0, cost: FittedCost = TRUE
) -> Measurements:
    """Steps of random size that cost what `cost` says, times a random factor near 1."""
    draw = np.random.default_rng(seed)
    prefill = draw.choice([0, 128, 256, 512, 1024, 2048], rows)
    decode = draw.integers(1, 129, rows)
    context = (decode * draw.uniform(200, 4000, rows)).astype(np.int64)
    coefficients = np.array([term.ms for term in cost.terms])
    exact_ms = np.column_stack([np.ones(rows), prefill, decode, context]) @ coefficients
    factor = 1.0 + noise * draw.standard_normal(rows)
    return measurements(prefill, decode, context, exact_ms * factor)


def taken(table: Measurements, rows: NDArray[np.int64]) -> Measurements:
    return measurements(
        table.prefill_tokens[rows],
        table.decode_tokens[rows],
        table.context_tokens[rows],
        table.duration_ms[rows],
    )


def columns(table: Measurements) -> NDArray[np.float64]:  # (rows, 4)
    tokens = [table.prefill_tokens, table.decode_tokens, table.context_tokens]
    return np.column_stack([np.ones(len(table)), *tokens])


def relative(table: Measurements) -> NDArray[np.float64]:  # (rows, 4)
    return columns(table) / table.duration_ms[:, None]


def coefficients(cost: FittedCost) -> NDArray[np.float64]:  # (4,)
    return np.array([term.ms for term in cost.terms])


@pytest.mark.parametrize("rows", [12, 120])
def test_steps_that_keep_to_the_model_give_its_coefficients_back(rows: int) -> None:
    found = fit(steps(rows))
    assert coefficients(found.cost) == pytest.approx(coefficients(TRUE), rel=1e-9)
    assert found.residuals_ms == pytest.approx(0, abs=1e-9)
    assert found.mean_abs_error_pct == pytest.approx(0, abs=1e-9)
    assert found.leave_out_error_pct == pytest.approx(0, abs=1e-9)
    assert (found.rows, found.warnings) == (rows, ())


def test_noise_of_three_percent_shows_as_such_and_moves_the_coefficients_little() -> None:
    found = fit(steps(2000, noise=0.03))
    assert coefficients(found.cost) == pytest.approx(coefficients(TRUE), rel=0.05)
    # of a normal distribution: mean |x| = σ·sqrt(2/π), median 0.674σ, 90% within 1.645σ
    assert found.mean_abs_error_pct == pytest.approx(3 * 0.798, rel=0.1)
    assert found.median_abs_error_pct == pytest.approx(3 * 0.674, rel=0.1)
    assert found.p90_abs_error_pct == pytest.approx(3 * 1.645, rel=0.1)
    assert found.leave_out_error_pct >= found.mean_abs_error_pct


def test_errors_are_those_of_the_predicted_durations() -> None:
    table = steps(50, noise=0.1)
    found = fit(table)
    predicted_ms = columns(table) @ coefficients(found.cost)
    assert found.predicted_ms == pytest.approx(predicted_ms, rel=1e-12)
    assert found.residuals_ms == pytest.approx(table.duration_ms - predicted_ms, rel=1e-9, abs=1e-9)
    error_pct = np.sort(100 * np.abs(predicted_ms / table.duration_ms - 1))
    assert found.mean_abs_error_pct == pytest.approx(sum(error_pct) / 50)
    assert found.median_abs_error_pct == pytest.approx(error_pct[24])  # the 25th of 50
    assert found.p90_abs_error_pct == pytest.approx(error_pct[44])  # the 45th of 50


@pytest.mark.parametrize("seed", range(5))
def test_inside_the_bounds_it_is_ordinary_least_squares_of_relative_errors(seed: int) -> None:
    table = steps(60, noise=0.05, seed=seed)
    free, *_ = np.linalg.lstsq(relative(table), np.ones(60), rcond=None)
    assert (free > 0).all()  # otherwise the bounds would matter
    assert coefficients(fit(table).cost) == pytest.approx(free, rel=1e-8)


@pytest.mark.parametrize("seed", range(5))
def test_at_a_bound_no_allowed_change_makes_it_better(seed: int) -> None:
    table = steps(60, noise=0.02, seed=seed)
    # 3e-5 ms a context token less is none at all; 1.2e-5 ms more off, and the slope is negative
    table = replace(table, duration_ms=table.duration_ms + 5 - 4.2e-5 * table.context_tokens)
    assert (table.duration_ms > 1).all()
    free, *_ = np.linalg.lstsq(relative(table), np.ones(60), rcond=None)
    assert free[3] < 0
    found = fit(table)
    solution = coefficients(found.cost)
    assert solution[3] == 0
    # Karush, Kuhn, Tucker: the slope is 0 along what is used, and not downward along the rest.
    scaled = relative(table)
    length = np.sqrt((scaled**2).sum(axis=0))
    slope = (scaled / length).T @ (scaled @ solution - 1)
    assert slope[solution > 0] == pytest.approx(0, abs=1e-9)
    assert slope[3] > 0
    assert "context_ms_per_token came out at 0: the steps do not take longer for it." in (
        found.warnings
    )


def test_with_few_settings_each_is_left_out_once() -> None:
    table = steps(12, noise=0.05, seed=3)
    kept = np.array([0, 1, 2, 3, 4, 5, 6, 7, 8, 0, 1, 2])  # nine settings, three of them twice
    table = taken(table, kept)
    errors = []
    for setting in range(9):
        out = kept == setting
        free, *_ = np.linalg.lstsq(relative(table)[~out], np.ones(12 - out.sum()), rcond=None)
        assert (free > 0).all()
        errors += list(np.abs(relative(table)[out] @ free - 1))
    found = fit(table)
    assert (found.folds, found.settings, found.rows) == (9, 9, 12)
    assert found.leave_out_error_pct == pytest.approx(100 * sum(errors) / 12, rel=1e-8)


def test_measuring_a_setting_again_does_not_leak_it_into_the_fit() -> None:
    table = steps(40, noise=0.3, seed=4)
    four = np.tile(np.arange(40), 4)
    again = taken(table, four)
    assert fit(again).leave_out_error_pct == pytest.approx(fit(table).leave_out_error_pct)
    assert fit(again).settings == fit(table).settings


def test_no_line_of_a_grid_is_left_out_as_a_whole() -> None:
    chunk, decode = (side.ravel() for side in np.meshgrid(np.arange(10), np.arange(10)))
    prefill, decodes = 256 * chunk, 8 * (decode + 1)
    context = decodes * (500 + 300 * ((chunk + decode) % 10))
    table = measurements(prefill, decodes, context, np.ones(100))
    # The steps of one line take three times as long. Were that line left out as a whole, the
    # other rows could tell nothing of it, and it would be missed by more.
    exact_ms = columns(table) @ coefficients(TRUE)
    for line in (prefill == 256 * 9, decodes == 8 * 10):
        found = fit(replace(table, duration_ms=np.where(line, 3 * exact_ms, exact_ms)))
        assert found.leave_out_error_pct < 1.08 * found.mean_abs_error_pct


def test_the_order_of_the_rows_changes_nothing() -> None:
    table = steps(60, noise=0.1, seed=5)
    order = np.random.default_rng(6).permutation(60)
    other = taken(table, order)
    one, two = fit(table), fit(other)
    assert coefficients(two.cost) == pytest.approx(coefficients(one.cost), rel=1e-9)
    assert two.leave_out_error_pct == pytest.approx(one.leave_out_error_pct)


def test_a_row_far_from_all_others_is_named() -> None:
    table = steps(60, noise=0.01, seed=7)
    duration_ms = table.duration_ms.copy()
    duration_ms[17] *= 10
    found = fit(replace(table, duration_ms=duration_ms))
    assert found.worst[0].file_row == 19
    assert found.worst[0].duration_ms == duration_ms[17]
    assert found.worst[0].error_pct == pytest.approx(-90, abs=3)  # a tenth of what was measured
    assert [row.error_pct for row in found.worst] == sorted(
        (row.error_pct for row in found.worst), key=abs, reverse=True
    )
    assert [warning[:11] for warning in found.warnings] == ["Row 19 took"]


def test_a_column_of_zeros_costs_nothing_and_says_so() -> None:
    table = steps(60, cost=replace(TRUE, context_ms_per_token=0.0))
    found = fit(replace(table, context_tokens=np.zeros(60, dtype=np.int64)))
    assert coefficients(found.cost) == pytest.approx([6.0, 0.02, 0.04, 0.0], rel=1e-9)
    assert found.warnings == (
        "context_tokens is 0 in every row, so in this model it costs nothing.",
    )


def test_columns_that_nearly_move_together_are_named() -> None:
    table = steps(60)
    share = np.random.default_rng(8).uniform(1000, 1150, 60)
    context = (table.decode_tokens * share).astype(np.int64)
    exact_ms = np.column_stack(
        [np.ones(60), table.prefill_tokens, table.decode_tokens, context]
    ) @ coefficients(TRUE)
    (warning,) = fit(replace(table, context_tokens=context, duration_ms=exact_ms)).warnings
    assert warning.startswith("decode_tokens and context_tokens: they nearly move together")


def test_sizes_that_are_nearly_one_are_named() -> None:
    table = steps(60)
    prefill = np.where(table.prefill_tokens, 2048 - table.decode_tokens, 0)
    exact_ms = np.column_stack(
        [np.ones(60), prefill, table.decode_tokens, table.context_tokens]
    ) @ coefficients(TRUE)
    found = fit(replace(table, prefill_tokens=prefill, duration_ms=exact_ms))
    assert coefficients(found.cost) == pytest.approx(coefficients(TRUE), rel=1e-9)
    least, most = prefill[prefill > 0].min(), prefill.max()
    assert found.warnings == (
        f"prefill_tokens is 0 or from {least:,} to {most:,} in every row; what other sizes cost "
        "is a guess.",
    )


ONES = np.ones(60, dtype=np.int64)
PLAIN = steps(60)


@pytest.mark.parametrize(
    ("table", "message"),
    [
        (steps(11), "measurements: 11 rows cannot settle 4 terms (allowed: 12 or more, 3 a term)"),
        (
            replace(PLAIN, prefill_tokens=np.where(PLAIN.prefill_tokens, 512, 0)),
            "prefill_tokens: 512 is the only value beside 0, so what one more token costs cannot",
        ),
        (replace(PLAIN, prefill_tokens=512 * ONES), "prefill_tokens: 512 is the only value beside"),
        (replace(PLAIN, decode_tokens=24 * ONES), "decode_tokens: 24 is the only value beside 0"),
        (
            replace(PLAIN, context_tokens=4096 * ONES),
            "context_tokens: 4,096 is the only value beside 0",
        ),
        (
            replace(PLAIN, duration_ms=np.full(60, 5.0)),
            "duration_ms: 5 in every row, so nothing can be told",
        ),
        (
            replace(PLAIN, context_tokens=1000 * PLAIN.decode_tokens),
            "decode_tokens and context_tokens: they move together in these rows",
        ),
        (
            replace(PLAIN, context_tokens=10 * PLAIN.decode_tokens + PLAIN.prefill_tokens),
            "prefill_tokens, decode_tokens and context_tokens: they move together in these rows",
        ),
        (  # a token budget that is always full
            replace(PLAIN, decode_tokens=4096 - PLAIN.prefill_tokens),
            "prefill_tokens and decode_tokens: together they stay the same in these rows",
        ),
        (
            replace(PLAIN, decode_tokens=np.where(np.arange(60) % 2, 20_000, 20_001)),
            "decode_tokens: it stays the same in these rows, as the fixed time does, so what each",
        ),
        (
            measurements(
                np.tile(PLAIN.prefill_tokens[:7], 3),
                np.tile(PLAIN.decode_tokens[:7], 3),
                np.tile(PLAIN.context_tokens[:7], 3),
                PLAIN.duration_ms[:21],
            ),
            "measurements: 7 different settings cannot settle 4 terms (allowed: 8 or more",
        ),
        (  # only decodes were measured, and none of them has a fixed part
            replace(
                PLAIN,
                prefill_tokens=0 * ONES,
                duration_ms=0.04 * PLAIN.decode_tokens + 3e-5 * PLAIN.context_tokens,
            ),
            "measurements: no cost model fits them, for fixed_ms: ",
        ),
    ],
)
def test_what_cannot_be_told_is_refused_with_the_reason(table: Measurements, message: str) -> None:
    with pytest.raises(ValueError, match=f"^{re.escape(message)}") as caught:
        fit(table)
    assert "\n" not in str(caught.value)


extreme_rows = st.lists(
    st.tuples(
        st.sampled_from([0, 1, 512, 513, 16_777_216]) | st.integers(0, 16_777_216),
        st.sampled_from([0, 1, 24, 16_777_216]) | st.integers(1, 4096),
        st.sampled_from([0, 1, 4096, 10**12]) | st.integers(0, 10**12),
        st.sampled_from([1e-3, 5.0, 1e6]) | st.floats(1e-3, 1e6),
    ),
    min_size=1,
    max_size=40,
)


@given(extreme_rows)
def test_any_table_is_fitted_or_refused(rows: list[tuple[int, int, int, float]]) -> None:
    prefill, decode, context, duration_ms = zip(*rows, strict=True)
    table = measurements(
        np.array(prefill, dtype=np.int64),
        np.array(decode, dtype=np.int64),
        np.array(context, dtype=np.int64),
        np.array(duration_ms),
    )
    try:
        found = fit(table)
    except ValueError as error:
        reason = str(error)
    else:
        reason = ""
        assert (coefficients(found.cost) >= 0).all()
        assert np.isfinite(found.leave_out_error_pct)
        assert found.residuals_ms == pytest.approx(table.duration_ms - found.predicted_ms)
    assert len(reason.splitlines()) <= 1
