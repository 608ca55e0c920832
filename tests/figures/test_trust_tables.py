"""The trust page's tables and sentences: every number there, every number with its source."""

import pytest

from s11.catalog import GPUS, MODELS
from s11.figures.trust_info import point_columns, trust_info
from s11.figures.trust_tables import (
    as_markdown,
    error_columns,
    gpu_columns,
    headline_columns,
    model_columns,
    overhead_columns,
    published_columns,
)
from s11.figures.trust_words import (
    NOT_MODELLED,
    calibration,
    gap_told,
    modelled,
    overhead_told,
    sarathi_told,
    serving_told,
)
from s11.validation.published import ChunkOverhead, Gap, Published
from s11.validation.snapshot import snapshot
from tests.figures.test_trust import PRODUCTS, RUNS


def rows_of(columns):
    return list(zip(*columns.values(), strict=True))


def test_every_error_row_is_in_the_table():
    columns = error_columns(snapshot())
    assert len(columns["file"]) == len(snapshot().rows)
    assert "" not in columns["GPU"]
    assert rows_of(error_columns(PRODUCTS))[0] == (
        "gemm.csv", "Dense products", "A100 80 GB SXM", "all", 2, 5.0, 12.5, 20.0, -7.5,
        "fitted on this GPU",
    )  # fmt: skip
    assert error_columns(PRODUCTS)["constants"][1] == "inherited"


def test_headline_has_a_row_a_quantity_and_a_column_a_gpu():
    assert headline_columns(PRODUCTS) == {
        "absolute error (points)": ["Dense products, mean"],
        "A100 80 GB SXM": ["12.5% (2)"],
        "B200 180 GB SXM": ["10.0% (1)"],
    }
    # Of whole runs the median, and of vLLM's alone.
    assert headline_columns(RUNS) == {
        "absolute error (points)": ["TPOT, vLLM runs, median"],
        "H100 80 GB SXM": ["0.0% (2)"],
    }
    assert len(headline_columns(snapshot())["absolute error (points)"]) == 10


def test_points_have_their_errors():
    assert rows_of(point_columns(trust_info(RUNS, "TPOT")))[2] == (
        "H100 80 GB SXM, TensorRT-LLM", "run 0", 9.0, 8.1, -10.0,
    )  # fmt: skip
    assert (
        point_columns(trust_info(PRODUCTS, "Dense products"))["what"]
        == ["one product of a layer"] * 3
    )


def test_catalog_has_every_gpu_and_model_with_addresses():
    gpus, models = gpu_columns(), model_columns()
    assert gpus["GPU"] == [gpu.title for gpu in GPUS.values()]
    assert models["model"] == [model.title for model in MODELS.values()]
    addresses = [
        address
        for columns in (gpus, models)
        for name, column in columns.items()
        if name.startswith("source")
        for address in column
    ]
    assert len(addresses) == 3 * len(GPUS) + len(MODELS)
    assert all(str(address).startswith("https://") for address in addresses)
    h100 = dict(zip(gpus, rows_of(gpus)[list(GPUS).index("h100")], strict=True))
    assert (h100["bf16 (TFLOP/s)"], h100["HBM (TB/s)"], h100["SMs"]) == (989, 3.35, 132)
    llama = dict(zip(models, rows_of(models)[list(MODELS).index("llama-2-7b")], strict=True))
    # 2 x 32 layers x 4,096 x 2 bytes = 512 KiB.
    assert llama["KV (KiB a token, bf16)"] == 512
    assert llama["weights (billion)"] == pytest.approx(6.74)


def test_inherited_constants_are_told():
    told = dict(zip(gpu_columns()["GPU"], gpu_columns()["constants"], strict=True))
    assert told["H100 80 GB SXM"] == "fitted"
    assert told["B200 180 GB SXM"] == "not calibrated: as H100 80 GB SXM"
    assert "B200 180 GB SXM from H100 80 GB SXM" in calibration()


def test_papers_figures_and_what_is_no_check():
    rows = (
        Published(what="a", part="linear", published_ms=100, ours_ms=96),
        Published(what="b", part="attention", published_ms=10, ours_ms=12, rests_on_it=True),
    )
    alone = Published(what="alone", part="both", published_ms=12, ours_ms=12)
    riding = Published(what="riding", part="both", published_ms=1.2, ours_ms=1.5)
    assert published_columns(rows)["off (%)"] == [-4.0, 20.0]
    assert published_columns(rows)["a check"] == ["yes", "no: fitted on it"]
    told = sarathi_told(rows, (alone, riding))
    assert "Of the 1 figures that no constant was set by, the worst is off by **-4.0%** (a" in told
    assert "**8.0×** cheaper, in the paper 10×" in told


def test_overheads_as_a_small_table():
    overheads = tuple(
        ChunkOverhead(prompt_tokens=prompt, chunk_tokens=chunk, whole_ms=100, chunked_ms=ms)
        for prompt, chunk, ms in ((4_096, 512, 120), (4_096, 2_048, 103), (8_192, 512, 124),
                                  (8_192, 2_048, 104))
    )  # fmt: skip
    assert as_markdown(overhead_columns(overheads)).splitlines() == [
        "| prompt (tokens) | chunks of 512 | chunks of 2,048 |",
        "| --- | --- | --- |",
        "| 4,096 | +20.0% | +3.0% |",
        "| 8,192 | +24.0% | +4.0% |",
    ]
    assert "of 512 at most **24.0%** (prompt of 8,192)" in overhead_told(overheads)


def test_gap_names_its_milliseconds():
    gap = Gap(
        decode_step_ms=40,
        whole_prefill_ms=900,
        gap_whole_ms=930,
        gap_chunk_ms=150,
        chunk_tokens=512,
    )
    told = gap_told(gap)
    assert "take 40 ms a step wait **930 ms** once, of which the prefill alone is 900 ms" in told
    assert "in chunks of 512, at most **150 ms**" in told


def test_limits_are_said():
    text = " ".join((*modelled(), *NOT_MODELLED))
    for word in ("Mixture of experts", "Pipeline", "Speculative", "LoRA", "quantised KV", "prefix",
                 "Host overhead", "once"):  # fmt: skip
        assert word in text
    assert "ten requests" in serving_told()
