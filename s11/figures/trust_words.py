"""What the trust page says: what is modelled, what is not, and how papers' figures compare."""

from __future__ import annotations

from s11.catalog import GPUS, PRECISIONS, TENSOR_PARALLEL
from s11.costs.constants import constants_of, document
from s11.costs.host import HOSTS, STANDS_IN
from s11.figures.trust_info import pct
from s11.validation import serving
from s11.validation.leave_out import LeaveOut
from s11.validation.published import (
    STALLED_DECODES,
    STALLED_PROMPT_TOKENS,
    ChunkOverhead,
    Gap,
    Published,
)
from s11.validation.snapshot import Snapshot
from s11.words import count, ms, times

HOST_TITLES = {"vllm": "vLLM", "sglang": "SGLang", "tensorrt-llm": "TensorRT-LLM"}
NOT_MODELLED = (
    "**Mixture of experts** and every other kind of model whose layers are not dense: refused.",
    "**Pipeline parallelism**, and more than one node.",
    "**Speculative decoding**: each decode is one token a step.",
    "**LoRA** and other adapters.",
    "**A quantised KV cache**: keys and values are 16 bits. Weights are bf16 or fp8, no 4 bits.",
    "**Sliding windows**: every query attends to all keys before it (Mistral-7B too).",
    "**The machine's weather**: clocks that sink with heat, other tenants, a slow network.",
)


def modelled() -> list[str]:
    """Return what the cost model and the simulation take into account."""
    return [
        "**Dense products** of every layer, for all tokens of the step at once: arithmetic and "
        "memory joined by a soft maximum, whole tiles and waves, the weights read **once** a step. "
        "Decodes ride along on that read: piggybacking.",
        "**Prefill attention**: each chunk's queries over all keys before them, and the read of "
        "the cached prefix, which a later chunk does again.",
        "**Decode attention**: the read of every context's keys and values.",
        f"Elementwise operators, the LM head for sampled rows alone, **two all-reduces a layer** "
        f"(TP {', '.join(map(str, TENSOR_PARALLEL))}), weights in {' or '.join(PRECISIONS)}, "
        "grouped-query attention.",
        f"**Host overhead**, two constants an engine, of a step and of each sequence in it: "
        f"{hosts_told()}.",
        "**KV memory**: what weights, activations and the rest leave of each GPU, in blocks; "
        "preemption when they run short.",
    ]


def hosts_told() -> str:
    """Return each engine's two host constants, and whose stand in where it was not measured."""
    told = []
    for engine, host in HOSTS.items():
        name = HOST_TITLES[engine]
        if engine in STANDS_IN:
            told.append(
                f"{name}'s was not measured, {HOST_TITLES[STANDS_IN[engine]]}'s stands in for it"
            )
        else:
            runs = document()["hosts"][engine]["points"]
            told.append(
                f"{name} {_host_ms(host.step_ms)} + {_host_ms(host.sequence_ms)} ms, fitted on "
                f"{count(runs, 'run')}"
            )
    return "; ".join(told)


def _host_ms(value: float) -> str:
    return f"{value:.2g}"


def basis_told(snapshot: Snapshot, left: LeaveOut) -> str:
    """Return what the headline's errors are of: the fit itself, and what it had not seen."""
    hosts = [row for row in left.rows if row.file == "end_to_end.csv" and row.group == "vllm"]
    of_runs = ""
    if hosts:
        told = _listed([f"{row.what} by {pct(row.mean_abs_error_pct)}" for row in hosts])
        of_runs = f" Fitted without them, vLLM's TPOT misses {told}."
    return (
        f"Constants of {snapshot.constants_date}, held against the measurements on "
        f"{snapshot.date}. The first figure is the error **of the fit**: kernels' constants were "
        "fitted on these kernels, and the host's two of each engine on these runs' TPOT. Behind "
        f"the stroke, of {left.date}: the mean error on half of the shapes, **left out** of the "
        f"fit, then the other half.{of_runs} On other models and engine versions, expect more."
    )


def calibration() -> str:
    """Return which GPUs' constants were fitted, and who takes whose."""
    fitted = [gpu.title for gpu in GPUS.values() if constants_of(gpu.name, "bf16").calibrated]
    others = [
        f"{GPUS[name].title} from {GPUS[owner].title}"
        for name in GPUS
        if (owner := constants_of(name, "bf16").inherits) is not None
        and not constants_of(name, "bf16").calibrated
    ]
    told = f"Products and attention are fitted on measured kernels of {_listed(fitted)}."
    if others:
        told += (
            " The others take the efficiencies of their nearest measured kin with their own "
            f"datasheet's peaks, and are marked “not calibrated”: {_listed(others)}."
        )
    return told


def serving_told() -> str:
    """Return how the serving runs are simulated, as the code that does it says."""
    return serving.__doc__ or ""


def sarathi_told(rows: tuple[Published, ...], decodes: tuple[Published, Published]) -> str:
    """Return how SARATHI's table and ours compare."""
    checks = [row for row in rows if row.is_check]
    worst = max(checks, key=lambda row: abs(row.error_pct))
    alone, riding = decodes
    return (
        f"Of the paper's {count(len(rows), 'figure')}, {len(rows) - len(checks)} set constants; "
        f"of the other {len(checks)}, the worst is off by **{worst.error_pct:+.1f}%** "
        f"({worst.what}, {worst.part}). The last two rows are worked out of these figures: a "
        f"decode alone takes {ms(alone.ours_ms)} (paper: {ms(alone.published_ms)}), piggybacked "
        f"{riding.ours_ms:.2f} ms (paper: {riding.published_ms:.2f} ms), which is off by "
        f"**{riding.error_pct:+.1f}%**: it is a third of the difference of two sums near 235 ms, "
        "and 1% of either moves it by more than half. Riding along is "
        f"**{times(alone.ours_ms / riding.ours_ms)}** cheaper, in the paper "
        f"{times(alone.published_ms / riding.published_ms)}."
    )


SARATHI_BASIS = (
    "Compared are the layers' dense products with the paper's “linear”, and prefill and decode "
    "attention together with its “attention”; elementwise operators, LM head and host stand in "
    "neither. **The A6000's attention constants were set by two of these very figures** (10 and "
    "5.68 ms), so those two check nothing; the third attention figure (15.2 ms) set none. "
    "Its products take the efficiencies of the A40, the same chip, measured by another source: "
    "they are a check."
)


def overhead_told(overheads: tuple[ChunkOverhead, ...]) -> str:
    """Return what chunking costs Yi-34B's prefill, beside what Sarathi-Serve says."""

    def worst(chunk: int) -> ChunkOverhead:
        of_size = [one for one in overheads if one.chunk_tokens == chunk]
        return max(of_size, key=lambda one: one.overhead_pct)

    small, large = worst(512), worst(2_048)
    return (
        "Sarathi-Serve: chunks of 512 cost at most about 25% of a prefill on Yi-34B (two A100 "
        "80 GB), chunks of 2,048 almost nothing. Here, with a step's host overhead in it: chunks "
        f"of 512 at most **{pct(small.overhead_pct)}** (prompt of {small.prompt_tokens:,}), chunks "
        f"of 2,048 at most **{pct(large.overhead_pct)}** (prompt of {large.prompt_tokens:,})."
    )


def gap_told(gap: Gap) -> str:
    """Return what a long prompt does to others' streams on a large model."""
    return (
        f"Sarathi-Serve: beside a {STALLED_PROMPT_TOKENS:,}-token prompt, Falcon-180B's decodes "
        f"wait for the whole prefill. Here, on 8 × A100 80 GB (TP 8; the paper: two stages of "
        f"TP 4, which are not modelled): {STALLED_DECODES} decodes that take "
        f"{ms(gap.decode_step_ms)} a step wait **{ms(gap.gap_whole_ms)}** once, of which the "
        f"prefill alone is {ms(gap.whole_prefill_ms)}; in chunks of {gap.chunk_tokens}, at most "
        f"**{ms(gap.gap_chunk_ms)}**."
    )


def _listed(names: list[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"
