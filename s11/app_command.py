"""`s11 app`: the Streamlit app, from a checkout or from an installed s11."""

from __future__ import annotations

import argparse
import contextlib
import errno
import os
import socket
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from s11.option_types import Whole

DEFAULT_PORT, MOST_PORT = 8501, 65_535
BESIDE_APP = ("pages/simulator.py", ".streamlit/config.toml")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `s11 app`."""
    parser.add_argument("--port", type=Whole("port", 1, MOST_PORT), default=DEFAULT_PORT)
    parser.add_argument(
        "--address", default="localhost", help="where to listen; 0.0.0.0: on every network"
    )
    parser.add_argument("--headless", action="store_true", help="open no browser")


def app(options: argparse.Namespace) -> int:
    """Serve the app until it is stopped; it stands in this process's place.

    Raises:
        ValueError: no Streamlit to serve it with, an s11 that came without its app, or a port
            that cannot be had.
    """
    if find_spec("streamlit") is None:
        raise ValueError("app: streamlit is not installed (allowed: an s11 with its requirements)")
    folder = app_folder()
    require_free(options.address, options.port)
    command = [
        *[sys.executable, "-m", "streamlit", "run", "app.py", "--server.port", str(options.port)],
        *["--server.address", options.address, "--server.showEmailPrompt", "false"],
        *["--server.headless", "true"] * options.headless,
    ]
    # In a process of its own: what app.py sets must be set before NumPy is imported.
    if os.name == "posix":
        os.chdir(folder)
        os.execv(sys.executable, command)
    return subprocess.call(command, cwd=folder)


def require_free(address: str, port: int) -> None:
    """Refuse what Streamlit would answer with a traceback.

    Raises:
        ValueError: no address of this machine, or a port that is taken or not allowed.
    """
    try:
        # "localhost" can be two addresses, of which a machine may lack one.
        candidates = socket.getaddrinfo(address, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", error)
        raise ValueError(f"address: {address!r:.60} is none of this machine ({reason})") from error
    refusals: list[OSError] = []
    for family, kind, protocol, _, place in candidates:
        try:
            with contextlib.closing(socket.socket(family, kind, protocol)) as listener:
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(place)
        except OSError as error:
            refusals.append(error)
    other = port + 1 if port < MOST_PORT else port - 1
    if any(error.errno == errno.EADDRINUSE for error in refusals):
        raise ValueError(
            f"port: {port} on {address} is taken (allowed: another one, for example {other})"
        )
    if len(refusals) == len(candidates):
        reason = refusals[-1].strerror
        raise ValueError(f"port: {port} on {address} cannot be had ({reason})")


def app_folder() -> Path:
    """Return the folder of app.py: the checkout's, or where the installation put it.

    Raises:
        ValueError: there is none.
    """
    checkout = Path(__file__).resolve().parents[1]
    for place in (checkout, _installed()):
        if place and all((place / name).is_file() for name in ("app.py", *BESIDE_APP)):
            return place
    raise ValueError("app: this s11 came without app.py (allowed: a checkout, or an installed s11)")


def _installed() -> Path | None:
    try:
        files = distribution("s11").files or []
    except PackageNotFoundError:
        return None
    return next(
        (
            Path(str(file.locate())).resolve().parent
            for file in files
            if file.parts[-3:] == ("share", "s11", "app.py")
        ),
        None,
    )
