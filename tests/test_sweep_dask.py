"""A sweep on a Dask cluster of several processes on this machine, some of which are killed."""

import logging
import os
import signal
import socket
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

pytest.importorskip("distributed")

from distributed import LocalCluster

from s11 import Experiment
from s11.arrivals import PoissonArrivals
from s11.lengths import FixedTokens
from s11.sweep_dask import DaskCluster
from s11.sweep_outcomes import Lost, WorkersGoneError
from s11.sweep_tasks import Variant
from s11.sweeps import run
from s11.traffic import Traffic
from tests.command_line import printed
from tests.loads import load, request
from tests.sweep_workers import DiesAlways, DiesOnce, EndsAfter, plus, refuse, square

TRAFFIC = Traffic(
    request_count=200,
    arrivals=PoissonArrivals(rate_per_s=5.0),
    prompt=FixedTokens(tokens=300),
    output=FixedTokens(tokens=20),
)
VARIANTS = [
    Variant(frame=load(), source=TRAFFIC, rate_per_s=rate, limits=(("chunk_tokens", size),))
    for rate in (2.0, 5.0, 8.0)
    for size in (64, 128, 256, 512)
]
EXPERIMENTS = [Experiment().with_chunk_tokens(size) for size in (128, 512, 1024)]


def local_cluster(workers: int) -> LocalCluster:
    """Worker processes, as quiet as they can be about those that are killed."""
    return LocalCluster(
        n_workers=workers,
        threads_per_worker=1,
        processes=True,
        host="127.0.0.1",
        dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def steady() -> Iterator[LocalCluster]:
    """One for the tests that kill nobody."""
    with local_cluster(2) as cluster:
        yield cluster


@pytest.fixture
def local() -> Iterator[LocalCluster]:
    with local_cluster(3) as cluster:
        yield cluster


@pytest.fixture
def cluster(steady: LocalCluster) -> Iterator[DaskCluster]:
    with DaskCluster(steady.scheduler_address) as connected:
        yield connected


@pytest.fixture
def mortal(local: LocalCluster) -> Iterator[DaskCluster]:
    """A cluster of three of the test's own, for a dead worker's place is not filled at once."""
    with DaskCluster(local.scheduler_address) as connected:
        yield connected


def test_it_is_a_map_in_order(cluster: DaskCluster, tmp_path: Path) -> None:
    assert list(cluster(plus, [1, 2, 3], [10, 20, 30])) == [11, 22, 33]
    assert list(cluster(EndsAfter(tmp_path / "one"), [0, 5, 1])) == [0, 25, 1]
    assert list(cluster(square, [])) == []


def test_a_sweep_gives_the_same_rows_as_here(cluster: DaskCluster) -> None:
    many = load(*(request(str(n), 10) for n in range(200)))
    refused = Variant(frame=Experiment(), source=Experiment().workload, policy="none")
    points: list[Experiment | Variant] = [
        *EXPERIMENTS,
        many.with_chunk_tokens(4),
        many.with_chunk_tokens(8),
        refused,
    ]
    assert run(points, map=cluster) == run(points)


def test_the_command_sweeps_on_a_cluster(
    steady: LocalCluster, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("sweep", "--prompt-tokens", "1000", "--chunk-tokens-list", "100,none", "--csv")
    there = printed(capsys, *options, "--dask", steady.scheduler_address)
    assert there == printed(capsys, *options)


def test_a_worker_killed_mid_sweep_loses_nothing(mortal: DaskCluster) -> None:
    """At the first result, one of three workers is killed; it has one or more points in hand."""
    workers = dict(mortal.client.run(os.getpid))
    killed: list[int] = []

    def kill_one(done: int, total: int) -> None:
        if not killed:
            assert done < total
            processing = mortal.client.processing()
            address = next((a for a, keys in processing.items() if keys), next(iter(workers)))
            killed.append(workers[address])
            os.kill(workers[address], signal.SIGKILL)

    assert run(VARIANTS, map=mortal, progress=kill_one) == run(VARIANTS)
    assert len(killed) == 1


def test_a_worker_that_dies_within_a_point_loses_nothing(
    mortal: DaskCluster, tmp_path: Path
) -> None:
    dies = DiesOnce(tmp_path / "died", 3)
    assert list(mortal(dies, range(8))) == [n * n for n in range(8)]
    assert dies.marker.exists()


def test_workers_that_come_later_know_what_is_shared(
    mortal: DaskCluster,
) -> None:
    """All three are killed at the first result: their successors must have the requests too."""
    many = load(*(request(str(n), 10) for n in range(300)))
    points = [many.with_chunk_tokens(size) for size in range(1, 25)]
    pids = list(mortal.client.run(os.getpid).values())

    def kill_all(done: int, total: int) -> None:
        while pids:
            os.kill(pids.pop(), signal.SIGKILL)

    assert run(points, map=mortal, progress=kill_all) == run(points)


def test_an_item_that_kills_each_worker_is_given_up_and_its_neighbours_are_not(
    mortal: DaskCluster, local: LocalCluster, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With no patience at all, whatever was on the dead worker is blamed, and then tried alone."""
    monkeypatch.setattr(local.scheduler, "allowed_failures", 0)
    dies = DiesAlways(tmp_path / "deaths", 1)
    come = dict(mortal.as_they_come(dies, range(6)))
    assert come == {0: 0, 1: Lost(deaths=1, why="see their logs"), 2: 4, 3: 9, 4: 16, 5: 25}
    assert dies.marker.read_text() == "xx"
    with pytest.raises(WorkersGoneError, match=r"^worker: 1 died at this point"):
        list(mortal(dies, [1]))


def test_an_error_comes_through(cluster: DaskCluster) -> None:
    with pytest.raises(LookupError, match="no 4"):
        list(cluster(refuse, [4]))


def test_workers_of_another_version_are_refused(
    steady: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("s11.__version__", "9.9")
    with pytest.raises(ValueError, match=r"^dask: workers have s11 .* \(allowed: s11 9\.9 on each"):
        DaskCluster(steady.scheduler_address)


def test_workers_without_s11_are_refused(
    steady: LocalCluster, monkeypatch: pytest.MonkeyPatch
) -> None:
    def cannot(*_: object) -> None:
        raise Exception("ModuleNotFoundError(\"No module named 's11'\")")  # as Dask words it

    monkeypatch.setattr("distributed.Client.run", cannot)
    with pytest.raises(ValueError, match=r"^dask: workers have no s11 \(allowed: s11 "):
        DaskCluster(steady.scheduler_address)


def test_nobody_at_the_address_is_refused_within_the_bound() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # accepts and says nothing
        port = silent.getsockname()[1]
        with pytest.raises(
            ValueError,
            match=rf"^dask: no scheduler answers at 'tcp://127\.0\.0\.1:{port}' within 0\.5 s",
        ):
            DaskCluster(f"tcp://127.0.0.1:{port}", timeout_s=0.5)
    with pytest.raises(ValueError, match=r"^dask: no scheduler answers at .* within 0\.5 s"):
        DaskCluster(f"tcp://127.0.0.1:{port}", timeout_s=0.5)  # closed now


@pytest.mark.parametrize("address", ["nonsense", "", "tcp://", "http://127.0.0.1:80", "a b:c"])
def test_what_is_no_address_is_refused(address: str) -> None:
    with pytest.raises(ValueError, match=r"^dask: no scheduler answers at "):
        DaskCluster(address, timeout_s=0.5)


def test_without_dask_one_sentence_says_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(
        ValueError,
        match=r"^dask: the library is not installed \(allowed: pip install 's11\[dask\]'",
    ):
        DaskCluster("tcp://127.0.0.1:8786")


def test_a_scheduler_without_workers_is_refused() -> None:
    with (
        local_cluster(0) as empty,
        pytest.raises(ValueError, match=r"^dask: the scheduler at .* has no workers"),
    ):
        DaskCluster(empty.scheduler_address, timeout_s=0.5)


def test_a_scheduler_that_goes_ends_the_sweep_with_one_sentence() -> None:
    with local_cluster(1) as local, DaskCluster(local.scheduler_address) as cluster:
        come = cluster.as_they_come(square, range(100))
        next(come)
        local.close()
        with pytest.raises(WorkersGoneError, match=r"^dask: the scheduler at .* has gone$"):
            list(come)


def test_where_no_worker_comes_back_the_sweep_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("s11.sweep_dask.PATIENCE_S", 0.5)
    monkeypatch.setattr("s11.sweep_dask.CHECK_S", 0.1)
    with local_cluster(1) as local, DaskCluster(local.scheduler_address) as cluster:
        come = cluster.as_they_come(square, range(100))
        next(come)
        local.scale(0)
        local.sync(local._correct_state)
        with pytest.raises(WorkersGoneError, match=r" has had no worker for 0\.5 s$"):
            list(come)
