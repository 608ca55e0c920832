"""An environment that has requirements.txt and nothing else, made in a second from this one.

A hosting service installs requirements.txt alone. What it would install is known here: the
distributions that the file names, and those that they name in turn. Their files are linked into a
new virtual environment, in which an import of anything else fails as it would there.
"""

from __future__ import annotations

import subprocess
import sys
import venv
from collections.abc import Iterable
from importlib.metadata import Distribution, PackageNotFoundError, distribution
from pathlib import Path

from packaging.requirements import Requirement
from packaging.utils import canonicalize_name


def requirements_in(path: Path) -> list[Requirement]:
    lines = [line.partition("#")[0].strip() for line in path.read_text("utf-8").splitlines()]
    return [Requirement(line) for line in lines if line]


def closure(requirements: Iterable[Requirement]) -> dict[str, Distribution]:
    """By name, all that pip would install for some requirements; AssertionError where this
    environment has no such version, so that it can stand for that one."""
    found: dict[str, Distribution] = {}
    left = list(requirements)
    seen: set[tuple[str, frozenset[str]]] = set()
    while left:
        wanted = left.pop()
        name, extras = canonicalize_name(wanted.name), frozenset(wanted.extras)
        try:
            found[name] = distribution(name)
        except PackageNotFoundError:
            raise AssertionError(f"{wanted} is not installed") from None
        assert wanted.specifier.contains(found[name].version, prereleases=True), wanted
        if (name, extras) in seen:
            continue
        seen.add((name, extras))
        for text in found[name].requires or []:
            each = Requirement(text)
            environments = [{"extra": extra} for extra in (*extras, "")]
            if each.marker is None or any(map(each.marker.evaluate, environments)):
                left.append(each)
    return found


def make_environment(folder: Path, distributions: Iterable[Distribution]) -> Path:
    """Make a virtual environment of these distributions; return its python."""
    venv.EnvBuilder(symlinks=sys.platform != "win32").create(folder)
    (packages,) = folder.glob("lib/python*/site-packages")
    for each in distributions:
        for top in {file.parts[0] for file in each.files or []} - {"..", "__pycache__"}:
            if not top.endswith(".pth") and not (packages / top).exists():
                (packages / top).symlink_to(Path(str(each.locate_file(top))).resolve())
    return folder / "bin" / "python"


def install(python: Path, wheel: Path) -> None:
    """Install a wheel and nothing that it needs."""
    pip = [sys.executable, "-m", "pip", "--python", str(python), "--disable-pip-version-check"]
    subprocess.run(
        [*pip, "install", "--quiet", "--no-deps", "--no-index", "--no-compile", str(wheel)],
        check=True,
        stdout=subprocess.DEVNULL,
    )
