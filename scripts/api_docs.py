"""Write the API pages from the docstrings: python scripts/api_docs.py FOLDER (or: make docs)."""

from __future__ import annotations

import re
import sys
import warnings
from collections.abc import Sequence
from pathlib import Path

import pdoc
import pdoc.render
from jinja2 import pass_context
from jinja2.runtime import Context

ROOT = Path(__file__).resolve().parents[1]
MODULES = (
    "s11",
    "s11.attention",
    "s11.capacity",
    "s11.capacity_by_chunk",
    "s11.catalog",
    "s11.chrome_trace",
    "s11.costs",
    "s11.explain",
    "s11.exports",
    "s11.over_time",
    "s11.plan",
    "s11.policies",
    "s11.proof",
    "s11.results",
    "s11.sweep_dask",
    "s11.sweep_pool",
    "s11.traces",
    "s11.validation",
    "s11.worst_stalls",
)
"""What to show: the public names, and the modules that a longer program takes more from."""

_FIELD = re.compile(r"(?P<names>[a-z_][a-z_0-9]*(?:, [a-z_][a-z_0-9]*)*): (?P<text>\S.*)")


def write(folder: Path, modules: Sequence[str] = MODULES) -> None:
    """Write a page for each module, an index and a search to a folder."""
    # Of arguments of a class that a decorator made: they are shown as they are written.
    warnings.filterwarnings("ignore", "Error parsing type annotation", UserWarning)
    pdoc.render.configure(docformat="google")
    convert = pdoc.render.env.filters["to_markdown"]

    @pass_context
    def to_markdown(context: Context, docstring: str) -> str:
        return str(convert(context, fields_as_list(docstring)))

    pdoc.render.env.filters["to_markdown"] = to_markdown
    pdoc.pdoc(*modules, output_directory=folder)


def fields_as_list(docstring: str) -> str:
    """Return a docstring with each paragraph of `name: text` lines as a list in Markdown."""
    return "\n\n".join(map(_listed, docstring.split("\n\n")))


def _listed(paragraph: str) -> str:
    lines = paragraph.split("\n")
    if not _FIELD.fullmatch(lines[0]):
        return paragraph
    listed = []
    for line in lines:
        field = _FIELD.fullmatch(line)
        listed.append(f"- **{field['names']}**: {field['text']}" if field else f"  {line.strip()}")
    return "\n".join(listed)


if __name__ == "__main__":
    sys.path.insert(0, str(ROOT))
    write(Path(sys.argv[1]))
