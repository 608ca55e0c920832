"""The engines' own commands for what the page advises."""

import json
from dataclasses import replace

import pytest

from s11.catalog import MODELS, Deployment
from s11.cli import main
from s11.engine_commands import repository
from s11.figures.chunk_size_flags import (
    command,
    longest_sequence,
    longest_words,
    settings,
)

MACHINE = Deployment(model=MODELS["qwen3-32b"], gpu="h100", tensor_parallel=2)


def told(policy, machine=MACHINE, chunk=1024, *, mixed=True):
    chosen = settings(
        machine,
        policy=policy,
        chunk_tokens=chunk,
        prompt_tokens=4096,
        streaming_users=24,
        user_context_tokens=512,
        most_seats=256,
        mixed=mixed,
    )
    return command(chosen).split(" \\\n  ")


def test_vllms_budget_has_a_token_for_each_decode():
    assert told("vllm_v1") == [
        "vllm serve Qwen/Qwen3-32B",
        "--tensor-parallel-size 2",
        "--max-num-batched-tokens 1048",
        "--max-num-seqs 256",
    ]


@pytest.mark.parametrize(
    ("kv_tokens", "needed", "longest"),
    [
        (40_960, 4352, None),  # Qwen3-32B's longest fits
        (40_959, 4352, 39_936),  # 39 x 1,024
        (10_000, 4352, 9216),
        (4400, 4352, 4400),  # 4,096 would hold the prompt but not its answer
        (4399, 4352, 4384),
        (100, 4352, 96),
        (10, 4352, None),
    ],
)
def test_sequences_are_bounded_where_the_pool_is_smaller_than_the_longest(
    kv_tokens, needed, longest
):
    found = longest_sequence(MACHINE, kv_tokens=kv_tokens, needed_tokens=needed, block_size=16)
    assert found == longest


@pytest.mark.parametrize(
    ("policy", "option"),
    [
        ("vllm_v1", "--max-model-len 9216"),
        ("sglang", "--context-length 9216"),
        ("tensorrt_llm", "--max_seq_len 9216"),
        ("chunked", None),
    ],
)
def test_each_engine_is_told_its_longest_sequence(policy, option):
    chosen = settings(
        MACHINE, policy=policy, chunk_tokens=1024, prompt_tokens=4096, streaming_users=24,
        user_context_tokens=512, most_seats=256, mixed=True,
    )  # fmt: skip
    assert longest_words(chosen, kv_tokens=10_000, needed_tokens=4352) == ""
    bounded = replace(chosen, longest_tokens=9216)
    lines = [line.strip(" \\") for line in command(bounded).splitlines()]
    assert [line for line in lines if "9216" in line] == ([option] if option else [])
    why = longest_words(bounded, kv_tokens=10_000, needed_tokens=4352)
    assert bool(why) == bool(option)
    assert ("does not start" in why) == (policy == "vllm_v1")
    assert ("more than fits" in longest_words(bounded, kv_tokens=10_000, needed_tokens=9217)) == (
        option is not None
    )


def test_seats_follow_a_small_budget_down():
    """vLLM refuses a budget below its seats."""
    assert told("vllm_v1", chunk=64)[2:] == ["--max-num-batched-tokens 88", "--max-num-seqs 88"]


def test_sglangs_size_counts_the_decodes():
    assert told("sglang") == [
        "python -m sglang.launch_server --model-path Qwen/Qwen3-32B",
        "--tp-size 2",
        "--chunked-prefill-size 1024",
        "--max-running-requests 256",
        "--enable-mixed-chunk",
    ]
    assert "--enable-mixed-chunk" not in told("sglang", mixed=False)


def test_tensorrt_llm_must_be_told_to_chunk():
    lines = told("tensorrt_llm")
    assert lines[:4] == [
        "trtllm-serve Qwen/Qwen3-32B",
        "--tp_size 2",
        "--max_num_tokens 1048",
        "--max_batch_size 256",
    ]
    assert lines[4].endswith("tuned.yml\n# tuned.yml:\n# enable_chunked_prefill: true")


def test_the_chapters_runs_here(capsys):
    assert told("chunked")[0] == "python -m s11 simulate --cost roofline"
    assert told("chunked")[-3:] == [
        "--prompt-tokens 4096 --streaming-users 24",
        "--user-context-tokens 512",
        "--chunk-tokens 1024",
    ]
    words = " ".join(told("chunked")).split()
    assert main([*words[words.index("simulate") :], "--json"]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert printed["experiment"]["limits"]["chunk_tokens"] == 1024
    assert printed["experiment"]["cost"]["llm"] == "qwen3-32b"


@pytest.mark.parametrize("policy", ["vllm_v1", "sglang"])
def test_fp8_is_asked_for(policy):
    assert told(policy, replace(MACHINE, precision="fp8"))[-1] == "--quantization fp8"


def test_a_model_of_ones_own_has_no_repository():
    own = replace(MACHINE, model=replace(MODELS["qwen3-32b"], name="mine"))
    assert repository(own) == "MODEL"
    assert "--model-config config.json" in told("chunked", own)
