"""The command line: the chapter's report, and a command for each thing to run.

Bad input ends with exit code 2 and one line that names the field, the value and what is
allowed; nothing is written then.
"""

from __future__ import annotations

import argparse
import json
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from s11 import (
    app_command,
    capacity_command,
    commands,
    export_command,
    sweep_command,
    traffic_options,
)
from s11.attention import MAX_CHECK_TOKENS, Fault
from s11.checks import MAX_TOKENS, MAX_USERS
from s11.cost_options import COEFFICIENTS, names
from s11.costs import COST_MODELS
from s11.experiment import MAX_TARGET_MS
from s11.option_types import Choice, Number, Whole
from s11.plan import MAX_BLOCK_TOKENS, MAX_INTERVAL
from s11.policies import POLICIES
from s11.presets import PRESETS
from s11.validation import FILES
from s11.workload import MAX_SCENARIO_STEPS


class _Parser(argparse.ArgumentParser):
    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def add_argument(self, *names: Any, **options: Any) -> argparse.Action:
        """Add an argument; one without a help text tells what it allows."""
        about = getattr(options.get("type"), "about", None)
        if about and "help" not in options:
            options["help"] = about
        return super().add_argument(*names, **options)

    def error(self, message: str) -> NoReturn:
        line = " ".join(message.split())
        self.exit(2, f"{self.prog}: {line}\n")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code: 0 done, 1 a check failed, 2 bad input."""
    parser = _parser()
    options = parser.parse_args(arguments)
    options.arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        return int(options.run(options))
    except ValueError as error:
        print(f"{parser.prog}: {' '.join(str(error).split())}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        return 130
    except BrokenPipeError:
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"{parser.prog}: the output cannot be written ({error.strerror})", file=sys.stderr)
        return 1


def _parser() -> _Parser:
    parser = _Parser(
        prog="s11",
        description="Chunked prefill in LLM serving, simulated. Without a command: the report.",
    )
    parser.set_defaults(run=commands.report)
    add = parser.add_subparsers(metavar="COMMAND", parser_class=_Parser).add_parser

    simulate = add("simulate", help="run one scenario")
    _scenario_options(simulate)
    simulate.add_argument("--json", action="store_true", help="print JSON")
    simulate.add_argument(
        "--no-steps",
        action="store_true",
        help="leave the steps and the workload's requests out of the JSON",
    )
    simulate.set_defaults(run=commands.simulate_scenario)

    sweep = add("sweep", help="run one scenario at many chunk sizes")
    _scenario_options(sweep)
    sweep.add_argument(
        "--smallest",
        type=Whole("smallest", 1, MAX_TOKENS),
        help=f"the smallest chunk size (default: {commands.DEFAULT_SMALLEST})",
    )
    output = sweep.add_mutually_exclusive_group()
    output.add_argument("--csv", action="store_true", help="print CSV")
    output.add_argument("--json", action="store_true", help="print JSON")
    output.add_argument(
        "--output", metavar="FILE", help="write every figure to FILE.csv or FILE.parquet"
    )
    sweep_command.add_options(sweep)
    sweep.set_defaults(run=commands.sweep)

    capacity = add("capacity", help="find the highest request rate that holds the targets")
    _scenario_options(capacity)
    capacity_command.add_options(capacity)
    capacity.set_defaults(run=commands.capacity)

    export = add("export", help="write one scenario for other programs to open")
    _scenario_options(export)
    export_command.add_options(export)
    export.set_defaults(run=export_command.export)

    verify = add("verify", help="prove that chunking changes no bit of the KV cache")
    verify.add_argument("--tokens", type=Whole("tokens", 1, MAX_CHECK_TOKENS), default=512)
    verify.add_argument(
        "--chunk-tokens",
        type=Whole("chunk_tokens", 1, MAX_TOKENS),
        action="append",
        help="a chunk size to try (may be given again; default: ten of them)",
    )
    verify.add_argument(
        "--fault", type=Choice("fault", tuple(Fault)), help=f"switch a bug on: {', '.join(Fault)}"
    )
    verify.add_argument("--json", action="store_true", help="print JSON")
    verify.set_defaults(run=commands.verify)

    schedule = add("schedule", help="run scheduler cases")
    schedule.add_argument(
        "file", metavar="FILE", type=Path, help="JSON: a list of cases, see s11/cases.py"
    )
    schedule.set_defaults(run=commands.schedule)

    validate = add("validate", help="hold the roofline cost model against measured tables")
    validate.add_argument(
        "folder", metavar="DIR", type=Path, help=f"a folder with any of {', '.join(FILES)}"
    )
    validate.add_argument("--json", action="store_true", help="print JSON")
    validate.set_defaults(run=commands.validate)

    app = add("app", help="open the simulator's pages in a browser")
    app_command.add_options(app)
    app.set_defaults(run=app_command.app)

    bench = add("bench", help="time the engine in units of a plain Python loop")
    bench.add_argument("--json", action="store_true", help="print JSON")
    bench.set_defaults(run=commands.bench)
    return parser


def _scenario_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--experiment",
        type=_json_file,
        metavar="FILE",
        help="start from the experiment in a JSON file, as --json prints it",
    )
    parser.add_argument("--prompt-tokens", type=Whole("prompt_tokens", 1, MAX_TOKENS))
    parser.add_argument("--streaming-users", type=Whole("streaming_users", 0, MAX_USERS))
    for name in ("lead-in-steps", "tail-steps"):
        field = name.replace("-", "_")
        parser.add_argument(f"--{name}", type=Whole(field, 0, MAX_SCENARIO_STEPS))
    parser.add_argument(
        "--request",
        action="append",
        type=commands.request_from_text,
        metavar="MS:PROMPT[:OUTPUT[:GROUP=TOKENS]]",
        help="a request in place of the long prompt: arrival, prompt and output tokens, and "
        "the prefix that it shares with its group (may be given again)",
    )
    traffic_options.add_options(parser)
    parser.add_argument("--chunk-tokens", type=Whole("chunk_tokens", 1, MAX_TOKENS))
    parser.add_argument("--token-budget", type=Whole("token_budget", 1, MAX_TOKENS))
    parser.add_argument("--max-seqs", type=Whole("max_seqs", 1, MAX_TOKENS))
    parser.add_argument(
        "--itl-target-ms", type=Number("itl_target_ms", 0, MAX_TARGET_MS, above=True)
    )
    parser.add_argument(
        "--ttft-target-ms", type=Number("ttft_target_ms", 0, MAX_TARGET_MS, above=True)
    )
    parser.add_argument(
        "--engine",
        type=Choice("engine", tuple(PRESETS)),
        help=f"a real engine's scheduler and limits as they come: {', '.join(PRESETS)}",
    )
    parser.add_argument(
        "--policy",
        type=Choice("policy", tuple(POLICIES)),
        help=f"the scheduler: {', '.join(POLICIES)}",
    )
    parser.add_argument(
        "--no-chunking",
        action="store_true",
        default=None,
        help="whole prompts: for the default scheduler the same as --policy whole_prompt",
    )
    for name, most, about in (
        ("block-size", MAX_BLOCK_TOKENS, "tokens in one KV block"),
        ("kv-blocks", MAX_TOKENS, "KV blocks in the pool, no limit without"),
        ("max-model-len", MAX_TOKENS, "refuse longer prompts"),
    ):
        parser.add_argument(f"--{name}", type=Whole(name.replace("-", "_"), 1, most), help=about)
    parser.add_argument(
        "--prefill-interval",
        type=Whole("prefill_interval", 1, MAX_INTERVAL),
        help="at most one step with prompt tokens in every so many, while anyone decodes",
    )
    for name, about in (
        ("mixed", "decodes ride along in prefill steps (sglang)"),
        ("prefix-caching", "share whole blocks of equal beginnings"),
        ("reserve-full-prompt", "admit only where the whole prompt would fit in the free blocks"),
        ("align-first-chunk", "floor a newcomer's budget-cut chunk to whole blocks"),
    ):
        parser.add_argument(f"--{name}", action="store_true", default=None, help=about)
    parser.add_argument("--kv-bytes-per-token", type=Whole("kv_bytes_per_token", 1, 2**30))
    parser.add_argument("--link-bytes-per-s", type=Number("link_bytes_per_s", 1e3, 1e15))
    parser.add_argument("--link-latency-ms", type=Number("link_latency_ms", 0, 1e6))
    _cost_options(parser)


def _cost_options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--cost",
        type=Choice("cost", tuple(COST_MODELS)),
        help=f"what a step costs: {', '.join(COST_MODELS)} (linear: the chapter's)",
    )
    for name in COEFFICIENTS:
        parser.add_argument(f"--{name.replace('_', '-')}", type=Number(name, 0, 1e6))
    for name, allowed in names().items():
        parser.add_argument(
            f"--{name}", type=Choice(name, allowed), help=f"roofline: {', '.join(allowed)}"
        )
    parser.add_argument(
        "--model-config", metavar="FILE", help="roofline: a Hugging Face config.json"
    )
    parser.add_argument(
        "--tensor-parallel",
        type=Whole("tensor_parallel", 1, 8),
        help="roofline: GPUs that share the model, 1, 2, 4 or 8",
    )
    parser.add_argument(
        "--measurements",
        metavar="FILE",
        help="fitted: a CSV of prefill_tokens, decode_tokens, context_tokens, duration_ms",
    )
    parser.add_argument(
        "--user-context-tokens",
        type=Whole("user_context_tokens", 0, MAX_TOKENS),
        help="what each streaming user has in the KV cache before the first step",
    )


@dataclass(frozen=True, slots=True)
class _JsonFile:
    """What a JSON file holds; null too is something."""

    data: Any


def _json_file(text: str) -> _JsonFile:
    path = Path(text)
    try:
        if path.exists() and not path.is_file():  # a device or a pipe need not end
            raise argparse.ArgumentTypeError(f"experiment: {path.name} is not a file")
        if path.stat().st_size > 64 * 2**20:
            raise argparse.ArgumentTypeError(f"experiment: {path.name} is larger than 64 MiB")
        return _JsonFile(json.loads(path.read_text(encoding="utf-8-sig")))
    except OSError as error:
        raise argparse.ArgumentTypeError(
            f"experiment: {path.name} cannot be read ({error.strerror})"
        ) from error
    except (ValueError, RecursionError) as error:
        raise argparse.ArgumentTypeError(f"experiment: {path.name} is not JSON text") from error
