"""Worker processes of one machine: order, errors, and deaths."""

import os
import signal
from pathlib import Path

import pytest

from s11.sweep_outcomes import Lost, WorkersGoneError
from s11.sweep_pool import ProcessPool
from tests.sweep_workers import (
    DiesAlways,
    DiesOnce,
    EndsAfter,
    cannot_begin,
    plus,
    process_id,
    refuse,
    refuse_unpicklably,
    square,
)


def test_it_is_a_map_of_several_iterables() -> None:
    assert list(ProcessPool(jobs=2)(plus, [1, 2, 3], [10, 20, 30])) == [11, 22, 33]
    assert list(ProcessPool(jobs=2)(square, [])) == []


def test_results_come_as_they_are_done(tmp_path: Path) -> None:
    come = list(ProcessPool(jobs=2).as_they_come(EndsAfter(tmp_path / "one"), [0, 5, 1]))
    assert sorted(come) == [(0, 0), (1, 25), (2, 1)]
    assert come.index((0, 0)) > come.index((1, 25))


def test_the_map_puts_results_in_order(tmp_path: Path) -> None:
    assert list(ProcessPool(jobs=2)(EndsAfter(tmp_path / "one"), [0, 5, 1])) == [0, 25, 1]


def test_so_many_processes_work_as_there_are_jobs() -> None:
    assert len(set(ProcessPool(jobs=1)(process_id, range(5)))) == 1
    assert os.getpid() not in set(ProcessPool(jobs=2)(process_id, range(5)))


def test_a_killed_worker_loses_nothing(tmp_path: Path) -> None:
    marker = tmp_path / "died"
    assert list(ProcessPool(jobs=2)(DiesOnce(marker, 3), range(8))) == [n * n for n in range(8)]
    assert marker.exists()


def test_a_worker_killed_from_outside_loses_nothing() -> None:
    results = []
    for number, pid in ProcessPool(jobs=1).as_they_come(process_id, range(4)):
        results.append(number)
        if number == 1:  # it has nothing to do now, for this loop has its answer
            os.kill(pid, signal.SIGKILL)
    assert sorted(results) == [0, 1, 2, 3]


def test_an_item_that_kills_each_worker_is_given_up_alone(tmp_path: Path) -> None:
    marker = tmp_path / "deaths"
    come = dict(ProcessPool(jobs=2, attempts=2).as_they_come(DiesAlways(marker, 1), range(4)))
    assert come == {0: 0, 1: Lost(deaths=2, why="ended by SIGKILL"), 2: 4, 3: 9}
    assert marker.read_text() == "xx"
    assert come[1].sentence() == "worker: 2 died at this point (ended by SIGKILL)"


def test_a_map_has_no_place_for_what_is_lost(tmp_path: Path) -> None:
    with pytest.raises(WorkersGoneError, match=r"^worker: 1 died at this point"):
        list(ProcessPool(jobs=1, attempts=1)(DiesAlways(tmp_path / "deaths", 0), [0]))


def test_an_error_comes_through_with_the_place_where_it_was_raised() -> None:
    with pytest.raises(LookupError, match="no 4") as caught:
        list(ProcessPool(jobs=1)(refuse, [4]))
    assert "sweep_workers.py" in caught.value.__notes__[0]


def test_an_error_that_cannot_travel_comes_as_text() -> None:
    with pytest.raises(RuntimeError, match="both are needed"):
        list(ProcessPool(jobs=1)(refuse_unpicklably, [4]))


def test_workers_that_never_begin_end_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s11.sweep_pool._work", cannot_begin)
    with pytest.raises(WorkersGoneError, match=r"^workers: none begins \(exit code 3\)$"):
        list(ProcessPool(jobs=1, attempts=1)(square, [1]))


@pytest.mark.parametrize("jobs", [0, 257, True, 1.5])
def test_jobs_out_of_range_are_refused(jobs: int) -> None:
    with pytest.raises(ValueError, match=r"^jobs: .* is not a whole number from 1 to 256$"):
        ProcessPool(jobs=jobs)


def test_attempts_out_of_range_are_refused() -> None:
    with pytest.raises(ValueError, match=r"^attempts: 0 is not a whole number from 1 to 100$"):
        ProcessPool(jobs=1, attempts=0)
