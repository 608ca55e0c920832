"""Writing to a file or to standard output: the whole of it, or nothing."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path

STANDARD_OUTPUT = "-"


def check_output(output: str) -> None:
    """Refuse an output that cannot be a file; `-` is standard output.

    Raises:
        ValueError: no name, a folder, a folder that is not there.
    """
    if output == STANDARD_OUTPUT:
        return
    if not output or "\0" in output:
        raise ValueError(f"output: {output[:40]!r} names no file (allowed: a file, or -)")
    path = Path(output)
    if path.is_dir():
        raise ValueError(f"output: {path.name or output!r} is a folder (allowed: a file, or -)")
    if not path.parent.is_dir():
        raise ValueError(
            f"output: {path.name!r} lies in a folder that is not there "
            "(allowed: a file in a folder that is, or -)"
        )


def write(output: str, pieces: Iterable[bytes]) -> None:
    """Write pieces to a file, which appears when all are written, or to standard output.

    A device or a pipe takes them as they come.

    Raises:
        ValueError: an output that cannot be a file.
        OSError: a file that cannot be written.
    """
    check_output(output)
    if output == STANDARD_OUTPUT:
        sys.stdout.flush()
        for piece in pieces:
            sys.stdout.buffer.write(piece)
        sys.stdout.buffer.flush()
        return
    path = Path(os.path.realpath(output))  # what a link points to, not the link
    if path.exists() and not path.is_file():
        with path.open("wb") as device:
            device.writelines(pieces)
        return
    partial = path.with_name(f".{path.name[:200]}.{os.getpid()}.partial")
    try:
        with partial.open("wb") as file:
            file.writelines(pieces)
        partial.replace(path)
    finally:
        with suppress(FileNotFoundError):
            partial.unlink()
