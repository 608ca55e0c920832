"""A measured serving run, simulated: clients in a closed loop against an engine as it was set.

The vendor's sweep (ai-dynamo/aiconfigurator) starts its engines and its client by rule, and its
rows leave the rules out. From its repository:

- src/aiconfigurator/eval/benchmarks/genai_perf_runner.py: per run, ten requests for each client
  after a warm-up; all clients start at once, and all ten are in the means. So the first round,
  in which the last client waits for everyone's prefill, is part of the mean TTFT.
- src/aiconfigurator/generator/rule_plugin/benchmark/vllm.rule: token budget = clients + prompt +
  1,500; trtllm.rule: the same, up to whole blocks; sglang.rule: decodes ride along, at most
  prompt + 1,500 prefill tokens a step.

Rows of another source run on the engine's defaults.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, replace

import numpy as np

from s11.catalog import Deployment, default_max_seqs
from s11.catalog.kv_capacity import kv_capacity
from s11.costs.roofline import RooflineCost
from s11.experiment import Experiment
from s11.plan import BlockedBy
from s11.presets import PRESETS, EnginePreset
from s11.results import REASONS, Result
from s11.simulator import simulate
from s11.workload import Request, Workload

VENDOR_SWEEP = "vendor sweep"
REQUESTS_PER_CLIENT = 10
SPARE_TOKENS = 1_500  # of the sweep's token budget, beside a prompt and a decode for each client
# From the end of an answer to the client's next request in the engine: HTTP, tokenizing, the
# process between. Not measured; with none, a request would join the very step after the one that
# ended the last, which no client is quick enough for.
LEAST_PAUSE_MS, MOST_PAUSE_MS = 2.0, 8.0
SEED = 11


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingRun:
    """A closed-loop run as its row tells it."""

    source: str
    backend: str
    deployment: Deployment
    prompt_tokens: int
    output_tokens: int
    concurrency: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ServingMeans:
    """What a benchmark's client reports; `kv_exhausted`: blocks ran short in the run."""

    ttft_ms: float
    tpot_ms: float
    kv_exhausted: bool


def preset_of(run: ServingRun) -> EnginePreset:
    """Return the engine as it came before the vendor's sweep changed it."""
    memory_bytes = run.deployment.hardware.memory_bytes
    if run.backend == "trtllm":
        return PRESETS["tensorrt-llm"]
    if run.backend == "sglang":
        for gigabytes, name in ((20, "sglang-2k"), (60, "sglang-4k"), (160, "sglang-8k")):
            if memory_bytes < gigabytes * 2**30:
                return PRESETS[name]
        return PRESETS["sglang-16k"]
    large = default_max_seqs(run.deployment.hardware) == PRESETS["vllm-8k"].limits.max_seqs
    return PRESETS["vllm-8k" if large else "vllm-2k"]


def experiment_of(run: ServingRun) -> Experiment:
    """Return the run as an experiment, its KV pool from the catalog.

    Prompts are random texts, so nothing is shared and the prefix cache is left out.

    Raises:
        ValueError: a deployment that does not fit.
    """
    preset = preset_of(run)
    limits = replace(preset.limits, prefix_caching=False)
    if run.source == VENDOR_SWEEP:
        tokens = run.prompt_tokens + SPARE_TOKENS
        if run.backend == "sglang":
            limits = replace(limits, token_budget=tokens, mixed=True)
        else:
            tokens += run.concurrency
            if run.backend == "trtllm":
                tokens = -(-tokens // limits.block_size) * limits.block_size
            limits = replace(limits, token_budget=tokens)
    budget = limits.token_budget or limits.chunk_tokens or run.prompt_tokens
    capacity = kv_capacity(
        run.deployment,
        token_budget=budget,
        block_size=limits.block_size,
        max_seqs=min(run.concurrency, budget),
    )
    limits = replace(limits, kv_blocks=capacity.kv_blocks)
    engine = "tensorrt-llm" if run.backend == "trtllm" else run.backend
    return Experiment(
        workload=_clients(run),
        policy=preset.policy,
        limits=limits,
        cost=RooflineCost(deployment=run.deployment, engine=engine),
    )


def serve(run: ServingRun) -> ServingMeans:
    """Simulate the run and return the means over all its requests.

    Raises:
        ValueError: a deployment that does not fit, or a request that never ends.
    """
    return means(simulate(experiment_of(run)))


def means(result: Result) -> ServingMeans:
    """Return what the run's client would report.

    Raises:
        ValueError: a request that never ends.
    """
    requests = result.requests
    if np.isnan(requests.last_token_ms).any():
        raise ValueError("concurrency: a request can never end in this KV pool")
    ttft_ms = requests.first_token_ms - requests.arrival_ms  # (requests,)
    decodes_ms = requests.last_token_ms - requests.first_token_ms  # (requests,)
    decodes = np.maximum(requests.output_tokens - 1, 1)  # (requests,)
    short = REASONS.index(BlockedBy.KV_BLOCKS)
    return ServingMeans(
        ttft_ms=float(ttft_ms.mean()),
        tpot_ms=float((decodes_ms / decodes).mean()),
        kv_exhausted=bool(len(result.preemptions) or (result.steps.blocked_by == short).any()),
    )


def _clients(run: ServingRun) -> Workload:
    """Return ten requests for each client, with a short pause between a client's own."""
    draw = random.Random(SEED)
    return Workload(
        requests=tuple(
            Request(
                request_id=f"{client}.{turn}",
                prompt_tokens=run.prompt_tokens,
                output_tokens=run.output_tokens,
                arrival_ms=draw.uniform(LEAST_PAUSE_MS, MOST_PAUSE_MS) if turn else 0.0,
                after=f"{client}.{turn - 1}" if turn else None,
            )
            for turn in range(REQUESTS_PER_CLIENT)
            for client in range(run.concurrency)
        )
    )
