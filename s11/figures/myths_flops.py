"""“Chunking adds FLOPs”: arithmetic, reads and time of one prompt, whole and in chunks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from s11.catalog import Deployment
from s11.figures.myths_bars import Bar, Panel, Part, bars_figure
from s11.figures.piggyback_looks import SIMULATED, machine_line
from s11.figures.theme import FIXED, HAND_OVER, IDLE, PREEMPTED, PREFILL, Spec
from s11.myths_flops import PrefillWork
from s11.words import count, ms, times

LINEAR = Part(name="layers' products", colour=PREFILL)
ATTENTION = Part(name="attention", colour=PREEMPTED, pattern="/")
WEIGHTS = Part(name="weights", colour=FIXED, pattern=".")
CACHED = Part(name="earlier K/V", colour=HAND_OVER, pattern="\\")
TIME = Part(name="time", colour=IDLE)
PETA, GIGA = 1e15, 1e9


def flops_title(whole: PrefillWork, cut: PrefillWork) -> str:
    """Return the finding."""
    if cut.chunks == 1:
        return "In one piece: no second read"
    return f"The same FLOPs, {times(cut.read_bytes / whole.read_bytes)} the reads"


def flops_figure(whole: PrefillWork, cut: PrefillWork, machine: Deployment) -> Spec:
    """Return the Plotly spec: three panels of two bars."""
    both = (("one piece", whole), (f"{count(cut.chunks, 'chunk')}", cut))
    return bars_figure(
        (
            Panel(
                head="Arithmetic of the layers (PFLOP)",
                unit="PFLOP",
                bars=tuple(
                    Bar(
                        label=label,
                        parts=(
                            (LINEAR, int(work.linear_flops.sum()) / PETA),
                            (ATTENTION, int(work.attention_flops.sum()) / PETA),
                        ),
                        text=amount(work.flops / PETA),
                    )
                    for label, work in both
                ),
            ),
            Panel(
                head="Read from memory, at least (GB)",
                unit="GB",
                bars=tuple(
                    Bar(
                        label=label,
                        parts=(
                            (WEIGHTS, int(work.weight_bytes.sum()) / GIGA),
                            (CACHED, int(work.cached_kv_bytes.sum()) / GIGA),
                        ),
                        text=amount(work.read_bytes / GIGA),
                    )
                    for label, work in both
                ),
            ),
            Panel(
                head="Time of the prefill alone (ms)",
                unit="ms",
                bars=tuple(
                    Bar(label=label, parts=((TIME, work.duration_ms),), text=ms(work.duration_ms))
                    for label, work in both
                ),
            ),
        ),
        title=flops_title(whole, cut),
        caption=[
            machine_line(machine),
            f"one prompt of {count(cut.prompt_tokens, 'token')}, chunks of {cut.chunk_tokens:,}",
            SIMULATED,
        ],
        meta={
            "figure": "myth-flops",
            "chunk_tokens": cut.chunk_tokens,
            "flops": [whole.flops, cut.flops],
            "read_bytes": [whole.read_bytes, cut.read_bytes],
        },
        legend=True,
    )


def flops_words(whole: PrefillWork, cut: PrefillWork, machine: Deployment) -> str:
    """Return what is true, with the figure's own numbers."""
    each = amount(cut.flops / PETA, "PFLOP")
    if cut.chunks == 1:
        return (
            f"In one piece, the prompt of {count(cut.prompt_tokens, 'token')} takes {each} and "
            "reads the weights once. Choose a smaller chunk: the first bar pair stays as it is."
        )
    same = "exactly as in one piece" if whole.flops == cut.flops else "not as in one piece"
    longer = 100 * (cut.duration_ms / whole.duration_ms - 1)
    return (
        f"In {cut.chunks:,} chunks the prompt takes {each}, {same}: each token meets the same "
        f"weights and the same keys. What grows is what is read: the weights {cut.chunks:,} times "
        f"({amount(int(cut.weight_bytes.sum()) / GIGA, 'GB')} instead of "
        f"{amount(int(whole.weight_bytes.sum()) / GIGA, 'GB')}), and "
        f"{amount(int(cut.cached_kv_bytes.sum()) / GIGA, 'GB')} of K/V of earlier chunks. "
        f"On {machine.hardware.title} the prefill alone takes {ms(cut.duration_ms)} instead of "
        f"{ms(whole.duration_ms)}, {_percent(longer)}: where a chunk keeps the arithmetic busy, "
        "most reads hide behind it."
    )


def flops_alt(whole: PrefillWork, cut: PrefillWork, machine: Deployment) -> str:
    """Return the bars' numbers for those who cannot see them."""
    told = "; ".join(
        f"{count(work.chunks, 'chunk')}: {amount(work.flops / PETA, 'PFLOP')}, "
        f"{amount(work.read_bytes / GIGA, 'GB')} read, {ms(work.duration_ms)}"
        for work in (whole, cut)
    )
    return f"{flops_title(whole, cut)}. {machine_line(machine)}. {told}."


def flops_columns(whole: PrefillWork, cut: PrefillWork) -> Mapping[str, Sequence[Any]]:
    """Return both ways' sums, then the chunks one by one."""
    rows = [("one piece", whole), (f"{cut.chunks} chunks", cut)]
    columns: dict[str, list[Any]] = {
        "part": [name for name, _ in rows],
        "start_token": [0 for _ in rows],
        "tokens": [work.prompt_tokens for _, work in rows],
        "linear_flops": [int(work.linear_flops.sum()) for _, work in rows],
        "attention_flops": [int(work.attention_flops.sum()) for _, work in rows],
        "weight_bytes": [int(work.weight_bytes.sum()) for _, work in rows],
        "earlier_kv_bytes": [int(work.cached_kv_bytes.sum()) for _, work in rows],
        "duration_ms": [round(work.duration_ms, 4) for _, work in rows],
    }
    ends = [*cut.start_token[1:].tolist(), cut.prompt_tokens]
    for number, start in enumerate(cut.start_token.tolist()):
        columns["part"].append(f"chunk {number + 1}")
        columns["start_token"].append(start)
        columns["tokens"].append(ends[number] - start)
        columns["linear_flops"].append(int(cut.linear_flops[number]))
        columns["attention_flops"].append(int(cut.attention_flops[number]))
        columns["weight_bytes"].append(int(cut.weight_bytes[number]))
        columns["earlier_kv_bytes"].append(int(cut.cached_kv_bytes[number]))
        columns["duration_ms"].append(None)
    return columns


def amount(value: float, unit: str = "") -> str:
    """Return an amount with three figures: 0.739 PFLOP, 14 GB, 1,234 GB."""
    text = f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
    return f"{text} {unit}".rstrip()


def _percent(more: float) -> str:
    if abs(more) < 0.05:
        return "the same"
    return f"{abs(more):.1f}% {'longer' if more > 0 else 'shorter'}"
