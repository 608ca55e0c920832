"""`sweep`, `verify`, `bench` and the report; `schedule` is in test_cases.py."""

import csv
import io
import json
from functools import partial

import pytest

from s11 import Experiment, Workload, bench, commands, report_tables
from s11.attention import Fault
from tests.command_line import Command, printed
from tests.loads import load, request


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys)


def test_sweep_csv(run: Command) -> None:
    rows = list(csv.DictReader(io.StringIO(run("sweep", "--csv"))))
    assert [int(r["chunk_tokens"]) for r in rows] == [128, 256, 512, 1024, 2048, 4096, 8192]
    at_1024 = rows[3]
    assert float(at_1024["longest_stall_ms"]) == float(at_1024["itl_p99_ms"]) == 23.632
    assert float(at_1024["ttft_ms"]) == 189.056
    # 8192 tokens in 189.056 ms
    assert float(at_1024["prefill_tokens_per_s"]) == pytest.approx(8192 / 0.189056)
    assert float(rows[-1]["longest_stall_ms"]) == 152.656


def test_sweep_json_and_its_smallest(run: Command) -> None:
    data = json.loads(run("sweep", "--json", "--smallest", "3000"))
    assert [p["chunk_tokens"] for p in data["points"]] == [3000, 6000, 8192]
    assert Experiment.from_dict(data["experiment"]) == Experiment()


def test_sweep_names_knee_and_largest_chunk(run: Command) -> None:
    """The knee near 5.2 / 0.018 = 289; at most 50 ms: (50 - 5.2) / 0.018 = 2488.9 tokens."""
    out = run("sweep")
    assert "256 (knee)" in out
    assert "Largest chunk within 50 ms: 2,488 tokens" in out


def test_a_smallest_chunk_above_the_prompt_is_the_prompt(run: Command) -> None:
    rows = run("sweep", "--csv", "--prompt-tokens", "5").splitlines()
    assert len(rows) == 2
    assert rows[1].startswith("5,")


def test_verify_passes_and_each_fault_fails(run: Command) -> None:
    sizes = ("--tokens", "7", "--chunk-tokens", "4", "--json")
    clean = json.loads(run("verify", *sizes))
    assert clean["passed"]
    assert clean["fault"] is None
    assert [check["chunk_tokens"] for check in clean["checks"]] == [4]
    for fault in Fault:
        assert not json.loads(run("verify", *sizes, "--fault", fault, code=1))["passed"]


def test_bench_reports_each_load_in_calibration_loops(
    run: Command, monkeypatch: pytest.MonkeyPatch
) -> None:
    small = {"tiny": (Experiment(workload=Workload(requests=(request("a", 9),))), 3)}
    monkeypatch.setattr(bench, "loads", lambda: small)
    monkeypatch.setattr(bench, "CALIBRATION_ITERATIONS", 1000)
    data = json.loads(run("bench", "--json"))
    (tiny,) = data["loads"]
    assert (tiny["load"], tiny["steps"]) == ("tiny", 3)
    assert tiny["ratio"] == pytest.approx(tiny["cpu_s"] / data["calibration_s"])
    assert tiny["steps_per_s_at_reference"] == pytest.approx(3 / tiny["ratio"] / 0.138)
    assert "tiny" in run("bench")


def test_the_report_says_it_all(run: Command, monkeypatch: pytest.MonkeyPatch) -> None:
    small = load(request("a", 5, output_tokens=2), request("b", 3), chunk=4)
    monkeypatch.setattr(commands, "CHECKED_TOKENS", 7)
    monkeypatch.setattr(commands, "CHECKED_CHUNK_SIZES", (4, 7))
    monkeypatch.setattr(report_tables, "executed_experiments", lambda: (small,))
    out = run()
    assert "2 of 2 chunk sizes identical, bit for bit." in out
    assert "2 of 2 requests got the same tokens (3)" in out
    assert "25.18×" in out
    assert "595.024 ms to 23.632 ms" in out
    assert "256 (knee)" in out
