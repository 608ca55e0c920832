"""Check that a version is ready to be tagged, and print what CHANGELOG.md says of it.

python scripts/check_release.py v0.2.0

The version stands in one place, `s11.__version__`. Its part of CHANGELOG.md begins with
`## 0.2.0 (2026-12-01)`; above it may stand `## Unreleased` with nothing below.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
UNRELEASED = "Unreleased"
_HEADING = re.compile(r"(?P<version>\d+\.\d+\.\d+) \(\d{4}-\d\d-\d\d\)")


def version_in(source: str) -> str:
    """Return the version that a package's source gives."""
    (version,) = re.findall(r'^__version__ = "(.+)"$', source, re.MULTILINE)
    return str(version)


def parts(changelog: str) -> dict[str, str]:
    """Return what is told of each version, the newest first; of `Unreleased` where it is there.

    Raises:
        ValueError: a heading of another form, a version twice, or an older one above.
    """
    _, *texts = re.split(r"^## ", changelog, flags=re.MULTILINE)
    told: dict[str, str] = {}
    for text in texts:
        heading, _, body = text.partition("\n")
        match = _HEADING.fullmatch(heading)
        if heading == UNRELEASED and not told:
            told[UNRELEASED] = body.strip()
            continue
        if match is None:
            raise ValueError(f"heading: {heading!r} (allowed: {UNRELEASED}, or 1.2.3 (2026-12-31))")
        newer = next((name for name in reversed(told) if name != UNRELEASED), None)
        if newer is not None and _numbers(match["version"]) >= _numbers(newer):
            raise ValueError(f"heading: {match['version']} stands below {newer}")
        told[match["version"]] = body.strip()
    return told


def notes(tag: str, *, version: str, changelog: str) -> str:
    """Return what to say of a release.

    Raises:
        ValueError: what does not fit together, in a sentence.
    """
    if tag != f"v{version}":
        raise ValueError(f"tag: {tag} (allowed: v{version}, as s11.__version__ says)")
    told = parts(changelog)
    if told.get(UNRELEASED):
        raise ValueError(f"{UNRELEASED}: has lines that belong to {version} or a later one")
    newest = next((name for name in told if name != UNRELEASED), None)
    if newest != version:
        raise ValueError(f"CHANGELOG.md: begins with {newest} (allowed: {version})")
    if not told[version]:
        raise ValueError(f"CHANGELOG.md: says nothing of {version}")
    return told[version]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


if __name__ == "__main__":
    try:
        print(
            notes(
                sys.argv[1],
                version=version_in((ROOT / "s11" / "__init__.py").read_text(encoding="utf-8")),
                changelog=(ROOT / "CHANGELOG.md").read_text(encoding="utf-8"),
            )
        )
    except ValueError as error:
        sys.exit(f"not ready: {error}")
