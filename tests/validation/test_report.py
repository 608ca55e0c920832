"""`validate`: what is held against what, what is left out, and the command's contract."""

import csv
import json
from types import SimpleNamespace

import numpy as np
import pytest

from s11.validation import FILES, kernels, validate
from s11.validation import end_to_end as runs
from s11.validation.serving import ServingMeans
from tests.command_line import printed, refusal

GEMM = {"gpu": "h100_sxm", "dtype": "bfloat16", "m": 8, "n": 4096, "k": 4096, "latency_ms": 0.02}
PREFILL = {
    "gpu": "h100_sxm", "batch_size": 1, "prompt_tokens": 1024, "q_heads": 32, "kv_heads": 8,
    "latency_ms": 0.1,
}  # fmt: skip
DECODE = {
    "gpu": "h100_sxm", "batch_size": 4, "context_tokens": 1024, "q_heads": 32, "kv_heads": 8,
    "latency_ms": 0.05,
}  # fmt: skip
LAYER = {
    "gpu": "a100", "model": "any", "tp": 1, "tokens": 128, "gemm_ms_per_layer": 0.5,
    "elementwise_ms_per_layer": 0.05, "hidden": 4096, "ffn": 11008, "heads": 32, "kv_heads": 32,
    "gated": "True", "vocab": 32000,
}  # fmt: skip
REDUCE = {"gpu": "h100_sxm", "num_gpus": 2, "message_bytes": 65536, "latency_ms": 0.01}
SERVED = {
    "source": "vendor sweep", "backend": "vllm", "model": "Llama-3.1-8B", "precision": "bf16",
    "gpu": "h100_sxm", "tp": 1, "prompt_tokens": 100, "output_tokens": 11, "concurrency": 2,
    "mean_ttft_ms": 20.0, "mean_tpot_ms": 8.0,
}  # fmt: skip
ALL = {
    "gemm.csv": GEMM,
    "prefill_attention.csv": PREFILL,
    "decode_attention.csv": DECODE,
    "layer_linear.csv": LAYER,
    "allreduce.csv": REDUCE,
    "end_to_end.csv": SERVED,
}


@pytest.fixture
def folder(tmp_path):
    """Writes tables: `folder({"gemm.csv": [row, …]})` returns where they are."""

    def write(tables):
        for name, rows in tables.items():
            with (tmp_path / name).open("w", newline="") as file:
                writer = csv.DictWriter(file, fieldnames=rows[0])
                writer.writeheader()
                writer.writerows(rows)
        return tmp_path

    return write


def keys(validation):
    return [(row.file, row.gpu, row.quantity, row.group) for row in validation.rows]


def test_every_file_has_its_rows(folder):
    validation = validate(folder({name: [row] for name, row in ALL.items()}))
    assert keys(validation) == [
        ("gemm.csv", "h100_sxm", "latency_ms", "all"),
        ("prefill_attention.csv", "h100_sxm", "latency_ms", "all"),
        ("decode_attention.csv", "h100_sxm", "latency_ms", "0.05 ms and more"),
        ("decode_attention.csv", "h100_sxm", "latency_ms", "all"),
        ("layer_linear.csv", "a100", "gemm_ms_per_layer", "all"),
        ("layer_linear.csv", "a100", "elementwise_ms_per_layer", "all"),
        ("allreduce.csv", "h100_sxm", "latency_ms", "all"),
        ("end_to_end.csv", "h100_sxm", "mean_tpot_ms", "vllm"),
        ("end_to_end.csv", "h100_sxm", "latency_ms", "vllm"),
        ("end_to_end.csv", "h100_sxm", "mean_ttft_ms", "vllm"),
    ]
    assert validation.left_out == ()
    assert [row.points for row in validation.rows] == [1] * 10


@pytest.mark.parametrize("name", FILES)
def test_files_that_are_missing_are_skipped(folder, name):
    validation = validate(folder({name: [ALL[name]]}))
    assert {row.file for row in validation.rows} == {name}


def test_none_of_the_files_is_refused(tmp_path):
    (tmp_path / "other.csv").write_text("gpu\nh100\n")
    with pytest.raises(ValueError, match=r"has none of gemm\.csv, prefill_attention\.csv, "):
        validate(tmp_path)
    with pytest.raises(ValueError, match="is not a folder"):
        validate(tmp_path / "other.csv")


def test_errors_are_of_each_gpu_and_precision(folder, monkeypatch):
    # Stands in for the model: 1 µs a token.
    monkeypatch.setattr(kernels, "gemm_ms", lambda m, n, k, **_: 1e-3 * m)
    validation = validate(
        folder(
            {
                "gemm.csv": [
                    {**GEMM, "m": 110, "latency_ms": 0.1},  # +10%
                    {**GEMM, "m": 40, "latency_ms": 0.05, "dtype": "fp8"},  # -20%
                    {**GEMM, "m": 30, "latency_ms": 0.02, "gpu": "l40s"},  # +50%
                    {**GEMM, "m": 10, "latency_ms": 0.01, "dtype": "float16"},  # none
                ]
            }
        )
    )
    found = {(row.gpu, row.group): row for row in validation.rows}
    assert set(found) == {
        ("h100_sxm", "all"), ("h100_sxm", "bf16"), ("h100_sxm", "fp8"), ("l40s", "all"),
    }  # fmt: skip
    assert found["h100_sxm", "all"].mean_abs_error_pct == pytest.approx(10)
    assert found["h100_sxm", "all"].bias_pct == pytest.approx(-10 / 3)
    assert found["h100_sxm", "bf16"].points == 2
    assert found["h100_sxm", "bf16"].bias_pct == pytest.approx(5)
    assert found["h100_sxm", "fp8"].bias_pct == pytest.approx(-20)
    assert found["l40s", "all"].bias_pct == pytest.approx(50)


def test_short_decodes_are_told_apart(folder, monkeypatch):
    monkeypatch.setattr(kernels, "decode_attention_ms", lambda *asked, **_: np.full(3, 0.06))
    rows = [{**DECODE, "latency_ms": time_ms} for time_ms in (0.0499, 0.05, 0.06)]
    validation = validate(folder({"decode_attention.csv": rows}))
    assert {row.group: row.points for row in validation.rows} == {"0.05 ms and more": 2, "all": 3}
    long = next(row for row in validation.rows if row.group != "all")
    assert long.mean_abs_error_pct == pytest.approx(10)  # +20% and none
    alone = validate(folder({"decode_attention.csv": [{**DECODE, "latency_ms": 0.01}] * 3}))
    assert [row.group for row in alone.rows] == ["all"]


def test_one_gpu_has_nothing_to_reduce(folder):
    validation = validate(folder({"allreduce.csv": [REDUCE, {**REDUCE, "num_gpus": 1}]}))
    assert [row.points for row in validation.rows] == [1]


def test_gpus_and_dtypes_not_known_are_left_out_with_a_sentence(folder):
    validation = validate(
        folder(
            {
                "gemm.csv": [GEMM, {**GEMM, "dtype": "int4"}, {**GEMM, "dtype": "int4"}],
                "allreduce.csv": [REDUCE, {**REDUCE, "gpu": "tpu_v5"}],
            }
        )
    )
    assert validation.left_out == (
        "gemm.csv: 2 rows of 'int4', which is not modelled",
        "allreduce.csv: 1 row of 'tpu_v5', which is not in the catalog",
    )
    assert [row.points for row in validation.rows] == [1, 1]


def test_a_table_of_nothing_known_has_no_row_but_a_sentence(folder):
    validation = validate(folder({"gemm.csv": [{**GEMM, "dtype": "int4"}]}))
    assert validation.rows == ()
    assert len(validation.left_out) == 1


def test_a_table_without_rows_is_told(folder):
    where = folder({"gemm.csv": [GEMM], "end_to_end.csv": [SERVED]})
    for name in ("gemm.csv", "end_to_end.csv"):
        path = where / name
        path.write_text(path.read_text().splitlines()[0] + "\n")
    validation = validate(where)
    assert validation.rows == ()
    assert validation.left_out == ("gemm.csv: it has no rows", "end_to_end.csv: it has no rows")


@pytest.mark.parametrize(
    ("changes", "sentence"),
    [
        ({"backend": "ollama"}, "backend: 'ollama' is not modelled"),
        ({"precision": "int4"}, "precision: 'int4' is not modelled"),
        ({"tp": 3}, "tp: 3 is not modelled"),
        ({"model": "Mixtral-8x7B"}, "model: 'Mixtral-8x7B' is not known"),
        ({"gpu": "mi300x"}, "gpu: 'mi300x' is not in the catalog"),
        ({"model": "Llama-3.1-70B"}, "does not fit"),
        ({"output_tokens": 1}, "output_tokens: 1 has no TPOT"),
        ({"prompt_tokens": 10**7, "concurrency": 4096}, "is too much to run"),
    ],
)
def test_a_run_not_modelled_is_left_out_by_its_row(folder, changes, sentence):
    validation = validate(folder({"end_to_end.csv": [SERVED, {**SERVED, **changes}]}))
    (told,) = validation.left_out
    assert told.startswith("end_to_end.csv, row 3: ")
    assert sentence in told
    assert [row.points for row in validation.rows] == [1, 1, 1]


def test_engines_and_precisions_are_known_by_their_other_names(folder):
    alike = {**SERVED, "backend": "TensorRT-LLM", "precision": "BFloat16"}
    plain = {**SERVED, "backend": "trtllm", "precision": "bf16"}
    validation = validate(folder({"end_to_end.csv": [plain, alike]}))
    assert validation.left_out == ()
    assert validation.served[0].run == validation.served[1].run


@pytest.mark.parametrize(
    "changes", [{"heads": 30, "kv_heads": 7}, {"tp": 3}, {"hidden": 1_000_000}, {"heads": 8192}]
)
def test_a_layer_that_no_model_has_is_refused_with_its_sizes(folder, changes):
    with pytest.raises(ValueError, match=r"^layer_linear\.csv, rows of hidden ") as caught:
        validate(folder({"layer_linear.csv": [LAYER, {**LAYER, **changes}]}))
    assert "\n" not in str(caught.value)


def test_latency_is_ttft_and_the_decodes(folder, monkeypatch):
    means = {2: ServingMeans(ttft_ms=22.0, tpot_ms=8.0, kv_exhausted=False)}
    means[4] = ServingMeans(ttft_ms=20.0, tpot_ms=6.0, kv_exhausted=True)
    monkeypatch.setattr(runs, "serve", lambda run: means[run.concurrency])
    validation = validate(folder({"end_to_end.csv": [SERVED, {**SERVED, "concurrency": 4}]}))
    found = {(row.group, row.quantity): row.bias_pct for row in validation.rows}
    # Measured: 20 + 10 x 8 = 100 ms. Simulated: 22 + 80 = 102 and 20 + 60 = 80 ms.
    assert found == {
        ("vllm", "mean_tpot_ms"): pytest.approx(0),
        ("vllm", "latency_ms"): pytest.approx(2),
        ("vllm", "mean_ttft_ms"): pytest.approx(10),
        ("vllm, KV exhausted", "mean_tpot_ms"): pytest.approx(-25),
        ("vllm, KV exhausted", "latency_ms"): pytest.approx(-20),
        ("vllm, KV exhausted", "mean_ttft_ms"): pytest.approx(0),
    }
    assert [row.means.kv_exhausted for row in validation.served] == [False, True]


def test_engines_are_told_apart_and_progress_is_reported(folder, monkeypatch):
    same = SimpleNamespace(ttft_ms=1.0, tpot_ms=1.0, kv_exhausted=False)
    monkeypatch.setattr(runs, "serve", lambda run: same)
    seen = []
    rows = [{**SERVED, "backend": backend} for backend in ("vllm", "trtllm", "sglang", "none")]
    validation = validate(
        folder({"end_to_end.csv": rows}), progress=lambda done, of: seen.append((done, of))
    )
    assert {row.group for row in validation.rows} == {"vllm", "trtllm", "sglang"}
    assert seen == [(1, 4), (2, 4), (3, 4), (4, 4)]


def test_inherited_constants_are_marked(folder):
    rows = [PREFILL, {**PREFILL, "gpu": "b200_sxm"}]
    validation = validate(folder({"prefill_attention.csv": rows}))
    assert {row.gpu: row.calibrated for row in validation.rows} == {
        "h100_sxm": True,
        "b200_sxm": False,
    }


def test_command_prints_json_by_contract(folder, capsys):
    where = folder({"gemm.csv": [GEMM, {**GEMM, "gpu": "l40s"}, {**GEMM, "gpu": "abacus"}]})
    answer = json.loads(printed(capsys, "validate", str(where), "--json"))
    assert [(row["file"], row["gpu"]) for row in answer["rows"]] == [
        ("gemm.csv", "h100_sxm"),
        ("gemm.csv", "l40s"),
    ]
    for row in answer["rows"]:
        assert row["points"] == 1
        assert row["median_abs_error_pct"] == row["mean_abs_error_pct"] == row["p90_abs_error_pct"]
        assert abs(row["bias_pct"]) == row["mean_abs_error_pct"]
    assert answer["left_out"] == ["gemm.csv: 1 row of 'abacus', which is not in the catalog"]


def test_command_prints_a_table(folder, capsys):
    out = printed(capsys, "validate", str(folder({"gemm.csv": [GEMM, {**GEMM, "dtype": "int4"}]})))
    assert "gemm.csv" in out
    assert "h100_sxm" in out
    assert "Left out: gemm.csv: 1 row of 'int4'" in out


def test_command_says_that_nothing_could_be_compared(folder, capsys):
    where = str(folder({"gemm.csv": [{**GEMM, "gpu": "mi300x"}]}))
    out = printed(capsys, "validate", where, code=1)
    assert out.startswith("Nothing could be compared")
    assert "Left out: gemm.csv: 1 row of 'mi300x', which is not in the catalog" in out
    answer = json.loads(printed(capsys, "validate", where, "--json", code=1))
    assert answer["rows"] == []
    assert len(answer["left_out"]) == 1


def test_command_refuses_in_one_line(folder, tmp_path, capsys):
    assert "has none of" in refusal(capsys, "validate", str(tmp_path))
    assert "is not a folder" in refusal(capsys, "validate", str(tmp_path / "nowhere"))
    where = folder({"gemm.csv": [GEMM, {**GEMM, "latency_ms": "NaN"}]})
    for options in ((), ("--json",)):
        line = refusal(capsys, "validate", str(where), *options)
        assert "gemm.csv row 3, latency_ms: 'NaN' is not a number from" in line
