"""The trust page's tables and sentences: every number there, every number with its source."""

import pytest

from s11.catalog import GPUS, MODELS
from s11.costs.host import HOSTS
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
    basis_told,
    calibration,
    gap_told,
    hosts_told,
    modelled,
    overhead_told,
    sarathi_told,
    serving_told,
)
from s11.validation.leave_out import LeaveOut, LeftOut, leave_out
from s11.validation.published import ChunkOverhead, Gap, Published
from s11.validation.snapshot import snapshot
from tests.figures.test_trust import PRODUCTS, RUNS

PLACE = {"file": "gemm.csv", "gpu": "a100-80", "quantity": "latency_ms", "group": "all"}
RUN = {"file": "end_to_end.csv", "gpu": "h100", "quantity": "mean_tpot_ms", "group": "vllm"}
UNSEEN = LeaveOut(
    date="2026-01-02",
    rows=(
        LeftOut(**PLACE, what="every second shape", points=2, mean_abs_error_pct=14.0),
        LeftOut(**RUN, what="the runs on 2 GPUs", points=1, mean_abs_error_pct=8.0),
        LeftOut(**RUN, what="the runs on 4 GPUs", points=3, mean_abs_error_pct=4.0),
    ),
)


def rows_of(columns):
    return list(zip(*columns.values(), strict=True))


def test_every_error_row_is_in_the_table():
    columns = error_columns(snapshot(), leave_out())
    assert len(columns["file"]) == len(snapshot().rows)
    assert "" not in columns["GPU"]
    assert rows_of(error_columns(PRODUCTS, UNSEEN))[0] == (
        "gemm.csv", "Dense products", "A100 80 GB SXM", "all", 2, 5.0, 12.5, 20.0, -7.5, 14.0,
        "fitted on this GPU",
    )  # fmt: skip
    inherited = dict(zip(columns, rows_of(error_columns(PRODUCTS, UNSEEN))[1], strict=True))
    assert inherited["constants"] == "inherited"
    assert inherited["left out, mean (%)"] is None


def test_headline_has_a_row_a_quantity_and_a_column_a_gpu():
    assert headline_columns(PRODUCTS, UNSEEN) == {
        "error: fit / left out (points)": ["Dense products, mean"],
        "A100 80 GB SXM": ["12.5 / 14.0% (2)"],
        "B200 180 GB SXM": ["10.0% (1)"],
    }
    # Of whole runs the median, and of vLLM's alone.
    assert headline_columns(RUNS, LeaveOut(date="", rows=())) == {
        "error: fit / left out (points)": ["TPOT, vLLM runs, median"],
        "H100 80 GB SXM": ["0.0% (2)"],
    }
    # Left out was one GPU count, then the other: 1 run by 8%, 3 by 4%, so 5% of the mean.
    labels, cells = headline_columns(RUNS, UNSEEN).values()
    assert labels == ["TPOT, vLLM runs, mean", "TPOT, vLLM runs, median"]
    assert str(cells[0]).endswith(" / 5.0% (2)")
    assert len(headline_columns(snapshot(), leave_out())["error: fit / left out (points)"]) == 11


def test_basis_is_said_of_both_errors():
    told = basis_told(RUNS, UNSEEN)
    assert "the error **of the fit**" in told
    assert "misses the runs on 2 GPUs by 8.0% and the runs on 4 GPUs by 4.0%" in told
    assert "of 2026-01-02: the mean error on half of the shapes" in told


def test_the_hosts_two_constants_are_told_and_who_stands_in():
    told = hosts_told()
    for engine, name in (("vllm", "vLLM"), ("tensorrt-llm", "TensorRT-LLM")):
        host = HOSTS[engine]
        assert f"{name} {host.step_ms:.2g} + {host.sequence_ms:.2g} ms, fitted on" in told
    assert "SGLang's was not measured, TensorRT-LLM's stands in for it" in told


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
        Published(what="c", part="linear", published_ms=100, ours_ms=101),
    )
    alone = Published(what="alone", part="both", published_ms=12, ours_ms=12, worked_out=True)
    riding = Published(what="riding", part="both", published_ms=1.2, ours_ms=1.5, worked_out=True)
    columns = published_columns((*rows, alone, riding))
    assert columns["off (%)"] == [-4.0, 20.0, 1.0, 0.0, 25.0]
    assert columns["a check"] == [
        "yes", "no: fitted on it", "yes", *["no: worked out of rows above"] * 2,
    ]  # fmt: skip
    told = sarathi_told(rows, (alone, riding))
    assert "Of the paper's 3 figures, 1 set constants; of the other 2, the worst is off" in told
    assert "by **-4.0%** (a, linear)" in told
    # What the two sums' difference is off by is said, though it is no figure of its own.
    assert "piggybacked 1.50 ms (paper: 1.20 ms), which is off by **+25.0%**" in told
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
