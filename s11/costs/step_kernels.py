"""One deployment's operators, ready for the engine: sizes and constants folded in."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from s11.catalog import Deployment
from s11.costs.all_reduce import all_reduce_ms
from s11.costs.attention_kernels import ChunkAttention, DecodeAttention
from s11.costs.breakdown import Floats, Slice, StepWork
from s11.costs.constants import constants_of
from s11.costs.gemm import BF16_BYTES
from s11.costs.host import HostOverhead
from s11.costs.linear_operators import elementwise_ms, layer_linear_ms, lm_head_ms


class StepKernels:
    """The operators of a step. What a token or row count costs is worked out once, and kept."""

    def __init__(self, deployment: Deployment, host: HostOverhead) -> None:
        self.deployment, self.host = deployment, host
        model, gpu = deployment.model, deployment.hardware
        self.constants = constants_of(deployment.gpu, deployment.precision)
        self.layers = model.layers
        # After attention and after the MLP; where both are computed side by side, once.
        self.all_reduces = model.layers * (1 if model.parallel_attention else 2)
        heads: dict[str, Any] = {
            "q_heads": deployment.heads_per_gpu,
            "kv_heads": deployment.kv_heads_per_gpu,
            "head_dim": model.head_dim,
            "gpu": gpu,
        }
        self.chunks = ChunkAttention.of(**heads, constants=self.constants.prefill_attention)
        self.decodes = DecodeAttention.of(**heads, constants=self.constants.decode_attention)
        self._by_tokens: dict[int, float] = {}
        self._parts_by_tokens: dict[int, tuple[float, float, float]] = {}
        self._by_chunk: dict[int, tuple[float, ...]] = {}
        self._by_rows: dict[int, float] = {}
        self._by_decodes: dict[int, tuple[float, float, float, float]] = {}

    def tokens_ms(self, tokens: int) -> float:
        """Return what depends on the step's tokens alone, in ms: all layers' products, the
        elementwise operators, the all-reduces.
        """
        duration_ms = self._by_tokens.get(tokens)
        if duration_ms is None:
            duration_ms = self._by_tokens[tokens] = sum(self.token_parts_ms(tokens))
        return duration_ms

    def rows_ms(self, rows: int) -> float:
        """Return what depends on how many requests are in the step, in ms: LM head and host."""
        duration_ms = self._by_rows.get(rows)
        if duration_ms is None:
            duration_ms = self._by_rows[rows] = sum(self.row_parts_ms(rows))
        return duration_ms

    def forget_rows(self) -> None:
        """Forget what row counts cost, where the host has changed: calibration tries many."""
        self._by_rows.clear()

    def token_parts_ms(self, tokens: int) -> tuple[float, float, float]:
        """Return the milliseconds of products, elementwise operators and all-reduces."""
        parts = self._parts_by_tokens.get(tokens)
        if parts is None:
            parts = self._parts_by_tokens[tokens] = self._token_parts_ms(tokens)
        return parts

    def _token_parts_ms(self, tokens: int) -> tuple[float, float, float]:
        if not tokens:
            return 0.0, 0.0, 0.0
        deployment = self.deployment
        model, gpu, size = deployment.model, deployment.hardware, deployment.tensor_parallel
        return (
            self.layers
            * layer_linear_ms(
                tokens,
                model=model,
                tensor_parallel=size,
                gpu=gpu,
                constants=self.constants.gemm,
                fp8=deployment.precision == "fp8",
            ),
            self.layers
            * elementwise_ms(
                tokens,
                model=model,
                tensor_parallel=size,
                gpu=gpu,
                constants=self.constants.elementwise,
            ),
            self.all_reduces
            * all_reduce_ms(
                tokens * model.hidden * BF16_BYTES,
                gpu=gpu,
                num_gpus=size,
                constants=self.constants.all_reduce,
            ),
        )

    def row_parts_ms(self, rows: int) -> tuple[float, float]:
        """Return the milliseconds of the LM head and of the host."""
        host_ms = self.host.step_ms + rows * self.host.sequence_ms
        if not rows:
            return 0.0, host_ms
        deployment = self.deployment
        head_ms = lm_head_ms(
            rows,
            model=deployment.model,
            tensor_parallel=deployment.tensor_parallel,
            gpu=deployment.hardware,
            constants=self.constants.lm_head,
        )
        return head_ms, host_ms

    def prefill_attention_ms(self, slices: Sequence[Slice]) -> float:
        """Return the attention of a step's prefill slices in all layers, in ms."""
        chunks, layers = self.chunks, self.layers
        if len(slices) == 1:
            start, own = slices[0]
            terms = self._by_chunk.get(own)
            if terms is None:
                terms = self._by_chunk[own] = chunks.terms(own)
            pair_ms, half_tile, start_ms, own_ms, write_ms, tail_ms, tile, splits = terms
            return layers * (
                chunks.floor_ms
                + tail_ms * (tile + start / splits)
                + (pair_ms * (start + half_tile) + start_ms * start + own_ms + write_ms)
            )
        return layers * chunks.together_ms([(own, start) for start, own in slices])

    def decode_terms(self, decodes: int) -> tuple[float, float, float, float]:
        """Return a, b, c and d of a + b·x + c·x / (x + d): the attention of so many decodes in
        all layers with x tokens in their contexts, in ms.
        """
        terms = self._by_decodes.get(decodes)
        if terms is None:
            least_ms, token_ms, ramp_ms, ramp_tokens = self.decodes.terms(decodes)
            layers = self.layers
            terms = layers * least_ms, layers * token_ms, layers * ramp_ms, ramp_tokens
            self._by_decodes[decodes] = terms
        return terms

    def decode_attention_ms(self, decodes: Any, context_tokens: Any) -> Any:
        """Return the attention of a step's decodes in all layers, in ms; arrays too."""
        return self.layers * self.decodes.ms(decodes, context_tokens)

    def prefill_attention_of_steps_ms(self, work: StepWork) -> Floats:  # (steps,)
        """Return the attention of each step's prefill slices in all layers, in ms."""
        steps = len(work.prefill_tokens)
        own, start = work.slice_tokens, work.slice_start_token  # (slices,)
        chunks = self.chunks
        spread = np.bincount(work.slice_step, weights=chunks.spread_ms(own, start), minlength=steps)
        tails: NDArray[np.float64] = np.zeros(steps)
        np.maximum.at(tails, work.slice_step, chunks.tail_ms(own, start))
        some = np.bincount(work.slice_step, minlength=steps) > 0
        total: Floats = self.layers * (some * chunks.floor_ms + tails + spread)
        return total
