"""The cost model against ../shared/measured: the limits that it was built to keep."""

import pytest

from s11.validation import validate
from s11.validation.snapshot import snapshot

STALE = "the constants have changed since: run scripts/validation_snapshot.py"


@pytest.fixture(scope="module")
def validation(shared_dir, lacking):
    folder = shared_dir / "measured"
    if not folder.is_dir():
        lacking("no ../shared/measured beside the repository, which holds this test's data")
    return validate(folder)


@pytest.fixture(scope="module")
def row_of(validation):
    def find(file, gpu, quantity="latency_ms", group="all"):
        place = (file, gpu, quantity, group)
        (row,) = (r for r in validation.rows if (r.file, r.gpu, r.quantity, r.group) == place)
        return row

    return find


def test_nothing_is_left_out(validation):
    assert validation.left_out == ()


@pytest.mark.parametrize(("gpu", "limit"), [("a100_sxm", 8), ("h100_sxm", 8), ("l40s", 12)])
def test_dense_products(row_of, gpu, limit):
    assert row_of("gemm.csv", gpu).mean_abs_error_pct <= limit


@pytest.mark.parametrize("gpu", ["a100", "a40", "h100"])
def test_a_layers_products(row_of, gpu):
    assert row_of("layer_linear.csv", gpu, "gemm_ms_per_layer").mean_abs_error_pct <= 8


@pytest.mark.parametrize("gpu", ["a100_sxm", "h100_sxm", "l40s"])
def test_prefill_attention(row_of, gpu):
    assert row_of("prefill_attention.csv", gpu).mean_abs_error_pct <= 9


@pytest.mark.parametrize("gpu", ["a100_sxm", "h100_sxm", "l40s"])
def test_decode_attention_of_a_twentieth_of_a_millisecond_and_more(row_of, gpu):
    assert row_of("decode_attention.csv", gpu, group="0.05 ms and more").mean_abs_error_pct <= 9


@pytest.mark.parametrize(
    ("quantity", "median", "p90"),
    [("mean_tpot_ms", 7, 15), ("latency_ms", 5, 12), ("mean_ttft_ms", 30, None)],
)
def test_vllm_runs_whose_kv_is_not_exhausted(row_of, quantity, median, p90):
    row = row_of("end_to_end.csv", "h100_sxm", quantity, "vllm")
    assert row.points >= 50
    assert row.median_abs_error_pct <= median
    assert p90 is None or row.p90_abs_error_pct <= p90


def test_tensorrt_llm_runs(row_of):
    row = row_of("end_to_end.csv", "h100_sxm", "mean_tpot_ms", "trtllm")
    assert row.median_abs_error_pct <= 12
    assert row.mean_abs_error_pct <= 12


def test_the_snapshot_that_ships_says_the_same(validation):
    shipped = {(r.file, r.gpu, r.quantity, r.group): r for r in snapshot().rows}
    assert set(shipped) == {(r.file, r.gpu, r.quantity, r.group) for r in validation.rows}, STALE
    for row in validation.rows:
        other = shipped[row.file, row.gpu, row.quantity, row.group]
        assert row.points == other.points
        for name in ("mean_abs_error_pct", "median_abs_error_pct", "p90_abs_error_pct", "bias_pct"):
            # Of four digits that ship; another NumPy may round the last of them otherwise.
            close = pytest.approx(getattr(row, name), rel=2e-3, abs=2e-3)
            assert getattr(other, name) == close, STALE
