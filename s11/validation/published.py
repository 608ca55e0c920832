"""Figures that papers published about chunked prefill, beside what the cost model says of them.

- SARATHI: Agrawal et al. 2023, arXiv:2308.16369. LLaMA-13B on one RTX A6000, 16 bits.
- Sarathi-Serve: Agrawal et al. 2024, OSDI, arXiv:2403.02310. Yi-34B on two A100 80 GB, and
  Falcon-180B, there on eight A100 in two stages of a pipeline, here over eight of one group.

The paper's "linear" is compared with the layers' dense products, its "attention" with prefill
and decode attention together. Elementwise operators, LM head and host stand in neither.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from s11.catalog import MODELS, Deployment, Model, Source
from s11.costs.breakdown import Slice, StepWork
from s11.costs.roofline import RooflineCost, StepParts

SARATHI = Source("SARATHI (arXiv:2308.16369)", "https://arxiv.org/abs/2308.16369", ())
SARATHI_SERVE = Source("Sarathi-Serve (arXiv:2403.02310)", "https://arxiv.org/abs/2403.02310", ())
CONTEXT_TOKENS = 1_024  # behind each decode in SARATHI's table
CHUNKED_PROMPTS = (2_048, 4_096, 8_192, 16_384)
CHUNK_SIZES = (512, 1_024, 2_048)
STALLED_PROMPT_TOKENS, STALLED_DECODES = 4_096, 32

FALCON_180B = Model(
    name="falcon-180b",
    title="Falcon-180B",
    layers=80,
    hidden=14_848,
    ffn=59_392,
    heads=232,
    kv_heads=8,
    head_dim=64,
    gated=False,
    vocab=65_024,
    tied_embeddings=True,
    max_positions=2_048,
    parallel_attention=True,
    sources=(
        Source(
            "tiiuae/falcon-180B, config.json",
            "https://huggingface.co/tiiuae/falcon-180B/blob/main/config.json",
            (),
        ),
    ),
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Published:
    """One figure of a paper, and ours, in milliseconds.

    rests_on_it: whether constants were set by this very figure, so that it checks nothing.
    worked_out: whether it is no figure of its own but worked out of others of the same table.
    """

    what: str
    part: str
    published_ms: float
    ours_ms: float
    rests_on_it: bool = False
    worked_out: bool = False

    @property
    def is_check(self) -> bool:
        """Return whether no constant was set by it, and it is a figure of its own."""
        return not (self.rests_on_it or self.worked_out)

    @property
    def error_pct(self) -> float:
        """Return how far ours is off, above 0 where it says too much."""
        return 100.0 * (self.ours_ms / self.published_ms - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChunkOverhead:
    """A prompt's prefill in chunks against the same prompt in one step, nothing else running."""

    prompt_tokens: int
    chunk_tokens: int
    whole_ms: float
    chunked_ms: float

    @property
    def overhead_pct(self) -> float:
        """Return what chunking adds to the prefill's time."""
        return 100.0 * (self.chunked_ms / self.whole_ms - 1.0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Gap:
    """What streaming users wait while a prompt is prefilled beside them, in milliseconds."""

    decode_step_ms: float
    whole_prefill_ms: float
    gap_whole_ms: float
    gap_chunk_ms: float
    chunk_tokens: int


def step_parts(
    cost: RooflineCost, *, slices: tuple[Slice, ...] = (), decodes: int = 0, context_tokens: int = 0
) -> StepParts:
    """Return the operators of one step; arrays of one."""
    starts, tokens = (np.array([piece[at] for piece in slices], dtype=np.int64) for at in (0, 1))
    return cost.parts(
        StepWork(
            prefill_tokens=np.array([tokens.sum()], dtype=np.int64),
            decode_tokens=np.array([decodes], dtype=np.int64),
            decode_context_tokens=np.array([context_tokens], dtype=np.int64),
            slice_step=np.zeros(len(slices), dtype=np.int64),
            slice_start_token=starts,
            slice_tokens=tokens,
        )
    )


def sarathi() -> tuple[Published, ...]:
    """Return SARATHI's table of LLaMA-13B on an A6000, figure by figure."""
    cost = RooflineCost(deployment=Deployment(model=MODELS["llama-13b"], gpu="a6000"))

    def of(prompt_tokens: int, decodes: int) -> tuple[float, float]:
        parts = step_parts(
            cost,
            slices=((0, prompt_tokens),) if prompt_tokens else (),
            decodes=decodes,
            context_tokens=decodes * CONTEXT_TOKENS,
        )
        attention = parts.prefill_attention_ms[0] + parts.decode_attention_ms[0]
        return float(parts.linear_ms[0]), float(attention)

    def rows() -> Iterator[Published]:
        for what, prompt, decodes, linear_ms, attention_ms, rests in (
            ("prefill of 1,024 tokens", 1_024, 0, 224.8, 10.0, True),
            ("4 decodes at 1,024 context", 0, 4, 44.28, 5.68, True),
            ("1,021 prefill tokens + 3 decodes", 1_021, 3, 223.2, 15.2, False),
        ):
            linear, attention = of(prompt, decodes)
            yield Published(what=what, part="linear", published_ms=linear_ms, ours_ms=linear)
            yield Published(
                what=what,
                part="attention",
                published_ms=attention_ms,
                ours_ms=attention,
                rests_on_it=rests,
            )
        for tokens, linear_ms in ((128, 55.0), (256, 69.8), (257, 92.33)):
            yield Published(
                what=f"{tokens} tokens",
                part="linear",
                published_ms=linear_ms,
                ours_ms=of(tokens, 0)[0],
            )

    return tuple(rows())


def decode_costs(rows: tuple[Published, ...]) -> tuple[Published, Published]:
    """Return what a decode costs alone and piggybacked, as differences of SARATHI's own sums.

    Piggybacked: (chunk with 3 decodes - the prompt alone) / 3. That is a small difference of
    large numbers: an error of 1% in either moves it by more than half.
    """
    (prompt, alone, hybrid) = (
        (sum(r.published_ms for r in pair), sum(r.ours_ms for r in pair))
        for pair in (rows[0:2], rows[2:4], rows[4:6])
    )
    return (
        Published(
            what="a decode alone",
            part="linear + attention",
            published_ms=alone[0] / 4,
            ours_ms=alone[1] / 4,
            worked_out=True,
        ),
        Published(
            what="a decode piggybacked",
            part="linear + attention",
            published_ms=(hybrid[0] - prompt[0]) / 3,
            ours_ms=(hybrid[1] - prompt[1]) / 3,
            worked_out=True,
        ),
    )


def chunk_overheads() -> tuple[ChunkOverhead, ...]:
    """Return what chunking adds to Yi-34B's prefill on two A100 80 GB."""
    cost = RooflineCost(
        deployment=Deployment(model=MODELS["yi-34b"], gpu="a100-80", tensor_parallel=2)
    )

    def prefill_ms(prompt: int, chunk: int) -> float:
        return sum(
            cost.step_ms(prefill_tokens=chunk, decode_tokens=0, slices=[(start, chunk)])
            for start in range(0, prompt, chunk)  # every prompt is a multiple of every chunk
        )

    return tuple(
        ChunkOverhead(
            prompt_tokens=prompt,
            chunk_tokens=chunk,
            whole_ms=prefill_ms(prompt, prompt),
            chunked_ms=prefill_ms(prompt, chunk),
        )
        for prompt in CHUNKED_PROMPTS
        for chunk in CHUNK_SIZES
    )


def falcon_gap(chunk_tokens: int = 512) -> Gap:
    """Return the longest gap that 32 decodes of Falcon-180B see behind a 4,096-token prompt."""
    cost = RooflineCost(deployment=Deployment(model=FALCON_180B, gpu="a100-80", tensor_parallel=8))
    context = STALLED_DECODES * CONTEXT_TOKENS

    def step_ms(decodes: int, start: int, tokens: int) -> float:
        return cost.step_ms(
            prefill_tokens=tokens,
            decode_tokens=decodes,
            slices=[(start, tokens)] if tokens else [],
            decode_context_tokens=context if decodes else 0,
        )

    return Gap(
        decode_step_ms=step_ms(STALLED_DECODES, 0, 0),
        whole_prefill_ms=step_ms(0, 0, STALLED_PROMPT_TOKENS),
        gap_whole_ms=step_ms(STALLED_DECODES, 0, STALLED_PROMPT_TOKENS),
        gap_chunk_ms=max(
            step_ms(STALLED_DECODES, start, chunk_tokens)
            for start in range(0, STALLED_PROMPT_TOKENS, chunk_tokens)
        ),
        chunk_tokens=chunk_tokens,
    )
