"""`simulate`, and what all commands share. The others are in test_cli_commands.py."""

import json
import re
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from s11 import Experiment
from s11.cli import main
from tests.command_line import Command, printed


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys)


@pytest.fixture
def figures(run: Command) -> Callable[..., dict[str, Any]]:
    def figures(*arguments: str) -> dict[str, Any]:
        return dict(json.loads(run("simulate", "--json", *arguments)))

    return figures


Figures = Callable[..., dict[str, Any]]


def test_simulate_at_the_chapters_defaults(figures: Figures) -> None:
    data = figures()
    metrics = data["metrics"]
    assert metrics["longest_stall_ms"] == 23.632
    assert metrics["ttft_ms"] == 189.056
    assert metrics["steps_over_target"] == 0
    assert metrics["decode_tokens_per_s"] == pytest.approx(1450.77, abs=0.02)
    assert metrics["makespan_ms"] == 215.056
    assert metrics["itl_p50_ms"] == metrics["itl_p99_ms"] == 23.632
    assert len(data["steps"]) == 13
    assert data["steps"][0] == {
        "start_ms": 0,
        "duration_ms": 5.2,
        "prefill_tokens": 0,
        "decode_tokens": 24,
    }
    assert data["steps"][2]["prefill_tokens"] == 1024
    assert data["never_scheduled"] == []


def test_simulate_without_chunking(figures: Figures) -> None:
    data = figures("--no-chunking")
    metrics = data["metrics"]
    assert (metrics["longest_stall_ms"], metrics["ttft_ms"]) == (152.656, 152.656)
    assert metrics["steps_over_target"] == 1
    assert metrics["decode_tokens_per_s"] == pytest.approx(806.0, abs=0.05)
    assert len(data["steps"]) == 6
    assert data == figures("--policy", "whole_prompt")


def test_simulate_at_32768(figures: Figures) -> None:
    whole = figures("--prompt-tokens", "32768", "--no-chunking")["metrics"]["longest_stall_ms"]
    chunked = figures("--prompt-tokens", "32768")["metrics"]["longest_stall_ms"]
    assert (whole, chunked) == (595.024, 23.632)


def test_a_chunk_as_long_as_the_prompt_is_no_chunking_step_for_step(figures: Figures) -> None:
    one, other = figures("--chunk-tokens", "8192"), figures("--no-chunking")
    assert one["steps"] == other["steps"]
    assert one["metrics"] == other["metrics"]


def test_chunks_of_1000_leave_192_for_the_last(figures: Figures) -> None:
    steps = figures("--chunk-tokens", "1000")["steps"]
    assert [s["prefill_tokens"] for s in steps if s["prefill_tokens"]] == [1000] * 8 + [192]


TOO_LONG = ("--token-budget", "8192", "--prompt-tokens", "32768", "--no-chunking")


def test_a_prompt_that_never_runs_is_named(figures: Figures, run: Command) -> None:
    data = figures(*TOO_LONG)
    assert data["never_scheduled"] == ["long"]
    assert data["metrics"]["ttft_ms"] is None
    assert "never scheduled" in run("simulate", *TOO_LONG)


def test_without_json_the_figures_stand_beside_those_without_chunking(run: Command) -> None:
    rows = {
        line.split("  ")[1].strip(): re.findall(r"[\d,.]+", line.split("  ", 2)[2])
        for line in run("simulate").splitlines()
        if line.startswith("  ") and "  " in line.strip()
    }
    assert [float(v) for v in rows["longest stall"]] == [23.6, pytest.approx(152.656, abs=0.5)]
    assert [float(v) for v in rows["steps over 50 ms"]] == [0, 1]
    assert [int(v) for v in rows["steps"]] == [13, 6]


def test_in_a_pipe_the_sentence_is_one_line(run: Command) -> None:
    assert run("simulate").rstrip().splitlines()[-1].startswith("No stall over 50 ms.")


def test_options_reach_the_experiment(figures: Figures) -> None:
    given = (
        "--prompt-tokens 300 --streaming-users 2 --lead-in-steps 1 --tail-steps 4 "
        "--chunk-tokens 70 --token-budget 90 --max-seqs 8 --itl-target-ms 12.5 --policy chunked "
        "--cost linear --fixed-ms 1 --prefill-ms-per-token 0.5 --decode-ms-per-token 0.25"
    )
    expected = {
        "schema_version": 1,
        "workload": {
            "requests": [
                {"request_id": "long", "prompt_tokens": 300, "arrival_ms": 0, "output_tokens": 1}
            ],
            "streaming_users": 2,
            "lead_in_steps": 1,
            "tail_steps": 4,
            "user_context_tokens": 1024,
        },
        "policy": "chunked",
        "limits": {
            "token_budget": 90,
            "chunk_tokens": 70,
            "max_seqs": 8,
            "chunking": True,
            "mixed": False,
            "prefill_interval": 1,
            "block_size": 16,
            "kv_blocks": None,
            "prefix_caching": False,
            "reserve_full_prompt": False,
            "max_model_len": None,
            "align_first_chunk": False,
        },
        "cost": {
            "model": "linear",
            "fixed_ms": 1,
            "prefill_ms_per_token": 0.5,
            "decode_ms_per_token": 0.25,
        },
        "itl_target_ms": 12.5,
        "hand_over": {
            "kv_bytes_per_token": 131_072,
            "link_bytes_per_s": 50e9,
            "link_latency_ms": 1,
        },
    }
    assert figures(*given.split())["experiment"] == expected


def test_requests_take_the_place_of_the_long_prompt(figures: Figures) -> None:
    data = figures("--request", "5:10:3", "--request", "0.5:20", "--streaming-users", "0")
    assert data["experiment"]["workload"]["requests"] == [
        {"request_id": "1", "prompt_tokens": 20, "arrival_ms": 0.5, "output_tokens": 1},
        {"request_id": "0", "prompt_tokens": 10, "arrival_ms": 5, "output_tokens": 3},
    ]
    # 20 tokens from 0.5 ms: 4.36 ms; then at 5 ms 10 tokens, 4.18 ms; two decodes of 4.05 ms.
    assert [s["start_ms"] for s in data["steps"]] == [0.5, 5, 9.18, 13.23]


def test_a_file_is_where_the_options_start_from(figures: Figures, tmp_path: Path) -> None:
    given = ("--request", "0:100:5", "--request", "7:300", "--token-budget", "64")
    data = figures(*given, "--itl-target-ms", "9", "--decode-ms-per-token", "0.1")
    path = tmp_path / "experiment.json"
    path.write_text(json.dumps(data["experiment"]), encoding="utf-8")
    assert figures("--experiment", str(path)) == data
    changed = figures("--experiment", str(path), "--token-budget", "128")["experiment"]
    assert changed["limits"]["token_budget"] == 128
    assert changed["workload"] == data["experiment"]["workload"]


def test_what_json_prints_is_read_back_as_it_stands(run: Command, tmp_path: Path) -> None:
    printed = run("simulate", "--json", "--chunk-tokens", "77")
    path = tmp_path / "printed.json"
    path.write_text(printed, encoding="utf-8")
    try:
        assert run("simulate", "--json", "--experiment", str(path)) == printed
    except SystemExit:
        pytest.fail("refused")


def test_the_experiment_in_the_json_is_the_one_that_ran(figures: Figures) -> None:
    cost = figures("--prefill-ms-per-token", "0.0123456789012")["experiment"]["cost"]
    assert cost["prefill_ms_per_token"] == 0.0123456789012


@pytest.mark.parametrize(
    "command", [(), ("simulate",), ("sweep",), ("verify",), ("schedule",), ("bench",)]
)
def test_every_command_explains_itself(
    command: tuple[str, ...], capsys: pytest.CaptureFixture[str]
) -> None:
    with pytest.raises(SystemExit) as stopped:
        main([*command, "--help"])
    assert stopped.value.code == 0
    out, err = capsys.readouterr()
    assert out.startswith(f"usage: {' '.join(('s11', *command))}")
    assert err == ""


def test_as_a_program(root: Path) -> None:
    def s11(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-m", "s11", *arguments]
        return subprocess.run(command, cwd=root, capture_output=True, text=True, check=False)

    good, bad = s11("simulate", "--json"), s11("simulate", "--prompt-tokens", "0")
    assert (good.returncode, good.stderr) == (0, "")
    shown = Experiment.from_dict(json.loads(good.stdout)["experiment"])
    assert shown == Experiment()
    assert (bad.returncode, bad.stdout) == (2, "")
    assert len(bad.stderr.splitlines()) == 1


def test_every_knob_of_the_engine_reaches_it(figures: Figures) -> None:
    given = (
        "--policy sglang --mixed --prefill-interval 3 --block-size 8 --kv-blocks 4000 "
        "--prefix-caching --reserve-full-prompt --max-model-len 9000"
    )
    experiment = figures(*given.split())["experiment"]
    assert experiment["policy"] == "sglang"
    assert experiment["limits"] == {
        "token_budget": None,
        "chunk_tokens": 1024,
        "max_seqs": None,
        "chunking": True,
        "mixed": True,
        "prefill_interval": 3,
        "block_size": 8,
        "kv_blocks": 4000,
        "prefix_caching": True,
        "reserve_full_prompt": True,
        "max_model_len": 9000,
        "align_first_chunk": False,
    }
    way = "--kv-bytes-per-token 7 --link-bytes-per-s 2000 --link-latency-ms 3"
    experiment = figures(
        *f"--policy disaggregated --align-first-chunk --token-budget 900 {way}".split()
    )["experiment"]
    assert experiment["limits"]["align_first_chunk"] is True
    assert experiment["hand_over"] == {
        "kv_bytes_per_token": 7,
        "link_bytes_per_s": 2000,
        "link_latency_ms": 3,
    }


def test_an_engine_as_it_comes_and_one_knob_turned(figures: Figures) -> None:
    """vLLM on a small GPU leaves 2,024 tokens a step beside 24 decodes: five steps, or nine
    with a cap of 1,000."""
    for given, steps in (((), 5), (("--chunk-tokens", "1000"), 9)):
        data = figures("--engine", "vllm-2k", *given)
        assert data["experiment"]["policy"] == "vllm_v1"
        assert data["experiment"]["limits"]["token_budget"] == 2048
        assert sum(step["prefill_tokens"] > 0 for step in data["steps"]) == steps


def test_no_chunking_turns_off_whatever_engine_it_is(figures: Figures) -> None:
    for policy in ("vllm_v1", "sglang", "tensorrt_llm", "chunked", "slo_adaptive"):
        data = figures("--policy", policy, "--no-chunking")
        assert [s["prefill_tokens"] for s in data["steps"] if s["prefill_tokens"]] == [8192]


def test_preemptions_hits_and_refusals_are_in_the_json(figures: Figures) -> None:
    """kv-decode-evicts-latest, then a shared beginning of 40 tokens: two blocks of 16."""
    alone = ("--streaming-users", "0", "--policy", "vllm_v1")
    given = ("--kv-blocks", "10", "--token-budget", "200", *["--request", "0:80:3"] * 2)
    data = figures(*alone, *given)
    assert data["preempted"] == {"1": ["1"]}
    assert data["metrics"]["preemptions"] == 1
    data = figures(*alone, "--prefix-caching", *["--request", "0:50:1:system=40"] * 2)
    assert data["cached"] == {"0": {"1": 32}}
    assert data["metrics"]["cached_tokens"] == 32
    assert figures(*alone, "--max-model-len", "9", "--request", "0:10")["rejected"] == ["0"]


def test_figures_of_a_run_that_does_nothing_are_not_held_against_one_that_works(
    run: Command,
) -> None:
    """With chunking off 8,192 tokens never fit beside 24 decodes in a budget of 2,048."""
    out = run("simulate", "--engine", "vllm-2k")
    assert "chunking off: never runs" in out
    assert "4,615" not in out  # the decodes of a server that serves no prompt


def test_where_larger_chunks_only_gain_there_is_no_knee(run: Command) -> None:
    """SGLang's streams stand still for the whole prompt: fewer chunks, less fixed cost."""
    out = run("sweep", "--policy", "sglang")
    assert "No knee" in out
    assert "Knee:" not in out
    assert "Knee:" in run("sweep")
