"""What the server keeps for all visitors is bounded, whatever they ask for."""

import ast
from dataclasses import replace
from pathlib import Path

from s11 import Experiment, chapter_scenario
from s11.ui import runs
from s11.ui.traffic_kept import Kept

ROOT = Path(__file__).resolve().parents[2]
CACHES = {"cache", "lru_cache", "cache_data", "cache_resource"}


def test_runs_are_kept_by_the_length_of_their_tables(monkeypatch):
    monkeypatch.setattr(runs, "_runs", Kept(size_of=runs._runs._size_of, most=10_000))
    long = Experiment(workload=chapter_scenario(prompt_tokens=8_192)).with_chunk_tokens(1)
    first = runs.run(long)
    assert len(first.result.steps) == 2 + 8_192 + 3
    assert runs.run(long) is first  # the same run, not made again
    for target in range(1, 4):
        runs.run(replace(long, itl_target_ms=float(target)))
    assert len(runs._runs._values) == 1  # two would count for 18,394
    short = long.with_chunk_tokens(8_192)
    for target in range(1, 30):
        runs.run(replace(short, itl_target_ms=float(target)))
    assert len(runs._runs._values) == 9  # of 6 steps each: 9,054 in all


def unbounded(source: str) -> list[str]:
    """Functions whose cache grows with what is asked of them."""
    found = []
    for node in ast.walk(ast.parse(source)):
        if not isinstance(node, ast.FunctionDef) or not (node.args.args or node.args.kwonlyargs):
            continue
        for decorator in node.decorator_list:
            call = decorator if isinstance(decorator, ast.Call) else None
            name = ast.unparse(call.func if call else decorator).split(".")[-1]
            bounds = [
                word.value
                for word in (call.keywords if call else [])
                if word.arg in {"maxsize", "max_entries"}
            ]
            bounded = bool(bounds) and not (
                isinstance(bounds[0], ast.Constant) and bounds[0].value is None
            )
            if name in CACHES and not bounded:
                found.append(node.name)
    return found


def test_every_cache_that_takes_arguments_has_a_bound():
    sources = [*ROOT.glob("s11/**/*.py"), *ROOT.glob("pages/*.py"), ROOT / "app.py"]
    found = {path.name: unbounded(path.read_text(encoding="utf-8")) for path in sources}
    assert {name: names for name, names in found.items() if names} == {}


def test_the_search_for_unbounded_caches_finds_them():
    source = """
@cache
def f(x): ...
@lru_cache(maxsize=None)
def g(*, x): ...
@st.cache_data
def h(x): ...
@lru_cache(maxsize=8)
def bounded(x): ...
@cache
def constant(): ...
"""
    assert unbounded(source) == ["f", "g", "h"]
