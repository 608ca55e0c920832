"""Scene 11: what comes next: a worker for each phase, and a softmax in blocks."""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from s11.experiment import Experiment
from s11.figures.key_difference_info import number
from s11.figures.learn_softmax import SoftmaxInfo, softmax_alt, softmax_figure
from s11.figures.learn_workers import WorkersInfo, WorkerSteps, workers_alt, workers_figure
from s11.learn_decoder import prefilled
from s11.learn_scene import Control, Link, Scene, Shown
from s11.metrics import measure
from s11.presets import TITLES
from s11.results import Result
from s11.simulator import simulate
from s11.sweeps import longest_prompt_tokens
from s11.words import ms

WORKERS = "Two workers"
BLOCKS = {"Softmax, blocks of 64": 64, "Softmax, blocks of 16": 16}
KEYS, QUERY_SEED = 256, 38
BYTES_IN_A_GB = 1e9


def next_up(name: str) -> Shown:
    """Return the scene: disaggregation, or an online softmax."""
    return _softmax(BLOCKS[name]) if name in BLOCKS else _workers()


def workers_info() -> WorkersInfo:
    """Return the chapter's load on one worker in chunks, and on two workers."""
    one = Experiment()
    two = replace(one, policy="disaggregated")
    results = [simulate(each) for each in (one, two)]
    single, double = (measure(each, itl_target_ms=one.itl_target_ms) for each in results)
    sent_ms = float(results[1].prefilling.steps.end_ms[-1])
    arrived_ms = float(results[1].requests.first_token_ms[0])
    prompt_tokens, users = longest_prompt_tokens(one), one.workload.streaming_users
    return WorkersInfo(
        one=_steps(results[0]),
        prefill=_steps(results[1].prefilling),
        decode=_steps(results[1]),
        travel_ms=(sent_ms, arrived_ms),
        one_stall_ms=single.longest_stall_ms or 0.0,
        one_ttft_ms=single.ttft_ms or 0.0,
        two_stall_ms=double.longest_stall_ms or 0.0,
        two_ttft_ms=double.ttft_ms or 0.0,
        caption=(
            f"{prompt_tokens:,}-token prompt, {one.limits.chunk_tokens:,}-token chunks, "
            f"{users} users",
            f"{one.cost.formula()}, s11",
        ),
    )


def _steps(result: Result) -> WorkerSteps:
    steps = result.steps
    return WorkerSteps(
        start_ms=steps.start_ms,
        duration_ms=steps.duration_ms,
        prefill=steps.prefill_tokens > 0,
    )


def _workers() -> Shown:
    info, two = workers_info(), replace(Experiment(), policy="disaggregated")
    prompt_tokens, way = longest_prompt_tokens(two), two.hand_over
    size_gb = prompt_tokens * way.kv_bytes_per_token / BYTES_IN_A_GB
    travel_ms = info.travel_ms[1] - info.travel_ms[0]
    return Shown(
        spec=workers_figure(info),
        alt=workers_alt(info),
        sentences=(
            f"Chunks still lengthen the streams' gaps, to {ms(info.one_stall_ms)} here. A worker "
            f"that only decodes keeps them at {ms(info.two_stall_ms)}, whatever the prompts.",
            f"The price: a second machine, and the prompt's KV of {size_gb:.2f} GB travels "
            f"{ms(travel_ms)} at {way.link_bytes_per_s / BYTES_IN_A_GB:g} GB/s, so the first token "
            f"comes after {ms(info.two_ttft_ms)} and not {ms(info.one_ttft_ms)}.",
        ),
        columns={
            "deployment": ["one worker, chunked", "two workers"],
            "longest_stall_ms": [info.one_stall_ms, info.two_stall_ms],
            "ttft_ms": [info.one_ttft_ms, info.two_ttft_ms],
            "kv_travel_ms": [0.0, travel_ms],
        },
        link=Link(
            label="Two workers in the simulator",
            page="",
            parameters={"policy": TITLES["disaggregated"]},
        ),
    )


def online_softmax(
    scores: NDArray[np.float32], values: NDArray[np.float32], block_tokens: int
) -> SoftmaxInfo:
    """Attend with one query, block by block, and hold the output against one softmax.

    Only the largest score, the sum of the weights and the weighted sum of the values are kept;
    where a block has a larger score, both sums are made smaller (Milakov and Gimelshein 2018).

    scores: (keys,). values: (keys, e).
    """
    largest, total = np.float32(-np.inf), np.float32(0)
    weighted = np.zeros(values.shape[1], np.float32)  # (e,)
    after, sums, rescaled = [], [], 0
    for start in range(0, len(scores), block_tokens):
        block = slice(start, start + block_tokens)
        higher = max(largest, scores[block].max())
        scale = np.exp(largest - higher)
        rescaled += bool(start) and higher > largest
        weights = np.exp(scores[block] - higher)  # (block,)
        total = total * scale + weights.sum()
        weighted = weighted * scale + weights @ values[block]
        largest = higher
        after.append(largest)
        sums.append(total)
    at_once = np.exp(scores - scores.max())  # (keys,)
    right = at_once @ values / at_once.sum()  # (e,)
    return SoftmaxInfo(
        scores=scores,
        block_tokens=block_tokens,
        largest=np.array(after, np.float32),
        denominator=np.array(sums, np.float32),
        rescaled=int(rescaled),
        difference=float(np.abs(weighted / total - right).max()),
    )


@lru_cache(maxsize=len(BLOCKS))
def softmax_info(block_tokens: int) -> SoftmaxInfo:
    """Return a drawn query over the decoder's own keys and values, in blocks of so many."""
    cache = prefilled(KEYS, KEYS)
    keys, values = cache.keys[-1, :, 0], cache.values[-1, :, 0]  # (keys, e)
    drawn = np.random.default_rng(QUERY_SEED).standard_normal(size=keys.shape[1:])  # (e,)
    scores: NDArray[np.float32] = keys @ drawn.astype(np.float32)  # (keys,)
    scores /= np.float32(np.sqrt(keys.shape[1]))
    return online_softmax(scores, values, block_tokens)


def _softmax(block_tokens: int) -> Shown:
    info = softmax_info(block_tokens)
    blocks = len(info.largest)
    return Shown(
        spec=softmax_figure(info),
        alt=softmax_alt(info),
        sentences=(
            "How can attention cross chunks, or machines, without all scores at hand? It keeps "
            "the largest score so far and the sum so far.",
            f"Here {info.rescaled} of the {blocks - 1} later blocks bring a larger score, and then "
            f"the sum is made smaller to match. At the end the largest is "
            f"{float(info.largest[-1]):.2f}, the sum {float(info.denominator[-1]):.2f}, and the "
            f"output within {number(info.difference)} of one softmax over all {KEYS} keys.",
        ),
        columns={
            "block": list(range(1, blocks + 1)),
            "largest_score_so_far": info.largest.astype(float).tolist(),
            "denominator_so_far": info.denominator.astype(float).tolist(),
        },
        link=Link(label="The proof that rests on it, in Mask & positions", page="mask"),
    )


NEXT = Scene(
    slug="next",
    headline="What comes next",
    control=Control(
        key="beyond",
        label="Look at",
        options=(WORKERS, *BLOCKS),
        default=WORKERS,
        about="Disaggregation gives each phase a worker; an online softmax lets attention cross "
        "blocks.",
    ),
    show=next_up,
)
