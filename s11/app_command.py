"""`s11 app`: the Streamlit app, from a checkout or from an installed s11."""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
from importlib.metadata import PackageNotFoundError, distribution
from importlib.util import find_spec
from pathlib import Path

from s11.option_types import Whole

DEFAULT_PORT = 8501
BESIDE_APP = ("pages/simulator.py", ".streamlit/config.toml")


def add_options(parser: argparse.ArgumentParser) -> None:
    """Give a parser the options of `s11 app`."""
    parser.add_argument("--port", type=Whole("port", 1, 65_535), default=DEFAULT_PORT)
    parser.add_argument(
        "--address", default="localhost", help="where to listen; 0.0.0.0: on every network"
    )
    parser.add_argument("--headless", action="store_true", help="open no browser")


def app(options: argparse.Namespace) -> int:
    """Serve the app until it is stopped; it stands in this process's place.

    Raises:
        ValueError: no Streamlit to serve it with, or an s11 that came without its app.
    """
    if find_spec("streamlit") is None:
        raise ValueError("app: streamlit is not installed (allowed: an s11 with its requirements)")
    folder = app_folder()
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
