"""What a hosting service and a container get: requirements.txt alone, and the files they copy.

`scripts/deploy_rehearsal.sh` does the same with pip and a registry.
"""

import json
import re
import shutil
import subprocess
import tomllib
from fnmatch import fnmatch
from pathlib import Path

import pytest
from packaging.requirements import Requirement
from packaging.specifiers import SpecifierSet
from streamlit.proto.Alert_pb2 import Alert
from streamlit.proto.Delta_pb2 import Delta

from scripts.visit_app import error_of
from tests.bare_environment import closure, make_environment, requirements_in
from tests.serving import free_port, served

# Community Cloud's order; it takes the first that it finds.
BEFORE_REQUIREMENTS = ("uv.lock", "Pipfile", "environment.yml")
FORCED_OPTIONS = ("--client.showErrorDetails=false", "--server.enableXsrfProtection=true")


def instructions(root: Path) -> list[tuple[str, str]]:
    """The Dockerfile's, as (name, the rest), continued lines joined."""
    text = re.sub(r"\\\n\s*", "", (root / "Dockerfile").read_text())
    lines = [line for line in text.splitlines() if line and not line.startswith("#")]
    return [(name, rest) for name, _, rest in (line.partition(" ") for line in lines)]


def only(root: Path, name: str) -> str:
    (rest,) = [rest for other, rest in instructions(root) if other == name]
    return rest


def is_sent(root: Path, path: str) -> bool:
    """Whether .dockerignore lets a file into the build: the last rule that fits it decides."""
    sent = True
    for rule in (root / ".dockerignore").read_text().splitlines():
        if rule and not rule.startswith("#"):
            name = rule.removeprefix("!")
            parents = [path, *map(str, Path(path).parents)]
            if any(fnmatch(each, name) or fnmatch(f"/{each}", name) for each in parents):
                sent = rule.startswith("!")
    return sent


def test_the_hosting_service_finds_what_it_looks_for(root: Path) -> None:
    assert (root / "app.py").is_file()
    assert not [name for name in BEFORE_REQUIREMENTS if (root / name).exists()]
    assert not (root / "packages.txt").exists()  # no Debian package is needed
    settings = tomllib.loads((root / ".streamlit" / "config.toml").read_text())
    assert not {"port", "address"} & set(settings["server"])
    assert settings["server"].get("enableXsrfProtection", True) is True  # as it is forced there


def test_requirements_are_pinned_to_a_minor_version(root: Path) -> None:
    pins = {each.name: each.specifier for each in requirements_in(root / "requirements.txt")}
    assert {"streamlit", "plotly", "numpy"} <= set(pins)
    for name, pin in pins.items():
        (only_one,) = pin
        assert only_one.operator == "~=", name
    assert pins["streamlit"] == SpecifierSet("~=1.67.0")


def test_a_closure_follows_what_requirements_name_and_nothing_else() -> None:
    found = set(closure([Requirement("rich~=15.0")]))
    assert found == {"rich", "markdown-it-py", "mdurl", "pygments"}
    with pytest.raises(AssertionError, match="rich~=14"):
        closure([Requirement("rich~=14.0")])


def test_the_container_runs_as_nobody_in_particular_and_tells_its_health(root: Path) -> None:
    base = only(root, "FROM")
    pyproject = tomllib.loads((root / "pyproject.toml").read_text())
    version = base.removeprefix("python:").removesuffix("-slim")
    assert SpecifierSet(pyproject["project"]["requires-python"]).contains(version)
    names = [name for name, _ in instructions(root)]
    assert names.index("USER") > max(i for i, name in enumerate(names) if name in {"RUN", "COPY"})
    assert only(root, "USER") not in {"root", "0"}
    port = only(root, "EXPOSE")
    assert f"--server.port={port}" in only(root, "CMD")
    assert f":{port}/_stcore/health" in only(root, "HEALTHCHECK")


def test_the_container_gets_no_secret_and_no_history(root: Path) -> None:
    sent = ["s11/costs/constants.json", ".streamlit/config.toml", "pages/simulator.py"]
    kept = [".streamlit/secrets.toml", ".git/config", "tests/conftest.py", ".venv/bin/python"]
    kept += ["s11/__pycache__/a.pyc", "README.md", "scripts/setup_venv.sh"]
    assert [path for path in [*sent, *kept] if is_sent(root, path)] == sent


def test_every_page_runs_with_the_requirements_alone(root: Path, tmp_path: Path) -> None:
    """The Dockerfile's own steps in a new folder, under the hosting's forced options."""
    requirements = closure(requirements_in(root / "requirements.txt"))
    python = make_environment(tmp_path / "environment", requirements.values())
    imported = subprocess.run(
        [python, "-c", "import pytest"], capture_output=True, text=True, check=False
    )
    assert "ModuleNotFoundError" in imported.stderr

    image = tmp_path / "image"
    for name, rest in instructions(root):
        if name == "COPY":
            source, target = rest.split()
            target = target if target.endswith("/") else f"{target}/"
            copy(root, source, image / target)
    (step,) = [rest for name, rest in instructions(root) if name == "RUN" and "static" in rest]
    first = step.partition(" && ")[0].split()
    assert first[0] == "python"
    subprocess.run([python, *first[1:]], cwd=image, check=True)
    assert list((image / "static").glob("plotly-*.min.js"))

    port, exposed = str(free_port()), only(root, "EXPOSE")
    command = [part.replace(exposed, port) for part in json.loads(only(root, "CMD"))]
    assert command[0] == "python"
    command = [str(python), *command[1:], *FORCED_OPTIONS, "--server.address=127.0.0.1"]
    with served(command, folder=image, log=tmp_path / "log"):
        visited = subprocess.run(
            [python, root / "scripts" / "visit_app.py", f"http://127.0.0.1:{port}", "60"],
            capture_output=True,
            text=True,
            check=False,
        )
        check = json.loads(only(root, "HEALTHCHECK").partition("CMD ")[2])
        code = check[2].replace(exposed, port)
        healthy = subprocess.run([python, "-c", code], check=False, capture_output=True)
    assert (visited.returncode, visited.stderr) == (0, ""), visited.stdout
    assert healthy.returncode == 0
    assert len(visited.stdout.splitlines()) == len([*root.glob("pages/*.py")])
    assert "Traceback" not in (tmp_path / "log").read_text()


def copy(root: Path, source: str, target: Path) -> None:
    """Copy as Docker does: a file into a folder, a folder's content."""
    target.mkdir(parents=True, exist_ok=True)
    if (root / source).is_file():
        assert is_sent(root, source)
        shutil.copy(root / source, target)
        return
    for path in (root / source).rglob("*"):
        name = path.relative_to(root)
        if path.is_file() and is_sent(root, str(name)):
            to = target / path.relative_to(root / source)
            to.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, to)


def test_a_visit_tells_of_errors() -> None:
    broken, refusing, telling = Delta(), Delta(), Delta()
    broken.new_element.exception.type = "ModuleNotFoundError"
    broken.new_element.exception.message = "No module named 'x'"
    refusing.new_element.alert.format, refusing.new_element.alert.body = Alert.ERROR, "No."
    telling.new_element.alert.format, telling.new_element.alert.body = Alert.INFO, "Well."
    assert error_of(broken) == ["ModuleNotFoundError: No module named 'x'"]
    assert error_of(refusing) == ["No."]
    assert error_of(telling) == []
