"""Aligned tables and progress bars on the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager

from rich import box
from rich.console import Console, Group
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

PIPE_WIDTH = 4_000


def console() -> Console:
    """Return a console on standard output; a pipe gets plain text that does not wrap."""
    out = Console(highlight=False, soft_wrap=True)
    return out if out.is_terminal else Console(highlight=False, soft_wrap=True, width=PIPE_WIDTH)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Group:
    """Return a titled table with its first column to the left and the figures to the right."""
    made = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return Group(Text(title, style="bold"), made)


@contextmanager
def progress(what: str) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error (only on a terminal) and yield its `(done, all)` callback."""
    bar = Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeRemainingColumn(),
        console=Console(stderr=True),
        transient=True,
        disable=not Console(stderr=True).is_terminal,
    )
    with bar:
        task = bar.add_task(what, total=None)
        yield lambda done, total: bar.update(task, completed=done, total=total)
