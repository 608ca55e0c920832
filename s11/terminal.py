"""Aligned tables and progress bars on the terminal."""

from __future__ import annotations

import sys
import time
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


def note(sentence: str) -> None:
    """Tell on standard error of something that changes no answer."""
    print(f"s11: note: {sentence}", file=sys.stderr)


def table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> Group:
    """Return a titled table with its first column to the left and the figures to the right."""
    made = Table(box=box.SIMPLE_HEAD)
    for number, column in enumerate(columns):
        made.add_column(column, justify="right" if number else "left", no_wrap=True)
    for row in rows:
        made.add_row(*row)
    return Group(Text(title, style="bold"), made)


@contextmanager
def progress(
    what: str, *, lines_every_s: float | None = None, clock: Callable[[], float] = time.monotonic
) -> Iterator[Callable[[int, int], None]]:
    """Show a bar on standard error (only on a terminal) and yield its `(done, all)` callback.

    lines_every_s: elsewhere print a plain line when so many seconds have passed since the last.
    """
    if lines_every_s is not None and not Console(stderr=True).is_terminal:
        yield _lines(what, lines_every_s, clock)
        return
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


def _lines(what: str, every_s: float, clock: Callable[[], float]) -> Callable[[int, int], None]:
    told_s = clock()

    def advance(done: int, total: int) -> None:
        nonlocal told_s
        if clock() - told_s >= every_s:
            told_s = clock()
            print(f"s11: {done:,} of {total:,} {what}", file=sys.stderr, flush=True)

    return advance
