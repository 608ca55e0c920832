"""A run of the traffic page as the command line that gives the same experiment."""

from __future__ import annotations

import math
import shlex
from collections.abc import Sequence
from dataclasses import replace

from s11.catalog import MODELS, Deployment
from s11.ui.traffic_setup import (
    ClosedLoopTraffic,
    DrawnTraffic,
    SampleTrace,
    Setup,
    Source,
    limits_of,
)


def simulate_command(setup: Setup, *, trace_name: str = "TRACE") -> str:
    """Return the command for one side's run.

    trace_name: what the uploaded file is called where the command is run; a sample has its own.
    """
    return " ".join(["python -m s11 simulate", *_options(setup, trace_name)])


def export_command(setup: Setup, *, format_name: str, output: str, trace_name: str) -> str:
    """Return the command that writes one side's run to a file."""
    begin = f"python -m s11 export --format {format_name} --output {output}"
    return " ".join([begin, *_options(setup, trace_name)])


def capacity_command(
    setup: Setup, *, chunk_sizes: Sequence[int], itl_p99_ms: Sequence[float], trace_name: str
) -> str:
    """Return the command for the search of the highest rates; a chunk size is one of its own."""
    told = _options(replace(setup, side=replace(setup.side, chunk_tokens=None)), trace_name)
    sizes = ",".join(map(str, chunk_sizes))
    targets = ",".join(map(_shown, itl_p99_ms))
    search = ["--chunk-sizes", sizes, "--itl-p99-ms", targets]
    return " ".join(["python -m s11 capacity", *told, *search])


def _options(setup: Setup, trace_name: str) -> list[str]:
    limits = limits_of(
        setup.side, most_running=setup.most_running, prefix_caching=setup.prefix_caching
    )
    told = _source(setup.source, trace_name)
    told += ["--policy", setup.side.policy]
    if setup.side.chunk_tokens is not None:
        told += ["--chunk-tokens", str(setup.side.chunk_tokens)]
    if limits.token_budget is not None:
        told += ["--token-budget", str(limits.token_budget)]
    told += ["--max-seqs", str(setup.most_running)]
    if setup.prefix_caching:
        told.append("--prefix-caching")
    told += _machine(setup.machine)
    told += ["--itl-target-ms", _shown(setup.itl_target_ms)]
    told += ["--ttft-target-ms", _shown(setup.ttft_target_ms)]
    return told


def _source(source: Source, trace_name: str) -> list[str]:
    if isinstance(source, DrawnTraffic):
        told = ["--traffic", source.preset, "--rate-per-s", _shown(source.rate_per_s)]
        if source.burstiness != 1:
            told += ["--burstiness", _shown(source.burstiness)]
        return [*told, "--requests", str(source.request_count), "--seed", str(source.seed)]
    if isinstance(source, ClosedLoopTraffic):
        told = ["--traffic", source.preset, "--clients", str(source.clients)]
        if source.think_ms:
            told += ["--think-ms", _shown(source.think_ms)]
        return [*told, "--requests", str(source.request_count), "--seed", str(source.seed)]
    name = source.name if isinstance(source, SampleTrace) else trace_name
    told = ["--trace", shlex.quote(name), "--first", str(source.first)]
    if source.begin_s or source.end_s != math.inf:
        end = "" if source.end_s == math.inf else _shown(source.end_s)
        told += ["--window-s", f"{_shown(source.begin_s)}:{end}"]
    return [*told, "--time-scale", _shown(source.time_scale)]


def _machine(machine: Deployment | None) -> list[str]:
    if machine is None:
        return []
    name = machine.model.name
    listed = MODELS.get(name) == machine.model
    told = ["--model", name] if listed else ["--model-config", "config.json"]
    told += ["--gpu", machine.gpu, "--tensor-parallel", str(machine.tensor_parallel)]
    return [*told, "--precision", machine.precision]


def _shown(number: float) -> str:
    """Return a number that is read back as the same one."""
    return repr(int(number)) if number == int(number) else repr(number)
