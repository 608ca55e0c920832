"""The chunk size page's sentences, each computed from the sweep that it speaks of."""

from __future__ import annotations

from s11.figures.chunk_size_info import ChunkCurve, grain_words
from s11.piggyback import MOST_TOKENS
from s11.sweeps import SweepPoint
from s11.words import count, ms

SMALL_SHARE = 0.005


def finding(curve: ChunkCurve) -> str:
    """Return what the target allows on this machine, in a sentence."""
    points, target = curve.points, f"{curve.target_ms:g} ms"
    if not points:
        reason = next((tried.refused for tried in curve.tried if tried.refused), "nothing ran")
        return f"No chunk size runs here: {reason}."
    whole = points[-1]
    if curve.stands_still:
        least = min(points, key=lambda point: point.longest_stall_ms or 0.0)
        return (
            "Without mixed chunks SGLang lets the streams stand still until the whole prompt is "
            f"done: at best {ms(least.longest_stall_ms)}, with chunks of "
            f"{count(least.chunk_tokens, 'token')}. No chunk size makes that shorter than the "
            "prefill itself; `--enable-mixed-chunk` does."
        )
    if curve.any_chunk:
        return (
            f"Even the whole prompt in one step takes {ms(whole.longest_stall_ms)}, within "
            f"{target}: here the target asks for no chunking."
        )
    if curve.largest is None:
        least = min(points, key=lambda point: point.longest_stall_ms or 0.0)
        alone = (
            f" The streams' own steps take {ms(curve.step.without_chunk_ms)} without any chunk."
            if curve.step and curve.step.without_chunk_ms > 0.5 * curve.target_ms
            else ""
        )
        return (
            f"No chunk size meets {target} here: the shortest longest stall of the sweep is "
            f"{ms(least.longest_stall_ms)}, with {count(least.chunk_tokens, 'token')}.{alone} "
            "More GPUs, fp8 weights, fewer users or a shorter prompt can help."
        )
    inside = [p for p in points if p.chunk_tokens <= curve.largest]
    told = f"Chunks of up to **{count(curve.largest, 'token')}** keep every gap within {target}"
    told += f" ({grain_words(curve)})"
    if not inside:
        return f"{told}; all sizes of the sweep are larger."
    best = inside[-1]
    share = (best.prefill_tokens_per_s or 0.0) / (whole.prefill_tokens_per_s or 1.0)
    return (
        f"{told}. At {best.chunk_tokens:,}, the largest of the sweep among them, prefill runs at "
        f"{best.prefill_tokens_per_s or 0:,.0f} tokens/s, {share:.0%} of what chunks of "
        f"{whole.chunk_tokens:,} reach, and the longest stall is {ms(best.longest_stall_ms)} "
        f"instead of {ms(whole.longest_stall_ms)}."
    )


def refused_words(curve: ChunkCurve) -> str:
    """Return which sizes do not run, and why; "" where all do or none does."""
    if not curve.refused or not curve.points:
        return ""
    first = curve.refused[0]
    sizes = [tried.chunk_tokens for tried in curve.refused]
    told = f"{sizes[0]:,}" if len(sizes) == 1 else f"{sizes[0]:,} to {sizes[-1]:,}"
    return f"Chunks of {told} tokens do not run here: {first.refused}."


def knee_words(curve: ChunkCurve) -> str:
    """Return where the knee is, what lies on its sides, and why it is there."""
    if not curve.knee or not curve.step:
        return ""
    if curve.stands_still:
        return (
            "**No knee**: the streams wait for the whole prompt, so a smaller chunk does not "
            "shorten their stall; stall and TTFT are nearly one."
        )
    at = curve.knee
    if curve.balanced is None and at is not curve.points[-1]:
        place = (
            f"**No knee**: stall × TTFT is least at {count(at.chunk_tokens, 'token')}, but no "
            "smaller chunk of the sweep has a shorter stall."
        )
    elif curve.balanced is None:
        place = (
            f"**No knee**: stall × TTFT falls all the way to {count(at.chunk_tokens, 'token')}, "
            "so larger chunks only gain here."
        )
    else:
        place = (
            f"**Knee at {count(at.chunk_tokens, 'token')}**, where longest stall × TTFT is least: "
            "beyond it the streams lose a larger share than the prompt gains."
        )
    sides = [_side(curve, smaller=True), _side(curve, smaller=False)]
    return " ".join([place, *[side for side in sides if side], _why(curve)])


def _side(curve: ChunkCurve, *, smaller: bool) -> str:
    """What half, or twice, the knee's chunk changes; "" where the sweep has none."""
    at, others = curve.knee, curve.points
    if at is None:
        return ""
    size = at.chunk_tokens
    if smaller:
        near = max((p for p in others if p.chunk_tokens <= size / 2), key=_size, default=None)
    else:
        near = min((p for p in others if p.chunk_tokens >= size * 2), key=_size, default=None)
    if near is None:
        return ""
    stall = _change(at.longest_stall_ms, near.longest_stall_ms)
    rate = _change(at.prefill_tokens_per_s, near.prefill_tokens_per_s)
    return f"At {near.chunk_tokens:,} the stall is {stall} and prefill throughput {rate}."


def _size(point: SweepPoint) -> int:
    return point.chunk_tokens


def _change(before: float | None, after: float | None) -> str:
    if not before or after is None:
        return "unknown"
    change = after / before - 1
    if abs(change) < SMALL_SHARE:
        return "the same"
    return f"{abs(change):.0%} {'higher' if change > 0 else 'lower'}"


def no_knee(curve: ChunkCurve) -> str:
    """Return why there is no knee, in a few words; "" where there is one, or nothing ran."""
    if curve.balanced or not curve.knee:
        return ""
    if curve.stands_still:
        return "decodes wait for the prompt"
    return "larger only gains" if curve.knee is curve.points[-1] else "smaller stalls no less"


def _why(curve: ChunkCurve) -> str:
    """What bounds the knee's step, by what it spends on what."""
    step, turn = curve.step, curve.turning_tokens
    if step is None:
        return ""
    decodes = step.rows - step.chunk_tokens
    riding = f" and {count(decodes, 'decode')}" if decodes else ""
    beside = f"In a step of {step.chunk_tokens:,} prompt tokens{riding}"
    limits = f"{ms(step.compute_ms)} of arithmetic against {ms(step.memory_ms)} of memory traffic"
    if step.bound == "attention":
        first = (
            f"{beside} attention over the {step.start_token:,} tokens before them takes most: "
            f"{ms(step.prefill_attention_ms)}, where the products take {ms(step.products_ms)} "
            f"({limits})."
        )
    elif step.bound == "memory":
        first = (
            f"{beside} the products take {ms(step.products_ms)}, {limits}: they are bound by the "
            "read of the weights, which smaller chunks would only repeat more often."
        )
    else:
        first = (
            f"{beside} the products take {ms(step.products_ms)}, {limits}: they are bound by "
            "arithmetic."
        )
    if turn is None:
        return f"{first} On this machine the read covers steps of up to {MOST_TOKENS:,} rows."
    rows = f"On this machine arithmetic bounds the products from {count(turn, 'row')} on"
    if turn - 1 <= decodes:
        return f"{first} {rows}, so no chunk{' beside them' if decodes else ''} is covered."
    covered = turn - 1 - decodes
    return (
        f"{first} {rows}, so the read covers chunks of up to {count(covered, 'token')}"
        f"{' beside them' if decodes else ''}: below that, smaller chunks cost throughput and "
        "gain little."
    )


def across_words(named: dict[str, int | None], *, target_ms: float, unfit: int) -> str:
    """Return how far apart the machines' largest chunks are, in a sentence.

    named: each machine that the model fits, and its largest chunk within the target.
    unfit: on how many it does not fit.
    """
    target = f"{target_ms:g} ms"
    meeting = {name: size for name, size in named.items() if size}
    without = len(named) - len(meeting)
    parts = []
    if meeting:
        most, least = max(meeting, key=lambda n: meeting[n]), min(meeting, key=lambda n: meeting[n])
        if meeting[most] == meeting[least]:
            who = most if len(meeting) == 1 else f"All {len(meeting)}"
            parts.append(f"{who}: up to {count(meeting[most], 'token')} within {target}.")
        else:
            parts.append(
                f"The largest chunk within {target} goes from {meeting[least]:,} tokens "
                f"({least}) to {meeting[most]:,} ({most})."
            )
    if without and without == len(named):
        parts.append(f"No chunk meets {target} on any of the {without} that can run it.")
    elif without:
        parts.append(f"On {without} of {len(named)} no chunk meets {target}.")
    if unfit:
        parts.append(f"{unfit} of {unfit + len(named)} cannot run it at all.")
    return " ".join(parts) or "Nothing ran yet."
