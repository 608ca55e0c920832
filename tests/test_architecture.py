"""The import table of DESIGN.md, held against every import in the tree, lazy ones included."""

import ast
import graphlib
import re
import subprocess
import sys
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest

# Downward only: a part imports from its own row and from rows above it. A new module gets its
# place here first. A dotted name ("costs.catalog") may be placed apart from its package.
COMMAND_LINE = {
    "__main__",
    "cli",
    "app_command",
    "capacity_command",
    "commands",
    "cost_options",
    "error_tables",
    "export_command",
    "ignored_options",
    "option_types",
    "report_tables",
    "sweep_command",
    "terminal",
    "traffic_options",
    "traffic_report",
}
ROWS = (
    {"workload", "words", "prefix_workloads", "plan", "catalog", "results", "checks", "hash_tree"}
    | {"arrivals", "lengths", "prefix_texts", "cached_blocks"},
    {"policies", "costs", "kv_blocks", "prefix_cache", "traces", "bench_results"}
    | {"traffic", "traffic_presets"},
    {
        "experiment",
        "held_blocks",
        "recorder",
        "stepping",
        "express",
        "head_of_queue",
        "head_stretches",
    }
    | {"head_tables"},
    {"engine", "presets", "entries", "scenes", "kv_pool"},
    {"simulator"},
    {
        "metrics",
        "request_metrics",
        "capacity",
        "capacity_points",
        "capacity_words",
        "capacity_by_chunk",
        "sweeps",
        "sweep_dask",
        "sweep_files",
        "sweep_grid",
        "sweep_journal",
        "sweep_outcomes",
        "sweep_pool",
        "sweep_tasks",
        "largest_chunk",
        "piggyback",
        "piggyback_rides",
        "tuning",
        "budgets",
        "exports",
        "export_tables",
        "export_files",
        "chrome_trace",
        "chrome_events",
        "chrome_requests",
        "chrome_window",
        "html_report",
        "report_contents",
        "share",
        "explain",
        "explain_never",
        "verdict",
        "trade_off",
        "cases",
        "bench",
        "attention",
        "proof",
        "overlay",
        "machine_words",
        "replay",
        "sample_measurements",
        "validation",
    }
    | {"prefix_blocks", "step_tables", "step_reasons", "step_story"}
    | {"over_time", "worst_stalls"}
    | {"quiz", "quiz_attention", "quiz_questions", "quiz_schedule", "quiz_trade_off"}
    | {"exercises", "exercises_budget", "exercises_bug", "exercises_target"}
    | {"suffering", "unserved", "metric_rows", "comparison"}
    | {"engine_commands", "engine_knobs"}
    | {"myths_flops", "myths_itl", "myths_smaller", "myths_mixing"},
    {"figures"},
    {"learn_scene", "learn_decoder", "learn_timeline"}
    | {"learn_freeze", "learn_orders", "learn_keys", "learn_budget", "learn_cost", "learn_ride"}
    | {"learn_choice", "learn_mask", "learn_positions", "learn_engines", "learn_next"}
    | {"learn_scenes"},
    {"s11"} | COMMAND_LINE,  # "s11" is s11/__init__.py
    {"ui"},
    {"pages"},
    {"app"},
)
ROW = {part: row for row, parts in enumerate(ROWS) for part in parts}

# part -> parts that it must not import although the rows would let it
FORBIDDEN = {
    "policies": {"costs"},
    "s11": COMMAND_LINE,
    "ui": COMMAND_LINE,
    "pages": COMMAND_LINE,
    "app": COMMAND_LINE,
}
# part -> all that it may import of s11
CONFINED = {"attention": {"attention"}}

# library -> the only parts that may import it, however lazily
LIBRARIES = {
    "streamlit": {"ui", "pages", "app"},
    "plotly": {"figures"},
    "scipy": {"costs"},
    "distributed": {"sweep_dask"},
    "rich": COMMAND_LINE,
    "pandas": set(ROW) - {"attention"},
    "numpy": set(ROW),
}
PAGE_LINES_LIMIT = 80


def module_name(path: Path, root: Path) -> str:
    parts = path.relative_to(root).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


def source_modules(root: Path) -> dict[str, str]:
    """Module name -> source, of all that the table rules: s11, pages and app."""
    paths = [*root.glob("s11/**/*.py"), *root.glob("pages/**/*.py"), *root.glob("app.py")]
    return {module_name(path, root): path.read_text(encoding="utf-8") for path in paths}


def part_of(module: str) -> str | None:
    """The table's name for a module: the longest that fits; None if the table has none."""
    names = module.split(".")
    if names[0] == "s11" and len(names) > 1:
        names = names[1:]
    candidates = (".".join(names[:n]) for n in range(len(names), 0, -1))
    return next((name for name in candidates if name in ROW), None)


def imports(module: str, source: str, modules: Mapping[str, str]) -> Iterator[tuple[int, str]]:
    """Line and full name of each module that a source imports, at whatever depth."""
    is_package = any(name.startswith(f"{module}.") for name in modules)
    for node in ast.walk(ast.parse(source)):
        match node:
            case ast.Import(names=aliases):
                yield from ((node.lineno, alias.name) for alias in aliases)
            case ast.ImportFrom(module=target, names=aliases, level=level):
                base = module.split(".")
                base = base[: len(base) - level + is_package] if level else []
                origin = ".".join([*base, *([target] if target else [])])
                for alias in aliases:
                    full = f"{origin}.{alias.name}"
                    yield node.lineno, full if full in modules else origin
            case ast.Call(
                func=ast.Name(id="__import__" | "import_module")
                | ast.Attribute(attr="__import__" | "import_module"),
                args=[ast.Constant(value=str(name)), *_],
            ):
                yield node.lineno, name


def violations(modules: Mapping[str, str]) -> list[str]:
    """One line for each import that breaks the table, and for each module it does not know."""
    found = []
    for module, source in sorted(modules.items()):
        part = part_of(module)
        if part is None:
            found.append(f"{module}: not in the table; give it a place in ROWS")
            continue
        for line, target in imports(module, source, modules):
            reason = refusal(part, target)
            if reason:
                found.append(f"{module}:{line} imports {target}: {reason}")
    return found


def refusal(part: str, target: str) -> str | None:
    library = target.split(".")[0]
    if library not in {"s11", "pages", "app"}:
        if library in sys.stdlib_module_names:
            return None
        if library not in LIBRARIES:
            return "no dependency of this project"
        return None if part in LIBRARIES[library] else f"{part} must not import {library}"
    target_part = part_of(target)
    if target_part is None:
        return "not in the table; give it a place in ROWS"
    if part in CONFINED and target_part not in CONFINED[part]:
        return f"{part} imports nothing else of s11"
    if target_part in FORBIDDEN.get(part, ()):
        return f"{part} must not import {target_part}"
    if ROW[target_part] > ROW[part]:
        return f"{part} is below {target_part}"
    return None


def part_cycle(modules: Mapping[str, str]) -> list[str]:
    """Parts of one row that import each other in a circle; empty if there are none."""
    graph: dict[str, set[str]] = {}
    for module, source in modules.items():
        part = part_of(module) or module
        for _, target in imports(module, source, modules):
            target_part = part_of(target)
            if target.split(".")[0] == "s11" and target_part not in {None, part}:
                graph.setdefault(part, set()).add(target_part or "")
    try:
        graphlib.TopologicalSorter(graph).prepare()
    except graphlib.CycleError as error:
        return list(error.args[1])
    return []


def shared_paths(source: str) -> list[int]:
    """Lines that build a path through a folder named `shared`; prose about it is none."""
    tree = ast.parse(source)
    joined = {
        id(operand)
        for node in ast.walk(tree)
        for operand in (
            [node.left, node.right]
            if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div)
            else node.args
            if isinstance(node, ast.Call)
            and getattr(node.func, "id", getattr(node.func, "attr", ""))
            in {"Path", "PurePath", "joinpath", "join", "open"}
            else []
        )
    }
    return sorted(
        node.lineno
        for node in ast.walk(tree)
        if isinstance(node, ast.Constant)
        and isinstance(node.value, str)
        and (
            re.search(r"\.\./shared\b|^\S*/shared(/\S*)?$", node.value)
            or (id(node) in joined and re.match(r"shared(/|$)", node.value))
        )
        and not re.search(r"\s", node.value)
    )


def test_every_import_keeps_to_the_table(root: Path) -> None:
    broken = violations(source_modules(root))
    assert not broken, "\n".join(broken)


def test_no_parts_import_each_other_in_a_circle(root: Path) -> None:
    assert part_cycle(source_modules(root)) == []


def test_the_product_does_not_read_the_shared_folder(root: Path) -> None:
    found = {module: shared_paths(source) for module, source in source_modules(root).items()}
    assert {module: lines for module, lines in found.items() if lines} == {}


def test_pages_are_short(root: Path) -> None:
    lengths = {path.name: len(path.read_text().splitlines()) for path in root.glob("pages/*.py")}
    assert {name: n for name, n in lengths.items() if n >= PAGE_LINES_LIMIT} == {}


def test_importing_s11_loads_no_heavy_library(root: Path) -> None:
    heavy = {"streamlit", "plotly", "pandas", "rich"}
    program = f"import s11, sys; print(*sorted({heavy} & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == []


# The checker itself, on trees made up here: module -> source.


@pytest.mark.parametrize(
    ("module", "source"),
    [
        ("s11.simulator", "from s11.metrics import ttft"),
        ("s11.workload", "import s11.experiment"),
        ("s11.workload", "def lazy():\n    from s11 import simulator"),
        ("s11.workload", "from . import simulator"),
        ("s11.workload", "from .simulator import simulate"),
        ("s11.costs.linear", "from ..experiment import Experiment"),
        ("s11.workload", "if TYPE_CHECKING:\n    from s11.simulator import simulate"),
        ("s11.workload", "import_module('s11.simulator')"),
        ("s11.metrics", "from s11 import Request"),
        ("s11.policies.chapter", "from s11.costs import linear"),
        ("s11.policies.chapter", "from ..costs.linear import Linear"),
        ("s11.attention.rope", "from s11.workload import Request"),
        ("s11.attention.rope", "import pandas"),
        ("s11.sweeps", "from rich.table import Table"),
        ("s11.metrics", "def lazy():\n    import plotly.graph_objects as go"),
        ("s11.ui.panels", "import plotly"),
        ("pages.simulator", "import plotly"),
        ("s11.figures.timeline", "from streamlit import cache_data"),
        ("s11.cli", "import streamlit"),
        ("s11.cli", "from s11.ui import controls"),
        ("s11", "from s11.cli import main"),
        ("s11.ui", "from s11 import cli"),
        ("s11.figures", "__import__('streamlit')"),
        ("s11.ui.panels", "import pages.simulator"),
        ("s11.metrics", "import scipy"),
        ("s11.mystery", ""),
        ("s11.cli", "from s11.mystery import riddle"),
    ],
)
def test_checker_refuses(module: str, source: str) -> None:
    others = ["simulator", "cli", "ui", "ui.controls", "costs", "costs.linear", "policies"]
    tree = {"s11": "", **{f"s11.{name}": "" for name in others}}
    assert len(violations({**tree, module: source})) == 1


@pytest.mark.parametrize(
    ("module", "source"),
    [
        (
            "s11.simulator",
            "import heapq\nimport numpy as np\nfrom s11.experiment import Experiment",
        ),
        ("s11.plan", "from s11.workload import Request"),
        ("s11.costs", "from .linear import Linear"),
        ("s11.costs.linear", "from s11.plan import StepPlan\nfrom . import roofline"),
        ("s11.attention.rope", "import math\nimport numpy as np\nfrom s11.attention.mask import m"),
        ("s11.exports", "def to_frame():\n    import pandas"),
        ("s11.figures.timeline", "import plotly.graph_objects as go"),
        (
            "s11.ui.panels",
            "import streamlit as st\nfrom s11 import Request\nfrom s11 import figures",
        ),
        ("pages.simulator", "import streamlit as st\nfrom s11.ui import controls"),
        ("app", "import streamlit as st\nfrom s11.ui import theme"),
        ("s11", "from s11.simulator import simulate\nfrom s11.figures import timeline"),
        ("s11.cli", "from s11 import figures, attention, sweeps"),
    ],
)
def test_checker_accepts(module: str, source: str) -> None:
    tree = dict.fromkeys(["s11", "s11.costs.linear", "s11.figures", "s11.attention"], "")
    assert violations({**tree, module: source}) == []


def test_checker_knows_which_module_a_relative_import_means() -> None:
    tree = {"s11.costs": "", "s11.costs.linear": "", "s11.plan": ""}
    inside_module = imports("s11.costs.linear", "from ..plan import StepPlan", tree)
    inside_package = imports("s11.costs", "from . import linear\nfrom .. import plan", tree)
    assert list(inside_module) == [(1, "s11.plan")]
    assert list(inside_package) == [(1, "s11.costs.linear"), (2, "s11.plan")]


def test_checker_finds_a_circle_inside_a_row() -> None:
    tree = {"s11.plan": "from s11 import workload", "s11.workload": "def f():\n    import s11.plan"}
    assert set(part_cycle(tree)) == {"plan", "workload"}
    assert part_cycle({**tree, "s11.workload": ""}) == []


def test_checker_finds_paths_into_the_shared_folder() -> None:
    reading = textwrap.dedent(
        """
        a = Path(__file__).parents[2] / "shared" / "cases"
        b = open("../shared/traces/azure.csv")
        c = root.joinpath("shared")
        d = f"{root}/shared/measured"
        e = os.path.join(root, "shared/cases")
        """
    )
    prose = textwrap.dedent(
        '''
        """Reads tables in the format of ../shared/measured."""
        label = "shared"
        help = "a folder such as ../shared/measured"
        '''
    )
    assert shared_paths(reading) == [2, 3, 4, 5, 6]
    assert shared_paths(prose) == []
