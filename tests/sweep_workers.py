"""What worker processes run in the tests of sweeps: they import it by name."""

import os
import signal
import time
from pathlib import Path


def square(number: int) -> int:
    return number * number


def plus(left: int, right: int) -> int:
    return left + right


def process_id(_: int) -> int:
    return os.getpid()


def refuse(number: int) -> int:
    raise LookupError(f"no {number}")


class Unpicklable(Exception):  # noqa: N818
    def __init__(self, one: int, two: int) -> None:
        super().__init__("both are needed")


def refuse_unpicklably(number: int) -> int:
    raise Unpicklable(number, number)


def die() -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def cannot_begin(_: object) -> None:
    raise SystemExit(3)


class EndsAfter:
    """Squares; 0 waits for the end of 1."""

    def __init__(self, marker: Path) -> None:
        self.marker = marker

    def __call__(self, number: int) -> int:
        if number == 1:
            self.marker.touch()
        for _ in range(6_000 if number == 0 else 0):
            if self.marker.exists():
                break
            time.sleep(0.01)
        return number * number


class DiesOnce:
    """Squares; on `victim`, its process kills itself, unless the marker says that one did."""

    def __init__(self, marker: Path, victim: int) -> None:
        self.marker, self.victim = marker, victim

    def __call__(self, number: int) -> int:
        if number == self.victim and not self.marker.exists():
            self.marker.touch()
            die()
        return number * number


class DiesAlways:
    """Squares; on `victim`, its process kills itself, and writes down that it was there."""

    def __init__(self, marker: Path, victim: int) -> None:
        self.marker, self.victim = marker, victim

    def __call__(self, number: int) -> int:
        if number == self.victim:
            with self.marker.open("a") as file:
                file.write("x")
            die()
        return number * number
