"""`sweep` with lists, workers and files; without them it is in test_cli_commands.py."""

import csv
import io
import json
import os
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

from s11 import Metrics, exports, sweep_command
from s11.cli import main
from s11.sweep_files import write
from s11.sweep_outcomes import Lost, WorkersGoneError
from s11.sweep_tasks import keep
from s11.terminal import progress
from tests.command_line import Command, printed, refusal

SHORT = ("sweep", "--prompt-tokens", "1000")
SIZES = ("--chunk-tokens-list", "100,none")


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str]) -> Command:
    return partial(printed, capsys)


def rows_of(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text)))


def test_lists_are_swept_as_csv(run: Command) -> None:
    """24 users, 1.2 ms: a chunk of 100 takes 4 + 1.8 + 1.2 = 7 ms, the whole prompt 23.2 ms."""
    rows = rows_of(run(*SHORT, *SIZES, "--token-budgets", "none,8", "--csv"))
    assert [(row["token_budget"], row["chunk_tokens"]) for row in rows] == [
        ("", "100"),
        ("", ""),
        ("8", "100"),
        ("8", ""),
    ]
    assert [row["longest_stall_ms"] for row in rows] == ["7.0", "23.2", "", ""]
    assert list(rows[0])[2:] == [*Metrics.__dataclass_fields__, "refused"]
    assert rows[3]["refused"].startswith("token_budget: 8 is less than the 24")


def test_the_table_shows_refusals_under_it(run: Command) -> None:
    out = run(*SHORT, "--policies", "chunked,whole_prompt", "--token-budgets", "2048,8")
    assert out.count("Refused: ") == 2
    assert "Refused: policy chunked, token_budget 8: token_budget: 8 is less" in out
    assert "23.2 ms" in out


def test_json_has_the_base_and_the_points(run: Command) -> None:
    data = json.loads(run(*SHORT, *SIZES, "--json"))
    assert data["experiment"]["workload"]["requests"][0]["prompt_tokens"] == 1000
    assert [point["chunk_tokens"] for point in data["points"]] == [100, None]
    assert [point["longest_stall_ms"] for point in data["points"]] == [7.0, 23.2]


def test_traffic_at_rates_and_seeds(run: Command) -> None:
    traffic = ("--traffic", "openchat", "--rate-per-s", "9", "--requests", "30")
    data = json.loads(run("sweep", *traffic, "--rates", "1,2", "--seeds", "3,4", "--json"))
    assert data["traffic"]["request_count"] == 30
    assert "requests" not in data["experiment"]["workload"]
    points = data["points"]
    assert [(p["rate_per_s"], p["seed"]) for p in points] == [(1, 3), (1, 4), (2, 3), (2, 4)]
    assert {p["finished_requests"] for p in points} == {30}
    assert points[0]["makespan_ms"] > points[2]["makespan_ms"]
    one = ("simulate", *traffic[:2], *traffic[4:], "--rate-per-s", "2", "--seed", "4", "--json")
    alone = json.loads(run(*one))
    assert {name: points[3][name] for name in alone["metrics"]} == alone["metrics"]


def test_files_of_both_formats_read_back_equal(run: Command, tmp_path: Path) -> None:
    options = (*SHORT, *SIZES, "--token-budgets", "none,8", "--policies", "chunked")
    for ending in ("csv", "parquet"):
        said = run(*options, "--output", str(tmp_path / f"out.{ending}"))
        assert said == f"4 points in {tmp_path}/out.{ending}, 2 refused\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "out.parquet"]
    parquet = pd.read_parquet(tmp_path / "out.parquet")
    from_csv = pd.read_csv(tmp_path / "out.csv")
    assert list(parquet.columns) == list(from_csv.columns)
    for name in parquet.columns:
        plain = [None if pd.isna(item) else item for item in parquet[name]]
        assert plain == [None if pd.isna(item) else item for item in from_csv[name]], name
    assert (tmp_path / "out.csv").read_text() == run(*options, "--csv")
    assert str(parquet["chunk_tokens"].dtype) == "Int64"
    assert str(parquet["tpot_p50_ms"].dtype) == "Float64"  # of one token no TPOT: nothing in it


OTHERS: dict[str, bytes] = {
    "notes.csv": b"name,ttft_ms\nmine,3\n",
    "more-columns.csv": b"longest_stall_ms,ttft_ms,makespan_ms,refused,my_notes\n1,2,3,,mine\n",
    "more-lines.csv": b"longest_stall_ms,ttft_ms,makespan_ms,refused\n1,2,3,\n# what I think\n",
    "no-text.csv": bytes(range(256)) * 9,
    "long.csv": b'"' + b"x" * 300_000,  # one field, longer than any that is read
    "a-csv.parquet": b"longest_stall_ms,ttft_ms,makespan_ms,refused\n",
    "cut.parquet": b"PAR1 and no end",
    "broken.parquet": b"PAR1" + bytes(64) + b"\x20\0\0\0PAR1",  # of a foot that cannot be read
    "other.parquet": exports.to_parquet({"ttft_ms": [1.0]}),
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_a_file_that_is_no_sweeps_result_is_left_as_it_is(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, name: str, resume: tuple[str, ...]
) -> None:
    path = tmp_path / name
    path.write_bytes(OTHERS[name])
    line = refusal(capsys, *SHORT, *SIZES, "--output", str(path), *resume)
    assert f"output: {name!r} is there and no sweep's result, and would be lost (allowed:" in line
    assert path.read_bytes() == OTHERS[name]
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize("ending", ["csv", "parquet"])
@pytest.mark.parametrize("resume", [(), ("--resume",)])
def test_an_earlier_result_or_an_empty_file_is_written_over(
    run: Command, tmp_path: Path, ending: str, resume: tuple[str, ...]
) -> None:
    path = tmp_path / f"out.{ending}"
    path.touch()
    run("sweep", "--seeds", "1", "--traffic", "fixed", "--rate-per-s", "9", "--requests", "2",
        "--output", str(path))  # fmt: skip
    first = path.read_bytes()
    run(*SHORT, *SIZES, "--output", str(path), *resume)
    assert path.read_bytes() != first
    read = pd.read_csv(path) if ending == "csv" else pd.read_parquet(path)
    assert read["longest_stall_ms"].tolist() == [7.0, 23.2]


def test_a_file_that_cannot_be_read_is_one_sentence(
    capsys: pytest.CaptureFixture[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "out.csv"
    path.write_text("mine")

    def locked(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "open", locked)
    line = refusal(capsys, *SHORT, *SIZES, "--output", str(path))
    assert "output: out.csv cannot be read (Permission denied)" in line


def test_jobs_give_the_same_rows(run: Command) -> None:
    alone = run(*SHORT, "--chunk-tokens-list", "128,256,512,1000", "--csv")
    assert run(*SHORT, "--jobs", "2", "--csv") == alone  # the sizes that a sweep takes by itself


def test_a_scheduler_of_whole_prompts_is_swept_over_other_knobs(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = rows_of(
        printed(capsys, *SHORT, "--no-chunking", "--token-budgets", "none,2000", "--csv")
    )
    assert [row["longest_stall_ms"] for row in rows] == ["23.2", "23.2"]
    line = refusal(capsys, *SHORT, "--no-chunking", "--jobs", "2")
    assert "policy: 'whole_prompt' has no chunk size to sweep" in line


def test_a_killed_sweep_is_resumed(run: Command, tmp_path: Path, root: Path) -> None:
    """SIGKILL in the middle, whenever that is: the file that --resume gives is the whole one's."""
    traffic = ("--traffic", "openchat", "--rate-per-s", "2", "--requests", "2000")
    options = ("sweep", *traffic, "--chunk-tokens-list", "32,64,128,256,512,1024,2048,4096")
    output, journal = tmp_path / "out.csv", tmp_path / "out.csv.partial.jsonl"
    command = (sys.executable, "-m", "s11", *options, "--output", str(output))
    with subprocess.Popen(command, cwd=root) as process:
        while process.poll() is None and journal_lines(journal) < 3:
            time.sleep(0.01)
        os.kill(process.pid, signal.SIGKILL)
    assert 3 <= journal_lines(journal) < 9
    assert not output.exists()
    before = journal.read_bytes()
    line = refusal_of_journal(options, output)
    assert "has 2" in line or "finished experiments of a stopped sweep" in line
    assert journal.read_bytes() == before
    run(*options, "--output", str(output), "--resume")
    assert not journal.exists()
    assert output.read_text() == run(*options, "--csv")


def journal_lines(path: Path) -> int:
    return path.read_bytes().count(b"\n") if path.exists() else 0


def refusal_of_journal(options: tuple[str, ...], output: Path) -> str:
    command = (sys.executable, "-m", "s11", *options, "--output", str(output))
    root = Path(__file__).resolve().parents[1]
    done = subprocess.run(command, cwd=root, capture_output=True, text=True)
    assert done.returncode == 2
    assert done.stdout == ""
    return done.stderr


def test_resume_without_a_journal_begins(run: Command, tmp_path: Path) -> None:
    output = str(tmp_path / "out.csv")
    assert run(*SHORT, *SIZES, "--output", output, "--resume").startswith("2 points in ")


class Losing:
    """Workers who die on the first of two points."""

    def __init__(self, **_: Any) -> None: ...

    def __call__(self, *_: Any) -> Any:
        raise AssertionError

    def as_they_come(self, function: Any, items: Any, *, shared: Any) -> Any:
        keep(shared)
        yield 1, function(items[1])
        yield 0, Lost(deaths=3, why="exit code 1")


class Gone(Losing):
    def as_they_come(self, function: Any, items: Any, *, shared: Any) -> Any:
        keep(shared)
        yield 1, function(items[1])
        raise WorkersGoneError("nobody is left")


class Stopped(Losing):
    def as_they_come(self, function: Any, items: Any, *, shared: Any) -> Any:
        keep(shared)
        yield 1, function(items[1])
        raise KeyboardInterrupt


@pytest.mark.parametrize(
    ("workers", "code", "said"),
    [
        (Losing, 1, "s11: 1 point lost to dead workers; --resume tries them again\n"),
        (
            Gone,
            1,
            "s11: out.csv.partial.jsonl has what is finished; --resume goes on\n"
            "s11: nobody is left\n",
        ),
        (Stopped, 130, "s11: out.csv.partial.jsonl has what is finished; --resume goes on\n"),
    ],
)
def test_what_workers_lose_is_kept_to_be_resumed(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    workers: type,
    code: int,
    said: str,
) -> None:
    output = str(tmp_path / "out.csv")
    whole = printed(capsys, *SHORT, "--chunk-tokens-list", "100,200", "--csv")
    options = (*SHORT, "--chunk-tokens-list", "100,200", "--output", output)
    with monkeypatch.context() as patched:
        patched.setattr(sweep_command, "ProcessPool", workers)
        assert main((*options, "--jobs", "2")) == code
    assert capsys.readouterr().err == said
    printed(capsys, *options, "--resume")
    assert Path(output).read_text() == whole


def test_errors_of_dask_are_one_line(capsys: pytest.CaptureFixture[str]) -> None:
    line = refusal(capsys, *SHORT, "--dask", "nonsense")
    assert line.startswith("s11: dask: ")


@pytest.mark.parametrize(
    ("options", "parts"),
    [
        ("--chunk-tokens-list 0", ("chunk_tokens_list: 0", "from 1 to 16,777,216")),
        ("--chunk-tokens-list 8,,9", ("chunk_tokens_list: ''", "from 1 to 16,777,216")),
        ("--chunk-tokens-list 8,8", ("chunk_tokens: 8", "is given twice")),
        (f"--seeds {'1,' * 1_000}1", ("seeds: 1,001", "too many", "1,000")),
        (f"--token-budgets {'9' * 5_000}", ("token_budgets: ", "from 1 to 16,777,216")),
        ("--rates 0", ("rates: 0", "above 0")),
        ("--rates nan", ("rates: nan", "above 0")),
        ("--rates inf", ("rates: inf", "above 0")),
        ("--rates x", ("rates: 'x'", "above 0")),
        ("--rates 1", ("rate_per_s: 1", "traffic, or a trace")),
        ("--seeds 1", ("seed: 1", "(allowed: traffic)")),
        ("--seeds -1", ("seeds: -1", "from 0")),
        ("--policies fifo", ("policies: 'fifo'", "chunked")),
        ("--jobs 0", ("jobs: 0", "from 1 to 256")),
        ("--jobs two", ("jobs: 'two'", "from 1 to 256")),
        ("--jobs 2 --dask a:1", ("--dask", "--jobs")),
        ("--resume", ("resume: ", "--output FILE")),
        ("--output out.txt", ("output: 'out.txt'", ".csv or .parquet")),
        ("--output -", ("output: '-'", ".csv or .parquet")),
        ("--output no/where/out.csv", ("output: 'out.csv'", "not there")),
        ("--output out.csv --csv", ("--csv", "--output")),
    ],
)
def test_bad_options_are_refused(
    capsys: pytest.CaptureFixture[str],
    monkeypatch: pytest.MonkeyPatch,
    tmp_path: Path,
    options: str,
    parts: tuple[str, ...],
) -> None:
    monkeypatch.chdir(tmp_path)
    line = refusal(capsys, *SHORT, *options.split(" "))
    assert all(part in line for part in parts), line
    assert not list(tmp_path.iterdir())


def test_a_column_without_values_keeps_its_kind(tmp_path: Path) -> None:
    columns = {"a": [None, None], "b": [None, None], "c": [None, None]}
    write(str(tmp_path / "x.parquet"), columns, {"a": int, "b": float, "c": str})
    read = pd.read_parquet(tmp_path / "x.parquet")
    assert [str(read[name].dtype) for name in "abc"] == ["Int64", "Float64", "str"]


def test_off_a_terminal_a_plain_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    times = iter([0.0, 4.0, 10.0, 10.0, 19.0, 25.0, 25.0])
    with progress("points", lines_every_s=10.0, clock=lambda: next(times)) as advance:
        for done in (1, 1_000, 1_001, 1_002):
            advance(done, 2_000)
    assert capsys.readouterr().err == ("s11: 1,000 of 2,000 points\ns11: 1,002 of 2,000 points\n")


def test_a_sweep_over_rates_needs_no_rate_of_its_own(run: Command) -> None:
    traffic = "--traffic fixed --prompt-tokens 9 --output-tokens 2 --requests 3"
    lines = run("sweep", *traffic.split(), "--rates", "5,90", "--csv").splitlines()
    assert [line.split(",")[0] for line in lines] == ["rate_per_s", "5.0", "90.0"]
