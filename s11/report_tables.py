"""The tables that the commands print."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

import numpy as np
from rich.console import Console, Group

from s11.attention import ChunkSizeCheck, Decoder, Fault
from s11.experiment import Experiment
from s11.largest_chunk import largest_chunk_within_target
from s11.metrics import Metrics, inter_token_gaps, percentile
from s11.plan import EngineLimits
from s11.proof import prove
from s11.simulator import simulate
from s11.sweeps import SweepPoint, figures_of, knee
from s11.terminal import table
from s11.words import count, ms, times
from s11.workload import Request, Workload


def metrics_table(experiment: Experiment, metrics: Metrics, whole: Metrics) -> Group:
    """Return a scenario's figures beside those with chunking off."""

    def rate(value: float | None) -> str:
        return "none" if value is None else f"{value:,.1f} tok/s"

    rows = [
        ("longest stall", ms(metrics.longest_stall_ms), ms(whole.longest_stall_ms)),
        ("TTFT of the longest prompt", ms(metrics.ttft_ms), ms(whole.ttft_ms)),
        (
            f"steps over {experiment.itl_target_ms:g} ms",
            f"{metrics.steps_over_target:,}",
            f"{whole.steps_over_target:,}",
        ),
        (
            "decode throughput",
            rate(metrics.decode_tokens_per_s),
            rate(whole.decode_tokens_per_s),
        ),
        ("ITL p50", ms(metrics.itl_p50_ms), ms(whole.itl_p50_ms)),
        ("ITL p99", ms(metrics.itl_p99_ms), ms(whole.itl_p99_ms)),
        ("makespan", ms(metrics.makespan_ms), ms(whole.makespan_ms)),
        ("steps", f"{metrics.step_count:,}", f"{whole.step_count:,}"),
    ]
    for name in ("preemptions", "cached_tokens"):
        both = getattr(metrics, name), getattr(whole, name)
        if any(both):
            rows.append((name.replace("_", " "), f"{both[0]:,}", f"{both[1]:,}"))
    columns = ("", experiment.policy, "chunking off")
    if whole.ttft_ms is None and metrics.ttft_ms is not None:  # its other figures are of no work
        columns = (*columns[:2], "chunking off: never runs")
        rows = [(name, mine, "") for name, mine, _ in rows]
    if not experiment.chunking:  # the two are the same
        return table("Figures", columns[:2], [row[:2] for row in rows])
    return table("Figures", columns, rows)


def print_sweep(
    out: Console, experiment: Experiment, points: Sequence[SweepPoint], *, max_steps: int
) -> None:
    """Print the chunk-size sweep, its knee and the largest chunk within the target."""
    best = knee(points)
    rows = [
        (
            f"{point.chunk_tokens:,}"
            + (" (knee)" if point is best and point is not points[-1] else ""),
            ms(point.itl_p99_ms),
            ms(point.longest_stall_ms),
            ms(point.ttft_ms),
            "none"
            if point.prefill_tokens_per_s is None
            else f"{point.prefill_tokens_per_s:,.0f} tok/s",
            f"{point.steps_over_target:,}",
        )
        for point in points
    ]
    target = f"over {experiment.itl_target_ms:g} ms"
    columns = ("chunk", "ITL p99", "longest stall", "TTFT", "prefill throughput", target)
    out.print(table("Chunk-size sweep", columns, rows))
    if best and best is points[-1] and len(points) > 1:
        out.print(
            "No knee: stall x TTFT falls up to the whole prompt, so larger chunks only gain here."
        )
    elif best:
        out.print(
            f"Knee: {count(best.chunk_tokens, 'token')}, where stall x TTFT is least: beyond it "
            "a stream loses a larger share of its smoothness than the prompt gains."
        )
    largest = largest_chunk_within_target(experiment, max_steps=max_steps)
    out.print(
        f"Largest chunk within {experiment.itl_target_ms:g} ms: "
        + (count(largest, "token") if largest else "none")
    )


def print_itl_distribution(out: Console, experiment: Experiment) -> None:
    """Print the ITL distribution with and without chunking, and the improvement factor."""
    columns = {}
    for name, variant in (("chunked", experiment), ("chunking off", experiment.chunking_off())):
        gaps_ms, tokens = inter_token_gaps(simulate(variant))
        shares = [
            ms(percentile(gaps_ms, Fraction(p, 100), weights=tokens)) for p in (50, 90, 99, 100)
        ]
        columns[name] = (ms(float(gaps_ms @ tokens / tokens.sum())), *shares)
    labels = ("mean", "p50", "p90", "p99", "longest stall")
    title = f"ITL of {experiment.workload.streaming_users} streaming users beside one prompt of "
    title += f"{experiment.workload.requests[0].prompt_tokens:,} tokens"
    rows = list(zip(labels, *columns.values(), strict=True))
    out.print(table(title, ("", *columns), rows))
    chunked, whole = figures_of(experiment), figures_of(experiment.chunking_off())
    assert chunked.longest_stall_ms is not None
    assert whole.longest_stall_ms is not None
    out.print(
        f"The longest stall falls {whole.longest_stall_ms / chunked.longest_stall_ms:.2f}×, from "
        f"{whole.longest_stall_ms:.3f} ms to {chunked.longest_stall_ms:.3f} ms; "
        f"TTFT rises {times((chunked.ttft_ms or 0) / (whole.ttft_ms or 1))}."
    )


def check_row(check: ChunkSizeCheck) -> dict[str, Any]:
    """Return one chunk size's check as plain data."""

    def path(comparison: Any) -> dict[str, Any]:
        return {
            "identical": comparison.identical,
            "max_abs_key_diff": np.asarray(comparison.max_abs_key_diff).tolist(),
            "max_abs_value_diff": np.asarray(comparison.max_abs_value_diff).tolist(),
            "max_ulp_key": np.asarray(comparison.max_ulp_key).tolist(),
            "max_ulp_value": np.asarray(comparison.max_ulp_value).tolist(),
            "last_hidden_max_abs_diff": float(comparison.last_hidden_max_abs_diff),
            "last_hidden_max_ulp": int(comparison.last_hidden_max_ulp),
        }

    return {
        "chunk_tokens": check.chunk_tokens,
        "chunks": check.chunks,
        "divides_prompt": check.divides_prompt,
        "passed": check.passed,
        "plain": path(check.plain) | {"within_rounding": check.plain_within_rounding},
        "aligned": path(check.tiled),
    }


def print_checks(out: Console, checks: Sequence[ChunkSizeCheck], fault: Fault | None) -> None:
    """Print the KV identity at each chunk size, on both paths."""

    def largest(values: Any) -> float:
        return float(np.max(np.asarray(values)))

    def ulp(comparison: Any) -> str:
        worst = max(np.max(comparison.max_ulp_key), np.max(comparison.max_ulp_value))
        return f"{int(worst):,}"

    rows = []
    for check in checks:
        plain = check.plain
        rows.append(
            (
                f"{check.chunk_tokens:,}" + ("" if check.divides_prompt else " *"),
                f"{check.chunks:,}",
                "identical" if check.tiled.identical else "DIFFERENT",
                f"{largest(check.tiled.max_abs_key_diff):.1e}",
                f"{largest(check.tiled.max_abs_value_diff):.1e}",
                ulp(check.tiled),
                "identical"
                if plain.identical
                else ("rounding" if check.plain_within_rounding else "WRONG"),
                f"{largest(plain.max_abs_key_diff):.1e}",
                f"{largest(plain.max_abs_value_diff):.1e}",
                ulp(plain),
            )
        )
    prompt_tokens = checks[0].prompt_tokens
    title = f"KV cache of a {prompt_tokens:,}-token prompt against one whole pass"
    title += f", with the bug {fault}" if fault else ""
    differences = ("max |ΔK|", "max |ΔV|", "ulp")
    columns = ("chunk", "chunks", "aligned tiles", *differences, "plain products", *differences)
    out.print(table(title, columns, rows))
    if any(not check.divides_prompt for check in checks):
        out.print("* does not divide the prompt: the last chunk is shorter.")
    if fault:
        out.print(f"{fault}: {fault.description} {fault.symptom}")
        blind = [c for c in checks if not fault.revealed_by(c.chunk_lengths)]
        if blind:
            sizes = ", ".join(f"{check.chunk_tokens:,}" for check in blind)
            out.print(f"This bug cannot show at chunk size {sizes}.")
    agreed = sum(check.tiled.identical for check in checks)
    out.print(f"{agreed} of {count(len(checks), 'chunk size')} identical, bit for bit.")


def executed_experiments() -> tuple[Experiment, ...]:
    """Return the small scenarios whose schedules the report executes.

    Chunks beside decodes; and vLLM V1 with a pool of KV blocks that is too small, so that
    requests are preempted, and with prompts that share their beginning.
    """
    sizes = ((0, 150, 8), (0, 41, 12), (3, 97, 5), (6, 200, 3), (9, 1, 6), (9, 65, 4))
    chunks = Experiment(
        workload=Workload(
            requests=tuple(
                Request(request_id=str(n), arrival_ms=at, prompt_tokens=prompt, output_tokens=out)
                for n, (at, prompt, out) in enumerate(sizes)
            )
        ),
        limits=EngineLimits(token_budget=64, chunk_tokens=48),
    )
    shared = tuple(
        replace(request, shared_group="system", shared_tokens=32)
        if request.prompt_tokens > 64
        else request
        for request in chunks.workload.requests
    )
    pressed = EngineLimits(token_budget=64, chunk_tokens=48, kv_blocks=16, prefix_caching=True)
    return chunks, Experiment(workload=Workload(requests=shared), policy="vllm_v1", limits=pressed)


def print_execution(out: Console, decoder: Decoder) -> bool:
    """Run simulated schedules on the decoder, print the outcomes, return whether all agree."""
    all_alike = True
    for experiment in executed_experiments():
        compared = prove(experiment, decoder=decoder)
        result = simulate(experiment)
        alike = sum(comparison.identical for comparison in compared.values())
        tokens = sum(comparison.output_tokens for comparison in compared.values())
        hits = int((result.admissions.cached_tokens > 0).sum())
        told = ""
        if len(result.preemptions) or hits:
            told = (
                f" with {count(len(result.preemptions), 'preemption')} and "
                f"{count(hits, 'prefix hit')}"
            )
        out.print(
            f"Executed: {count(len(result.steps), 'scheduled step')} of {experiment.policy}{told} "
            f"as ragged batches; {alike} of {count(len(compared), 'request')} got the same tokens "
            f"({tokens}), states, keys and values, bit for bit, as alone.\n"
        )
        all_alike = all_alike and alike == len(compared)
    return all_alike


def bench_table(measured: dict[str, Any]) -> Group:
    """Return the engine's speed, load by load."""
    rows = [
        (
            load["load"],
            f"{load['steps']:,}",
            f"{load['cpu_s']:.3f} s",
            f"{load['ratio']:.2f}",
            f"{load['all_read_ratio']:.2f}",
            f"{load['steps_per_s_at_reference']:,.0f}",
        )
        for load in measured["loads"]
    ]
    title = f"Engine speed; the calibration loop took {measured['calibration_s']:.3f} s"
    if measured["peak_memory_bytes"]:
        peaks = (measured["peak_memory_bytes"], measured["peak_memory_all_read_bytes"])
        runs, all_read = (f"{peak / 2**20:,.0f} MiB" for peak in peaks)
        title += f", most memory {runs}, {all_read} with all tables read"
    columns = (
        "load",
        "steps",
        "CPU time",
        "in loops",
        "all tables read",
        "steps/s at 0.138 s a loop",
    )
    return table(title, columns, rows)
