"""The pages under docs/: the notebook's cells run, and what embedding.md promises is there."""

import ast
import re
from pathlib import Path
from typing import Any

import pytest
import streamlit

import s11

CELL = re.compile(r"^```python\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TOLD = re.compile(r"^(?P<expression>\S.*?)  # (?P<value>[\d.]+)$", re.MULTILINE)


def cells(path: Path) -> list[str]:
    return CELL.findall(path.read_text(encoding="utf-8"))


def run(cell: str, names: dict[str, Any]) -> object:
    """Run a cell and return its last expression, as a notebook shows it."""
    tree = ast.parse(cell)
    last = tree.body[-1]
    assert isinstance(last, ast.Expr), f"a cell that shows nothing:\n{cell}"
    exec(compile(ast.Module(tree.body[:-1], []), "cell", "exec"), names)
    return eval(compile(ast.Expression(last.value), "cell", "eval"), names)


def test_every_cell_of_the_notebook_runs_and_shows_something(root: Path) -> None:
    names: dict[str, Any] = {}
    shown = []
    told = 0
    for cell in cells(root / "docs" / "notebook.md"):
        shown.append(run(cell, names))
        for match in TOLD.finditer(cell):
            value = eval(match["expression"], names)
            assert value == pytest.approx(float(match["value"]), abs=1e-3), match[0]
            told += 1
    assert all(value is not None for value in shown)
    # 4 + 0.018 * 1024 + 0.05 * 24, its 32 chunks, and the prompt in one step
    assert told == 4
    assert [names["metrics"].longest_stall_ms, names["metrics"].ttft_ms] == pytest.approx(
        [23.632, 32 * 23.632]
    )

    timeline = names["figure"].to_plotly_json()
    assert timeline["layout"]["meta"]["longest_stall_ms"] == names["metrics"].longest_stall_ms
    sweep = names["sweep"]
    assert sweep.chunk_tokens.tolist() == [256, 512, 1024, 2048, 4096, 8192]
    assert sweep.longest_stall_ms.is_monotonic_increasing
    assert len(names["requests"]) == 300
    assert names["capacity"].highest.holds
    assert not names["capacity"].failing.holds
    assert shown[-1] == [True] * 6


def test_the_readmes_cells_run(root: Path) -> None:
    names: dict[str, Any] = {}
    shown = [run(cell, names) for cell in cells(root / "README.md")]
    assert isinstance(shown[0], s11.Result)
    assert names["metrics"].longest_stall_ms == pytest.approx(23.632)


def test_embed_options_are_those_of_the_installed_streamlit(root: Path) -> None:
    page = (root / "docs" / "embedding.md").read_text(encoding="utf-8")
    table = page[page.index("| option |") :].partition("\n\n")[0]
    options = set(re.findall(r"`([a-z_]+)`", table))
    assert len(options) == 6
    folder = Path(streamlit.__file__).parent / "static" / "static" / "js"
    scripts = "".join(path.read_text("utf-8") for path in folder.glob("*.js"))
    known = {name for name in options if f"`{name}`" in scripts}
    assert known == options


def test_links_of_the_documentation_lead_somewhere(root: Path) -> None:
    pages = [*root.glob("docs/*.md"), root / "README.md"]
    for page in pages:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text(encoding="utf-8")):
            assert (page.parent / target).exists(), f"{page.name}: {target}"


def test_documented_addresses_of_pages_are_pages(root: Path) -> None:
    page = (root / "docs" / "embedding.md").read_text(encoding="utf-8")
    listed = page[page.index("**Which page.**") :].partition("\n- ")[0]
    names = set(re.findall(r"`/([a-z_]+)`", listed))
    assert len(names) >= 8
    assert names <= {path.stem for path in root.glob("pages/*.py")}
