"""The version in one place, a changelog by version, and workflows that say what they should."""

from pathlib import Path
from typing import Any

import pytest
import yaml

import s11
from scripts.check_release import UNRELEASED, notes, parts, version_in

CHANGELOG = """# Changelog

## Unreleased

## 0.2.0 (2026-12-31)

- Learn page.
- Quiz.

## 0.1.0 (2026-11-30)

- The first.
"""


def test_the_version_stands_in_one_place(root: Path) -> None:
    assert version_in((root / "s11" / "__init__.py").read_text()) == s11.__version__
    assert s11.__version__ not in (root / "pyproject.toml").read_text()


def test_the_changelog_is_by_version_and_knows_this_one(root: Path) -> None:
    told = parts((root / "CHANGELOG.md").read_text(encoding="utf-8"))
    released = [name for name in told if name != UNRELEASED]
    assert released[:1] in ([], [s11.__version__])
    assert all(told[name] for name in released)


def test_a_changelog_is_read_by_version() -> None:
    assert parts(CHANGELOG) == {
        "Unreleased": "",
        "0.2.0": "- Learn page.\n- Quiz.",
        "0.1.0": "- The first.",
    }
    assert notes("v0.2.0", version="0.2.0", changelog=CHANGELOG) == "- Learn page.\n- Quiz."


@pytest.mark.parametrize(
    ("tag", "version", "old", "new", "told"),
    [
        ("v0.3.0", "0.2.0", "", "", "tag: v0.3.0 .allowed: v0.2.0"),
        ("v0.3.0", "0.3.0", "", "", "begins with 0.2.0"),
        ("v0.2.0", "0.2.0", "Unreleased\n", "Unreleased\n\n- Left.\n", "Unreleased: has lines"),
        ("v0.2.0", "0.2.0", "- Learn page.\n- Quiz.\n", "", "says nothing of 0.2.0"),
        ("v0.2.0", "0.2.0", "0.1.0 (", "0.10.0 (", "0.10.0 stands below 0.2.0"),
        ("v0.2.0", "0.2.0", "0.1.0 (", "0.2.0 (", "0.2.0 stands below 0.2.0"),
        ("v0.2.0", "0.2.0", "0.2.0 (2026-12-31)", "0.2.0", "heading: '0.2.0'"),
        ("v0.2.0", "0.2.0", "0.1.0 (2026-11-30)", "Unreleased", "heading: 'Unreleased'"),
    ],
)
def test_what_is_not_ready_is_refused(
    tag: str, version: str, old: str, new: str, told: str
) -> None:
    changelog = CHANGELOG.replace(old, new) if old else CHANGELOG
    with pytest.raises(ValueError, match=told):
        notes(tag, version=version, changelog=changelog)


def workflow(root: Path, name: str) -> dict[Any, Any]:
    return dict(yaml.safe_load((root / ".github" / "workflows" / name).read_text()))


def commands(job: dict[str, Any]) -> str:
    return "\n".join(step.get("run", "") for step in job["steps"])


def test_workflows_are_sound(root: Path) -> None:
    names = sorted(path.name for path in (root / ".github" / "workflows").iterdir())
    assert names == ["ci.yml", "release.yml"]
    for name in names:
        told = workflow(root, name)
        assert {"name", True, "permissions", "jobs"} <= set(told)  # YAML takes `on` for true
        for job in told["jobs"].values():
            assert job["timeout-minutes"] <= 45
            assert job["runs-on"] == "ubuntu-latest"
            for step in job["steps"]:
                assert len({"run", "uses"} & set(step)) == 1
                assert "uses" not in step or step["uses"].startswith("actions/")
                assert "@v" in step.get("uses", "@v")


def test_workflows_run_what_the_makefile_has(root: Path) -> None:
    makefile = (root / "Makefile").read_text()
    ci, release = workflow(root, "ci.yml"), workflow(root, "release.yml")
    assert "make test" in commands(ci["jobs"]["test"])
    for step in [*ci["jobs"]["test"]["steps"], *release["jobs"]["release"]["steps"]]:
        if "make test" in step.get("run", ""):  # tests/conftest.py
            assert step["env"]["CI"] == "false"
    assert ci["permissions"] == {"contents": "read"}
    assert release[True] == {"push": {"tags": ["v*"]}}
    made = commands(release["jobs"]["release"])
    assert made.index("check_release.py") < made.index("make test wheel docs")
    assert made.index("make test wheel docs") < made.index("gh release create")
    for target in ("test:", "wheel:", "docs:"):
        assert f"\n{target}" in makefile
    for script in ("scripts/check_release.py", "scripts/visit_app.py"):
        assert (root / script).is_file()
