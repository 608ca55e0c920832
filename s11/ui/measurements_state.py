"""The measurements page's state: a visitor's own files, read, fitted and laid over.

What is uploaded stays in the visitor's session: it is not written anywhere, put into the link,
or kept in a cache that sessions share.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, replace
from enum import StrEnum
from functools import lru_cache
from typing import Any

import streamlit as st

from s11.bench_results import BenchResults, read_bench_results
from s11.catalog import Deployment
from s11.costs import RooflineCost
from s11.costs.host import HOST_OF_POLICY
from s11.costs.least_squares import Fit, fit
from s11.costs.measurements import Measurements, read_measurements
from s11.experiment import Experiment
from s11.kv_pool import within_memory
from s11.presets import PRESETS, EnginePreset
from s11.replay import LaidOver, Replay, first_requests, lay_over, replay
from s11.sample_measurements import BENCHMARK_NAME, STEPS_NAME, sample_benchmark, sample_steps
from s11.simulator import simulate
from s11.ui import machine
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of


class Part(StrEnum):
    """What the page does."""

    FIT = "Fit a cost model"
    OVERLAY = "Lay a benchmark over"


MODEL_KEY = "llm"
STEPS_MB, BENCHMARK_MB = 5, 10
MOST_REQUESTS, MOST_STEPS = 2_000, 100_000  # that one visitor may have simulated
MOST_NAME = 40
ENGINES = {preset.title: preset for preset in PRESETS.values()}
DEFAULTS = {"part": str(Part.FIT), "bench_engine": PRESETS["vllm-16k"].title}
STEPS, BENCHMARK, OUTCOME = "measured_steps", "measured_benchmark", "measured_outcome"

LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "part": one_of(*Part),
    "bench_engine": one_of(*ENGINES),
    **machine.link_checks(MODEL_KEY, chapter=False),
    "picture": one_of(*PICTURE_FORMATS),
}


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Steps:
    """Measured steps and what was made of them; `refusal` says why not."""

    name: str
    made_up: bool
    measurements: Measurements | None = None
    fit: Fit | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Benchmark:
    """A benchmark's requests, the first MOST_REQUESTS of `all_requests`.

    text: kept only where the file holds other runs, too.
    """

    name: str
    made_up: bool
    results: BenchResults | None = None
    all_requests: int = 0
    text: str | None = None
    refusal: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Outcome:
    """A benchmark beside its simulation."""

    replay: Replay
    laid: LaidOver
    cost: RooflineCost
    kv_blocks: int | None
    block_size: int
    steps: int
    cut: bool


def part() -> Part:
    """Return which part of the page is shown."""
    return Part(st.session_state.get("part") or DEFAULTS["part"])


def engine() -> EnginePreset:
    """Return the chosen engine."""
    return ENGINES[st.session_state.get("bench_engine") or DEFAULTS["bench_engine"]]


def steps() -> Steps:
    """Return the visitor's steps, or the sample."""
    own = st.session_state.get(STEPS)
    return own if own is not None else _sample_steps()


def benchmark() -> Benchmark:
    """Return the visitor's benchmark, or the sample."""
    own = st.session_state.get(BENCHMARK)
    return own if own is not None else _sample_benchmark()


def plain_name(text: str, most: int = MOST_NAME) -> str:
    """Return a file's own words without what Markdown, HTML or a shell would read as theirs."""
    kept = re.sub(r"[^\w .()+,:/-]", "_", text).strip()
    return f"{kept[: most - 1]}…" if len(kept) > most else kept or "file"


def read_steps(name: str, text: str, *, made_up: bool = False) -> Steps:
    """Return the steps of a CSV text, fitted, or why that cannot be."""
    name = plain_name(name)
    measurements = None
    try:
        measurements = read_measurements(text)
        return Steps(name=name, made_up=made_up, measurements=measurements, fit=fit(measurements))
    except ValueError as error:
        return Steps(name=name, made_up=made_up, measurements=measurements, refusal=str(error))


def read_benchmark(
    name: str, text: str, *, run: int | None = None, made_up: bool = False
) -> Benchmark:
    """Return the requests of a benchmark's JSON, or why there are none."""
    name = plain_name(name)
    try:
        results = read_bench_results(text, run=run)
    except ValueError as error:
        return Benchmark(name=name, made_up=made_up, refusal=str(error))
    return Benchmark(
        name=name,
        made_up=made_up,
        results=first_requests(results, MOST_REQUESTS),
        all_requests=len(results),
        text=text if results.head.runs > 1 else None,
    )


def text_of(file: Any, *, most_mb: int) -> str:
    """Return an uploaded file's text.

    Raises:
        ValueError: a file that is too large, or no text.
    """
    if file.size > most_mb * 2**20:
        raise ValueError(
            f"file: {file.size / 2**20:,.1f} MB are too much for this page (allowed: {most_mb} MB)"
        )
    try:
        return str(file.getvalue().decode("utf-8-sig"))
    except UnicodeDecodeError as error:
        raise ValueError("file: it is not a text in UTF-8 (allowed: plain text)") from error


def experiment(sent: Replay, preset: EnginePreset, deployment: Deployment) -> Experiment:
    """Return the benchmark on an engine and a machine, with the KV pool that it has.

    A benchmark's prompts are taken to have nothing in common, so the prefix cache is left out.

    Raises:
        ValueError: a model that does not fit its GPUs.
    """
    return within_memory(
        Experiment(
            workload=sent.workload,
            policy=preset.policy,
            limits=replace(preset.limits, prefix_caching=False),
            cost=RooflineCost(
                deployment=deployment, engine=HOST_OF_POLICY.get(preset.policy, "vllm")
            ),
        )
    )


def outcome(bench: Benchmark, preset: EnginePreset, deployment: Deployment) -> Outcome:
    """Simulate a benchmark; the session keeps its last outcome.

    Raises:
        ValueError: a model that does not fit, or nothing to lay over.
    """
    assert bench.results is not None
    kept = st.session_state.get(OUTCOME)
    if kept is not None and kept[0] is bench and kept[1:3] == (preset, deployment):
        found: Outcome = kept[3]
        return found
    sent = replay(bench.results)
    asked = experiment(sent, preset, deployment)
    result = simulate(asked, max_steps=MOST_STEPS)
    assert isinstance(asked.cost, RooflineCost)
    found = Outcome(
        replay=sent,
        laid=lay_over(bench.results, result),
        cost=asked.cost,
        kv_blocks=asked.limits.kv_blocks,
        block_size=asked.limits.block_size,
        steps=len(result.steps),
        cut=result.stopped_at_max_steps,
    )
    st.session_state[OUTCOME] = (bench, preset, deployment, found)
    return found


@lru_cache(maxsize=1)
def _sample_steps() -> Steps:
    return read_steps(STEPS_NAME, sample_steps(), made_up=True)


@lru_cache(maxsize=1)
def _sample_benchmark() -> Benchmark:
    return read_benchmark(BENCHMARK_NAME, sample_benchmark(), made_up=True)
