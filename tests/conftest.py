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


@pytest.hookimpl(optionalhook=True)
def pytest_xdist_make_scheduler(config: pytest.Config, log: object) -> object:
    """Keep the tests of a file on one worker, so that what they share is made once.

    All that need a browser are as one file: a server and a browser take seconds to start.
    """
    from xdist.scheduler import LoadFileScheduling

    scheduler = LoadFileScheduling(config, log)
    file_of = scheduler._split_scope
    scheduler._split_scope = lambda nodeid: (
        "browser" if nodeid.startswith("tests/browser/") else file_of(nodeid)
    )
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
