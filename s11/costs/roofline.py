"""The roofline cost model: a step of a dense transformer on a GPU, operator by operator.

A step costs the sum of its operators. What depends on the step's token count alone (the linear
operators, the elementwise ones, the all-reduces) is tabulated as counts come up; the LM head
depends on how many rows are sampled, attention on the slices' starts and on the sum of the
decodes' contexts. Weights are read once a step, however many tokens use them: that is
piggybacking.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import MISSING, asdict, dataclass, fields
from functools import cached_property
from typing import Any, ClassVar

import numpy as np

from s11.catalog import MODELS, Deployment, Model
from s11.checks import require_choice, require_keys
from s11.costs.breakdown import DecodeTerms, Floats, Ints, Slice, StepCosts, StepWork
from s11.costs.host import HOSTS
from s11.costs.step_kernels import StepKernels

KEYS = {"model", "llm", "gpu", "tensor_parallel", "precision", "engine"}


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class StepParts:
    """Milliseconds of each step by operator; they add up to the step's duration."""

    linear_ms: Floats  # (steps,) the layers' dense products
    elementwise_ms: Floats  # (steps,)
    all_reduce_ms: Floats  # (steps,)
    lm_head_ms: Floats  # (steps,)
    prefill_attention_ms: Floats  # (steps,)
    decode_attention_ms: Floats  # (steps,)
    host_ms: Floats  # (steps,)

    def total_ms(self) -> Floats:  # (steps,)
        """Return the steps' durations."""
        total: Floats = np.sum([getattr(self, field.name) for field in fields(self)], axis=0)
        return total


@dataclass(frozen=True, kw_only=True)
class RooflineCost:
    """What a step takes on a deployment, under an engine that needs its own time on the host.

    Raises:
        ValueError: an engine that is not known.
    """

    name: ClassVar[str] = "roofline"
    counts_only: ClassVar[bool] = False

    deployment: Deployment
    engine: str = "vllm"

    def __post_init__(self) -> None:
        require_choice("engine", self.engine, tuple(HOSTS))
        if not isinstance(self.deployment, Deployment):
            raise ValueError(f"deployment: {self.deployment!r:.60} is none")

    @cached_property
    def kernels(self) -> StepKernels:
        """The operators with this deployment's sizes and constants folded in."""
        return StepKernels(self.deployment, HOSTS[self.engine])

    @property
    def line(self) -> None:
        """None: attention and products are no line in the counts."""
        return None

    def step_ms(
        self,
        *,
        prefill_tokens: int,
        decode_tokens: int,
        slices: Sequence[Slice] | None = None,
        decode_context_tokens: int = 0,
    ) -> float:
        """Return one step's duration in ms."""
        if slices is None:
            slices = ((0, prefill_tokens),) if prefill_tokens else ()
        kernels = self.kernels
        duration_ms = kernels.tokens_ms(prefill_tokens + decode_tokens)
        duration_ms += kernels.rows_ms(decode_tokens + len(slices))
        if decode_tokens:
            least_ms, token_ms, ramp_ms, ramp_tokens = kernels.decode_terms(decode_tokens)
            context = decode_context_tokens
            duration_ms += least_ms
            duration_ms += token_ms * context + ramp_ms * context / (context + ramp_tokens)
        if slices:
            duration_ms += kernels.prefill_attention_ms(slices)
        return duration_ms

    def successive_ms(
        self, *, slices: Sequence[Slice], decode_tokens: int, decode_context_tokens: int
    ) -> Iterator[float]:
        """Yield the durations of steps that follow each other without end."""
        kernels = self.kernels
        tokens = decode_tokens
        for _, slice_tokens in slices:
            tokens += slice_tokens
        base_ms = kernels.tokens_ms(tokens) + kernels.rows_ms(decode_tokens + len(slices))
        token_ms, ramp_ms, ramp_tokens = 0.0, 0.0, 1.0
        context = decode_context_tokens if decode_tokens else 0
        if decode_tokens:
            least_ms, token_ms, ramp_ms, ramp_tokens = kernels.decode_terms(decode_tokens)
            base_ms += least_ms
        while not slices:
            yield base_ms + (token_ms * context + ramp_ms * context / (context + ramp_tokens))
            context += decode_tokens
        while True:
            duration_ms = base_ms
            if decode_tokens:
                duration_ms += token_ms * context + ramp_ms * context / (context + ramp_tokens)
                context += decode_tokens
            yield duration_ms + kernels.prefill_attention_ms(slices)
            slices = [(start + own, own) for start, own in slices]

    def decode_terms(self, decode_tokens: int) -> DecodeTerms:
        """Return what a step of so many decodes alone takes, as a function of their contexts."""
        kernels = self.kernels
        base_ms = kernels.tokens_ms(decode_tokens) + kernels.rows_ms(decode_tokens)
        least_ms, token_ms, ramp_ms, ramp_tokens = kernels.decode_terms(decode_tokens)
        return DecodeTerms(base_ms + least_ms, token_ms, ramp_ms, ramp_tokens)

    def breakdown(self, work: StepWork) -> StepCosts:
        """Return what each step spends on what, in ms, for all steps at once.

        Fixed is a step of one token that attends to nothing. Decodes are charged with what a
        step of them alone takes beyond that, prefill with the rest: that decodes ride along on
        weights that are read anyway shows as prefill that costs less.
        """
        parts = self.parts(work)
        alone = self.parts(
            StepWork(
                prefill_tokens=np.zeros_like(work.prefill_tokens),
                decode_tokens=work.decode_tokens,
                decode_context_tokens=work.decode_context_tokens,
                slice_step=work.slice_step[:0],
                slice_start_token=work.slice_start_token[:0],
                slice_tokens=work.slice_tokens[:0],
            )
        ).total_ms()
        least_ms = self.kernels.tokens_ms(1) + self.kernels.rows_ms(1)
        total = parts.total_ms()
        # More tokens can take less time, where they suit the tiles: no part is below 0.
        decode_ms = np.where(work.decode_tokens > 0, np.maximum(alone - least_ms, 0.0), 0.0)
        prefill_ms = np.where(
            work.prefill_tokens > 0, np.maximum(total - least_ms - decode_ms, 0.0), 0.0
        )
        return StepCosts(
            fixed_ms=total - decode_ms - prefill_ms, prefill_ms=prefill_ms, decode_ms=decode_ms
        )

    def parts(self, work: StepWork) -> StepParts:
        """Return what each step spends on each operator, in ms."""
        kernels = self.kernels
        tokens = work.prefill_tokens + work.decode_tokens
        slices = np.bincount(work.slice_step, minlength=len(tokens))
        rows = work.decode_tokens + slices
        by_count = _by_value(tokens, kernels.token_parts_ms, 3)
        by_rows = _by_value(rows, kernels.row_parts_ms, 2)
        return StepParts(
            linear_ms=by_count[0],
            elementwise_ms=by_count[1],
            all_reduce_ms=by_count[2],
            lm_head_ms=by_rows[0],
            prefill_attention_ms=kernels.prefill_attention_of_steps_ms(work),
            decode_attention_ms=kernels.decode_attention_ms(
                work.decode_tokens, work.decode_context_tokens
            ),
            host_ms=by_rows[1],
        )

    def to_dict(self) -> dict[str, Any]:
        """Return the deployment by names; a model that is not in the catalog by its sizes."""
        model = self.deployment.model
        llm: Any = model.name
        if MODELS.get(model.name) != model:
            llm = {key: value for key, value in asdict(model).items() if key != "sources"}
        return {
            "model": self.name,
            "llm": llm,
            "gpu": self.deployment.gpu,
            "tensor_parallel": self.deployment.tensor_parallel,
            "precision": self.deployment.precision,
            "engine": self.engine,
        }

    @classmethod
    def from_dict(cls, data: dict[str, Any]) -> RooflineCost:
        """Return the model that `to_dict` described.

        Raises:
            ValueError: an unknown key, model, GPU or engine, sizes out of range.
        """
        known = require_keys("cost", data, KEYS)
        for needed in ("llm", "gpu"):
            if needed not in known:
                raise ValueError(f"cost: {needed} is missing")
        llm = known["llm"]
        if isinstance(llm, dict):
            model = _model(llm)
        else:
            model = MODELS[require_choice("llm", llm, tuple(MODELS))]
        return cls(
            deployment=Deployment(
                model=model,
                gpu=known["gpu"],
                tensor_parallel=known.get("tensor_parallel", 1),
                precision=known.get("precision", "bf16"),
            ),
            engine=known.get("engine", "vllm"),
        )

    def formula(self) -> str:
        """Return model, GPUs and precision, as the foot of a picture names them."""
        deployment = self.deployment
        gpus = deployment.gpu.upper()
        if deployment.tensor_parallel > 1:
            gpus = f"{deployment.tensor_parallel} × {gpus}"
        return f"{deployment.model.title[:24]} on {gpus}, {deployment.precision}"


def _model(sizes: dict[str, Any]) -> Model:
    names = {field.name: field for field in fields(Model) if field.name != "sources"}
    known = require_keys("llm", sizes, set(names))
    for name, field in names.items():
        if name not in known and field.default is MISSING:
            raise ValueError(f"llm: {name} is missing (allowed: {', '.join(names)})")
    return Model(**known)


def _by_value(values: Ints, parts_of: Any, parts: int) -> Floats:  # (parts, steps)
    """Return what a function of one number says of each, asked once for each different one."""
    different, places = np.unique(values, return_inverse=True)
    table = np.array([parts_of(value) for value in different.tolist()], dtype=np.float64)
    return table.reshape(len(different), parts).T[:, places.reshape(-1)]
