"""Errors on shapes left out: found beside the fit's, weighted by points, the same bytes again."""

import json

import pytest

from s11.catalog import gpu_of_measured
from s11.validation.errors import ErrorRow
from s11.validation.leave_out import (
    LeaveOut,
    LeftOut,
    document_of,
    leave_out,
    leave_out_of,
    mean_pct,
)
from s11.validation.snapshot import snapshot, text_of

PLACE = {"file": "gemm.csv", "quantity": "latency_ms", "group": "all"}


def left(points, error_pct, **changes):
    return LeftOut(
        **{**PLACE, "gpu": "h100", "what": "every second shape", **changes},
        points=points,
        mean_abs_error_pct=error_pct,
    )


def error(**changes):
    row = {**PLACE, "gpu": "h100_sxm", "calibrated": True, "points": 4, **changes}
    return ErrorRow(
        **row,
        median_abs_error_pct=1.0,
        mean_abs_error_pct=1.0,
        p90_abs_error_pct=1.0,
        bias_pct=1.0,
    )


def test_the_mean_is_over_all_points():
    assert mean_pct([left(1, 8.0), left(3, 4.0)]) == 5.0
    assert mean_pct([]) is None


def test_an_error_finds_what_was_left_out_of_its_fit():
    found = LeaveOut(date="", rows=(left(4, 6.0), left(2, 9.0, gpu="l40s")))
    assert found.error_pct(error()) == 6.0
    assert found.error_pct(error(gpu="l40s")) == 9.0
    assert found.error_pct(error(group="fp8")) is None
    assert found.error_pct(error(gpu="a40")) is None


def test_it_comes_back_from_its_text():
    rows = (left(4, 6.123456), left(2, 9.0, gpu="l40s"))
    text = text_of(document_of(rows, date="2026-01-02"))
    again = leave_out_of(json.loads(text))
    assert again.date == "2026-01-02"
    assert [row.mean_abs_error_pct for row in again.rows] == [6.123, 9.0]
    assert text_of(document_of(again.rows, date="2026-01-02")) == text


def test_another_schema_is_refused():
    with pytest.raises(ValueError, match=r"schema_version: None \(allowed: 1\)"):
        leave_out_of({})


def test_what_ships_stands_beside_errors_of_the_same_rows():
    shipped: dict[tuple[str, str, str, str], list[LeftOut]] = {}
    for row in leave_out().rows:
        shipped.setdefault((row.file, row.gpu, row.quantity, row.group), []).append(row)
    places = {
        (row.file, gpu_of_measured(row.gpu), row.quantity, row.group): row
        for row in snapshot().rows
    }
    assert set(shipped) <= set(places)
    for place, rows in shipped.items():
        fit = places[place]
        assert fit.calibrated
        assert sum(row.points for row in rows) == fit.points
        # Not to have seen half of the shapes hardly helps; far worse would be no fit but a guess.
        unseen_pct = mean_pct(rows)
        assert unseen_pct is not None
        assert 0.9 * fit.mean_abs_error_pct <= unseen_pct <= 2 * fit.mean_abs_error_pct
