"""The command `export`: files that read back, and refusals that write nothing."""

import csv
import io
import json
import os
from functools import partial
from pathlib import Path

import pandas as pd
import pytest

from s11.cli import main
from s11.export_command import command
from s11.export_tables import TABLES
from tests.command_line import Command, printed, refusal
from tests.test_chrome_trace import check_format, of, threads

SMALL = ("--request", "0:40:3", "--request", "5:9", "--streaming-users", "2", "--chunk-tokens", "8")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys)


@pytest.fixture
def refused(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(refusal, capsys)


def test_chrome(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "trace.json"
    assert run("export", "--format", "chrome", "--output", str(path), *SMALL) == ""
    trace = json.loads(path.read_text())
    check_format(trace)
    assert {"request 0", "request 1", "2 streaming users"} <= set(threads(trace["traceEvents"]))


def test_chrome_of_a_part(run: Command) -> None:
    """The chapter's long prompt begins at 10.4 ms; at 0.02 s its first chunk is under way."""
    window = ("--first-requests", "1", "--from-s", "0.02", "--to-s", "0.04")
    trace = json.loads(run("export", "--format", "chrome", "--output", "-", *window))
    check_format(trace)
    assert trace["otherData"]["left_out"] == (
        "Left out: all before 0.020 s, all after 0.040 s of 0.215 s."
    )
    edges = [(e["ts"], e["dur"]) for e in of(trace["traceEvents"], "X", tid=1)]
    assert edges == [(20_000, 14_032), (34_032, 5_968)]


@pytest.mark.parametrize("table", TABLES)
def test_tables_are_the_same_in_every_format(run: Command, tmp_path: Path, table: str) -> None:
    path = tmp_path / "table.parquet"
    asked = ("export", "--table", table, *SMALL)
    rows = list(csv.DictReader(io.StringIO(run(*asked, "--format", "csv", "--output", "-"))))
    records = json.loads(run(*asked, "--format", "json", "--output", "-"))
    run(*asked, "--format", "parquet", "--output", str(path))
    frame = pd.read_parquet(path)
    assert list(rows[0]) == list(records[0]) == list(frame)
    assert len(rows) == len(records) == len(frame) > 0
    for name in frame:
        for text, value, kept in zip(
            [row[name] for row in rows], [row[name] for row in records], frame[name], strict=True
        ):
            assert text == ("" if value is None else str(value))
            if value is None:
                assert pd.isna(kept)
            else:
                assert kept == pytest.approx(value) if isinstance(value, float) else kept == value


def test_steps_are_the_default_table(run: Command) -> None:
    out = run("export", "--format", "csv", "--output", "-")
    rows = list(csv.DictReader(io.StringIO(out)))
    assert [row["prefill_tokens"] for row in rows] == ["0"] * 2 + ["1024"] * 8 + ["0"] * 3


def test_json_is_what_simulate_prints(run: Command) -> None:
    assert run("export", "--format", "json", "--output", "-", *SMALL) == run(
        "simulate", "--json", *SMALL
    )


def test_html(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    run("export", "--format", "html", "--output", str(path), *SMALL)
    page = path.read_text(encoding="utf-8")
    assert page.startswith("<!doctype html>")
    assert "python -m s11 export --format html --output report.html --request 0:40:3" in page
    assert str(tmp_path) not in page


def test_html_of_traffic(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    traffic = ("--traffic", "fixed", "--rate-per-s", "10", "--requests", "20")
    run("export", "--format", "html", "--output", str(path), *traffic)
    page = path.read_text(encoding="utf-8")
    assert "20 requests drawn with seed 0" in page
    assert '"figure":"traffic-over-time"' in page


@pytest.mark.parametrize(
    ("more", "names"),
    [
        (("--against", "chunking-off"), ("A: Whole prompts", "B: Chunked")),
        (("--against", "prefill_first"), ("A: Prefill first", "B: Chunked")),
        (
            ("--policy", "vllm_v1", "--against", "chunking-off"),
            ("A: vLLM V1, chunking off", "B: vLLM V1"),
        ),
        (
            ("--policy", "vllm_v1", "--no-chunking", "--against", "vllm_v1"),
            ("A: vLLM V1", "B: vLLM V1, chunking off"),
        ),
    ],
)
def test_html_of_a_run_against_another(
    run: Command, tmp_path: Path, more: tuple[str, ...], names: tuple[str, str]
) -> None:
    """The other is A, the run itself B, each with the figures that it has alone."""
    path = tmp_path / "report.html"
    run("export", "--format", "html", "--output", str(path), *SMALL, *more)
    page = path.read_text(encoding="utf-8")
    assert f"--against {more[-1]}" in page
    for figure in ("traffic-cdf", "traffic-attainment", "traffic-over-time"):
        assert f'"figure":"{figure}"' in page
    assert [name for name in names if f">{name}</th>" in page] == list(names)
    policy = () if more[0] == "--against" else more[:2]
    of_whole = ("--no-chunking",)
    sides = {
        "chunking-off": ((*policy, *of_whole), policy),
        "prefill_first": (("--policy", "prefill_first"), policy),
        "vllm_v1": (policy, (*policy, *of_whole)),
    }[more[-1]]
    stalls = []
    for options in sides:
        read = SMALL[:-2] if "prefill_first" in options else SMALL  # it has no chunk size
        metrics = json.loads(run("simulate", "--json", *read, *options))["metrics"]
        stalls.append(f"{metrics['longest_stall_ms']:,.3f}".rstrip("0").rstrip("."))
    cells = "".join(f'<td class="number">{stall}</td>' for stall in stalls)
    assert f"<td>Longest stall</td>{cells}" in page


def test_html_of_traffic_against_whole_prompts(run: Command, tmp_path: Path) -> None:
    path = tmp_path / "report.html"
    traffic = ("--traffic", "fixed", "--rate-per-s", "10", "--requests", "20")
    run("export", "--format", "html", "--output", str(path), *traffic, "--against", "whole_prompt")
    page = path.read_text(encoding="utf-8")
    assert "20 requests drawn with seed 0" in page
    assert "A: Whole prompts" in page


def test_a_command_names_files_without_their_folders() -> None:
    given = ["export", "--trace", "../traces/a b.csv", "--output=../x/out.html", "--seed", "3"]
    assert command(given) == ("python -m s11 export --trace 'a b.csv' --output=out.html --seed 3")
    assert command(["export", "--output", "-"]) == "python -m s11 export --output -"


def test_refusals_write_nothing(refused: Command, tmp_path: Path) -> None:
    path = tmp_path / "out"
    to = ("--output", str(path))
    for arguments, named in (
        (("--format", "pdf", *to), "format: 'pdf' is not one of chrome, csv, json, parquet, html"),
        (("--format", "csv"), "--output"),
        (to, "--format"),
        (("--format", "csv", "--table", "tokens", *to), "table: 'tokens' is not one of steps"),
        (("--format", "html", "--table", "steps", *to), "table: does not go with the format html"),
        (("--format", "csv", "--from-s", "1", *to), "from_s: does not go with the format csv"),
        (("--format", "chrome", "--first-requests", "0", *to), "first_requests: 0"),
        (("--format", "chrome", "--from-s", "9", *to), "begin_ms: 9000 is after the run's end"),
        (("--format", "chrome", "--to-s", "nan", *to), "to_s: nan"),
        (("--format", "csv", "--against", "chunking-off", *to), "against: does not go with the"),
        (("--format", "html", "--against", "orca", *to), "against: 'orca' is not one of chunking-"),
        (("--format", "html", "--against", "chunked", *to), "against: chunked is the run itself"),
        (
            ("--format", "html", "--no-chunking", "--against", "chunking-off", *to),
            "against: chunking-off is the run itself (allowed: such as chunked, request_level,",
        ),
        (
            ("--format", "html", "--kv-blocks", "99", "--against", "disaggregated", *to),
            "kv_blocks: 99 is not simulated for the two workers",
        ),
        (("--format", "csv", "--output", str(tmp_path)), "is a folder"),
        (("--format", "csv", "--output", str(path / "x" / "y")), "a folder that is not there"),
        (("--format", "csv", "--chunk-tokens", "0", *to), "chunk_tokens: 0"),
    ):
        assert named in refused("export", *arguments)
    assert os.listdir(tmp_path) == []


def test_a_file_that_cannot_be_written(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "replace", full)
    assert main(("export", "--format", "csv", "--output", str(tmp_path / "out"))) == 1
    assert "No space left on device" in capsys.readouterr().err
    assert os.listdir(tmp_path) == []
