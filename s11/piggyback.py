"""Why decodes ride along for next to nothing: what a step's tokens cost, and what one more does.

A step reads the weights once, however many tokens use them. While that read takes longer than the
arithmetic (Williams, Waterman and Patterson 2009, "Roofline"), a further token costs next to
nothing; SARATHI (Agrawal et al. 2023, arXiv:2308.16369) fills prefill steps with decodes that way.
All times are of `RooflineCost` and its products.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from typing import Any

import numpy as np

from s11.catalog import Deployment, Gpu
from s11.checks import require_int
from s11.costs import RooflineCost, StepWork
from s11.costs.breakdown import Floats, Ints
from s11.costs.constants import constants_of
from s11.costs.gemm import BF16_BYTES, FP8_BYTES, GemmConstants
from s11.costs.linear_operators import layer_linear_ms, linear_operators
from s11.costs.roofline import StepParts

MOST_TOKENS = 16_384  # of a step in the curve
MOST_CONTEXT_TOKENS = 131_072
EVERY_COUNT_TO, GRID_POINTS, EDGE, EDGES_TO = 64, 160, 64, 1_024
NO_LIMIT = 1e6  # times faster: a memory that takes no time
FREE_SHARE = 0.1  # more than one token takes: still called free
KEPT = 64


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class LinearTimes:
    """The linear operators of all layers by the step's tokens, and the two limits below them."""

    tokens: Ints  # (counts,) rising
    compute_ms: Floats  # (counts,) were the memory infinitely fast: whole tiles, by the L2
    memory_ms: Floats  # (counts,) were the arithmetic infinitely fast: weights, activations
    linear_ms: Floats  # (counts,) both, joined by the soft maximum, and launches

    @property
    def memory_bound(self) -> Any:  # (counts,) of bool
        """Return where the memory takes longer than the arithmetic."""
        return self.compute_ms < self.memory_ms

    def jump_ms(self, tokens: int) -> float:
        """Return what the token after `tokens` adds; both counts are among the table's."""
        at, after = np.searchsorted(self.tokens, (tokens, tokens + 1))
        return float(self.linear_ms[after] - self.linear_ms[at])

    def largest_jump(self) -> int:
        """Return the count after which one more token adds most, of a table of every count."""
        return int(self.tokens[np.argmax(np.diff(self.linear_ms))])


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepCurve:
    """A prefill step's time as its tokens grow, and where its linear operators turn.

    turning_tokens: from here on the arithmetic takes longer than the memory; None: nowhere here.
    free_tokens: up to here, linear operators take at most FREE_SHARE more than for one token.
    token_ms: what a further token adds to the linear operators where arithmetic is the time.
    """

    start_token: int
    linear: LinearTimes
    parts: StepParts
    turning_tokens: int | None
    free_tokens: int
    token_ms: float


def linear_weight_bytes(deployment: Deployment) -> int:
    """Return the bytes of weights that every step reads for its linear operators, on one GPU."""
    model = deployment.model
    operators = linear_operators(model, deployment.tensor_parallel)
    return model.layers * deployment.weight_bytes * sum(each.n * each.k for each in operators)


def datasheet_tokens(deployment: Deployment) -> float:
    """Return the rule of thumb: peak FLOP/s over peak bytes/s, at 2 FLOP for each weight."""
    gpu = deployment.hardware
    peak = gpu.bf16_flops_per_s
    if deployment.fp8_products and gpu.fp8_flops_per_s:
        peak = gpu.fp8_flops_per_s
    return peak / gpu.hbm_bytes_per_s * deployment.weight_bytes / 2


def linear_times(deployment: Deployment, tokens: Ints) -> LinearTimes:
    """Return the linear operators' time for each token count, and its two limits.

    The memory's is bytes over the bandwidth that products reach; the arithmetic's is the same
    products on a GPU whose memory takes no time, without launches.
    """
    model, gpu, size = deployment.model, deployment.hardware, deployment.tensor_parallel
    constants = constants_of(deployment.gpu, deployment.precision).gemm
    fast_memory = replace(gpu, hbm_bytes_per_s=gpu.hbm_bytes_per_s * NO_LIMIT)
    bare = replace(constants, launch_ms=0.0, quantise_ms_per_row=0.0)

    def times_ms(gpu: Gpu, constants: GemmConstants) -> Floats:
        total: Floats = model.layers * layer_linear_ms(
            tokens,
            model=model,
            tensor_parallel=size,
            gpu=gpu,
            constants=constants,
            fp8=deployment.precision == "fp8",
        )
        return total

    operators = linear_operators(model, size)
    input_bytes = FP8_BYTES if deployment.fp8_products else BF16_BYTES
    token_bytes = sum(each.k * input_bytes + each.n * BF16_BYTES for each in operators)
    read_bytes = linear_weight_bytes(deployment) + model.layers * token_bytes * tokens
    return LinearTimes(
        tokens=tokens,
        compute_ms=times_ms(fast_memory, bare),
        memory_ms=read_bytes / (gpu.hbm_bytes_per_s * constants.memory_efficiency) * 1e3,
        linear_ms=times_ms(gpu, constants),
    )


def quantise_ms(deployment: Deployment, tokens: int) -> float:
    """Return what turning the activations of so many tokens into fp8 takes, 0 in bf16."""
    model, constants = deployment.model, constants_of(deployment.gpu, deployment.precision).gemm
    bare = replace(constants, quantise_ms_per_row=0.0, quantise_efficiency=NO_LIMIT)
    with_it, without = (
        layer_linear_ms(
            tokens,
            model=model,
            tensor_parallel=deployment.tensor_parallel,
            gpu=deployment.hardware,
            constants=each,
            fp8=deployment.precision == "fp8",
        )
        for each in (constants, bare)
    )
    return float(model.layers * (with_it - without))


@lru_cache(maxsize=KEPT)
def turning_tokens(deployment: Deployment) -> int | None:
    """Return the tokens from which on a step's products are bound by arithmetic; None: nowhere.

    It is looked for up to MOST_TOKENS.
    """
    grid = linear_times(deployment, _grid())
    if grid.memory_bound[-1]:
        return None
    places = np.flatnonzero(grid.memory_bound)
    if not len(places):
        return 1
    last = places[-1]
    between = linear_times(deployment, np.arange(grid.tokens[last], grid.tokens[last + 1]))
    return 1 + int(between.tokens[np.flatnonzero(between.memory_bound)[-1]])


@lru_cache(maxsize=KEPT)
def step_curve(deployment: Deployment, start_token: int) -> StepCurve:
    """Return a prefill step's time from 1 to MOST_TOKENS tokens, `start_token` of them before it.

    Raises:
        ValueError: a start out of range.
    """
    start = require_int("start_token", start_token, 0, MOST_CONTEXT_TOKENS)
    tokens = _grid()
    linear = linear_times(deployment, tokens)

    most_ms = (1 + FREE_SHARE) * float(linear.linear_ms[0])
    dear = np.flatnonzero(linear.linear_ms > most_ms)
    first = int(dear[0]) if len(dear) else len(tokens)
    free = int(tokens[first - 1])
    if first < len(tokens):
        between = linear_times(deployment, np.arange(free, int(tokens[first]) + 1))
        free = int(between.tokens[np.argmax(between.linear_ms > most_ms) - 1])
    half = int(np.searchsorted(tokens, MOST_TOKENS // 2))
    return StepCurve(
        start_token=start,
        linear=linear,
        parts=step_parts(deployment, prefill=tokens, start=start),
        turning_tokens=turning_tokens(deployment),
        free_tokens=free,
        token_ms=float(
            (linear.linear_ms[-1] - linear.linear_ms[half]) / (tokens[-1] - tokens[half])
        ),
    )


@lru_cache(maxsize=KEPT)
def tile_steps(deployment: Deployment, edge_tokens: int) -> LinearTimes:
    """Return the linear operators' time for every single count from half an edge to one and a half.

    Raises:
        ValueError: an edge out of range.
    """
    edge = require_int("edge_tokens", edge_tokens, 2, MOST_TOKENS // 2)
    return linear_times(deployment, np.arange(edge // 2, edge + edge // 2 + 1))


def _grid() -> Ints:
    """Return token counts: every small one, both sides of tiles' edges, then ever wider apart.

    Those are odd: kernels may be faster at multiples of some rows, and a grid that meets some of
    them by chance would show a pattern of its own.
    """
    edges = np.arange(EDGE, EDGES_TO + 1, EDGE)
    wide = np.geomspace(EVERY_COUNT_TO, MOST_TOKENS - 1, GRID_POINTS).round().astype(np.int64) | 1
    small = np.arange(1, EVERY_COUNT_TO + 1)
    half, end = MOST_TOKENS // 2, MOST_TOKENS
    return np.unique(
        np.concatenate([small, edges - 1, edges, edges + 1, wide, [half - 1, half, end - 1, end]])
    )


def step_parts(
    deployment: Deployment,
    *,
    prefill: Ints,
    start: Any = 0,
    decodes: Any = 0,
    context: Any = 0,
) -> StepParts:
    """Return the operators of steps with one slice each (none where prefill is 0)."""
    sliced = np.flatnonzero(prefill)
    riding = np.broadcast_to(decodes, prefill.shape).astype(np.int64)
    return RooflineCost(deployment=deployment).parts(
        StepWork(
            prefill_tokens=prefill,
            decode_tokens=riding,
            decode_context_tokens=riding * context,
            slice_step=sliced,
            slice_start_token=np.broadcast_to(start, prefill.shape)[sliced].astype(np.int64),
            slice_tokens=prefill[sliced],
        )
    )
