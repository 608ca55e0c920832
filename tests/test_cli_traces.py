"""`simulate` with a trace or with drawn traffic, its JSON, and what it refuses."""

import gzip
import json
import math
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from s11 import Experiment, exports
from s11.arrivals import ClosedLoopArrivals, GammaArrivals, PoissonArrivals
from s11.lengths import FixedTokens, LognormalTokens
from s11.traces import SAMPLES, Trace, read_trace, sample_path
from s11.traffic import Traffic
from s11.traffic_options import source_sentence
from s11.traffic_presets import TRAFFIC_PRESETS
from tests.command_line import Command, printed, refusal

AZURE = str(sample_path("made-up-azure.csv"))
MOONCAKE = str(sample_path("made-up-mooncake.jsonl"))
FIXED = ("--traffic", "fixed", "--prompt-tokens", "100", "--output-tokens", "5", "--requests", "4")


@pytest.fixture
def simulated(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys, "simulate")


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(refusal, capsys, "simulate")


@pytest.mark.parametrize("name", SAMPLES)
def test_a_trace_prints_what_was_read_and_its_figures(simulated: Command, name: str) -> None:
    text = simulated("--trace", str(sample_path(name)))
    assert text.startswith(read_trace(sample_path(name), name=name).sentence())
    for told in ("TTFT", "ITL", "TPOT", "p50", "p90", "p99", "longest stall", "makespan"):
        assert told in text
    assert "throughput" in text


def test_figures_by_hand(simulated: Command, tmp_path: Path) -> None:
    """4 ms a step, nothing for tokens. A: 0–4 first token, then at 8 and 12. B arrives at 100:
    its 100-token prompt takes two chunks of 50, so its first token comes at 108.
    """
    path = tmp_path / "two.csv"
    path.write_text(
        "Timestamp,Request tokens,Response tokens\n0,50,3\n0.1,100,1\n0.2,9,0\n", encoding="utf-8"
    )
    flat = ("--prefill-ms-per-token", "0", "--decode-ms-per-token", "0", "--chunk-tokens", "50")
    text = simulated("--trace", str(path), *flat)
    cells = {
        line.split("  ")[1].strip(): line.split() for line in text.splitlines() if "  " in line
    }
    assert "2 requests of 3 rows read; 1 row without output dropped" in text
    assert cells["TTFT"] == ["TTFT", "4", "ms", "8", "ms", "8", "ms"]
    assert cells["ITL"] == ["ITL", *["4", "ms"] * 3]
    assert cells["longest stall"] == ["longest", "stall", "4", "ms"]
    assert cells["makespan"] == ["makespan", "108", "ms"]
    assert cells["finished"] == ["finished", "2"]
    data = json.loads(simulated("--trace", str(path), *flat, "--json"))
    assert data["metrics"]["makespan_ms"] == 108
    assert [step["prefill_tokens"] for step in data["steps"]] == [50, 0, 0, 50, 50]
    assert data["trace"]["zero_output_rows"] == 1


def test_nobody_streams_beside_a_trace_unless_asked_for(simulated: Command) -> None:
    workload = json.loads(simulated("--trace", AZURE, "--json"))["experiment"]["workload"]
    assert [workload[name] for name in ("streaming_users", "lead_in_steps", "tail_steps")] == [
        0
    ] * 3
    asked = ("--streaming-users", "3", "--lead-in-steps", "1")
    workload = json.loads(simulated("--trace", AZURE, *asked, "--json"))["experiment"]["workload"]
    assert (workload["streaming_users"], workload["lead_in_steps"]) == (3, 1)


def test_a_selection_is_told(simulated: Command) -> None:
    options = ("--first", "4", "--window-s", "2:10", "--time-scale", "0.5")
    data = json.loads(simulated("--trace", AZURE, *options, "--json"))
    trace = read_trace(
        Path(AZURE), name="made-up-azure.csv", first=4, window_s=(2, 10), time_scale=0.5
    )
    assert data["trace"] == trace.to_dict()
    assert data["trace"]["window_s"] == [2, 10]
    assert Experiment.from_dict(data["experiment"]).workload == trace.workload()


@pytest.mark.parametrize(
    ("text", "window_s"), [("3:", (3, math.inf)), (":3", (0, 3)), ("1:2.5", (1, 2.5))]
)
def test_a_window_may_be_open(simulated: Command, text: str, window_s: Any) -> None:
    data = json.loads(simulated("--trace", AZURE, "--window-s", text, "--json", "--no-steps"))
    trace = read_trace(Path(AZURE), name="made-up-azure.csv", window_s=window_s)
    assert data["trace"] == trace.to_dict()


def test_hash_ids_come_through_and_share(simulated: Command, tmp_path: Path) -> None:
    options = ("--prefix-caching", "--policy", "vllm_v1", "--max-seqs", "8")
    text = simulated("--trace", MOONCAKE, *options, "--json")
    data = json.loads(text)
    assert data["metrics"]["cached_tokens"] > 0
    path = tmp_path / "run.json"
    path.write_text(text, encoding="utf-8")
    again = json.loads(simulated("--experiment", str(path), "--json"))
    assert again["metrics"] == data["metrics"]
    assert again["experiment"] == data["experiment"]


def test_a_run_without_its_steps(simulated: Command) -> None:
    whole = json.loads(simulated("--trace", AZURE, "--json"))
    short = json.loads(simulated("--trace", AZURE, "--json", "--no-steps"))
    assert "steps" not in short
    assert "requests" not in short["experiment"]["workload"]
    del whole["steps"], whole["experiment"]["workload"]["requests"]
    assert short == whole


def test_an_engine_from_a_run_without_its_steps_takes_a_trace(
    simulated: Command, refused: Command, tmp_path: Path
) -> None:
    path = tmp_path / "run.json"
    engine = ("--max-seqs", "3", "--chunk-tokens", "100", "--json")
    path.write_text(simulated("--trace", AZURE, *engine, "--no-steps"), encoding="utf-8")
    assert "experiment: the file was written with --no-steps" in refused("--experiment", str(path))
    again = json.loads(simulated("--experiment", str(path), "--trace", AZURE, "--json"))
    assert again == json.loads(simulated("--trace", AZURE, *engine))


def test_json_is_written_in_pieces(simulated: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    """Four times the steps come in more pieces, not in longer ones."""
    lengths: list[int] = []
    pieces = exports.json_pieces

    def counted(*arguments: Any, **named: Any) -> Iterator[str]:
        for piece in pieces(*arguments, **named):
            lengths.append(len(piece))
            yield piece

    def longest(output_tokens: int) -> int:
        lengths.clear()
        options = ("--traffic", "fixed", "--clients", "1", "--requests", "1", "--json")
        text = simulated(*options, "--prompt-tokens", "1", "--output-tokens", str(output_tokens))
        assert len(text) > 50 * output_tokens
        return max(lengths)

    monkeypatch.setattr(exports, "json_pieces", counted)
    assert longest(40_000) < 1.2 * longest(10_000)


def test_traffic_of_a_preset(simulated: Command) -> None:
    options = ("--traffic", "arxiv", "--rate-per-s", "0.5", "--requests", "5", "--seed", "3")
    data = json.loads(simulated(*options, "--json"))
    traffic = TRAFFIC_PRESETS["arxiv"].traffic(
        request_count=5, arrivals=PoissonArrivals(rate_per_s=0.5), seed=3
    )
    assert Traffic.from_dict(data["traffic"]) == traffic
    assert Experiment.from_dict(data["experiment"]).workload == traffic.workload()
    assert simulated(*options).startswith(source_sentence(traffic))


@pytest.mark.parametrize(
    ("options", "traffic"),
    [
        (
            (*FIXED, "--rate-per-s", "2", "--burstiness", "0.5"),
            {"arrivals": GammaArrivals(rate_per_s=2, burstiness=0.5)},
        ),
        ((*FIXED, "--rate-per-s", "inf"), {"arrivals": PoissonArrivals(rate_per_s=math.inf)}),
        (
            (*FIXED, "--rate-per-s", "2", "--burstiness", "1"),
            {"arrivals": PoissonArrivals(rate_per_s=2)},
        ),
        (
            (*FIXED, "--clients", "2", "--think-ms", "5"),
            {"arrivals": ClosedLoopArrivals(clients=2, think_ms=5)},
        ),
        (
            (*FIXED, "--rate-per-s", "2", "--most-total-tokens", "200"),
            {"arrivals": PoissonArrivals(rate_per_s=2), "most_total_tokens": 200},
        ),
        (
            [
                *("--traffic", "lognormal", "--rate-per-s", "2", "--requests", "4"),
                *("--prompt-tokens-median", "50", "--prompt-tokens-p90", "90"),
                *("--output-tokens-median", "5.5", "--output-tokens-p90", "9"),
            ],
            {
                "arrivals": PoissonArrivals(rate_per_s=2),
                "prompt": LognormalTokens(median=50, p90=90),
                "output": LognormalTokens(median=5.5, p90=9),
            },
        ),
    ],
)
def test_options_describe_traffic(
    simulated: Command, options: tuple[str, ...], traffic: dict[str, Any]
) -> None:
    fixed = {"prompt": FixedTokens(tokens=100), "output": FixedTokens(tokens=5)}
    expected = Traffic(**{"request_count": 4, **fixed, **traffic})
    data = json.loads(simulated(*options, "--json"))
    assert Traffic.from_dict(data["traffic"]) == expected
    assert Experiment.from_dict(data["experiment"]).workload == expected.workload()
    assert source_sentence(expected) in simulated(*options)


def test_who_never_runs_is_told(simulated: Command) -> None:
    """A whole prompt of 100 tokens never fits a budget of 50, nor does anyone behind it."""
    options = (*FIXED, "--rate-per-s", "inf", "--policy", "whole_prompt", "--token-budget", "50")
    assert "4 requests never scheduled: 0, 1, 2, 3 (" in simulated(*options)


def test_a_sweep_takes_traffic(capsys: pytest.CaptureFixture[str]) -> None:
    text = printed(capsys, "sweep", *FIXED, "--rate-per-s", "5", "--smallest", "50", "--json")
    assert [point["chunk_tokens"] for point in json.loads(text)["points"]] == [50, 100]


@pytest.mark.parametrize(
    ("options", "told"),
    [
        (["--trace", "gone.csv"], "trace: gone.csv cannot be read (No such file or directory)"),
        (["--trace", "."], "is not a file"),
        (["--trace", AZURE, *FIXED[:2]], "traffic: not allowed together with trace"),
        (["--trace", AZURE, "--prompt-tokens", "5"], "prompt_tokens: not allowed together with tr"),
        (["--trace", AZURE, "--request", "0:5"], "request: not allowed together with trace"),
        (["--trace", AZURE, "--rate-per-s", "1"], "rate_per_s: does not go without --traffic"),
        (["--trace", AZURE, "--first", "0"], "first: 0 is not a whole number from 1 to 2,000,000"),
        (["--trace", AZURE, "--window-s", "5"], "window_s: '5' is not A:B in numbers"),
        (["--trace", AZURE, "--window-s", "5:5"], "window_s: '5:5' ends before it begins"),
        (["--trace", AZURE, "--window-s", "a:5"], "window_s: 'a' is not a number from 0"),
        (["--trace", AZURE, "--window-s", "nan:5"], "window_s: nan"),
        (["--trace", AZURE, "--window-s", "900:901"], "window_s: no request between 900 s and"),
        (["--trace", AZURE, "--time-scale", "0"], "time_scale: 0.0 is not a number from 1e-06"),
        (["--first", "5"], "first: does not go without --trace (allowed: with it)"),
        (["--seed", "5"], "seed: does not go without --traffic (allowed: with it)"),
        (["--no-steps"], "no_steps: does not go without --json (allowed: with it)"),
        (["--traffic", "chat"], "traffic: 'chat' is not one of openchat, arxiv"),
        (["--traffic", "arxiv"], "rate_per_s: missing (allowed: a rate, or --clients"),
        (["--traffic", "arxiv", "--rate-per-s", "0"], "rate_per_s: 0.0 is not a number above 0"),
        (["--traffic", "arxiv", "--rate-per-s", "nan"], "rate_per_s: nan"),
        (["--traffic", "arxiv", "--rate-per-s", "fast"], "rate_per_s: 'fast'"),
        ([*FIXED, "--rate-per-s", "1", "--clients", "2"], "rate_per_s: not allowed together with"),
        ([*FIXED, "--clients", "2", "--burstiness", "2"], "burstiness: does not go without rate"),
        ([*FIXED, "--rate-per-s", "1", "--think-ms", "2"], "think_ms: does not go without clients"),
        (
            ["--traffic", "arxiv", "--rate-per-s", "1", "--output-tokens", "5"],
            "output_tokens: does not go with --traffic arxiv (allowed: fixed)",
        ),
        (
            ["--traffic", "arxiv", "--rate-per-s", "1", "--prompt-tokens", "5"],
            "prompt_tokens: not allowed together with traffic",
        ),
        (
            ["--traffic", "arxiv", "--rate-per-s", "1", "--prompt-tokens-p90", "5"],
            "prompt_tokens_p90: does not go with --traffic arxiv (allowed: lognormal)",
        ),
        (
            ["--traffic", "lognormal", "--rate-per-s", "1", "--prompt-tokens-median", "5"],
            "prompt_tokens_p90: missing for --traffic lognormal",
        ),
        (
            [
                *("--traffic", "lognormal", "--rate-per-s", "1", "--prompt-tokens-median", "9"),
                *("--prompt-tokens-p90", "5", "--output-tokens-median", "5"),
                *("--output-tokens-p90", "9"),
            ],
            "prompt_tokens_p90: 5 is less than the median 9",
        ),
        ([*FIXED, "--rate-per-s", "1", "--request", "0:5"], "request: not allowed together with"),
        ([*FIXED, "--rate-per-s", "1", "--most-total-tokens", "9"], "most_total_tokens: 9 tokens"),
    ],
)
def test_refusals(refused: Command, options: list[str], told: str) -> None:
    assert told in refused(*options)


def test_a_wrong_row_is_named(refused: Command, tmp_path: Path) -> None:
    path = tmp_path / "wrong.csv"
    path.write_text("Timestamp,Request tokens,Response tokens\n0,5,5\n1,1e308,5\n", "utf-8")
    line = refused("--trace", str(path))
    assert line.startswith("s11: trace: row 3, Request tokens: '1e308' (allowed: ")


def test_a_trace_may_be_gzip_of_any_name(simulated: Command, tmp_path: Path) -> None:
    path = tmp_path / "trace.dat"
    path.write_bytes(gzip.compress(Path(AZURE).read_bytes()))
    packed = json.loads(simulated("--trace", str(path), "--json"))
    plain = json.loads(simulated("--trace", AZURE, "--json"))
    assert packed["trace"].pop("name") == "trace.dat"
    plain["trace"].pop("name")
    assert packed == plain


def test_a_trace_is_told_as_one() -> None:
    trace = read_trace(Path(AZURE), name="x")
    assert isinstance(trace, Trace)
    assert source_sentence(trace) == trace.sentence()
