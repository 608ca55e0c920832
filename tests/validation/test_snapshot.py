"""The validation as it ships: thinned evenly, rounded, the same bytes every time."""

import json

import numpy as np
import pytest

from s11.catalog import MODELS, Deployment
from s11.validation import Validation
from s11.validation.end_to_end import Served
from s11.validation.errors import Comparison, error_row
from s11.validation.serving import ServingMeans, ServingRun
from s11.validation.snapshot import (
    MOST_POINTS,
    chosen_places,
    document_of,
    snapshot,
    snapshot_of,
    text_of,
)


def compared(measured, predicted, **changes):
    place = {"file": "gemm.csv", "gpu": "h100_sxm", "quantity": "latency_ms", "group": "all"}
    return Comparison(
        **{**place, **changes}, measured=np.array(measured), predicted=np.array(predicted)
    )


def validated(*comparisons, served=()):
    return Validation(
        comparisons=comparisons,
        rows=tuple(map(error_row, comparisons)),
        left_out=("gemm.csv: 2 rows of 'int4', which is not modelled",),
        served=served,
    )


def test_a_snapshot_comes_back_from_its_text():
    made = document_of(validated(compared([3.0, 1.0], [2.99999, 1.23456])), date="2026-01-02")
    again = snapshot_of(json.loads(text_of(made)))
    assert again.date == "2026-01-02"
    (points,) = again.points
    # In order of the measured times, to four digits.
    assert points.measured.tolist() == [1.0, 3.0]
    assert points.predicted.tolist() == [1.235, 3.0]
    assert (points.total, points.labels) == (2, ())
    (row,) = again.rows
    assert row.mean_abs_error_pct == 11.73  # (23.456 + 0.000333) / 2
    assert again.left_out[0].startswith("gemm.csv: 2 rows")


def test_the_same_validation_and_date_give_the_same_bytes():
    values = np.random.default_rng(1).uniform(0.01, 10.0, (2, 500))
    texts = {text_of(document_of(validated(compared(*values)), date="2026-01-02")) for _ in "ab"}
    assert len(texts) == 1


def test_points_are_thinned_evenly_by_rank():
    measured = np.arange(1_000.0)[::-1]
    places = chosen_places(measured, 4)
    assert measured[places].tolist() == [0.0, 333.0, 666.0, 999.0]
    assert chosen_places(measured[:4], 4) == [3, 2, 1, 0]
    assert chosen_places(np.array([2.0, 1.0, 2.0])) == [1, 0, 2]


def test_a_run_is_told_with_its_point():
    def served(clients, tpot_ms):
        run = ServingRun(
            source="vendor sweep",
            backend="vllm",
            deployment=Deployment(model=MODELS["qwen3-32b"], gpu="h100", tensor_parallel=2),
            prompt_tokens=1_024,
            output_tokens=256,
            concurrency=clients,
        )
        means = ServingMeans(ttft_ms=1.0, tpot_ms=tpot_ms, kv_exhausted=False)
        return Served(run=run, gpu="h100_sxm", ttft_ms=1.0, tpot_ms=tpot_ms, means=means)

    place = {"file": "end_to_end.csv", "quantity": "mean_tpot_ms", "group": "vllm"}
    document = document_of(
        validated(
            compared([9.0, 5.0], [9.0, 5.0], **place), served=(served(8, 9.0), served(4, 5.0))
        ),
        date="2026-01-02",
    )
    assert document["points"][0]["labels"] == [
        "Qwen3-32B, TP 2, 1,024 → 256 tokens, 4 clients",
        "Qwen3-32B, TP 2, 1,024 → 256 tokens, 8 clients",
    ]


def test_another_schema_is_refused():
    with pytest.raises(ValueError, match=r"schema_version: 7 \(allowed: 1\)"):
        snapshot_of({"schema_version": 7})


def test_what_ships_is_small_whole_and_has_its_licences():
    shipped = snapshot()
    text = " ".join(shipped.sources)
    assert "Apache-2.0" in text
    assert "MIT" in text
    rows = {(row.file, row.gpu, row.quantity, row.group): row for row in shipped.rows}
    groups = {(p.file, p.gpu, p.quantity, p.group): p for p in shipped.points}
    assert set(rows) == set(groups)
    for place, points in groups.items():
        assert points.total == rows[place].points
        assert len(points.measured) == len(points.predicted) == min(MOST_POINTS, points.total)
        assert len(points.labels) in (0, len(points.measured))
        assert (np.diff(points.measured) >= 0).all()
        if points.total <= MOST_POINTS:  # all are there, so they give the errors back
            off = 100 * np.abs(points.predicted / points.measured - 1)
            assert rows[place].mean_abs_error_pct == pytest.approx(off.mean(), abs=0.1)
