"""A sweep's own worker processes: one that dies is replaced and its experiment run again."""

from __future__ import annotations

import multiprocessing
import pickle
import signal
import traceback
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from multiprocessing.connection import Connection, wait
from typing import Any

from s11.checks import require_int
from s11.sweep_outcomes import Lost, WorkersGoneError, in_order
from s11.sweep_tasks import Packed, keep

MAX_JOBS = 256
ATTEMPTS = 3
JOIN_S = 0.2
_GONE = (EOFError, OSError)  # what a pipe says whose other end was killed


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessPool:
    """A map over `jobs` new processes, each of which works on one item at a time.

    A worker that dies (killed, out of memory) is noticed by the end of its pipe. Its item, and
    no other, is given to a new worker, `attempts` times at most.

    The processes are spawned, not forked: they inherit nothing, and threads do no harm.

    Raises:
        ValueError: a number of jobs or attempts out of range.
    """

    jobs: int
    attempts: int = ATTEMPTS

    def __post_init__(self) -> None:
        require_int("jobs", self.jobs, 1, MAX_JOBS)
        require_int("attempts", self.attempts, 1, 100)

    def __call__(self, function: Callable[..., Any], *iterables: Any) -> Iterator[Any]:
        """Yield the results in order, as `map` does.

        Raises:
            WorkersGoneError: an item on which a worker died at every attempt.
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
            WorkersGoneError: workers that die before they begin, again and again.
        """
        waiting = deque(range(len(items)))
        deaths, failed_starts = [0] * len(items), 0
        starting: dict[Any, _Worker] = {}  # by their connection, as those below
        idle: dict[Any, _Worker] = {}
        busy: dict[Any, tuple[_Worker, int]] = {}
        try:
            while waiting or busy:
                while waiting and idle:
                    connection, worker = idle.popitem()
                    number = waiting.popleft()
                    if worker.gave(items[number]):
                        busy[connection] = worker, number
                    else:  # it died while it had nothing to do
                        waiting.appendleft(number)
                while len(starting) < min(len(waiting), self.jobs - len(busy)):
                    worker = _Worker()
                    starting[worker.connection] = worker
                for connection in wait([*starting, *busy]):
                    if connection in starting:
                        worker = starting.pop(connection)
                        if worker.began(function, shared):
                            idle[connection] = worker
                            continue
                        failed_starts += 1
                        if failed_starts > self.attempts * self.jobs:
                            raise WorkersGoneError(f"workers: none begins ({worker.why})")
                        continue
                    worker, number = busy.pop(connection)
                    answer = worker.answer()
                    if answer is not None:
                        idle[connection] = worker
                        succeeded, value = answer
                        if not succeeded:
                            raise value
                        yield number, value
                        continue
                    deaths[number] += 1
                    if deaths[number] < self.attempts:
                        waiting.appendleft(number)
                    else:
                        yield number, Lost(deaths=deaths[number], why=worker.why)
        finally:
            for worker in [
                *starting.values(),
                *idle.values(),
                *(pair[0] for pair in busy.values()),
            ]:
                worker.end()


class _Worker:
    """One process and this end of its pipe; what finds it dead ends it, and `why` tells."""

    def __init__(self) -> None:
        spawn = multiprocessing.get_context("spawn")
        self.why = "not ended"
        self.connection, theirs = spawn.Pipe()
        self.process = spawn.Process(target=_work, args=(theirs,), daemon=True)
        self.process.start()
        theirs.close()  # the worker's is then the only one, and its death closes the pipe

    def began(self, function: Callable[[Any], Any], shared: Sequence[Packed]) -> bool:
        """Tell a worker that is up what it is for; False where it died instead."""
        return self.answer() is not None and self.gave((function, shared))

    def gave(self, item: Any) -> bool:
        """Hand an item over; False where the worker is dead."""
        try:
            self.connection.send(item)
        except _GONE:
            self.end()
            return False
        return True

    def answer(self) -> tuple[bool, Any] | None:
        """Return whether the function returned, and its value or error; None where it died."""
        try:
            answer: tuple[bool, Any] = self.connection.recv()
        except _GONE:
            self.end()
            return None
        return answer

    def end(self) -> None:
        """Stop the process and note how it ended."""
        self.connection.close()
        self.process.join(JOIN_S)  # time to end by itself
        if self.process.exitcode is None:
            self.process.kill()
            self.process.join()
        code = self.process.exitcode or 0
        self.process.close()
        self.why = f"ended by {signal.Signals(-code).name}" if code < 0 else f"exit code {code}"


def _work(connection: Connection) -> None:
    """Say that this process is up, then answer items until the pipe closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent's to handle
    with suppress(*_GONE):
        connection.send((True, None))
        function, shared = connection.recv()
        keep(shared)
        while True:
            item = connection.recv()
            answer: tuple[bool, Any]
            try:
                answer = True, function(item)
            except Exception as error:
                answer = False, _travelling(error)
            connection.send(answer)


def _travelling(error: Exception) -> Exception:
    """Return an error that can be sent, with where it came from as a note."""
    error.add_note("In a worker:\n" + "".join(traceback.format_exception(error)))
    try:
        pickle.loads(pickle.dumps(error))
    except Exception:
        return RuntimeError("".join(traceback.format_exception(error)))
    return error
