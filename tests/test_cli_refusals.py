"""Bad options: exit code 2, one line that names field, value and range, and nothing printed."""

from functools import partial

import pytest

from tests.command_line import Command, refusal


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(refusal, capsys)


TOKENS = "from 1 to 16,777,216"
WHOLE_NUMBERS = {
    "--prompt-tokens": TOKENS,
    "--chunk-tokens": TOKENS,
    "--token-budget": TOKENS,
    "--max-seqs": TOKENS,
    "--streaming-users": "from 0 to 100,000",
    "--lead-in-steps": "from 0 to 10,000",
    "--tail-steps": "from 0 to 10,000",
}
NO_WHOLE_NUMBER = ["-1", "1.5", "nan", "inf", "1e400", "1e3", "9" * 10_000, "", " ", "ten", "0x10"]


@pytest.mark.parametrize("command", ["simulate", "sweep"])
@pytest.mark.parametrize(
    "value", NO_WHOLE_NUMBER, ids=lambda value: repr(value)[:12].replace(" ", "_")
)
@pytest.mark.parametrize("option", WHOLE_NUMBERS)
def test_no_whole_number(refused: Command, command: str, option: str, value: str) -> None:
    line = refused(command, f"{option}={value}")
    assert f"{option[2:].replace('-', '_')}: " in line
    assert value[:20] in line
    assert line.rstrip().endswith(f"is not a whole number {WHOLE_NUMBERS[option]}")


@pytest.mark.parametrize(
    ("option", "value", "allowed"),
    [(option, "0", allowed) for option, allowed in WHOLE_NUMBERS.items() if allowed == TOKENS]
    + [
        ("--prompt-tokens", "16777217", TOKENS),
        ("--streaming-users", "100001", "from 0 to 100,000"),
        ("--lead-in-steps", "10001", "from 0 to 10,000"),
        ("--tail-steps", "10001", "from 0 to 10,000"),
    ],
)
def test_a_whole_number_out_of_range(
    refused: Command, option: str, value: str, allowed: str
) -> None:
    field = option[2:].replace("-", "_")
    line = refused("simulate", option, value)
    assert line.rstrip().endswith(f"{field}: {value} is not a whole number {allowed}")


@pytest.mark.parametrize("value", ["-1", "nan", "inf", "-inf", "1e400", "1e7", "", "fast"])
@pytest.mark.parametrize(
    ("option", "allowed"),
    [
        ("--itl-target-ms", "above 0 to 1e+06"),
        ("--fixed-ms", "from 0 to 1e+06"),
        ("--prefill-ms-per-token", "from 0 to 1e+06"),
        ("--decode-ms-per-token", "from 0 to 1e+06"),
    ],
)
def test_no_number_in_range(refused: Command, option: str, allowed: str, value: str) -> None:
    line = refused("simulate", f"{option}={value}")
    assert f"{option[2:].replace('-', '_')}: " in line
    assert line.rstrip().endswith(f"is not a number {allowed}")


@pytest.mark.parametrize(
    ("arguments", "named"),
    [
        ("simulate --itl-target-ms 0", ("itl_target_ms: 0.0", "above 0 to 1e+06")),
        ("simulate --policy fifo", ("policy: 'fifo'", "chunked, whole_prompt")),
        ("simulate --policy=", ("policy: ''", "chunked, whole_prompt")),
        ("simulate --cost quadratic", ("cost: 'quadratic'", "linear")),
        ("verify --fault gremlin", ("fault: 'gremlin'", "chunk-relative-positions")),
        ("verify --tokens 0", ("tokens: 0", "from 1 to")),
        ("verify --tokens 1000000000", ("tokens: 1000000000", "from 1 to")),
        ("verify --chunk-tokens 0", ("chunk_tokens: 0", "from 1 to 16,777,216")),
        ("sweep --smallest 0", ("smallest: 0", "from 1 to 16,777,216")),
        ("simulate --policy vllm", ("policy: 'vllm'", "vllm_v1", "sglang")),
        ("simulate --engine vllm", ("engine: 'vllm'", "vllm-2k", "tensorrt-llm")),
        ("simulate --kv-blocks 0", ("kv_blocks: 0", "from 1 to 16,777,216")),
        ("simulate --block-size 65537", ("block_size: 65537", "from 1 to 65,536")),
        ("simulate --prefill-interval 0", ("prefill_interval: 0", "from 1 to 10,000")),
        ("simulate --max-model-len x", ("max_model_len: 'x'", "from 1 to 16,777,216")),
        ("simulate --link-bytes-per-s 1", ("link_bytes_per_s: 1.0", "1000 to 1e+15")),
        ("simulate --link-latency-ms -1", ("link_latency_ms: -1.0", "0 to 1e+06")),
        ("simulate --kv-bytes-per-token 0", ("kv_bytes_per_token: 0", "from 1 to")),
        ("simulate --policy disaggregated --kv-blocks 5", ("kv_blocks: 5", "allowed: none")),
        (
            "simulate --policy disaggregated --prefix-caching",
            ("prefix_caching: True", "allowed: none"),
        ),
        ("simulate --request 0:5:1:g", ("request: '0:5:1:g'", "GROUP=TOKENS")),
        ("simulate --request 0:5:1:g=6", ("shared_tokens: 6", "from 0 to 5")),
        ("sweep --csv --json", ("--csv", "--json")),
        ("simulate --request 0:5 --prompt-tokens 5", ("request", "prompt_tokens")),
        ("simulate --token-budget 23", ("token_budget: 23", "24 or more")),
        ("simulate --max-seqs 23", ("max_seqs: 23", "24 or more")),
        (
            "simulate --fixed-ms 0 --prefill-ms-per-token 0",
            ("fixed_ms: 0", "1e-06 ms a step or more"),
        ),
        ("simulate --request 5", ("request: '5'", "MS:PROMPT")),
        ("simulate --request 0:5:1:1", ("request: '0:5:1:1'", "MS:PROMPT")),
        ("simulate --request 0:1.5", ("request: '0:1.5'", "MS:PROMPT")),
        ("simulate --request 0:0", ("request: prompt_tokens: 0", "from 1 to 16,777,216")),
        ("simulate --request 0:1:0", ("request: output_tokens: 0", "from 1 to 16,777,216")),
        ("simulate --request nan:1", ("request: arrival_ms: nan", "from 0 to 1e+12")),
        ("simulate --request inf:1", ("request: arrival_ms: inf", "from 0 to 1e+12")),
        ("simulate --request 1e400:1", ("request: arrival_ms: inf", "from 0 to 1e+12")),
        ("simulate --request -1:1", ("request",)),
        ("simulate --request=-1:1", ("request: arrival_ms: -1.0", "from 0 to 1e+12")),
        ("frobnicate", ("'frobnicate'", "simulate")),
        ("simulate --frobnicate", ("--frobnicate",)),
        ("simulate --prompt 5", ("--prompt",)),
        ("simulate extra", ("extra",)),
        ("simulate --prompt-tokens", ("--prompt-tokens", "expected one argument")),
        ("schedule", ("FILE",)),
        ("schedule one two", ("two",)),
    ],
)
def test_a_refusal_names_what_is_wrong_and_what_is_allowed(
    refused: Command, arguments: str, named: tuple[str, ...]
) -> None:
    line = refused(*arguments.split())
    assert all(name in line for name in named)


def test_a_line_break_in_a_value_does_not_break_the_line(refused: Command) -> None:
    refused("simulate", "--policy", "a\nb\r\nc")
    refused("simulate", "--a\nb")
    refused("a\nb")
    refused("schedule", "no\nsuch\nfile")


def test_an_abbreviated_option_is_unknown(refused: Command) -> None:
    assert "--tok" in refused("verify", "--tok", "2", "--chunk", "2")


def test_a_sweep_of_whole_prompts_is_refused(capsys: pytest.CaptureFixture[str]) -> None:
    from s11.cli import main

    assert main(["sweep", "--no-chunking"]) == 2
    assert "policy: 'whole_prompt' has no chunk size to sweep" in capsys.readouterr().err
