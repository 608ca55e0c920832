"""`capacity`: the highest request rate that holds the targets, for each chunk size."""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from s11 import exports
from s11.capacity import (
    HIGHEST_RATE_PER_S,
    LOWEST_RATE_PER_S,
    Capacity,
    CapacityTargets,
    RatePoint,
    highest_rate,
)
from s11.capacity_by_chunk import capacity_by_chunk
from s11.capacity_points import MAX_DELAY_MS, ExperimentAtRate
from s11.capacity_words import capacity_words, chunking_words, rate_words, too_few_words
from s11.checks import MAX_TOKENS
from s11.experiment import MAX_TARGET_MS, Experiment
from s11.option_types import Number, Whole
from s11.policies import CHUNKING
from s11.sweep_outcomes import WorkersGoneError
from s11.sweep_pool import MAX_JOBS, ProcessPool
from s11.terminal import console, progress, table
from s11.words import ms

MAX_VALUES = 100
DEFAULT_PRECISION = 0.02
AS_IT_IS = "as it is"


@dataclass(frozen=True, slots=True, kw_only=True)
class _Found:
    """One search.

    label: what its prompts are cut into, in words.
    chunk_tokens: None where no chunk size was searched: whole prompts, or the scenario's own.
    whole_prompts: whether prompts are taken whole.
    """

    label: str
    chunk_tokens: int | None
    whole_prompts: bool
    capacity: Capacity
    refused: str | None = None


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the targets and what is searched."""
    parser.add_argument(
        "--itl-p99-ms",
        type=_values(Number("itl_p99_ms", 0, MAX_TARGET_MS, above=True)),
        metavar="MS[,MS,…]",
        help="what P99 ITL must hold; several are searched apart (default: the ITL target)",
    )
    parser.add_argument(
        "--scheduling-delay-p50-ms",
        type=Number("scheduling_delay_p50_ms", 0, MAX_DELAY_MS, above=True),
        default=2_000.0,
        metavar="MS",
        help="what the median scheduling delay must hold (default: 2000, as Sarathi-Serve's)",
    )
    parser.add_argument(
        "--chunk-sizes",
        type=_values(Whole("chunk_sizes", 1, MAX_TOKENS)),
        metavar="TOKENS[,TOKENS,…]",
        help="most tokens of a step, decodes included; a search for each, and one for whole "
        "prompts under the scenario's own limits (default: one search, as the scenario is)",
    )
    parser.add_argument(
        "--jobs",
        type=Whole("jobs", 1, MAX_JOBS),
        help=f"processes on this machine, 1 to {MAX_JOBS}, each with one chunk size at a time",
    )
    for name, default in (("low_per_s", 0.05), ("high_per_s", 1_000.0)):
        parser.add_argument(
            f"--{name.replace('_', '-')}",
            type=Number(name, LOWEST_RATE_PER_S, HIGHEST_RATE_PER_S),
            default=default,
            help=f"no rate beyond is tried (default: {default:g})",
        )
    parser.add_argument(
        "--relative-precision",
        type=Number("relative_precision", 1e-4, 1),
        default=DEFAULT_PRECISION,
        help=f"from the answer to the next rate that fails (default: {DEFAULT_PRECISION:g})",
    )
    output = parser.add_mutually_exclusive_group()
    output.add_argument("--csv", action="store_true", help="print every tried rate as CSV")
    output.add_argument("--json", action="store_true", help="print JSON")


def search(options: argparse.Namespace, make: ExperimentAtRate, *, max_steps: int) -> int:
    """Search and print; exit code 1 where nobody is left to search.

    make: gives the experiment, with its own limits, at a rate.
    """
    experiment = make.experiment
    targets = [
        CapacityTargets(itl_p99_ms=each, scheduling_delay_p50_ms=options.scheduling_delay_p50_ms)
        for each in options.itl_p99_ms or (experiment.itl_target_ms,)
    ]
    if options.high_per_s < options.low_per_s:
        raise ValueError(
            f"high_per_s: {options.high_per_s:g} is less than low_per_s "
            f"(allowed: {options.low_per_s:g} or more)"
        )
    if options.chunk_sizes and experiment.policy not in CHUNKING:
        raise ValueError(
            f"chunk_sizes: {experiment.policy!r} has no chunk size to choose "
            f"(allowed: {', '.join(CHUNKING)})"
        )
    if options.jobs is not None and not options.chunk_sizes:
        raise ValueError(
            f"jobs: {options.jobs} does not go with a single search (allowed: with --chunk-sizes)"
        )
    bounds = {
        "low_per_s": options.low_per_s,
        "high_per_s": options.high_per_s,
        "relative_precision": options.relative_precision,
        "max_steps": max_steps,
    }
    with progress("rates tried") as advance:
        done = 0

        def tried(*_: Any) -> None:
            nonlocal done
            done += 1
            advance(done, done + 1)

        try:
            if options.chunk_sizes:
                workers = map if options.jobs is None else ProcessPool(jobs=options.jobs)
                bounds |= {"map": workers, "progress": tried}
                found = _found_by_chunk(make, targets, options.chunk_sizes, bounds)
            else:
                found = _found(make, targets, {**bounds, "progress": tried})
        except WorkersGoneError as gone:
            print(f"s11: {gone}", file=sys.stderr)
            return 1
    if options.csv:
        print(exports.to_csv(_columns(found)), end="")
    elif options.json:
        rows = [_row(one) for one in found]
        print(json.dumps({"experiment": experiment.to_dict(), "capacities": rows}, indent=2))
    else:
        _print(found, experiment)
        for sentence in _chunking(found):
            console().print(sentence, markup=False)
    return 0


def _found(
    make: ExperimentAtRate, targets: Sequence[CapacityTargets], bounds: dict[str, Any]
) -> list[_Found]:
    """Return the scenario's own search for each set of targets; one's runs serve the next."""
    whole = not make.experiment.chunking
    known: tuple[RatePoint, ...] = ()
    found = []
    for target in targets:
        capacity = highest_rate(make, target, known=known, **bounds)
        known = capacity.points
        found.append(
            _Found(label=AS_IT_IS, chunk_tokens=None, whole_prompts=whole, capacity=capacity)
        )
    return found


def _found_by_chunk(
    make: ExperimentAtRate,
    targets: Sequence[CapacityTargets],
    sizes: Sequence[int],
    bounds: dict[str, Any],
) -> list[_Found]:
    """Return a search for each set of targets, size, and whole prompts."""
    return [
        _Found(
            label="whole prompts" if one.chunk_tokens is None else f"{one.chunk_tokens:,}",
            chunk_tokens=one.chunk_tokens,
            whole_prompts=one.chunk_tokens is None,
            capacity=one.capacity,
            refused=one.refused,
        )
        for one in capacity_by_chunk(make, (*sizes, None), targets, **bounds)
    ]


def _row(found: _Found) -> dict[str, Any]:
    capacity = found.capacity
    return {
        "chunk_tokens": found.chunk_tokens,
        "whole_prompts": found.whole_prompts,
        "targets": asdict(capacity.targets),
        "highest_per_s": exports.rounded(capacity.highest_per_s),
        "requests_needed": capacity.requests_needed,
        "refused": found.refused,
        "points": [exports.rounded(point.to_dict()) for point in capacity.points],
    }


def _columns(found: Sequence[_Found]) -> dict[str, list[Any]]:
    """Return every tried rate under every set of targets, a row each."""
    rows = [
        {
            "chunk_tokens": one.chunk_tokens,
            **{f"target_{name}": value for name, value in asdict(one.capacity.targets).items()},
            **exports.rounded(point.to_dict()),
            "fails": " ".join(point.fails),
            "highest": point is one.capacity.highest,
            "whole_prompts": one.whole_prompts,
        }
        for one in found
        for point in sorted(one.capacity.points, key=lambda point: point.rate_per_s)
    ]
    return {name: [row[name] for row in rows] for name in rows[0]} if rows else {}


def _print(found: Sequence[_Found], experiment: Experiment) -> None:
    """Print the highest rates, and under them what stops the next."""
    rows = []
    for one in found:
        highest, targets = one.capacity.highest, one.capacity.targets
        told = ["none", "", "", "", ""]
        if highest is not None:
            told = [
                rate_words(highest.rate_per_s),
                f"{100 * highest.slo_attainment:.1f}%",
                ms(highest.itl_p99_ms),
                ms(highest.scheduling_delay_p50_ms),
                ms(highest.ttft_p99_ms),
            ]
        rows.append((ms(targets.itl_p99_ms), one.label, *told))
    heads = ["P99 ITL target", "chunk size", "requests per s", _met(experiment)]
    heads += ["P99 ITL", "median delay", "TTFT p99"]
    out = console()
    out.print(table("Highest rate that holds", heads, rows))
    for one in found:
        told_of = "Whole prompts: " if one.whole_prompts else f"Chunk size {one.label}: "
        of = "" if one.label == AS_IT_IS else told_of
        out.print(f"{of}{one.refused or capacity_words(one.capacity)}", markup=False)
    if found:
        longest = max(found, key=lambda one: one.capacity.requests_needed)
        too_few = too_few_words(longest.capacity)
        if too_few is not None:
            out.print(too_few, markup=False)


def _chunking(found: Sequence[_Found]) -> list[str]:
    """Return what chunking buys under each set of targets; nothing where no size was searched."""
    told = []
    for targets in dict.fromkeys([one.capacity.targets for one in found]):
        mine = [one for one in found if one.capacity.targets == targets]
        by_size = {one.chunk_tokens: one.capacity for one in mine if one.chunk_tokens is not None}
        if by_size:
            whole = next(one.capacity for one in mine if one.whole_prompts)
            words = chunking_words(by_size, whole)
            told.append(f"At P99 ITL {ms(targets.itl_p99_ms)}, {words}.")
    return told


def _met(experiment: Experiment) -> str:
    """Return what the experiment's own targets ask of a request, as a column's head."""
    told = f"all ITL ≤ {ms(experiment.itl_target_ms)}"
    ttft_ms = experiment.ttft_target_ms
    return told if ttft_ms is None else f"{told}, TTFT ≤ {ms(ttft_ms)}"


def _values(parse: Callable[[str], Any]) -> Callable[[str], tuple[Any, ...]]:
    """Return an argument type: comma-separated values, each once."""

    def values(text: str) -> tuple[Any, ...]:
        parts = text.split(",")
        if len(parts) > MAX_VALUES:
            raise argparse.ArgumentTypeError(
                f"{len(parts):,} values are too many (allowed: {MAX_VALUES})"
            )
        return tuple(dict.fromkeys(parse(part.strip()) for part in parts))

    return values
