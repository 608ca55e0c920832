"""A command that serves the app, for as long as a test looks at it."""

import os
import socket
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


@contextmanager
def served(command: Sequence[str], *, folder: Path, log: Path) -> Iterator[None]:
    """Run a command in a folder, with no home and no paths of this process; end it in the end."""
    environment = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
    with log.open("wb") as output:
        process = subprocess.Popen(
            command,
            cwd=folder,
            env={**environment, "HOME": str(log.parent)},
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
        )
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(timeout=10)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
