"""The command line's cost models: named machines, measured steps, coefficients."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from s11.catalog import MODELS
from s11.ui.machine import compact_config
from tests.command_line import Command, printed, refusal


@pytest.fixture
def figures(capsys: pytest.CaptureFixture[str]) -> Callable[..., dict[str, Any]]:
    return lambda *given: json.loads(printed(capsys, "simulate", "--json", *given))


@pytest.fixture
def cost_of(figures: Callable[..., dict[str, Any]]) -> Callable[..., dict[str, Any]]:
    return lambda *given: figures(*given)["experiment"]["cost"]


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    return lambda *given: refusal(capsys, "simulate", *given)


def test_a_machine_is_named_by_model_and_gpu(cost_of):
    assert cost_of(
        *["--model", "qwen3-32b", "--gpu", "h100", "--tensor-parallel", "2", "--precision", "fp8"]
    ) == {
        "model": "roofline",
        "llm": "qwen3-32b",
        "gpu": "h100",
        "tensor_parallel": 2,
        "precision": "fp8",
        "engine": "vllm",
    }


def test_what_is_not_named_has_a_default_and_the_host_is_the_engines(cost_of):
    described = cost_of("--cost", "roofline", "--engine", "sglang-8k")
    assert (described["llm"], described["gpu"]) == ("llama-3.1-8b", "h100")
    assert described["engine"] == "sglang"


def test_a_machines_kv_pool_is_told_and_not_kept(figures, tmp_path: Path) -> None:
    """What a run is told of its pool is derived anew on another machine."""
    on_h100 = figures("--model", "llama-3.1-8b")
    assert on_h100["experiment"]["limits"]["kv_blocks"] is None
    assert on_h100["kv_pool"]["kv_blocks"] > 20_000
    path = tmp_path / "run.json"
    path.write_text(json.dumps(on_h100))
    moved = figures("--experiment", str(path), "--gpu", "l4")
    assert moved["kv_pool"] == figures("--model", "llama-3.1-8b", "--gpu", "l4")["kv_pool"]
    given = figures("--model", "llama-3.1-8b", "--kv-blocks", "1000")["experiment"]["limits"]
    assert given["kv_blocks"] == 1000
    assert "kv_pool" not in figures()


def test_the_report_names_the_machine(capsys) -> None:
    told = " ".join(printed(capsys, "simulate", "--gpu", "a100-80", "--precision", "fp8").split())
    assert "Llama-3.1-8B on A100-80, fp8." in told
    assert "calibrated on measured kernels in bf16, not in fp8" in told
    assert "It multiplies in bf16" in told
    assert "KV cache holds" in told
    assert "KV" not in printed(capsys, "simulate")


def test_an_experiments_engine_stays_unless_another_is_chosen(cost_of, tmp_path: Path) -> None:
    path = tmp_path / "run.json"
    cost = {"model": "roofline", "llm": "phi-2", "gpu": "h100", "engine": "tensorrt-llm"}
    path.write_text(json.dumps({"schema_version": 1, "cost": cost}))
    assert cost_of("--experiment", str(path))["engine"] == "tensorrt-llm"
    assert cost_of("--experiment", str(path), "--gpu", "l4")["engine"] == "tensorrt-llm"
    assert cost_of("--experiment", str(path), "--policy", "vllm_v1")["engine"] == "vllm"


def test_a_model_of_ones_own(tmp_path: Path, cost_of):
    path = tmp_path / "config.json"
    path.write_text(compact_config(MODELS["phi-2"]).replace("51200", "51201"))
    llm = cost_of("--model-config", str(path), "--gpu", "l4")["llm"]
    assert isinstance(llm, dict)
    assert (llm["layers"], llm["hidden"], llm["vocab"]) == (32, 2560, 51_201)


def test_measured_steps(tmp_path: Path, cost_of):
    """Sixteen steps of 3 + 0.02 prefill + 0.1 decode + 0.001 context."""
    path = tmp_path / "steps.csv"
    lines = ["prefill_tokens,decode_tokens,context_tokens,duration_ms"]
    for prefill in (0, 256, 1024, 2048):
        for decode, context in ((1, 900), (4, 100), (16, 5000), (64, 700)):
            ms = 3 + 0.02 * prefill + 0.1 * decode + 0.001 * context
            lines.append(f"{prefill},{decode},{context},{ms}")
    path.write_text("\n".join(lines))
    described = cost_of("--measurements", str(path))
    assert described["model"] == "fitted"
    for name, value in (
        ("fixed_ms", 3),
        ("prefill_ms_per_token", 0.02),
        ("decode_ms_per_token", 0.1),
        ("context_ms_per_token", 0.001),
    ):
        assert described[name] == pytest.approx(value, rel=1e-6)


def test_fitted_coefficients_can_be_given(cost_of):
    described = cost_of(
        *["--cost", "fitted", "--fixed-ms", "1", "--prefill-ms-per-token", "0.5"],
        *["--decode-ms-per-token", "0.25", "--context-ms-per-token", "0.125"],
    )
    assert described["context_ms_per_token"] == 0.125


def test_an_experiments_machine_can_be_changed(tmp_path: Path, figures, cost_of):
    path = tmp_path / "run.json"
    path.write_text(json.dumps(figures("--model", "yi-34b", "--gpu", "h200")))
    described = cost_of("--experiment", str(path), "--tensor-parallel", "2")
    assert (described["llm"], described["gpu"], described["tensor_parallel"]) == (
        "yi-34b",
        "h200",
        2,
    )
    back = cost_of("--experiment", str(path), "--cost", "linear")
    assert back["model"] == "linear"
    assert back["fixed_ms"] == 4


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ("--model gpt-9", "model: 'gpt-9' is not one of llama-2-7b"),
        ("--gpu h1000", "gpu: 'h1000' is not one of a100-40"),
        ("--tensor-parallel 9", "tensor_parallel: 9 is not a whole number from 1 to 8"),
        ("--tensor-parallel 3", "tensor_parallel: 3 GPUs cannot share"),
        ("--precision int4", "precision: 'int4' is not one of bf16, fp8"),
        ("--model phi-2 --fixed-ms 3", "fixed_ms: does not go with the cost model roofline"),
        ("--cost linear --gpu l4", "gpu: does not go with the cost model linear"),
        ("--cost linear --context-ms-per-token 1", "context_ms_per_token: does not go with"),
        ("--cost fitted", "measurements: none given for the fitted cost model"),
        ("--model-config nowhere.json", "model_config: nowhere.json cannot be read"),
        ("--measurements nowhere.csv", "measurements: nowhere.csv cannot be read"),
        ("--model phi-2 --model-config x.json", "model: not allowed together with model_config"),
        ("--model llama-3.1-70b --gpu l4", "model: llama-3.1-70b (bf16) does not fit 1 × L4"),
        ("--user-context-tokens -1", "user_context_tokens: -1 is not a whole number"),
    ],
)
def test_what_does_not_go_together_is_refused(arguments: str, sentence: str, refused):
    assert sentence in refused(*arguments.split())


@pytest.mark.parametrize("option", ["--model-config", "--measurements", "--experiment"])
def test_a_device_is_no_file(refused: Command, option: str) -> None:
    assert "zero is not a file" in refused(option, "/dev/zero")


def test_files_that_hold_something_else_are_refused(tmp_path: Path, refused):
    large, binary, other = (tmp_path / name for name in ("large.json", "binary", "other.json"))
    large.write_text(" " * 70_000)
    binary.write_bytes(b"\xff\xfe\x00")
    other.write_text('{"model_type": "mixtral"}')
    assert "model_config: large.json is too large" in refused("--model-config", str(large))
    assert "model_config: binary is not a text in UTF-8" in refused("--model-config", str(binary))
    assert "dense decoder-only models only" in refused("--model-config", str(other))
    assert "measurements: the column prefill_tokens is missing" in refused(
        "--measurements", str(other)
    )
