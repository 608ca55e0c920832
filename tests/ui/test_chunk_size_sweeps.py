"""The chunk size page's sweeps: job by job, kept over an interruption."""

from functools import partial
from typing import Any

import pytest

from s11.ui import chunk_size_controls
from s11.ui.chunk_size_controls import worked


class Page:
    """As much of Streamlit as a sweep that takes no time needs."""

    def __init__(self) -> None:
        self.session_state: dict[str, Any] = {}

    def empty(self) -> "Page":
        return self


@pytest.fixture(autouse=True)
def page(monkeypatch: pytest.MonkeyPatch) -> Page:
    page = Page()
    monkeypatch.setattr(chunk_size_controls, "st", page)
    return page


def test_jobs_are_done_once_and_in_order():
    done: list[int] = []

    def job(number: int) -> int:
        done.append(number)
        return number

    jobs = [(str(number), partial(job, number)) for number in range(4)]
    assert worked("sweep", "asked", jobs) == [0, 1, 2, 3]
    assert worked("sweep", "asked", jobs) == [0, 1, 2, 3]
    assert done == [0, 1, 2, 3]
    assert worked("sweep", "something else", jobs) == [0, 1, 2, 3]
    assert done == [0, 1, 2, 3] * 2


def test_a_run_that_was_interrupted_adds_nothing_to_the_one_after_it():
    """The page runs anew while the run before it is still in its first job."""
    plain = [(str(n), lambda n=n: n) for n in range(3)]

    def interrupted() -> int:
        assert worked("sweep", "asked", plain) == [0, 1, 2]
        return 0

    assert worked("sweep", "asked", [("0", interrupted), *plain[1:]]) == [0, 1, 2]
    assert worked("sweep", "asked", plain) == [0, 1, 2]
