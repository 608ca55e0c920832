"""What `pip install` gives: the sdist and its wheel, built and installed without a registry."""

import json
import os
import shutil
import socket
import subprocess
import sys
import tarfile
import urllib.request
import zipfile
from dataclasses import dataclass
from email.message import Message
from email.parser import Parser
from importlib.metadata import version
from pathlib import Path

import pytest
from packaging.requirements import Requirement

import s11
from s11 import app_command, cli
from scripts.visit_app import visit, wait_for_health
from tests.bare_environment import closure, install, make_environment, requirements_in
from tests.serving import free_port, served

NEEDED = ("app.py", "pyproject.toml", "requirements.txt", "README.md", "LICENSE", "MANIFEST.in")
FOLDERS = ("s11", "pages", "assets", ".streamlit", "tests")
DATA = {".csv", ".json", ".jsonl", ".js", ".css", ".typed"}


@dataclass(frozen=True)
class Built:
    sdist: Path
    wheel: Path
    python: Path
    """Of an environment that has the wheel and its requirements, and nothing else."""

    def names(self) -> set[str]:
        return set(zipfile.ZipFile(self.wheel).namelist())

    def text(self, name: str) -> str:
        return zipfile.ZipFile(self.wheel).read(name).decode("utf-8")

    def metadata(self) -> Message:
        return Parser().parsestr(self.text(f"s11-{s11.__version__}.dist-info/METADATA"))

    def run(self, folder: Path, *command: str) -> str:
        """Run a command of the environment in a folder and return what it prints."""
        return subprocess.run(
            [self.python.parent / command[0], *command[1:]],
            cwd=folder,
            capture_output=True,
            text=True,
            check=True,
        ).stdout


@pytest.fixture(scope="module")
def built(root: Path, tmp_path_factory: pytest.TempPathFactory) -> Built:
    work = tmp_path_factory.mktemp("package")
    tree, made = work / "tree", work / "made"
    tree.mkdir()
    for name in NEEDED:
        shutil.copy(root / name, tree)
    for name in FOLDERS:
        left_out = shutil.ignore_patterns("__pycache__", "secrets.toml")
        shutil.copytree(root / name, tree / name, ignore=left_out)
    (tree / "static").mkdir()
    (tree / "static" / ".gitkeep").touch()
    build = [sys.executable, "-m", "build", "--no-isolation", "--outdir", str(made), str(tree)]
    done = subprocess.run(build, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    ((sdist,), (wheel,)) = made.glob("*.tar.gz"), made.glob("*.whl")
    requirements = closure(requirements_in(root / "requirements.txt"))
    python = make_environment(work / "environment", requirements.values())
    install(python, wheel)
    return Built(sdist, wheel, python)


def test_the_wheel_has_every_module_and_every_data_file(root: Path, built: Built) -> None:
    sources = [path for path in root.glob("s11/**/*") if path.suffix in DATA | {".py"}]
    wanted = {str(path.relative_to(root)) for path in sources}
    assert {"s11/py.typed", "s11/cli.py", "s11/costs/constants.json"} < wanted
    assert {name for name in built.names() if name.startswith("s11/")} == wanted
    # Nothing else lies beside the modules that somebody forgot to name in pyproject.toml.
    others = [path.name for path in root.glob("s11/**/*") if path.is_file() and path not in sources]
    assert {Path(name).suffix for name in others} <= {".pyc"}


def test_the_wheel_has_the_app(root: Path, built: Built) -> None:
    begin = f"s11-{s11.__version__}.data/data/share/s11/"
    shipped = {name.removeprefix(begin) for name in built.names() if name.startswith(begin)}
    pages = {f"pages/{path.name}" for path in root.glob("pages/*.py")}
    assert shipped == pages | {
        *("app.py", "static/.gitkeep", ".streamlit/config.toml"),
        *(str(path.relative_to(root)) for path in root.glob("assets/*")),
    }


def test_the_metadata_says_what_it_needs(root: Path, built: Built) -> None:
    metadata = built.metadata()
    assert metadata["Version"] == s11.__version__
    assert metadata["License-Expression"] == "MIT"
    assert built.names() >= {f"s11-{s11.__version__}.dist-info/licenses/LICENSE"}
    needs = [Requirement(text) for text in metadata.get_all("Requires-Dist", [])]
    always = {str(need) for need in needs if need.marker is None}
    assert always == set(map(str, requirements_in(root / "requirements.txt")))
    extra = {need.name: need for need in needs if need.marker is not None}
    assert metadata.get_all("Provides-Extra") == ["dask"]
    assert set(extra) == {"dask", "distributed"}
    for name, need in extra.items():  # those that the tests ran with
        assert need.specifier.contains(version(name))
    entry_points = built.text(f"s11-{s11.__version__}.dist-info/entry_points.txt")
    assert entry_points.split() == ["[console_scripts]", "s11", "=", "s11.cli:main"]


def test_the_sdist_is_enough_to_build_from_and_no_more(built: Built) -> None:
    with tarfile.open(built.sdist) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    tops = {name.partition("/")[0] for name in names} - {""}
    folders = {*FOLDERS, "static"} - {"tests"}
    assert tops == {*NEEDED, *folders, "PKG-INFO", "setup.cfg", "s11.egg-info"}


def test_the_installed_command_and_library_work_from_any_folder(
    built: Built, tmp_path: Path
) -> None:
    assert built.run(tmp_path, "s11", "--help").startswith("usage: s11 ")
    simulated = built.run(tmp_path, "s11", "simulate", "--json", "--no-steps")
    assert json.loads(simulated)["metrics"]["longest_stall_ms"] == 23.632
    program = "import s11; print(s11.__version__, s11.__file__); s11.MODELS, s11.TRAFFIC_PRESETS"
    printed = built.run(tmp_path, "python", "-c", program).split()
    assert printed[0] == s11.__version__
    assert Path(printed[1]).is_relative_to(built.python.parents[1])


def test_the_installed_app_is_served_from_any_folder(built: Built, tmp_path: Path) -> None:
    port = free_port()
    address = f"http://127.0.0.1:{port}"
    command = [str(built.python.parent / "s11"), "app", "--headless", "--address", "127.0.0.1"]
    with served([*command, "--port", str(port)], folder=tmp_path, log=tmp_path / "log"):
        wait_for_health(address, 60)
        first = visit(address, "")
        (script,) = (built.python.parents[1] / "share" / "s11" / "static").glob("*.js")
        with urllib.request.urlopen(f"{address}/app/static/{script.name}", timeout=60) as answer:
            assert answer.status == 200
    assert first.errors == ()
    assert "compare" in first.pages
    assert [path.name for path in tmp_path.iterdir() if path.name != "log"] in ([], [".streamlit"])


def test_type_checkers_see_the_types_of_the_installed_package(built: Built, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(
        "from s11 import Experiment, measure, simulate\n"
        "reveal_type(measure(simulate(Experiment()), itl_target_ms=50.0).longest_stall_ms)\n"
        'simulate("experiment")\n'
        "from s11 import prefil\n"
    )
    (tmp_path / "mypy.ini").write_text(
        f"[mypy]\npython_executable = {built.python}\n"
        "[mypy-numpy.*,pandas.*,plotly.*,scipy.*]\n"  # not what is looked at, and large
        "follow_imports = skip\nignore_missing_imports = True\n"
    )
    checked = subprocess.run(
        [sys.executable, "-m", "mypy", "--strict", "--cache-dir=/dev/null", "user.py"],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    told, refused, unknown, summary = checked.stdout.splitlines()
    assert told == 'user.py:2: note: Revealed type is "float | None"'
    assert refused.startswith('user.py:3: error: Argument 1 to "simulate" has incompatible type')
    assert unknown.startswith('user.py:4: error: Module "s11" has no attribute "prefil"')
    assert summary.startswith("Found 2 errors")


def test_a_checkout_serves_its_own_app(root: Path) -> None:
    assert app_command.app_folder() == root


@pytest.fixture
def stays_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """The app would stand in the place of the process that runs the tests."""

    def refuse(*arguments: object) -> None:
        pytest.fail(f"served: {arguments}")

    monkeypatch.setattr(os, "execv", refuse)
    monkeypatch.setattr(subprocess, "call", refuse)


@pytest.mark.usefixtures("stays_here")
def test_without_streamlit_or_its_files_the_app_says_so(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    monkeypatch.setattr(app_command, "find_spec", lambda name: None)
    assert cli.main(["app"]) == 2
    assert capsys.readouterr().err.startswith("s11: app: streamlit is not installed")

    monkeypatch.setattr(app_command, "find_spec", lambda name: name)
    monkeypatch.setattr(app_command, "__file__", str(tmp_path / "s11" / "app_command.py"))
    monkeypatch.setattr(app_command, "_installed", lambda: None)
    assert cli.main(["app"]) == 2
    assert capsys.readouterr().err.startswith("s11: app: this s11 came without app.py")


@pytest.mark.usefixtures("stays_here")
def test_an_address_or_port_that_cannot_be_had_is_told_in_a_line(
    capsys: pytest.CaptureFixture[str],
) -> None:
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        assert cli.main(["app", "--address", "127.0.0.1", "--port", str(port)]) == 2
    assert capsys.readouterr().err.startswith(f"s11: port: {port} on 127.0.0.1 is taken")
    assert cli.main(["app", "--address", "no such address"]) == 2
    assert capsys.readouterr().err.startswith("s11: address: 'no such address' is none of this")
