"""The pages of the app as its navigation lists them, so that a new one is tested from its birth."""

import ast
from pathlib import Path

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


PAGES = pages()
