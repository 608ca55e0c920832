"""The pages of the app as its navigation lists them, so that a new one is tested from its birth."""

import ast
from pathlib import Path

from playwright.sync_api import Page

APP = Path(__file__).resolve().parents[2] / "app.py"


def pages() -> dict[str, str]:
    """Title by path, such as "/mask"; the default page's path is "/"."""
    found = {}
    for node in ast.walk(ast.parse(APP.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "st.Page":
            named = {word.arg: ast.literal_eval(word.value) for word in node.keywords}
            path = "" if named.get("default") else Path(ast.literal_eval(node.args[0])).stem
            found[f"/{path}"] = named["title"]
    return found


def sections() -> dict[str, str]:
    """Section of the navigation by path, of the pages that stand in a titled one."""
    tree = ast.parse(APP.read_text(encoding="utf-8"))
    return {
        f"/{Path(ast.literal_eval(page.args[0])).stem}": ast.literal_eval(title)
        for node in ast.walk(tree)
        if isinstance(node, ast.Dict)
        for title, listed in zip(node.keys, node.values, strict=True)
        if title is not None and ast.literal_eval(title) and isinstance(listed, ast.List)
        for page in listed.elts
        if isinstance(page, ast.Call)
    }


PAGES = pages()
SECTIONS = sections()


def go_to(page: Page, path: str) -> None:
    """Follow the navigation's link to a page, as a visitor of a wide screen does."""
    if path in SECTIONS:
        page.get_by_test_id("stTopNavSection").filter(has_text=SECTIONS[path]).click()
    page.locator(f"a[data-testid^=stTopNav][href$='{path}']:visible").click()
