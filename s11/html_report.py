"""A report as one HTML file that needs nothing else: text, tables, pictures and their script.

It asks nobody for anything: its Content Security Policy lets only its own two scripts run, by
their digests, and nothing be fetched. It names no date, so that equal runs give equal files.
"""

from __future__ import annotations

import base64
import hashlib
import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from html import escape
from typing import Any

import numpy as np

from s11.exports import rounded, sound_text

MOST_TABLE_ROWS = 400

_STYLE = """
:root{color-scheme:light dark;--ink:light-dark(#1B2430,#E6EBF1);--muted:light-dark(#5A6675,#A3AFBD);
--grid:light-dark(#E3E8EE,#26303B);--paper:light-dark(#FFFFFF,#0F141A)}
body{font:16px/1.5 Arial,Helvetica,sans-serif;color:var(--ink);background:var(--paper);
max-width:1100px;margin:0 auto;padding:16px}
h1{font-size:28px;line-height:1.2;overflow-wrap:anywhere}h2{font-size:20px;margin-top:32px}
p,li,summary{overflow-wrap:anywhere}.muted{color:var(--muted)}
.wide{overflow-x:auto}table{border-collapse:collapse;font-size:14px}
th,td{text-align:left;padding:4px 14px 4px 0;border-bottom:1px solid var(--grid);
overflow-wrap:anywhere}
.number{text-align:right;font-variant-numeric:tabular-nums}
td.number,td.unit{white-space:nowrap;overflow-wrap:normal}
pre{white-space:pre-wrap;overflow-wrap:anywhere;border:1px solid var(--grid);padding:10px;
font-size:13px}
figure{margin:24px 0}
@media print{:root{color-scheme:light}details{display:none}}
"""

_SCRIPT = """
const WIDE_PX = 760;
for (const chart of document.querySelectorAll('.picture')) {
  const told = JSON.parse(document.getElementById(chart.dataset.spec).textContent);
  const {data, layout: asked} = told.spec;
  let drawnWide;
  const draw = () => {
    drawnWide = Boolean(asked.meta?.wide) && chart.clientWidth >= WIDE_PX;
    const layout = drawnWide ? {...asked, ...asked.meta.wide} : asked;
    // On a phone the buttons would lie on the title until they are asked for.
    const displayModeBar = chart.clientWidth >= WIDE_PX ? true : 'hover';
    chart.style.height = `${layout.height}px`;
    Plotly.react(chart, data, layout, {...told.config, displayModeBar, responsive: true});
  };
  draw();
  window.addEventListener('resize', () => {
    if (asked.meta?.wide && (chart.clientWidth >= WIDE_PX) !== drawnWide) draw();
  });
}
"""


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Picture:
    """A figure: its spec for plotly.js as JSON text, its numbers in words and as a table."""

    title: str
    spec_json: str
    config: Mapping[str, Any]
    alt: str
    columns: Mapping[str, Sequence[Any] | np.ndarray]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Table:
    """A table of texts; a column's kind is `number`, to the right, `unit`, or "" for any text."""

    title: str
    head: tuple[str, ...]
    rows: Sequence[tuple[str, ...]]
    kinds: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Report:
    """All that a report shows, in its order.

    commands: what gives the same on the command line.
    sources: what else it takes to run it again, by title, as text.
    script: plotly.js.
    style: of the pictures' dark twins.
    """

    title: str
    paragraphs: Sequence[str]
    pictures: Sequence[Picture]
    tables: Sequence[Table]
    commands: Sequence[str]
    sources: Mapping[str, str]
    version: str
    script: str
    style: str


def html_pieces(report: Report) -> Iterator[str]:
    """Yield the page's text in pieces."""
    library, drawing = _inline(report.script), _inline(_SCRIPT)
    allowed = " ".join([f"'sha256-{_digest(script)}'" for script in (library, drawing)])
    policy = (
        f"default-src 'none'; script-src {allowed}; style-src 'unsafe-inline'; img-src data: blob:"
    )
    yield (
        '<!doctype html>\n<html lang="en"><head><meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{escape(policy)}">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{_text(report.title)}</title>\n<style>{_STYLE}</style>\n{report.style}\n"
        f"</head><body>\n<h1>{_text(report.title)}</h1>\n"
    )
    for paragraph in report.paragraphs:
        yield f"<p>{_text(paragraph)}</p>\n"
    for number, picture in enumerate(report.pictures, start=1):
        yield from _picture(number, picture)
    for table in report.tables:
        yield f"<h2>{_text(table.title)}</h2>\n{_table(table)}\n"
    if report.commands:
        yield "<h2>The same on the command line</h2>\n"
        yield "".join([f"<pre>{_text(command)}</pre>\n" for command in report.commands])
    for title, text in report.sources.items():
        yield f"<details><summary>{_text(title)}</summary><pre>{_text(text)}</pre></details>\n"
    yield f'<p class="muted">Simulated by s11 {_text(report.version)}.</p>\n'
    yield f"<script>{library}</script>\n<script>{drawing}</script>\n</body></html>\n"


def _picture(number: int, picture: Picture) -> Iterator[str]:
    spec = f'{{"config":{json.dumps(picture.config)},"spec":{picture.spec_json}}}'
    yield (
        f'<figure><div class="picture" role="img" aria-label="{_text(picture.alt)}" '
        f'data-spec="spec-{number}"></div>'
        f'<script type="application/json" id="spec-{number}">{_json(spec)}</script>\n'
        f"<noscript>{_text(picture.alt)}</noscript>\n"
    )
    rows = max([len(column) for column in picture.columns.values()], default=0)
    if rows:
        shown = (
            f", the first {MOST_TABLE_ROWS:,} of {rows:,} rows" if rows > MOST_TABLE_ROWS else ""
        )
        yield f"<details><summary>{_text(picture.title)}: the numbers{shown}</summary>"
        yield f"{_table(_numbers(picture))}</details>\n"
    yield "</figure>\n"


def _numbers(picture: Picture) -> Table:
    columns = []
    for column in picture.columns.values():
        part = column[:MOST_TABLE_ROWS]
        values = part.tolist() if isinstance(part, np.ndarray) else part
        columns.append(["" if value is None else str(value) for value in rounded(list(values))])
    return Table(
        title=picture.title,
        head=tuple(map(str, picture.columns)),
        rows=list(zip(*columns, strict=True)),
        kinds=("number",) * len(columns),
    )


def _table(table: Table) -> str:
    classes = [f' class="{kind}"' if kind else "" for kind in table.kinds]
    heads = [
        f'<th scope="col"{kind}>{_text(name)}</th>'
        for kind, name in zip(classes, table.head, strict=True)
    ]
    rows = []
    for row in table.rows:
        cells = [f"<td{kind}>{_text(cell)}</td>" for kind, cell in zip(classes, row, strict=True)]
        rows.append(f"<tr>{''.join(cells)}</tr>")
    return (
        f'<div class="wide"><table><thead><tr>{"".join(heads)}</tr></thead>'
        f"<tbody>{''.join(rows)}</tbody></table></div>"
    )


def _text(text: str) -> str:
    """Return a text as it stands in HTML; what no HTML may hold is shown by its code."""
    shown = [one if one.isprintable() or one in "\n\t" else f"\\u{ord(one):04x}" for one in text]
    return escape(sound_text("".join(shown)))


def _json(text: str) -> str:
    """Return JSON that no `</script>` or `<!--` inside a text can end."""
    return text.replace("<", "\\u003c")


def _inline(script: str) -> str:
    """Return a script as a browser reads it, so that its digest is of the same bytes.

    Raises:
        ValueError: a script that would end its element.
    """
    script = script.replace("\r\n", "\n").replace("\r", "\n")
    if "</script" in script.lower():
        raise ValueError("script: it holds </script, which ends it")
    return script


def _digest(script: str) -> str:
    return base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()
