"""Engine speed, in units of a plain Python loop timed in the same run.

Machines differ and are shared, so a rate alone says little: the unit is the CPU time of
`CALIBRATION_ITERATIONS` turns of an empty-handed loop.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, replace
from typing import Any

from s11.catalog import MODELS, Deployment
from s11.costs import RooflineCost
from s11.experiment import Experiment
from s11.plan import EngineLimits
from s11.simulator import simulate
from s11.workload import Request, Workload

CALIBRATION_ITERATIONS = 2_000_000
REFERENCE_CALIBRATION_S = 0.138
ROUNDS = 5
LLAMA_ON_H100 = RooflineCost(deployment=Deployment(model=MODELS["llama-3.1-8b"], gpu="h100"))
TIGHT_KV_BLOCKS = 3_000  # 80 preemptions: enough to be met, and every request ends


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadTiming:
    """One load's steps and CPU time.

    ratio: CPU time in units of the calibration loop.
    steps_per_s_at_reference: steps a second where that loop takes 0.138 s.
    """

    load: str
    runs: int
    steps: int
    cpu_s: float
    ratio: float
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
    return {
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
    """Return `calibration_s` and, for each load, its `LoadTiming`; the best of some rounds each."""
    chosen = loads()
    calibration_s = float("inf")
    cpu_s = dict.fromkeys(chosen, float("inf"))
    steps = {name: len(simulate(experiment).steps) for name, (experiment, _) in chosen.items()}
    for done in range(ROUNDS):
        calibration_s = min(calibration_s, _cpu_s(calibrate))
        for name, (experiment, runs) in chosen.items():

            def load(experiment: Experiment = experiment, runs: int = runs) -> None:
                for _ in range(runs):
                    simulate(experiment)

            cpu_s[name] = min(cpu_s[name], _cpu_s(load))
        if progress:
            progress(done + 1, ROUNDS)
    timings = [
        LoadTiming(
            load=name,
            runs=runs,
            steps=steps[name] * runs,
            cpu_s=cpu_s[name],
            ratio=cpu_s[name] / calibration_s,
            steps_per_s_at_reference=(
                steps[name] * runs / (cpu_s[name] / calibration_s) / REFERENCE_CALIBRATION_S
            ),
        )
        for name, (_, runs) in chosen.items()
    ]
    return {"calibration_s": calibration_s, "loads": [asdict(timing) for timing in timings]}


def _cpu_s(work: Callable[[], None]) -> float:
    begin = time.process_time()
    work()
    return time.process_time() - begin
