"""What `simulate` prints of traffic: what was read, latencies, throughput, who never ran."""

from __future__ import annotations

from rich.console import Console

from s11.experiment import Experiment
from s11.metrics import Metrics
from s11.results import Result
from s11.terminal import table
from s11.traces import Trace
from s11.traffic import Traffic
from s11.traffic_options import source_sentence
from s11.words import count, ms

LATENCIES = (
    ("TTFT", "ttft", ("p50", "p90", "p99")),
    ("ITL", "itl", ("p50", "p90", "p99")),
    ("TPOT", "tpot", ("p50", "p90", "p99")),
    ("scheduling delay", "scheduling_delay", ("p50", None, "p99")),
)
SHOWN_NAMES = 5


def print_traffic(
    out: Console, source: Trace | Traffic, experiment: Experiment, result: Result, metrics: Metrics
) -> None:
    """Print a run of many requests."""
    out.print(source_sentence(source), markup=False)
    out.print(table("Latency", ("", "p50", "p90", "p99"), _latencies(metrics)))
    out.print(table("Figures", ("", experiment.policy), _figures(experiment, metrics)))
    for ids, what in (
        (result.never_scheduled, "never scheduled"),
        (result.never_finished, "began and never ended"),
        (result.rejected, "refused on arrival"),
    ):
        if ids:
            names = ", ".join(ids[:SHOWN_NAMES]) + (", …" if len(ids) > SHOWN_NAMES else "")
            because = result.never_scheduled_because if what == "never scheduled" else None
            told = f"{count(len(ids), 'request')} {what}: {names}"
            out.print(f"{told} ({because})." if because else f"{told}.", markup=False)
    if result.stopped_at_max_steps:
        out.print(f"The run was cut after {count(metrics.step_count, 'step')}.")


def _latencies(metrics: Metrics) -> list[tuple[str, ...]]:
    return [
        (
            label,
            *[
                "" if share is None else ms(getattr(metrics, f"{name}_{share}_ms"))
                for share in shares
            ],
        )
        for label, name, shares in LATENCIES
    ]


def _figures(experiment: Experiment, metrics: Metrics) -> list[tuple[str, str]]:
    def rate(value: float | None, unit: str, digits: int = 1) -> str:
        return "none" if value is None else f"{value:,.{digits}f} {unit}"

    def share(value: float | None) -> str:
        return "none" if value is None else f"{100 * value:.1f}%"

    target = f"ITL {experiment.itl_target_ms:g} ms"
    if experiment.ttft_target_ms is not None:
        target = f"TTFT {experiment.ttft_target_ms:g} ms, {target}"
    rows = [
        ("requests", f"{metrics.request_count:,}"),
        ("finished", f"{metrics.finished_requests:,}"),
        ("longest stall", ms(metrics.longest_stall_ms)),
        (
            f"requests with a stall over {experiment.itl_target_ms:g} ms",
            share(metrics.stalled_share),
        ),
        (f"requests within {target}", share(metrics.slo_attainment)),
        ("goodput", rate(metrics.goodput_per_s, "requests/s", 3)),
        ("throughput", rate(metrics.requests_per_s, "requests/s", 3)),
        ("output throughput", rate(metrics.output_tokens_per_s, "tok/s")),
        ("prefill throughput", rate(metrics.prefill_tokens_per_s, "tok/s")),
        ("makespan", ms(metrics.makespan_ms)),
        ("steps", f"{metrics.step_count:,}"),
    ]
    for name in ("preemptions", "cached_tokens"):
        if getattr(metrics, name):
            rows.append((name.replace("_", " "), f"{getattr(metrics, name):,}"))
    return rows
