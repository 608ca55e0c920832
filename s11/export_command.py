"""The command `export`: a run as a file that other programs open."""

from __future__ import annotations

import argparse
import shlex
from collections.abc import Iterator, Sequence
from itertools import chain
from pathlib import Path

import s11
from s11 import export_files, exports
from s11.chrome_trace import chrome_trace
from s11.chrome_window import trace_window
from s11.commands import MAX_STEPS, experiment_from
from s11.experiment import Experiment
from s11.export_tables import TABLES, table
from s11.kv_pool import in_its_memory, within_memory
from s11.metrics import measure
from s11.option_types import Choice, Number, Whole
from s11.policies import CHUNKING, POLICIES
from s11.presets import TITLES
from s11.results import Result
from s11.simulator import simulate
from s11.terminal import progress
from s11.traces import Trace
from s11.traffic import Traffic
from s11.traffic_options import source_data, source_from, source_sentence
from s11.workload import MAX_REQUESTS

FORMATS = ("chrome", "csv", "json", "parquet", "html")
TABLE_FORMATS = ("csv", "json", "parquet")
WINDOW_OPTIONS = ("first_requests", "from_s", "to_s")
PATH_OPTIONS = ("--output", "--trace", "--experiment", "--model-config", "--measurements")
MAX_WINDOW_S = 1e9
CHUNKING_OFF = "chunking-off"
AGAINST = (CHUNKING_OFF, *POLICIES)


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of what to write, and where."""
    parser.add_argument(
        "--format", required=True, type=Choice("format", FORMATS), help=", ".join(FORMATS)
    )
    parser.add_argument("--output", required=True, metavar="FILE", help="a file, or - to print")
    parser.add_argument(
        "--table",
        type=Choice("table", TABLES),
        help=f"{', '.join(TABLES)}: of csv and parquet (default: steps), and of json (default: "
        "the whole run)",
    )
    parser.add_argument(
        "--against",
        type=Choice("against", AGAINST),
        metavar="NAME",
        help=f"html: the run beside another of the same requests: {CHUNKING_OFF}, or a scheduler "
        f"({', '.join(POLICIES)})",
    )
    parser.add_argument(
        "--first-requests",
        type=Whole("first_requests", 1, MAX_REQUESTS),
        metavar="N",
        help="chrome: the threads of so many requests alone",
    )
    for name, about in (("from", "begin"), ("to", "end")):
        parser.add_argument(
            f"--{name}-s",
            type=Number(f"{name}_s", 0, MAX_WINDOW_S),
            help=f"chrome: where to {about}, in seconds on the run's clock",
        )


def export(options: argparse.Namespace) -> int:
    """Run one scenario and write it in the format that is asked for."""
    _check(options)
    export_files.check_output(options.output)
    source = source_from(options)
    experiment = experiment_from(options, source)
    pooled = within_memory(experiment)
    other = None if options.against is None else _other(options, experiment, source)
    with progress("simulating"):
        result = simulate(pooled, max_steps=MAX_STEPS)
    if other is None:
        pieces = _pieces(options, experiment, pooled, result, source)
    else:
        pieces = (text.encode() for text in _report_of_two(options, other, pooled, result, source))
    export_files.write(options.output, pieces)
    return 0


def _check(options: argparse.Namespace) -> None:
    """Refuse options of another format.

    Raises:
        ValueError: the first of them.
    """
    if options.table is not None and options.format not in TABLE_FORMATS:
        raise ValueError(
            f"table: does not go with the format {options.format} "
            f"(allowed: {', '.join(TABLE_FORMATS)})"
        )
    if options.against is not None and options.format != "html":
        raise ValueError(f"against: does not go with the format {options.format} (allowed: html)")
    for name in WINDOW_OPTIONS:
        if getattr(options, name) is not None and options.format != "chrome":
            raise ValueError(
                f"{name}: does not go with the format {options.format} (allowed: chrome)"
            )


def _other(
    options: argparse.Namespace, experiment: Experiment, source: Trace | Traffic | None
) -> Experiment:
    """Return what the run is held against, with its own KV pool.

    Raises:
        ValueError: the run itself, or a scheduler that the other options do not go with.
    """
    if options.against == CHUNKING_OFF:
        other = experiment.chunking_off()
    else:
        changed = {**vars(options), "policy": options.against, "no_chunking": None}
        other = experiment_from(argparse.Namespace(**changed), source, notes=False)
    if other == experiment:
        allowed = [name for name in AGAINST if name not in (CHUNKING_OFF, experiment.policy)]
        raise ValueError(
            f"against: {options.against} is the run itself (allowed: such as {', '.join(allowed)})"
        )
    return within_memory(other)


def _pieces(
    options: argparse.Namespace,
    experiment: Experiment,
    pooled: Experiment,
    result: Result,
    source: Trace | Traffic | None,
) -> Iterator[bytes]:
    if options.format == "chrome":
        window = trace_window(
            pooled,
            result,
            first_requests=options.first_requests,
            begin_ms=None if options.from_s is None else 1000 * options.from_s,
            end_ms=None if options.to_s is None else 1000 * options.to_s,
        )
        return (text.encode() for text in chrome_trace(pooled, result, window))
    if options.format == "html":
        return (text.encode() for text in _report(options, experiment, pooled, result, source))
    metrics = measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
    if options.format == "json" and options.table is None:
        more = None if source is None else source_data(source)
        told = exports.json_pieces(experiment, result, metrics, more=more)
        return (text.encode() for text in chain(told, "\n"))
    columns = table(options.table or "steps", pooled, result, metrics)
    if options.format == "parquet":
        return iter([exports.to_parquet(columns)])
    write = exports.csv_pieces if options.format == "csv" else exports.records_pieces
    return (text.encode() for text in write(columns))


def _report(
    options: argparse.Namespace,
    experiment: Experiment,
    pooled: Experiment,
    result: Result,
    source: Trace | Traffic | None,
) -> Iterator[str]:
    from s11.figures.report import report_pieces, shows_timeline  # loads plotly
    from s11.figures.traffic_look import TrafficRun

    run = TrafficRun.of(TITLES[pooled.policy], pooled, result)
    whole = None
    if shows_timeline(run):
        whole = run
        if experiment.chunking:
            off = in_its_memory(experiment.chunking_off())
            made = simulate(off, max_steps=MAX_STEPS)
            whole = TrafficRun.of(f"{TITLES[off.policy]}, chunking off", off, made)
    return report_pieces(
        [run],
        version=s11.__version__,
        commands=[command(options.arguments)],
        about=[] if source is None else [source_sentence(source)],
        whole=whole,
    )


def _report_of_two(
    options: argparse.Namespace,
    other: Experiment,
    pooled: Experiment,
    result: Result,
    source: Trace | Traffic | None,
) -> Iterator[str]:
    """Return the report of another run, A, beside the run, B."""
    from s11.figures.report import report_pieces  # loads plotly
    from s11.figures.traffic_look import TrafficRun

    with progress(f"simulating {options.against}"):
        before = simulate(other, max_steps=MAX_STEPS)
    return report_pieces(
        [
            TrafficRun.of(_label(other), other, before),
            TrafficRun.of(_label(pooled), pooled, result),
        ],
        version=s11.__version__,
        commands=[command(options.arguments)],
        about=[] if source is None else [source_sentence(source)],
    )


def _label(experiment: Experiment) -> str:
    title = TITLES[experiment.policy]
    off = experiment.policy in CHUNKING and not experiment.chunking
    return f"{title}, chunking off" if off else title


def command(arguments: Sequence[str]) -> str:
    """Return a command line as others can run it: of files, the names without their folders."""
    told, is_path = ["python", "-m", "s11"], False
    for argument in arguments:
        name, sign, value = argument.partition("=")
        if is_path:
            argument = Path(argument).name or argument
        elif sign and name in PATH_OPTIONS:
            argument = f"{name}={Path(value).name or value}"
        is_path = not is_path and argument in PATH_OPTIONS
        told.append(argument)
    return shlex.join(told)
