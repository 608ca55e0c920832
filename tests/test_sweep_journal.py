"""A stopped sweep goes on: what is finished is not run again, and nothing is made up."""

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from s11 import Experiment
from s11.sweep_journal import Journal
from s11.sweep_outcomes import Lost, Outcome
from s11.sweeps import run

SIZES = (64, 256, 512, 1024)
EXPERIMENTS = [Experiment().with_chunk_tokens(size) for size in SIZES]
ALL = run(EXPERIMENTS)


def journal(path: Path, *, resume: bool = False, version: str = "1.0") -> Journal:
    return Journal(path, resume=resume, version=version)


class Counted:
    """The built-in map that counts what it runs, and stops before number `stop`."""

    def __init__(self, stop: int | None = None) -> None:
        self.ran, self.stop = 0, stop

    def __call__(self, function: Callable[..., Any], *iterables: Any) -> Iterator[Any]:
        for arguments in zip(*iterables, strict=True):
            if self.ran == self.stop:
                raise KeyboardInterrupt
            self.ran += 1
            yield function(*arguments)


def stopped_after(path: Path, points: int) -> None:
    with journal(path) as kept, pytest.raises(KeyboardInterrupt):
        run(EXPERIMENTS, map=Counted(points), journal=kept)


def test_a_resumed_sweep_runs_what_is_left(tmp_path: Path) -> None:
    path, told = tmp_path / "journal", list[tuple[int, int]]()
    stopped_after(path, 3)
    counted = Counted()
    with journal(path, resume=True) as kept:
        outcomes = run(
            EXPERIMENTS, map=counted, journal=kept, progress=lambda *done: told.append(done)
        )
    assert outcomes == ALL
    assert counted.ran == 1
    assert told == [(3, 4), (4, 4)]


def test_a_finished_sweep_runs_nothing_again(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with journal(path) as kept:
        run(EXPERIMENTS, journal=kept)
    counted = Counted()
    with journal(path, resume=True) as kept:
        assert run(EXPERIMENTS, map=counted, journal=kept) == ALL
        assert counted.ran == 0
        kept.remove()
    assert not path.exists()


def test_refused_points_are_kept_too(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    with journal(path) as kept:
        refused = run(EXPERIMENTS, journal=kept, max_steps=13)
    assert [o.refused is None for o in refused] == [False, False, False, True]
    counted = Counted()
    with journal(path, resume=True) as kept:
        assert run(EXPERIMENTS, map=counted, journal=kept, max_steps=13) == refused
    assert counted.ran == 0


@settings(max_examples=40)
@given(data=st.data())
def test_a_kill_anywhere_loses_at_most_the_point_under_way(
    tmp_path_factory: pytest.TempPathFactory, data: st.DataObject
) -> None:
    """The file is cut at any byte: each whole line after the head is a point not run again."""
    path = tmp_path_factory.mktemp("cut") / "journal"
    stopped_after(path, 3)
    written = path.read_bytes()
    cut = data.draw(st.integers(0, len(written)))
    path.write_bytes(written[:cut])
    counted = Counted()
    with journal(path, resume=True) as kept:
        assert run(EXPERIMENTS, map=counted, journal=kept) == ALL
    assert counted.ran == 4 - max(0, written[:cut].count(b"\n") - 1)
    rows = [json.loads(line) for line in path.read_bytes().splitlines()]
    assert [row["experiment"] for row in rows[1:]] == [0, 1, 2, 3]


@pytest.mark.parametrize("resume", [True, False])
@pytest.mark.parametrize("text", [b'{"format": "mine"}', b"mine\n", b'{"my": 1}\n', b"[1]\n2\n"])
def test_a_file_of_anybody_elses_is_left_as_it_is(
    tmp_path: Path, text: bytes, resume: bool
) -> None:
    path = tmp_path / "journal"
    path.write_bytes(text)
    reason = "(is there and no sweep's journal, and would be lost|is not|line 1)"
    with pytest.raises(ValueError, match=reason) as refused:
        journal(path, resume=resume).begin(["a"])
    assert resume or "would be lost" in str(refused.value)
    assert path.read_bytes() == text


def test_what_was_lost_is_run_again_when_resumed(tmp_path: Path) -> None:
    class Losing:
        def __call__(self, *_: Any) -> Iterator[Any]:
            raise AssertionError

        def as_they_come(self, function: Any, items: Any, *, shared: Any) -> Iterator[Any]:
            yield 1, Outcome(metrics=None, refused="a")
            yield 0, Lost(deaths=3, why="exit code 1")

    path = tmp_path / "journal"
    with journal(path) as kept:
        lost, kept_one = run(EXPERIMENTS[:2], map=Losing(), journal=kept)
    assert lost.lost
    assert lost.refused == "worker: 3 died at this point (exit code 1)"
    with journal(path, resume=True) as kept:
        assert run(EXPERIMENTS[:2], journal=kept) == (ALL[0], kept_one)


def test_a_stopped_sweep_is_not_written_over(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    stopped_after(path, 2)
    before = path.read_bytes()
    with (
        journal(path) as kept,
        pytest.raises(
            ValueError,
            match=r"^output: journal has 2 finished .* \(allowed: --resume, or remove it",
        ),
    ):
        run(EXPERIMENTS, journal=kept)
    assert path.read_bytes() == before


def test_the_journal_of_another_sweep_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "journal"
    stopped_after(path, 2)
    for others in (EXPERIMENTS[:3], EXPERIMENTS[::-1], [*EXPERIMENTS[:3], Experiment()][::-1]):
        with (
            journal(path, resume=True) as kept,
            pytest.raises(ValueError, match=r"^resume: journal is of other experiments"),
        ):
            run(others, journal=kept)
    with (
        journal(path, resume=True, version="2.0") as kept,
        pytest.raises(ValueError, match=r"^resume: journal is of s11 1\.0, not of this s11 2\.0"),
    ):
        run(EXPERIMENTS, journal=kept)


def head_of(path: Path) -> str:
    stopped_after(path, 0)
    return path.read_text()


@pytest.mark.parametrize(
    ("text", "refusal"),
    [
        ("chunk_tokens,ttft_ms\n1,2\n", "journal line 1 is not JSON"),
        ("[" * 100_000 + "\n", "journal line 1 is not JSON"),
        ("[1]\n", "journal line 1 is not an object"),
        ('{"format": "other"}\n', "journal is not a sweep's journal"),
        ("HEAD{\n{}\n", "journal line 2 is not JSON"),
        ("HEAD{}\n", "journal line 2 names no experiment of this sweep"),
        ('HEAD{"experiment": 4}\n', "journal line 2 names no experiment of this sweep"),
        ('HEAD{"experiment": 1}\n', "journal line 2 has other figures"),
        (
            'HEAD{"experiment": 1, "refused": null, "metrics": {"a": 1}}\n',
            "journal line 2 has other figures",
        ),
    ],
)
def test_a_file_that_is_no_journal_is_refused(tmp_path: Path, text: str, refusal: str) -> None:
    head = head_of(tmp_path / "other")
    path = tmp_path / "journal"
    path.write_text(text.replace("HEAD", head))
    with (
        journal(path, resume=True) as kept,
        pytest.raises(ValueError, match=f"^resume: {refusal}$"),
    ):
        run(EXPERIMENTS, journal=kept)
    assert path.read_text() == text.replace("HEAD", head)


def test_a_folder_that_is_not_there_is_refused(tmp_path: Path) -> None:
    with (
        journal(tmp_path / "none" / "journal") as kept,
        pytest.raises(ValueError, match=r"^output: journal cannot be written \(No such file"),
    ):
        run(EXPERIMENTS, journal=kept)
