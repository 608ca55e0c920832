"""Percent errors by hand."""

import numpy as np
import pytest

from s11.validation.errors import Comparison, error_row


def compared(measured, predicted, **changes):
    return Comparison(
        file="gemm.csv",
        gpu="h100_sxm",
        quantity="latency_ms",
        group="all",
        measured=np.array(measured, dtype=np.float64),
        predicted=np.array(predicted, dtype=np.float64),
        **changes,
    )


def test_errors_by_hand():
    # +10%, -20%, +30%, 0%: absolute 0, 10, 20, 30; mean 15; signed mean (10 - 20 + 30) / 4 = 5.
    row = error_row(compared([10, 10, 100, 4], [11, 8, 130, 4]))
    assert row.points == 4
    assert row.mean_abs_error_pct == pytest.approx(15)
    assert row.bias_pct == pytest.approx(5)
    # The inverted CDF: the smallest value whose share reaches p. 2 of 4 reach 50%; 4 of 4, 90%.
    assert row.median_abs_error_pct == pytest.approx(10)
    assert row.p90_abs_error_pct == pytest.approx(30)


def test_p90_of_ten_is_the_ninth():
    off = [7, -1, 3, -9, 5, 2, -8, 4, 10, -6]
    row = error_row(compared([100] * 10, [100 + one for one in off]))
    assert row.p90_abs_error_pct == pytest.approx(9)
    assert row.median_abs_error_pct == pytest.approx(5)
    assert row.mean_abs_error_pct == pytest.approx(5.5)
    assert row.bias_pct == pytest.approx(0.7)


def test_one_point_is_its_own_every_figure():
    row = error_row(compared([2.0], [1.0]))
    assert row.median_abs_error_pct == row.mean_abs_error_pct == row.p90_abs_error_pct == 50
    assert row.bias_pct == -50


def test_what_is_right_has_no_error():
    row = error_row(compared([0.1, 7.0], [0.1, 7.0]))
    assert row.mean_abs_error_pct == row.bias_pct == 0


def test_too_much_is_above_zero_and_twice_is_100():
    assert error_row(compared([3.0, 5.0], [6.0, 10.0])).bias_pct == pytest.approx(100)


def test_a_row_is_plain_data_with_its_place():
    row = error_row(compared([1.0], [1.25], calibrated=False))
    assert row.to_dict() == {
        "file": "gemm.csv",
        "gpu": "h100_sxm",
        "quantity": "latency_ms",
        "group": "all",
        "calibrated": False,
        "points": 1,
        "median_abs_error_pct": 25.0,
        "mean_abs_error_pct": 25.0,
        "p90_abs_error_pct": 25.0,
        "bias_pct": 25.0,
    }
