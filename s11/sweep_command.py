"""`sweep` with knobs of its own choice, on several processes or machines, kept in a file."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import replace
from typing import Any

from s11 import __version__, exports, sweep_files
from s11.checks import MAX_TOKENS, require_choice, require_int, require_ms
from s11.experiment import Experiment
from s11.policies import POLICIES
from s11.sweep_dask import DaskCluster
from s11.sweep_grid import Grid, kinds, table
from s11.sweep_outcomes import WorkersGoneError
from s11.sweep_pool import MAX_JOBS, ProcessPool
from s11.sweeps import Map, run
from s11.terminal import console, progress
from s11.terminal import table as terminal_table
from s11.traces import Trace
from s11.traffic import Traffic
from s11.traffic_options import source_data
from s11.words import count, ms

MAX_VALUES = 1_000
MAX_RATE_PER_S = 1e6
MAX_SEED = 2**63 - 1
LINES_EVERY_S = 10.0
NO_LIMIT = "none"
LISTS = {
    "chunk_tokens_list": "chunk_tokens",
    "token_budgets": "token_budget",
    "rates": "rate_per_s",
    "policies": "policy",
    "seeds": "seed",
}
"""Options that list values, and the knob that takes them."""


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add what is swept and where it is run and kept."""
    swept = parser.add_argument_group(
        "what is swept", "comma-separated; the product of those given, else chunk sizes"
    )
    limit = "whole numbers, or none for no limit"
    for name, parse, about in (
        ("chunk-tokens-list", _limit("chunk_tokens_list"), f"chunk sizes: {limit}"),
        ("token-budgets", _limit("token_budgets"), limit),
        ("rates", _rate, "requests/s, of traffic or a trace"),
        ("policies", _policy, ", ".join(POLICIES)),
        ("seeds", _seed, "of traffic, 0 or more"),
    ):
        field = name.replace("-", "_")
        swept.add_argument(f"--{name}", type=_values(field, parse), metavar="A,B,…", help=about)
    where = parser.add_argument_group("where it runs and what is kept")
    workers = where.add_mutually_exclusive_group()
    workers.add_argument(
        "--jobs",
        type=_argument(lambda text: require_int("jobs", _whole(text), 1, MAX_JOBS)),
        help=f"processes on this machine, 1 to {MAX_JOBS}",
    )
    workers.add_argument(
        "--dask", metavar="ADDRESS", help="a Dask scheduler, such as tcp://host:8786"
    )
    where.add_argument(
        "--resume",
        action="store_true",
        help="go on from FILE.partial.jsonl, which a stopped sweep to --output FILE left",
    )


def is_asked(options: argparse.Namespace) -> bool:
    """Return whether any option of this file is given."""
    names = (*LISTS, "jobs", "dask", "output")
    return options.resume or any(getattr(options, name) is not None for name in names)


def sweep_grid(
    options: argparse.Namespace,
    experiment: Experiment,
    *,
    source: Trace | Traffic | None,
    chunk_tokens: Callable[[], Sequence[int]],
    max_steps: int,
) -> int:
    """Run the product of what the options list; exit code 1 where nobody is left to run it.

    source: makes the experiment's requests at another rate or seed.
    chunk_tokens: gives the sizes to try where the options list nothing.
    """
    if options.resume and options.output is None:
        raise ValueError("resume: there is nothing to go on with (allowed: with --output FILE)")
    values = {knob: getattr(options, name) or () for name, knob in LISTS.items()}
    if not any(values.values()):
        values["chunk_tokens"] = tuple(chunk_tokens())
    grid = Grid(base=experiment, source=source, **values)
    points = grid.points()
    journal = None
    if options.output is not None:
        sweep_files.check_output(options.output)
        journal = sweep_files.journal_of(options.output, resume=options.resume, version=__version__)
    try:
        with (
            _workers(options) as workers,
            journal or nullcontext(),
            progress("points", lines_every_s=LINES_EVERY_S) as advance,
        ):
            outcomes = run(
                [point.variant for point in points],
                map=workers,
                progress=advance,
                max_steps=max_steps,
                journal=journal,
            )
    except (WorkersGoneError, KeyboardInterrupt) as stopped:
        if journal and journal.path.exists():
            print(
                f"s11: {journal.path.name} has what is finished; --resume goes on", file=sys.stderr
            )
        if isinstance(stopped, KeyboardInterrupt):
            raise
        print(f"s11: {stopped}", file=sys.stderr)
        return 1
    lost = sum(outcome.lost for outcome in outcomes)
    columns = table(points, outcomes, grid.knobs())
    if options.output is not None:
        sweep_files.write(options.output, columns, kinds(grid.knobs()))
    elif options.csv:
        print(exports.to_csv(columns), end="")
    elif options.json:
        rows = [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
        print(json.dumps({**_described(experiment, source), "points": rows}, indent=2))
    else:
        _print_table(columns, grid.knobs())
    if lost:
        again = "; --resume tries them again" if journal else ""
        print(f"s11: {count(lost, 'point')} lost to dead workers{again}", file=sys.stderr)
        return 1
    if journal:
        journal.remove()
        refused = sum(outcome.refused is not None for outcome in outcomes)
        print(f"{count(len(points), 'point')} in {options.output}, {refused:,} refused")
    return 0


@contextmanager
def _workers(options: argparse.Namespace) -> Iterator[Map]:
    if options.dask is not None:
        with DaskCluster(options.dask) as cluster:
            yield cluster
    else:
        yield map if options.jobs is None else ProcessPool(jobs=options.jobs)


def _described(experiment: Experiment, source: Trace | Traffic | None) -> dict[str, Any]:
    """Return the base as plain data; of a trace or traffic, not request by request."""
    if source is None:
        return {"experiment": experiment.to_dict()}
    bare = replace(experiment, workload=replace(experiment.workload, requests=())).to_dict()
    del bare["workload"]["requests"]
    return {"experiment": bare, **source_data(source)}


def _print_table(columns: dict[str, list[Any]], knobs: Sequence[str]) -> None:
    """Print the knobs and some of the figures, and each refusal under the table."""

    def shown(value: Any) -> str:
        return value if isinstance(value, str) else "none" if value is None else f"{value:,}"

    def rate(value: float | None) -> str:
        return "none" if value is None else f"{value:,.0f} tok/s"

    figures: dict[str, tuple[str, Callable[[Any], str]]] = {
        "itl_p99_ms": ("ITL p99", ms),
        "longest_stall_ms": ("longest stall", ms),
        "ttft_p50_ms": ("TTFT p50", ms),
        "ttft_p99_ms": ("TTFT p99", ms),
        "decode_tokens_per_s": ("decode throughput", rate),
        "finished_requests": ("finished", shown),
    }
    rows, refusals = [], []
    for number, refused in enumerate(columns["refused"]):
        point = [shown(columns[name][number]) for name in knobs]
        if refused is None:
            told = [form(columns[name][number]) for name, (_, form) in figures.items()]
        else:
            told = ["refused"] + [""] * (len(figures) - 1)
            named = zip(knobs, point, strict=True)
            refusals.append(f"{', '.join(f'{n} {v}' for n, v in named)}: {refused}")
        rows.append((*point, *told))
    heads = [name.replace("_", " ") for name in knobs] + [head for head, _ in figures.values()]
    out = console()
    out.print(terminal_table("Sweep", heads, rows))
    for sentence in refusals:
        out.print(f"Refused: {sentence}", markup=False)


def _values(field: str, parse: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return an argument type: comma-separated values."""

    def values(text: str) -> tuple[Any, ...]:
        parts = text.split(",")
        if len(parts) > MAX_VALUES:
            raise ValueError(
                f"{field}: {len(parts):,} values are too many (allowed: {MAX_VALUES:,})"
            )
        return tuple(parse(part.strip()) for part in parts)

    return _argument(values)


def _argument(parse: Callable[[str], Any]) -> Callable[[str], Any]:
    """Return an argument type whose refusal is one sentence."""

    def argument(text: str) -> Any:
        try:
            return parse(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from error

    return argument


def _whole(text: str) -> object:
    """Return a whole number, or the text where it is none."""
    try:
        return int(text)
    except ValueError:
        return text


def _limit(field: str) -> Callable[[str], int | None]:
    def limit(text: str) -> int | None:
        return None if text == NO_LIMIT else require_int(field, _whole(text), 1, MAX_TOKENS)

    return limit


def _rate(text: str) -> float:
    try:
        value: object = float(text)
    except ValueError:
        value = text
    return require_ms("rates", value, 0, MAX_RATE_PER_S, above=True)


def _policy(text: str) -> str:
    return require_choice("policies", text, tuple(POLICIES))


def _seed(text: str) -> int:
    return require_int("seeds", _whole(text), 0, MAX_SEED)
