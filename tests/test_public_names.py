"""What `import s11` offers: loaded when first used, documented, typed."""

import ast
import inspect
import pkgutil
import re
import subprocess
import sys
from pathlib import Path

import pytest

import s11
from scripts.api_docs import MODULES, fields_as_list, write

CATALOGS = {"GPUS", "MODELS", "POLICIES", "PRESETS", "TRAFFIC_PRESETS"}


def test_every_public_name_is_there_with_its_docstring() -> None:
    for name in s11.__all__:
        value = getattr(s11, name)
        if name in CATALOGS:
            assert value
            assert f"`{name}`" in (s11.__doc__ or "")
        else:
            assert inspect.getdoc(value), name
            assert not (inspect.getdoc(value) or "").startswith(f"{name}("), name  # none of its own
    assert set(s11.__all__) <= set(dir(s11))
    assert len(set(s11.__all__)) == len(s11.__all__)


def test_type_checkers_are_told_the_same_names_from_the_same_modules() -> None:
    tree = ast.parse(inspect.getsource(s11))
    told = next(node for node in tree.body if isinstance(node, ast.If))
    imports = {
        (alias.asname or alias.name): (node.module, alias.name)
        for node in told.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    assert set(imports) == set(s11.__all__)
    for name, (module, name_there) in imports.items():
        assert getattr(s11, name) is getattr(sys.modules[str(module)], name_there), name


def test_no_public_name_is_hidden_by_a_module() -> None:
    modules = {module.name for module in pkgutil.iter_modules(s11.__path__)}
    assert not modules & set(s11.__all__)


def test_an_unknown_name_is_refused_as_in_any_module() -> None:
    with pytest.raises(AttributeError, match="'s11' has no attribute 'prefil'"):
        _ = s11.prefil  # type: ignore[attr-defined]


def test_importing_s11_loads_nothing_until_a_name_is_used(root: Path) -> None:
    loaded = "print('numpy' in sys.modules)"
    program = f"import sys, s11; {loaded}; s11.simulate; {loaded}"
    done = subprocess.run(
        [sys.executable, "-c", program], cwd=root, capture_output=True, text=True, check=True
    )
    assert done.stdout.split() == ["False", "True"]


def test_the_api_page_shows_every_public_name(tmp_path: Path) -> None:
    write(tmp_path, ["s11"])
    page = (tmp_path / "s11.html").read_text()
    sections = re.findall(r'<section id="([^".]+)">', page)
    assert sections == s11.__all__
    assert "<strong>failing</strong>: the lowest tried rate that fails" in page
    assert (tmp_path / "index.html").is_file()


def test_the_api_pages_are_of_modules_that_exist(root: Path) -> None:
    for module in MODULES:
        path = root / module.replace(".", "/")
        assert path.with_suffix(".py").is_file() or (path / "__init__.py").is_file(), module


def test_lines_of_fields_become_a_list() -> None:
    docstring = (
        "A thing: told.\n\nlow, high: the range,\n    both ends in it.\nnote: a sentence.\n\n"
        "Raises:\n    ValueError: none."
    )
    assert fields_as_list(docstring) == (
        "A thing: told.\n\n- **low, high**: the range,\n  both ends in it.\n- **note**: a sentence."
        "\n\nRaises:\n    ValueError: none."
    )
