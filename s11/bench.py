"""Engine speed, in units of a plain Python loop timed in the same run.

Machines differ and are shared, so a rate alone says little: the unit is the CPU time of
`CALIBRATION_ITERATIONS` turns of an empty-handed loop.
"""

from __future__ import annotations

import random
import sys
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from s11.arrivals import PoissonArrivals
from s11.catalog import MODELS, Deployment
from s11.costs import FittedCost, RooflineCost
from s11.experiment import Experiment
from s11.plan import EngineLimits
from s11.results import Result
from s11.simulator import simulate
from s11.traffic_presets import TRAFFIC_PRESETS
from s11.workload import Request, Workload

CALIBRATION_ITERATIONS = 2_000_000
REFERENCE_CALIBRATION_S = 0.138
ROUNDS, READING_ROUNDS = 5, 2
LLAMA_ON_H100 = RooflineCost(deployment=Deployment(model=MODELS["llama-3.1-8b"], gpu="h100"))
WITH_KV_TERM = FittedCost(
    fixed_ms=13.0,
    prefill_ms_per_token=0.03,
    decode_ms_per_token=0.03,
    context_ms_per_token=2e-5,
)
REFERENCE_REQUESTS = 19_366  # of the Azure LLM inference trace 2023, conversation
REFERENCE_RATE_PER_S = 6.45
OTHER_RATES_PER_S = (1.0, 8.5, 12.0)
REFERENCE_KV_BLOCKS = 8_000
TIGHT_KV_BLOCKS = 3_000  # 80 preemptions: enough to be met, and every request ends


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTiming:
    """One load's steps and CPU time.

    cpu_s, ratio: of `simulate()`, in seconds and in units of the calibration loop. What it
        works out when it is asked for is not in it.
    all_read_ratio: the same with every column of every table read.
    steps_per_s_at_reference: steps a second where that loop takes 0.138 s.
    """

    load: str
    runs: int
    steps: int
    cpu_s: float
    ratio: float
    all_read_ratio: float
    steps_per_s_at_reference: float


def poisson_requests(*, request_count: int, rate_per_s: float, seed: int) -> Workload:
    """Return Poisson arrivals with lognormal lengths like a public conversation trace's.

    Medians of 1,020 prompt and 129 output tokens: Azure LLM inference trace 2023,
    conversation.
    """
    draw = random.Random(seed)
    arrival_ms, requests = 0.0, []
    for index in range(request_count):
        arrival_ms += draw.expovariate(rate_per_s) * 1000
        requests.append(
            Request(
                request_id=str(index),
                arrival_ms=arrival_ms,
                prompt_tokens=1 + int(draw.lognormvariate(6.93, 1.0)),
                output_tokens=1 + int(draw.lognormvariate(4.86, 0.9)),
            )
        )
    return Workload(requests=tuple(requests))


def reference_requests(rate_per_s: float) -> Workload:
    """Return as many Poisson arrivals as that trace has, with lengths drawn from its quantiles."""
    preset = TRAFFIC_PRESETS["azure-conv-2023"]
    arrivals = PoissonArrivals(rate_per_s=rate_per_s)
    return preset.traffic(request_count=REFERENCE_REQUESTS, arrivals=arrivals).workload()


def loads() -> dict[str, tuple[Experiment, int]]:
    """Return each load's experiment and how often it is run in one timing."""
    traffic = Experiment(
        workload=poisson_requests(request_count=2_000, rate_per_s=6.45, seed=0),
        limits=EngineLimits(token_budget=512, chunk_tokens=None, max_seqs=128),
    )
    pressed = replace(
        traffic, policy="vllm_v1", limits=replace(traffic.limits, kv_blocks=TIGHT_KV_BLOCKS)
    )
    cached = replace(pressed, limits=replace(pressed.limits, prefix_caching=True))
    reference = replace(
        traffic,
        workload=reference_requests(REFERENCE_RATE_PER_S),
        cost=WITH_KV_TERM,
    )
    blocks = replace(reference.limits, kv_blocks=REFERENCE_KV_BLOCKS)
    all_on = replace(reference, policy="vllm_v1", limits=blocks)
    at_rates = {
        f"the same at {rate_per_s:g} req/s": (
            replace(all_on, workload=reference_requests(rate_per_s)),
            1,
        )
        for rate_per_s in OTHER_RATES_PER_S
    }
    return {
        f"{REFERENCE_REQUESTS:,} requests at {REFERENCE_RATE_PER_S} req/s": (reference, 1),
        "the same with KV blocks and preemption": (all_on, 1),
        **at_rates,
        "the chapter's scenario": (Experiment(), 400),
        "2,000 Poisson requests": (traffic, 1),
        "the same, vLLM V1, KV blocks short": (pressed, 1),
        "the same, and a prefix cache": (cached, 1),
        "2,000 Poisson requests, roofline": (replace(traffic, cost=LLAMA_ON_H100), 1),
    }


def calibrate() -> None:
    """Turn the calibration loop."""
    total = 0
    for turn in range(CALIBRATION_ITERATIONS):
        total += turn


def measure_loads(*, progress: Callable[[int, int], None] | None = None) -> dict[str, Any]:
    """Return `calibration_s`, the peak memory, and the best of some rounds of each load.

    Rounds that read all tables come last, so that the first peak is that of the runs.
    """
    chosen = loads()
    calibration_s = float("inf")
    runs_s, all_read_s = (dict.fromkeys(chosen, float("inf")) for _ in range(2))
    steps = {name: len(simulate(experiment).steps) for name, (experiment, _) in chosen.items()}

    def round_of(seconds: dict[str, float], use: Callable[[Result], None]) -> None:
        for name, (experiment, runs) in chosen.items():

            def work(experiment: Experiment = experiment, runs: int = runs) -> None:
                for _ in range(runs):
                    use(simulate(experiment))

            seconds[name] = min(seconds[name], cpu_seconds(work))

    for done in range(ROUNDS + READING_ROUNDS):
        calibration_s = min(calibration_s, cpu_seconds(calibrate))
        if done < ROUNDS:
            round_of(runs_s, leave_tables)
            peak = peak_memory_bytes()
        else:
            round_of(all_read_s, read_tables)
        if progress:
            progress(done + 1, ROUNDS + READING_ROUNDS)
    timings = [
        LoadTiming(
            load=name,
            runs=runs,
            steps=steps[name] * runs,
            cpu_s=runs_s[name],
            ratio=runs_s[name] / calibration_s,
            all_read_ratio=all_read_s[name] / calibration_s,
            steps_per_s_at_reference=(
                steps[name] * runs / (runs_s[name] / calibration_s) / REFERENCE_CALIBRATION_S
            ),
        )
        for name, (_, runs) in chosen.items()
    ]
    return {
        "calibration_s": calibration_s,
        "peak_memory_bytes": peak,
        "peak_memory_all_read_bytes": peak_memory_bytes(),
        "loads": [asdict(timing) for timing in timings],
    }


def leave_tables(_: Result) -> None:
    """Leave a run's tables as they come: what has not been worked out stays so."""


def read_tables(result: Result) -> None:
    """Read every column of a run's tables, so that all are worked out."""
    for table in (
        result.steps,
        result.slices,
        result.requests,
        result.admissions,
        result.preemptions,
        result.spans,
    ):
        table.columns()


def peak_memory_bytes() -> int | None:
    """Return the most memory that this process has held; None where the system does not say."""
    try:
        import resource
    except ImportError:  # not on Windows
        return None
    unit = 1 if sys.platform == "darwin" else 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit


def cpu_seconds(work: Callable[[], object]) -> float:
    """Return the CPU time that the work takes."""
    begin = time.process_time()
    work()
    return time.process_time() - begin
