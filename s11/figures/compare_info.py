"""What the comparison shows, as plain values: a band for each engine, on one time axis."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from s11.comparison import Comparison
from s11.figures.compare_rows import RequestRow, request_rows
from s11.figures.compare_strips import Strip, strips
from s11.metric_rows import EngineRun
from s11.metrics import Metrics
from s11.plan import EngineLimits
from s11.presets import READS
from s11.words import count, ms

Floats = NDArray[np.float64]

MOST_KNOB_LETTERS = 58
SECONDS_FROM_MS = 10_000.0


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class Band:
    """One engine: its name and knobs, its requests' rows, and a strip of steps.

    A disaggregated deployment has two strips, one for each worker.
    """

    label: str
    knobs: tuple[str, ...]  # lines
    longest_stall_ms: float | None
    rows: tuple[RequestRow, ...]
    folded: int
    strips: tuple[Strip, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class CompareInfo:
    """Everything that the comparison draws; times are in ms."""

    title: str
    caption: list[str]
    bands: tuple[Band, ...]
    end_ms: float
    itl_target_ms: float

    @property
    def in_seconds(self) -> bool:
        """Whether the axis counts seconds."""
        return self.end_ms >= SECONDS_FROM_MS


def compare_info(
    runs: Sequence[EngineRun], comparison: Comparison, *, scene: str = ""
) -> CompareInfo:
    """Return what to draw of one or more runs of the same load.

    Args:
        runs: on different engines.
        comparison: of these runs.
        scene: what the load is called.
    """
    end_ms = max([_end_ms(run) for run in runs], default=0.0)
    target_ms = runs[0].experiment.itl_target_ms if runs else 0.0
    bands = []
    for run in runs:
        rows, folded = request_rows(run.experiment, run.result)
        bands.append(
            Band(
                label=run.label,
                knobs=knobs(run),
                longest_stall_ms=run.metrics.longest_stall_ms,
                rows=rows,
                folded=folded,
                strips=strips(run.experiment, run.result),
            )
        )
    return CompareInfo(
        title=comparison.headline,
        caption=_caption(runs, scene),
        bands=tuple(bands),
        end_ms=end_ms,
        itl_target_ms=target_ms,
    )


def knobs(run: EngineRun) -> tuple[str, ...]:
    """Return an engine's knobs, those that it reads, in lines of at most 58 characters."""
    limits, policy = run.experiment.limits, run.experiment.policy
    reads = READS[policy]
    parts = [_budget(limits)] if "token_budget" in reads else []
    if "chunking" in reads and not limits.chunking:
        parts.append("chunking off")
    elif "chunk_tokens" in reads and limits.chunk_tokens:
        parts.append(f"cap {limits.chunk_tokens:,}")
    if "mixed" in reads:
        parts.append(f"mixed {'on' if limits.mixed else 'off'}")
    if limits.kv_blocks:
        parts.append(f"{count(limits.kv_blocks, 'KV block')} of {limits.block_size:,}")
    if limits.prefix_caching:
        parts.append("prefix cache")
    if limits.prefill_interval > 1:
        parts.append(f"interval {limits.prefill_interval:,}")
    if limits.max_seqs:
        parts.append(count(limits.max_seqs, "seat"))
    if policy == "disaggregated":
        parts.append(f"link {run.experiment.hand_over.link_bytes_per_s / 1e9:g} GB/s")
    lines = [parts[0]] if parts else [""]
    for part in parts[1:]:
        if len(lines[-1]) + 3 + len(part) <= MOST_KNOB_LETTERS:
            lines[-1] += f" · {part}"
        else:
            lines.append(part)
    return tuple(lines)


def stall_words(band: Band) -> str:
    """Return a band's longest stall in a few words; none where nobody streams."""
    stall_ms = band.longest_stall_ms
    if stall_ms is None:
        return "nobody streams" if len(band.strips[-1].left_ms) else "nothing runs"
    return f"longest stall {ms(stall_ms)}"


def compare_alt(info: CompareInfo, metrics: Sequence[Metrics]) -> str:
    """Return the comparison's numbers for those who cannot see it."""
    told = [
        f"{band.label} ({' · '.join(band.knobs)}): longest stall {ms(figures.longest_stall_ms)}, "
        f"TTFT p50 {ms(figures.ttft_p50_ms)}, {count(figures.step_count, 'step')}, "
        f"{count(figures.preemptions, 'preemption')}"
        for band, figures in zip(info.bands, metrics, strict=True)
    ]
    return f"Schedulers compared: {info.title}. {' '.join(info.caption)}. {'; '.join(told)}."


def _budget(limits: EngineLimits) -> str:
    return f"budget {limits.token_budget:,}" if limits.token_budget else "no budget"


def _end_ms(run: EngineRun) -> float:
    workers = [run.result, *([run.result.prefill_worker] if run.result.prefill_worker else [])]
    ends = [float(worker.steps.end_ms[-1]) for worker in workers if len(worker.steps)]
    tokens = run.result.requests.last_token_ms
    return max([*ends, *tokens[~np.isnan(tokens)].tolist()], default=0.0)


def _caption(runs: Sequence[EngineRun], scene: str) -> list[str]:
    if not runs:
        return []
    experiment = runs[0].experiment
    requests, cost = experiment.workload.requests, experiment.cost
    prompts = sum(request.prompt_tokens for request in requests)
    named = f"{scene}: " if scene else ""
    return [
        f"{named}{count(len(requests), 'request')}, {count(prompts, 'prompt token')}",
        f"{cost.formula()}, target {experiment.itl_target_ms:g} ms, s11",
    ]
