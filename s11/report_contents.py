"""What a report says of a run in words and tables: its parameters, its figures, with units."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction

import numpy as np

from s11.experiment import Experiment
from s11.metrics import Metrics, percentile
from s11.plan import EngineLimits
from s11.policies import CHUNKING, DISAGGREGATED
from s11.presets import TITLES
from s11.results import Result
from s11.words import count, ms

Row = tuple[str, str, str]
"""A name, a value, a unit."""

LIMITS: dict[str, tuple[str, str]] = {
    "token_budget": ("Token budget of a step", "tokens"),
    "chunk_tokens": ("Chunk cap of one prompt", "tokens"),
    "max_seqs": ("Most running requests", "requests"),
    "chunking": ("Prompts may be cut", ""),
    "mixed": ("Decodes ride along in prefill steps", ""),
    "prefill_interval": ("Prefill at most once in", "steps"),
    "block_size": ("KV block", "tokens"),
    "kv_blocks": ("KV pool", "blocks"),
    "prefix_caching": ("Prefix caching", ""),
    "reserve_full_prompt": ("Admit only where the whole prompt fits", ""),
    "max_model_len": ("Longest prompt", "tokens"),
    "align_first_chunk": ("First chunk in whole blocks", ""),
}
OWN_LIMITS = {  # what only some schedulers look at
    "chunk_tokens": CHUNKING,
    "mixed": ("sglang",),
    "align_first_chunk": ("chunked",),
}
UNITS = (  # by the end of a figure's name; the first that fits
    ("_tokens_per_s", "tokens/s"),
    ("requests_per_s", "requests/s"),
    ("goodput_per_s", "requests/s"),
    ("_ms", "ms"),
    ("_tokens", "tokens"),
)
SHARES = ("slo_attainment", "stalled_share")
WORDS = {"ttft": "TTFT", "itl": "ITL", "tpot": "TPOT", "slo": "SLO"}
TITLES_OF_FIGURES = {
    "ttft_ms": "TTFT of the longest prompt",
    "decode_tokens_per_s": "Decode throughput",
    "prefill_tokens_per_s": "Prefill throughput",
    "output_tokens_per_s": "Output throughput",
    "requests_per_s": "Throughput",
    "goodput_per_s": "Goodput: requests within every target",
    "slo_attainment": "SLO attainment: requests within every target",
    "request_count": "Requests",
    "step_count": "Steps",
    "cached_tokens": "Tokens from the prefix cache",
    "computed_prefill_tokens": "Computed in prefill",
    "stalled_share": "Requests with a stall over the ITL target",
    "steps_over_target": "Steps over the ITL target",
}


def parameter_rows(experiment: Experiment) -> list[Row]:
    """Return what was simulated, a row for each parameter."""
    workload = experiment.workload
    limits = replace(experiment.limits, chunking=experiment.chunking)
    rows: list[Row] = [("Requests", f"{len(workload.requests):,}", "")]
    if workload.requests:
        for name, values in (
            ("Prompt", [request.prompt_tokens for request in workload.requests]),
            ("Output", [request.output_tokens for request in workload.requests]),
        ):
            rows.append((f"{name}: median, p90, longest", _spread(values), "tokens"))
        sent = [r.arrival_ms for r in workload.requests if r.after is None]
        if len(sent) > 1:
            rows.append(("Arrivals from first to last", _number(sent[-1] - sent[0]), "ms"))
        waiting = len(workload.requests) - len(sent)
        if waiting:
            rows.append(("Sent when another ends", f"{waiting:,}", "requests"))
    if workload.streaming_users:
        rows += [
            ("Streaming users", f"{workload.streaming_users:,}", ""),
            ("Context of each user at first", f"{workload.user_context_tokens:,}", "tokens"),
            ("Decode-only steps before", f"{workload.lead_in_steps:,}", "steps"),
            ("Decode-only steps after", f"{workload.tail_steps:,}", "steps"),
        ]
    rows.append(("Scheduler", TITLES[experiment.policy], ""))
    for name in LIMITS:
        if experiment.policy in OWN_LIMITS.get(name, (experiment.policy,)):
            rows.append(_limit(name, limits))
    if experiment.policy == DISAGGREGATED:
        way = experiment.hand_over
        rows += [
            ("KV of a token", f"{way.kv_bytes_per_token:,}", "bytes"),
            ("Link between the workers", f"{way.link_bytes_per_s:,.0f}", "bytes/s"),
            ("Latency of the link", _number(way.link_latency_ms), "ms"),
        ]
    rows.append(("Step duration", experiment.cost.formula(), ""))
    rows.append(("ITL target", _number(experiment.itl_target_ms), "ms"))
    if experiment.ttft_target_ms is not None:
        rows.append(("TTFT target", _number(experiment.ttft_target_ms), "ms"))
    return rows


def figure_rows(metrics: Metrics) -> list[Row]:
    """Return a run's figures, a row for each of `Metrics`; "none" where there is nothing."""
    rows = []
    for name, value in metrics.to_dict().items():
        ending, unit = next((one for one in UNITS if name.endswith(one[0])), ("", ""))
        title = TITLES_OF_FIGURES.get(name) or _title(name.removesuffix(ending))
        if value is None:
            rows.append((title, "none", ""))
        elif name in SHARES:
            rows.append((title, f"{100 * value:.2f}", "%"))
        else:
            rows.append((title, _number(value), unit))
    return rows


def run_sentences(experiment: Experiment, result: Result, metrics: Metrics) -> list[str]:
    """Return what became of many requests, in sentences that are true of this run."""
    total = metrics.request_count
    if not total:
        return ["No request arrives."]
    told = [f"{metrics.finished_requests:,} of {count(total, 'request')} got all their tokens."]
    if metrics.longest_stall_ms is None:
        told.append("Nobody got a second token, so there is no stall to see.")
    else:
        told.append(
            f"The longest stall that anyone saw took {ms(metrics.longest_stall_ms)}; "
            f"of 100 tokens, 99 came within {ms(metrics.itl_p99_ms)} of the one before."
        )
    if metrics.ttft_p50_ms is not None:
        told.append(
            f"TTFT was {ms(metrics.ttft_p50_ms)} at the median and {ms(metrics.ttft_p99_ms)} "
            "at p99."
        )
    if metrics.slo_attainment is not None:
        target = f"an ITL of at most {ms(experiment.itl_target_ms)} throughout"
        if experiment.ttft_target_ms is not None:
            target = f"a TTFT of at most {ms(experiment.ttft_target_ms)} and {target}"
        told.append(f"{100 * metrics.slo_attainment:.1f}% of all requests had {target}.")
    if result.stopped_at_max_steps:
        told.append(
            f"The run was cut after {count(metrics.step_count, 'step')}: its figures are of the "
            "part that was run."
        )
    return told


def _limit(name: str, limits: EngineLimits) -> Row:
    title, unit = LIMITS[name]
    value = getattr(limits, name)
    if value is None:
        return title, "no limit", ""
    if isinstance(value, bool):
        return title, "yes" if value else "no", ""
    return title, f"{value:,}", unit


def _spread(values: Sequence[int]) -> str:
    array = np.array(values, dtype=np.float64)
    shares = [percentile(array, Fraction(share, 100)) for share in (50, 90, 100)]
    return ", ".join([f"{share or 0:,.0f}" for share in shares])


def _title(name: str) -> str:
    words = [WORDS.get(word, word) for word in name.split("_")]
    joined = " ".join(words)
    return joined[0].upper() + joined[1:]


def _number(value: float) -> str:
    """Return a number in full to the thousandth, without idle zeros."""
    text = f"{value:,.3f}"
    return text.rstrip("0").rstrip(".")
