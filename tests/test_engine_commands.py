"""The engines' launch commands: each knob as the engine's own flag, and what has none."""

from dataclasses import replace

import pytest

from s11.catalog import MODELS, Deployment
from s11.engine_commands import Launch, launch_command, remarks, without_flag
from s11.engine_knobs import ENGINES

MACHINE = Deployment(model=MODELS["qwen3-32b"], gpu="h100", tensor_parallel=2)
ALL = Launch(
    machine=MACHINE,
    token_budget=2048,
    chunk_tokens=512,
    max_seqs=128,
    mixed=True,
    prefix_caching=False,
)


def lines(engine: str, launch: Launch = ALL) -> list[str]:
    return launch_command(engine, launch).split(" \\\n  ")


def test_all_knobs_of_vllm() -> None:
    assert lines("vLLM") == [
        "vllm serve Qwen/Qwen3-32B",
        "--tensor-parallel-size 2",
        "--max-num-batched-tokens 2048",
        "--long-prefill-token-threshold 512",
        "--max-num-seqs 128",
        "--no-enable-prefix-caching",
    ]


def test_all_knobs_of_sglang() -> None:
    assert lines("SGLang") == [
        "python -m sglang.launch_server --model-path Qwen/Qwen3-32B",
        "--tp-size 2",
        "--max-prefill-tokens 2048",
        "--chunked-prefill-size 512",
        "--max-running-requests 128",
        "--enable-mixed-chunk",
        "--disable-radix-cache",
    ]


def test_all_knobs_of_tensorrt_llm() -> None:
    *first, last = lines("TensorRT-LLM")
    assert first == [
        "trtllm-serve Qwen/Qwen3-32B",
        "--tp_size 2",
        "--max_num_tokens 2048",
        "--max_batch_size 128",
    ]
    assert last.splitlines() == [
        "--extra_llm_api_options tuned.yml",
        "# tuned.yml:",
        "# enable_chunked_prefill: true",
        "# kv_cache_config:",
        "#   enable_block_reuse: false",
    ]


def test_all_knobs_of_llama_cpp_and_lmdeploy() -> None:
    assert lines("llama.cpp") == [
        "llama-server -m MODEL.gguf",
        "--split-mode row",
        "-b 2048",
        "-np 128",
        "--no-cache-prompt",
    ]
    assert lines("LMDeploy", replace(ALL, prefix_caching=True)) == [
        "lmdeploy serve api_server Qwen/Qwen3-32B",
        "--tp 2",
        "--num-tokens-per-iter 2048",
        "--max-prefill-iters 1024",
        "--max-prefill-token-num 512",
        "--max-batch-size 128",
        "--enable-prefix-caching",
    ]


@pytest.mark.parametrize("engine", ENGINES)
def test_what_is_left_alone_is_not_in_the_command(engine: str) -> None:
    told = launch_command(engine, Launch(machine=replace(MACHINE, tensor_parallel=1)))
    assert all(number not in told for number in ("2048", "512", "128"))
    assert "cach" not in told
    assert without_flag(engine, Launch(machine=MACHINE)) == ()


@pytest.mark.parametrize(
    ("engine", "line"),
    [
        ("vLLM", "--no-enable-chunked-prefill"),
        ("SGLang", "--chunked-prefill-size -1"),
        ("TensorRT-LLM", "--max_batch_size 128"),
    ],
)
def test_chunking_off(engine: str, line: str) -> None:
    off = lines(engine, replace(ALL, chunking=False, prefix_caching=None))
    assert line in off
    assert not any("512" in each or "chunked_prefill: true" in each for each in off)
    assert "--enable-mixed-chunk" not in off


@pytest.mark.parametrize(
    ("engine", "missing"),
    [
        ("vLLM", ()),
        ("SGLang", ()),
        ("TensorRT-LLM", ("chunk_tokens",)),
        ("llama.cpp", ("chunk_tokens",)),
        ("LMDeploy", ()),
    ],
)
def test_knobs_without_a_flag_are_named(engine: str, missing: tuple[str, ...]) -> None:
    assert without_flag(engine, ALL) == missing
    told = " ".join(remarks(engine, ALL))
    assert ("No flag for the chunk cap." in told) == bool(missing)
    off = without_flag(engine, replace(ALL, chunking=False))
    assert off == (("chunking",) if engine in ("llama.cpp", "LMDeploy") else ())


def test_remarks_say_what_a_flag_means_less() -> None:
    small = replace(ALL, token_budget=64)
    assert "refuses a budget of 64 below 128 seats" in " ".join(remarks("vLLM", small))
    assert remarks("vLLM", ALL) == ()
    still = " ".join(remarks("SGLang", replace(ALL, mixed=False)))
    assert "stand still" in still
    assert "stand still" not in " ".join(remarks("SGLang", ALL))
    assert "pieces of -ub" in " ".join(remarks("llama.cpp", ALL))
    assert "all prompts of a step together" in " ".join(remarks("LMDeploy", ALL))


def test_fp8_is_asked_for_where_there_is_a_flag() -> None:
    fp8 = replace(ALL, machine=replace(MACHINE, precision="fp8"))
    assert lines("vLLM", fp8)[-1] == "--quantization fp8"
    assert lines("LMDeploy", fp8)[-1] == "--model-format fp8"
    assert "(and an fp8 checkpoint of the model)" in launch_command("TensorRT-LLM", fp8)
    assert "GGUF file, with its precision in it" in " ".join(remarks("llama.cpp", fp8))
