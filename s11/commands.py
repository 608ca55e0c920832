"""What each command of the command line does: options in, a printed answer, an exit code."""

from __future__ import annotations

import argparse
import json
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from typing import Any

from s11 import capacity_command, exports, report_tables, sweep_command
from s11.attention import ChunkSizeCheck, Decoder, DecoderConfig, Fault, check_chunk_sizes
from s11.bench import measure_loads
from s11.capacity_points import ExperimentAtRate
from s11.cases import Outcome, read_cases, run_case
from s11.cost_options import cost_from
from s11.error_tables import errors_table
from s11.experiment import Experiment
from s11.explain import explain
from s11.ignored_options import ignored
from s11.kv_pool import within_memory
from s11.machine_words import machine_words
from s11.metrics import measure
from s11.policies import CHUNKING
from s11.presets import PRESETS
from s11.simulator import simulate
from s11.sweeps import chunk_sizes, figures_of, longest_prompt_tokens, sweep_chunk_sizes
from s11.terminal import console, note, progress
from s11.traces import Trace
from s11.traffic import Traffic
from s11.traffic_options import source_data, source_from
from s11.traffic_report import print_traffic
from s11.validation import validate as validate_folder
from s11.workload import Request, chapter_scenario

MAX_STEPS = 5_000_000
DEFAULT_SMALLEST = 128
CHECKED_CHUNK_SIZES = (1, 3, 7, 64, 100, 128, 255, 256, 511, 512)
CHECKED_TOKENS = 512
REPORT_PROMPT_TOKENS = 32_768
WORKLOAD_OPTIONS = (
    "prompt_tokens",
    "streaming_users",
    "lead_in_steps",
    "tail_steps",
    "user_context_tokens",
)
PLAIN_OPTIONS = ("policy", "itl_target_ms", "ttft_target_ms")


def experiment_from(
    options: argparse.Namespace, source: Trace | Traffic | None = None, *, notes: bool = True
) -> Experiment:
    """Return the experiment that the options describe, on top of a file's or the chapter's.

    source: the trace or traffic of the options, where the caller has read it already.
    notes: tell of options that do nothing.

    Raises:
        ValueError: options that contradict each other, or values out of range.
    """
    given = {name: value for name, value in vars(options).items() if value is not None}
    source = source or source_from(options)
    experiment = Experiment()
    if "experiment" in vars(options) and options.experiment is not None:
        described = options.experiment.data
        if isinstance(described, dict) and "metrics" in described:
            described = described.get("experiment")  # a whole run, as --json prints it
            _require_requests(described, source)
        experiment = Experiment.from_dict(described)
    workload = experiment.workload
    if "request" in given and "prompt_tokens" in given:
        raise ValueError("request: not allowed together with prompt_tokens")
    if source is not None:  # nobody streams beside it unless asked for
        workload = source.workload()
    elif "prompt_tokens" in given:
        workload = replace(
            chapter_scenario(prompt_tokens=given["prompt_tokens"]),
            **{name: getattr(workload, name) for name in WORKLOAD_OPTIONS[1:]},
        )
    if "request" in given:
        workload = replace(
            workload,
            requests=tuple(
                replace(request, request_id=str(number))
                for number, request in enumerate(given["request"])
            ),
        )
    workload = replace(
        workload, **{name: given[name] for name in WORKLOAD_OPTIONS[1:] if name in given}
    )

    if "engine" in given:
        experiment = PRESETS[given["engine"]].of(experiment)

    def changed(part: Any) -> Any:
        return replace(part, **{f.name: given[f.name] for f in fields(part) if f.name in given})

    described = replace(
        experiment,
        workload=workload,
        limits=changed(experiment.limits),
        cost=cost_from(options, experiment.cost, _chosen_policy(given)),
        hand_over=changed(experiment.hand_over),
        **{name: given[name] for name in PLAIN_OPTIONS if name in given},
    )
    for sentence in ignored(described, given) if notes else ():
        note(sentence)
    if "no_chunking" in given:
        described = described.chunking_off()
    within_memory(described)
    return described


def _require_requests(described: Any, source: Trace | Traffic | None) -> None:
    """Refuse a run that was written without its requests, unless others are given.

    Raises:
        ValueError: with what to give.
    """
    workload = described.get("workload") if isinstance(described, dict) else None
    if source is None and isinstance(workload, dict) and "requests" not in workload:
        raise ValueError(
            "experiment: the file was written with --no-steps, so without its requests "
            "(allowed: together with --trace or --traffic)"
        )


def _chosen_policy(given: dict[str, Any]) -> str | None:
    """Return the scheduler that the options choose, None where they leave it."""
    if "policy" in given:
        return str(given["policy"])
    return PRESETS[given["engine"]].policy if "engine" in given else None


def request_from_text(text: str) -> Request:
    """Return the request in `MS:PROMPT[:OUTPUT[:GROUP=TOKENS]]`.

    Raises:
        argparse.ArgumentTypeError: another form, or a value out of range.
    """
    parts = text.split(":", 3)
    group, sign, shared = parts[3].rpartition("=") if len(parts) == 4 else ("", "", "0")
    try:
        if len(parts) < 2 or bool(sign) != (len(parts) == 4):
            raise ValueError
        arrival_ms, tokens = float(parts[0]), [int(part) for part in [*parts[1:3], shared]]
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"request: {text[:60]!r} is not MS:PROMPT, MS:PROMPT:OUTPUT or "
            "MS:PROMPT:OUTPUT:GROUP=TOKENS in numbers"
        ) from None
    try:
        return Request(
            request_id="request",
            arrival_ms=arrival_ms,
            prompt_tokens=tokens[0],
            output_tokens=tokens[1] if len(parts) > 2 else 1,
            shared_group=group if sign else None,
            shared_tokens=tokens[-1],
        )
    except ValueError as error:
        raise argparse.ArgumentTypeError(f"request: {error}") from error


def simulate_scenario(options: argparse.Namespace) -> int:
    """Run one scenario and print its figures."""
    if options.no_steps and not options.json:
        raise ValueError("no_steps: does not go without --json (allowed: with it)")
    source = source_from(options)
    experiment = experiment_from(options, source)
    pooled = within_memory(experiment)
    result = simulate(pooled, max_steps=MAX_STEPS)
    metrics = measure(
        result, itl_target_ms=experiment.itl_target_ms, ttft_target_ms=experiment.ttft_target_ms
    )
    if options.json:
        pieces = exports.json_pieces(
            experiment,
            result,
            metrics,
            rows=not options.no_steps,
            more=None if source is None else source_data(source),
        )
        sys.stdout.writelines(pieces)
        print()
        return 0
    if source is not None:
        print_traffic(console(), source, experiment, result, metrics)
        return 0
    whole = figures_of(experiment.chunking_off(), max_steps=MAX_STEPS)
    out = console()
    out.print(report_tables.metrics_table(experiment, metrics, whole))
    explanation = explain(pooled, result, metrics, whole=whole)
    out.print(f"{explanation.headline}. {explanation.sentence}")
    machine = machine_words(experiment)
    if machine:
        out.print(f"{experiment.cost.formula()}. {machine}")
    return 0


def sweep(options: argparse.Namespace) -> int:
    """Run one scenario at chunk sizes from the smallest, doubling, up to the whole prompt.

    Or at what the options list, on the workers that they name.
    """
    source = source_from(options)
    experiment = experiment_from(options, source)
    listed = any(getattr(options, name) is not None for name in sweep_command.LISTS)
    if options.chunk_tokens is not None and not listed:
        note(f"chunk_tokens: {options.chunk_tokens} does nothing in a sweep over chunk sizes")
    if sweep_command.is_asked(options):
        return sweep_command.sweep_grid(
            options,
            experiment,
            source=source,
            chunk_tokens=lambda: _doubled(experiment, options.smallest),
            max_steps=MAX_STEPS,
        )
    sizes = _doubled(experiment, options.smallest)
    with progress("chunk sizes") as advance:
        points = sweep_chunk_sizes(experiment, sizes, progress=advance, max_steps=MAX_STEPS)
    rows = [exports.rounded(asdict(point)) for point in points]
    if options.csv:
        print(exports.to_csv({name: [row[name] for row in rows] for name in rows[0]}), end="")
    elif options.json:
        print(json.dumps({"experiment": experiment.to_dict(), "points": rows}, indent=2))
    else:
        report_tables.print_sweep(console(), experiment, points, max_steps=MAX_STEPS)
    return 0


def _doubled(experiment: Experiment, smallest: int | None) -> tuple[int, ...]:
    """Return chunk sizes from the smallest, doubling, up to the whole prompt."""
    smallest = DEFAULT_SMALLEST if smallest is None else smallest
    if experiment.policy not in CHUNKING:
        raise ValueError(
            f"policy: {experiment.policy!r} has no chunk size to sweep "
            f"(allowed: {', '.join(CHUNKING)})"
        )
    prompt_tokens = longest_prompt_tokens(experiment)
    if prompt_tokens == 0:
        raise ValueError("requests: 0 are too few to sweep (allowed: at least 1)")
    return chunk_sizes(smallest=min(smallest, prompt_tokens), largest=prompt_tokens)


def capacity(options: argparse.Namespace) -> int:
    """Find the highest request rate that holds the targets."""
    if options.traffic is not None and options.rate_per_s is None and options.clients is None:
        options.rate_per_s = 1.0  # any will do: each search sets its own
    source = source_from(options)
    experiment = experiment_from(options, source)
    make = ExperimentAtRate(experiment=experiment, source=source)
    return capacity_command.search(options, make, max_steps=MAX_STEPS)


def verify(options: argparse.Namespace) -> int:
    """Check the KV cache at each chunk size; exit code 1 where any differs."""
    sizes = options.chunk_tokens or default_chunk_sizes(options.tokens)
    fault = None if options.fault is None else Fault(options.fault)
    decoder = Decoder(DecoderConfig())
    with progress("chunk sizes") as advance:
        checks = check_chunk_sizes(
            tokens=options.tokens,
            chunk_sizes=sizes,
            decoder=decoder,
            fault=fault,
            progress=advance,
        )
    passed = all(check.passed for check in checks)
    if options.json:
        rows = [report_tables.check_row(check) for check in checks]
        print(json.dumps({"fault": fault, "passed": passed, "checks": rows}, indent=2))
        return 0 if passed else 1
    report_tables.print_checks(console(), checks, fault)
    return 0 if passed else 1


def default_chunk_sizes(tokens: int) -> Sequence[int]:
    """Return the chunk sizes to check for a prompt of `tokens`, the whole prompt last."""
    return (*[size for size in CHECKED_CHUNK_SIZES if size < tokens], tokens)


def schedule(options: argparse.Namespace) -> int:
    """Run scheduler cases; exit code 1 where any fails."""
    cases = read_cases(options.file)
    with progress("cases") as advance:
        outcomes = []
        for done, case in enumerate(cases, start=1):
            outcomes.append(run_case(case))
            advance(done, len(cases))
    for outcome in outcomes:
        if outcome.outcome is not Outcome.PASSED:
            print(f"{outcome.outcome} {outcome.case_id}: {outcome.reason}")
    counted = Counter(outcome.outcome for outcome in outcomes)
    skipped = counted[Outcome.SKIPPED]
    print(
        f"{counted[Outcome.PASSED]} passed, {counted[Outcome.FAILED]} failed"
        + (f", {skipped} skipped" if skipped else "")
    )
    return 1 if counted[Outcome.FAILED] else 0


def validate(options: argparse.Namespace) -> int:
    """Hold the cost model against a folder's tables; exit code 1 where nothing can be compared."""
    with progress("serving runs") as advance:
        validation = validate_folder(options.folder, progress=advance)
    if options.json:
        print(json.dumps(validation.to_dict(), indent=2))
    else:
        out = console()
        out.print(errors_table(validation))
        for sentence in validation.left_out:
            out.print(f"Left out: {sentence}")
    return 0 if validation.rows else 1


def bench(options: argparse.Namespace) -> int:
    """Time the engine and print the ratios."""
    with progress("rounds") as advance:
        measured = measure_loads(progress=advance)
    if options.json:
        print(json.dumps(measured, indent=2))
    else:
        console().print(report_tables.bench_table(measured))
    return 0


def report(options: argparse.Namespace) -> int:
    """Print the chapter's report; exit code 1 where chunking changes a bit."""
    out = console()
    decoder = Decoder(DecoderConfig())
    with progress("KV identity") as advance:
        checks: Sequence[ChunkSizeCheck] = check_chunk_sizes(
            tokens=CHECKED_TOKENS,
            chunk_sizes=CHECKED_CHUNK_SIZES,
            decoder=decoder,
            progress=advance,
        )
    report_tables.print_checks(out, checks, None)
    served_alike = report_tables.print_execution(out, decoder)

    experiment = Experiment(workload=chapter_scenario(prompt_tokens=REPORT_PROMPT_TOKENS))
    report_tables.print_itl_distribution(out, experiment)
    with progress("chunk sizes") as advance:
        points = sweep_chunk_sizes(
            experiment, chunk_sizes(smallest=128, largest=REPORT_PROMPT_TOKENS), progress=advance
        )
    report_tables.print_sweep(out, experiment, points, max_steps=MAX_STEPS)
    if all(check.passed for check in checks) and served_alike:
        return 0
    print("s11: chunking changed the KV cache", file=sys.stderr)
    return 1
