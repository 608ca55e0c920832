"""Run a command in this process, and hold what it leaves behind against its contract."""

from collections.abc import Callable
from typing import Any

import pytest

from s11.cli import main

Command = Callable[..., str]


def printed(capsys: pytest.CaptureFixture[str], *arguments: str, code: int = 0) -> str:
    """What a command prints that ends with `code` and says nothing on stderr."""
    assert main(arguments) == code
    out, err = capsys.readouterr()
    assert err == ""
    return out


def refusal(capsys: pytest.CaptureFixture[str], *arguments: str) -> str:
    """The one line on stderr of a command that is refused and prints nothing."""
    try:
        code: Any = main(arguments)
    except SystemExit as stopped:
        code = stopped.code
    out, err = capsys.readouterr()
    assert code == 2
    assert out == ""
    assert err.endswith("\n")
    assert len(err.splitlines()) == 1
    assert len(err) < 400
    assert err.startswith("s11")
    return err
