"""What every test may use: the shared data, and one rule for what a machine lacks."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parents[1]
IN_CI = os.environ.get("CI", "").lower() not in {"", "0", "false"}

# A run must not depend on how busy the machine is, and in CI not on luck either.
settings.register_profile("dev", deadline=None)
settings.register_profile("ci", deadline=None, derandomize=True, print_blob=True)
settings.load_profile("ci" if IN_CI else "dev")


def needs_a_browser(item: pytest.Item) -> bool:
    return ROOT / "tests" / "browser" in item.path.parents


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=needs_a_browser)  # last; else as they are


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep the tests of a file on one worker, so that what they share is made once.

    The first worker begins at the end, with what needs a browser, the others at the front: a
    server and a browser take seconds to start, and most often only one worker needs them.
    """
    from xdist.scheduler import LoadFileScheduling

    config.option.loadscopereorder = False
    scheduler = LoadFileScheduling(config, log)
    assign_first = scheduler._assign_work_unit

    def assign(node: object) -> None:
        if node is scheduler.nodes[0]:
            last = next(reversed(scheduler.workqueue))
            scheduler.workqueue.move_to_end(last, last=False)
        assign_first(node)

    scheduler._assign_work_unit = assign
    return scheduler


@pytest.fixture(scope="session")
def root() -> Path:
    """The repository."""
    return ROOT


@pytest.fixture(scope="session")
def lacking() -> Callable[[str], NoReturn]:
    """Call with what the machine lacks: skips the test, but in CI fails it."""

    def skip_or_fail(reason: str) -> NoReturn:
        if IN_CI:
            pytest.fail(f"{reason} (with CI set this is a failure)", pytrace=False)
        pytest.skip(reason)

    return skip_or_fail


@pytest.fixture(scope="session")
def shared_dir(lacking: Callable[[str], NoReturn]) -> Path:
    """The data that lies beside the repository: scheduler cases, measured tables, traces."""
    path = ROOT.parent / "shared"
    if not path.is_dir():
        lacking("no ../shared beside the repository, which holds this test's data")
    return path
