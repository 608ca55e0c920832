"""A Dask cluster as a sweep's workers; Dask itself is imported when it is asked for."""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from itertools import islice
from queue import Empty, Queue
from typing import TYPE_CHECKING, Any

from s11.sweep_outcomes import Lost, WorkersGoneError, in_order
from s11.sweep_tasks import Packed, forget, keep

if TYPE_CHECKING:
    from distributed import Client, Future, KilledWorker

TIMEOUT_S = 10.0
PATIENCE_S, CHECK_S = 120.0, 5.0  # until nobody is expected to replace the last worker
IN_FLIGHT_PER_THREAD = 4  # no thread waits for this process, and little is sent too early


class DaskCluster:
    """A map over the workers of the Dask scheduler at `address`, such as tcp://host:8786.

    A worker that dies loses nothing: the scheduler gives what it had to others. What died with
    several of them (Dask's `allowed-failures`, 3, and then one more) is run once more at the
    end with nothing beside it, for another may have been to blame. What many experiments have
    in common goes to each worker once, as a plugin that workers who come later get as well.

    Raises:
        ValueError: Dask is not installed, nobody answers at the address or no worker comes
            within `timeout_s`, or the workers lack this version of s11.
    """

    def __init__(self, address: str, *, timeout_s: float = TIMEOUT_S) -> None:
        self.address = address
        self.client = _connected(address, timeout_s)
        try:
            _require_workers(self.client, address, timeout_s)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        """Leave the cluster; it goes on running."""
        self.client.close()

    def __enter__(self) -> DaskCluster:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __call__(self, function: Callable[..., Any], *iterables: Any) -> Iterator[Any]:
        """Yield the results in order, as `map` does.

        Raises:
            WorkersGoneError: an item with which all its workers died, or no scheduler any more.
        """
        return in_order(self.as_they_come, function, *iterables)

    def as_they_come(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        *,
        shared: Sequence[Packed] = (),
    ) -> Iterator[tuple[int, Any]]:
        """Yield each item's number with its result as it comes, or with `Lost`.

        Raises:
            WorkersGoneError: the scheduler has gone, or has had no worker for `PATIENCE_S`.
        """
        plugin = _keeper(shared)
        self.client.register_plugin(plugin)
        try:
            killed: list[int] = []
            threads = sum(self.client.nthreads().values())
            most = IN_FLIGHT_PER_THREAD * max(1, threads)
            for number, result in self._results(function, items, range(len(items)), most):
                if isinstance(result, Lost):
                    killed.append(number)
                else:
                    yield number, result
            yield from self._results(function, items, killed, 1)
        finally:
            with suppress(Exception):  # where the cluster has gone it has let go already
                self.client.unregister_worker_plugin(plugin.name)

    def _results(
        self,
        function: Callable[[Any], Any],
        items: Sequence[Any],
        numbers: Sequence[int],
        most: int,
    ) -> Iterator[tuple[int, Any]]:
        """Yield numbers and what they gave, with `most` of them under way at a time."""
        waiting = iter(numbers)
        under_way: dict[Future[Any], int] = {}
        done: Queue[Future[Any]] = Queue()

        def begin(count: int) -> None:
            for number in islice(waiting, count):
                future = self.client.submit(function, items[number], pure=False)
                under_way[future] = number
                future.add_done_callback(done.put)

        begin(most)
        try:
            while under_way:
                future, result = self._next(done)
                yield under_way.pop(future), result
                begin(1)
        finally:
            with suppress(Exception):
                self.client.cancel(list(under_way))

    def _next(self, done: Queue[Future[Any]]) -> tuple[Future[Any], Any]:
        """Return the next future and its result, however long it takes where there are workers."""
        from distributed import CancelledError, KilledWorker

        checks = 0
        while checks * CHECK_S < PATIENCE_S:
            with suppress(Empty):
                future = done.get(timeout=CHECK_S)
                try:
                    if future.status != "error":
                        return future, future.result(timeout=CHECK_S)
                    error = future.exception()
                    if isinstance(error, KilledWorker):
                        return future, _lost(error)
                    raise error
                except CancelledError as error:
                    message = f"dask: the scheduler at {self.address} has gone"
                    raise WorkersGoneError(message) from error
                except TimeoutError:
                    if future.status == "error":
                        raise
                    future.add_done_callback(done.put)  # its worker died with it: it is run again
            checks = 0 if self.client.nthreads() else checks + 1
        raise WorkersGoneError(
            f"dask: the scheduler at {self.address} has had no worker for {PATIENCE_S:g} s"
        )


def _lost(error: KilledWorker) -> Lost:
    deaths = error.allowed_failures + 1
    return Lost(deaths=deaths, why="see their logs")


def _connected(address: str, timeout_s: float) -> Client:
    try:
        from distributed import Client
    except ImportError as error:
        raise ValueError(
            "dask: the library is not installed (allowed: pip install 's11[dask]', "
            "or --jobs for processes on this machine)"
        ) from error
    try:
        # A client that finds nobody complains for seconds when it is thrown away: ask before.
        with ThreadPoolExecutor(1) as apart:  # where no event loop runs, as one does in Jupyter
            apart.submit(asyncio.run, _identity(address, timeout_s)).result()
        return Client(address, timeout=timeout_s, set_as_default=False)
    except (OSError, ValueError, TypeError) as error:  # the last two: no address at all
        raise ValueError(
            f"dask: no scheduler answers at {address[:100]!r} within {timeout_s:g} s "
            "(allowed: the address that `dask scheduler` prints)"
        ) from error


async def _identity(address: str, timeout_s: float) -> None:
    from distributed import rpc

    async with rpc(address, timeout=timeout_s) as scheduler:
        await asyncio.wait_for(scheduler.identity(), timeout_s)


def _require_workers(client: Client, address: str, timeout_s: float) -> None:
    """Refuse a cluster without workers, or whose workers do not have this s11."""
    try:
        client.wait_for_workers(1, timeout=timeout_s)
    except TimeoutError as error:
        raise ValueError(
            f"dask: the scheduler at {address[:100]!r} has no workers (allowed: at least 1)"
        ) from error
    ours = _version()
    try:
        theirs = client.run(_version)
    except Exception as error:  # as text where the worker cannot even read the question
        if "No module named 's11" not in str(error):
            raise
        raise ValueError(f"dask: workers have no s11 (allowed: s11 {ours} on each)") from error
    others = sorted(set(theirs.values()) - {ours})
    if others:
        raise ValueError(f"dask: workers have s11 {others[0]} (allowed: s11 {ours} on each)")


def _version() -> str:
    return str(sys.modules["s11"].__version__)


def _keeper(shared: Sequence[Packed]) -> Any:
    """Return the plugin that keeps what is shared in each worker, and lets go of it at the end."""
    from distributed import WorkerPlugin

    class Keeper(WorkerPlugin):  # in here, for its base is not always there
        name = "s11-" + "-".join(packed.digest[:16] for packed in shared)[:200]

        def setup(self, worker: Any) -> None:
            keep(shared)

        def teardown(self, worker: Any) -> None:
            forget(shared)

    return Keeper()
