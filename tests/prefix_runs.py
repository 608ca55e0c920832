"""The four runs of one load, and loads whose figures are worked out by hand."""

from dataclasses import replace
from typing import Any

from s11 import EngineLimits, Experiment, Workload, measure, simulate
from s11.figures.prefix_info import FourRuns, Measured
from s11.prefix_workloads import shared_system_prompt


def vllm(workload: Workload, *, chunk: int | None = None, **limits: Any) -> Experiment:
    """vLLM V1 with the prefix cache and without a token budget."""
    limits = {"prefix_caching": True, "chunking": chunk is not None, **limits}
    return Experiment(
        workload=workload, policy="vllm_v1", limits=EngineLimits(chunk_tokens=chunk, **limits)
    )


def four_runs(workload: Workload, *, chunk: int, **limits: Any) -> FourRuns:
    def measured(*, caching: bool, chunk: int | None) -> Measured:
        experiment = vllm(workload, chunk=chunk, **limits)
        experiment = replace(experiment, limits=replace(experiment.limits, prefix_caching=caching))
        result = simulate(experiment)
        return Measured(experiment, result, measure(result, itl_target_ms=50))

    return FourRuns(
        neither=measured(caching=False, chunk=None),
        chunking=measured(caching=False, chunk=chunk),
        caching=measured(caching=True, chunk=None),
        both=measured(caching=True, chunk=chunk),
    )


def same_prompt_twice(*, users: int = 0) -> FourRuns:
    """1,024 tokens, 8 blocks of 128, in 2 chunks of 512; the second arrives when all is idle.

    At most 1,023 tokens may be hit: 7 blocks, 896 tokens; 128 are computed again in one chunk.
    With the chapter's costs and nobody streaming, a step of 1,024 tokens takes
    4 + 18.432 = 22.432 ms, one of 512 takes 13.216 ms and one of 128 takes 6.304 ms.
    """
    workload = shared_system_prompt(
        requests=2,
        shared_tokens=1024,
        own_tokens=0,
        output_tokens=1,
        gap_ms=1000,
        streaming_users=users,
    )
    return four_runs(workload, chunk=512, block_size=128)
