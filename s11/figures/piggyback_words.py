"""What the piggybacking page says of its pictures, with their numbers."""

from __future__ import annotations

import numpy as np

from s11.catalog import Deployment
from s11.costs.constants import constants_of
from s11.figures.piggyback_ride import fine_ms
from s11.figures.piggyback_tiles import SAME_MS, jump_words
from s11.piggyback import (
    FREE_SHARE,
    MOST_CONTEXT_TOKENS,
    MOST_TOKENS,
    LinearTimes,
    StepCurve,
    datasheet_tokens,
    linear_weight_bytes,
)
from s11.piggyback_rides import LEAST_CONTEXT_TOKENS, AttentionShare, Ride
from s11.words import count, ms, times

GIGA, TERA = 1e9, 1e12
NEXT_TO_NOTHING, SAME_FACTOR = 5, 1.05  # times cheaper
FALL_MS = 0.05
EDGE_SHARE = 0.5  # of what the decodes add to the linear operators
SMALL_SHARE = 0.1  # of what fp8 adds more: less is not a reason


def turning(curve: StepCurve, deployment: Deployment) -> str:
    """Return where a step turns compute-bound, and why it is free below."""
    gpu, linear = deployment.hardware, curve.linear
    share = constants_of(deployment.gpu, deployment.precision).gemm.memory_efficiency
    read_bytes = linear_weight_bytes(deployment)
    read_ms = read_bytes / (gpu.hbm_bytes_per_s * share) * 1e3
    each = " on each GPU" if deployment.tensor_parallel > 1 else ""
    reached = f"{gpu.hbm_bytes_per_s * share / TERA:,.2f} TB/s"
    read = (
        f"{read_bytes / GIGA:,.1f} GB of weights{each} at {reached} "
        f"({share:.0%} of the datasheet's) take {ms(read_ms)}"
    )
    turn = curve.turning_tokens
    if turn is None:
        first = (
            f"**Up to {MOST_TOKENS:,} tokens, reading the weights takes longer than computing "
            f"with them**: {read}."
        )
    elif turn == 1:
        first = (
            f"**Even one token is compute-bound here**: its tile is computed whole, in "
            f"{ms(linear.compute_ms[0])}, while {read}. The tile's other rows are free."
        )
    else:
        below = int(np.searchsorted(linear.tokens, turn)) - 1
        tokens, longer = (
            int(linear.tokens[below]),
            linear.linear_ms[below] / linear.linear_ms[0] - 1,
        )
        first = (
            f"**Below {turn:,} tokens, reading the weights is the time: more tokens cost little.** "
            f"{read}, whether one token uses them or {turn - 1:,}; all products of "
            f"{count(tokens, 'token')} take {longer:.0%} longer than those of one. From {turn:,} "
            f"on, computing with the weights takes longer than reading them."
        )
    free = (
        f"Up to **{count(curve.free_tokens, 'token')}**, the linear operators take at most "
        f"{FREE_SHARE:.0%} more than for one ({ms(linear.linear_ms[0])}); at the far end each "
        f"further token adds {fine_ms(curve.token_ms)}."
    )
    rule = (
        f"Rule of thumb, the datasheet's peak FLOP/s over its bytes/s at "
        f"{count(deployment.weight_bytes, 'byte')} a weight: {datasheet_tokens(deployment):,.0f} "
        f"tokens; tiles and efficiencies move it."
    )
    return f"{first} {free} {rule}"


def tiles(steps: LinearTimes, deployment: Deployment, *, edge_tokens: int) -> str:
    """Return what an edge costs, and where the largest step of the window is."""
    at = edge_tokens - int(steps.tokens[0])
    share = steps.jump_ms(edge_tokens) / float(steps.linear_ms[at])
    told = f"**{jump_words(steps, edge_tokens)}** ({share:+.1%}).".replace("(-", "(−")
    largest = steps.largest_jump()
    if largest == edge_tokens:
        told += " It is the largest step of this window."
    else:
        told += f" The largest step of this window: {jump_words(steps, largest)}."
    told += (
        " A product is cut into tiles of rows; a tile with one row in it is computed whole. "
        "So a token budget at a tile's edge, decodes included, wastes least."
    )
    if (np.diff(steps.linear_ms) < -FALL_MS).any():
        told += (
            " Where the line falls, more tokens take less time: the count suits a faster kernel "
            f"(in {deployment.precision} on this GPU, a whole multiple of some rows)."
        )
    return told


def riding(ride: Ride) -> str:
    """Return what a decode costs aboard and alone, and of what."""
    prefill, together, alone = ride.step_ms
    many = ride.decodes > 1
    who = f"{count(ride.decodes, 'decode')} with {ride.context_tokens:,} tokens of context"
    who += " each" if many else ""
    if ride.factor is None:
        return (
            f"{who} {'make' if many else 'makes'} the step of {ride.prefill_tokens:,} prefill "
            f"tokens no longer: {ms(prefill)} alone, {ms(together)} with {'them' if many else 'it'}"
            f", since {ride.prefill_tokens + ride.decodes:,} rows suit the kernels better than "
            f"{ride.prefill_tokens:,}. **A decode aboard costs nothing, in a step of its own "
            f"{fine_ms(ride.alone_ms)}.**"
        )
    cheaper = times(ride.factor) + " less" if ride.factor >= SAME_FACTOR else "no less"
    verdict = "next to nothing: " if ride.factor >= NEXT_TO_NOTHING else ""
    linear = ride.added_by("linear_ms")
    products = f"{fine_ms(linear)} are linear operators"
    if linear < 0:
        products = f"linear operators take {fine_ms(-linear)} less, as the row count suits them"
    elif max(SAME_MS, EDGE_SHARE * linear) <= ride.edge_ms <= linear:
        products += (
            f", {fine_ms(ride.edge_ms)} of it one tile more ({ride.edge_tokens:,} → "
            f"{ride.edge_tokens + 1:,} rows)"
        )
    products += _luck(ride, linear)
    attention = ride.added_by("decode_attention_ms")
    others = "all-reduces, " if ride.parts.all_reduce_ms.any() else ""
    others += "elementwise operators, the LM head and the host"
    return (
        f"{who} lengthen{'' if many else 's'} the step of {ride.prefill_tokens:,} prefill tokens "
        f"from {ms(prefill)} to {ms(together)}: **{verdict}{fine_ms(ride.aboard_ms)} a decode, "
        f"against {fine_ms(ride.alone_ms)} in a step of {'their' if many else 'its'} own: "
        f"{cheaper}.** Of the {fine_ms(ride.added_ms)} more, {products}: "
        f"the weights are read anyway, and a decode is one more row. "
        f"{fine_ms(attention)} are the decodes' attention: their KV cache is read aboard as it is "
        f"alone, and nobody shares it. The other {fine_ms(ride.added_ms - linear - attention)} are "
        f"{others}. Alone, {ms(float(ride.parts.linear_ms[2]))} of "
        f"{ms(alone)} are linear operators, for {count(ride.decodes, 'row')}."
    )


def _luck(ride: Ride, linear_ms: float) -> str:
    """Return that the rows end at a tile's edge, where one more would add more than all these."""
    if ride.next_ms <= max(linear_ms, 0.0) or ride.next_ms < SAME_MS:
        return ""
    rows = ride.prefill_tokens + ride.decodes
    return f" (here, because {rows:,} rows end at a tile's edge; one more would add " + (
        f"{fine_ms(ride.next_ms)})"
    )


def otherwise(
    here: tuple[StepCurve, Ride], there: tuple[StepCurve, Ride], *, precision: str
) -> str:
    """Return what the other precision changes."""
    (curve, ride), (other_curve, other_ride) = here, there
    turn = other_curve.turning_tokens
    turned = f"it turns at {turn:,} tokens" if turn else "it does not turn"
    now = f"{curve.turning_tokens:,}" if curve.turning_tokens else "never"
    prefill, other_prefill = ride.step_ms[0], other_ride.step_ms[0]
    return (
        f"**In {precision} instead**, {turned} (here: {now}), the prefill step alone takes "
        f"{ms(other_prefill)} (here: {ms(prefill)}), and a decode "
        f"{fine_ms(max(0.0, other_ride.aboard_ms))} aboard, {fine_ms(other_ride.alone_ms)} alone."
        f"{_dearer_in_fp8(ride, other_ride, precision)}"
    )


def _dearer_in_fp8(ride: Ride, other_ride: Ride, other_precision: str) -> str:
    """Return why a decode aboard costs more in fp8 than in bf16; "" where it does not."""
    fp8, bf16 = (other_ride, ride) if other_precision == "fp8" else (ride, other_ride)
    if fp8.aboard_ms <= bf16.aboard_ms:
        return ""
    linear, before = fp8.added_by("linear_ms"), bf16.added_by("linear_ms")
    more, rows = linear - before, count(fp8.decodes, "row")
    reasons = []
    if fp8.quantise_ms > SMALL_SHARE * more:
        reasons.append(
            f"turning the activations of {rows} more into fp8 takes {fine_ms(fp8.quantise_ms)}"
        )
    tile_ms = fp8.edge_ms - fp8.quantise_ms / fp8.decodes
    if tile_ms > SMALL_SHARE * more:
        reasons.append(
            f"the tile that {fp8.edge_tokens:,} → {fp8.edge_tokens + 1:,} rows begin takes "
            f"{fine_ms(tile_ms)}, in bf16 no row takes more than {fine_ms(bf16.edge_ms)}"
        )
    told = f": {', and '.join(reasons)}" if reasons else ""
    return (
        f" A decode aboard is dearer in fp8: {rows} more {'add' if fp8.decodes > 1 else 'adds'} "
        f"{fine_ms(linear)} to the linear operators, in bf16 {fine_ms(before)}{told}."
    )


def share(
    chunk: AttentionShare, decodes: AttentionShare, *, chunk_tokens: int, decode_tokens: int
) -> str:
    """Return where attention passes half of a step."""
    return (
        f"In a step of one **chunk of {count(chunk_tokens, 'token')}**, attention "
        f"{_passes(chunk, 'before it')}. In a step of **{count(decode_tokens, 'decode')} alone**, "
        f"it {_passes(decodes, 'of context each')}. Linear operators cost the same wherever the "
        f"chunk begins; attention reads all keys before it, so at long contexts the budget in "
        f"tokens says less and less of a step's time."
    )


def _passes(share: AttentionShare, where: str) -> str:
    start, end = 100 * share.attention[0], 100 * share.attention[-1]
    if share.half_tokens is None:
        return (
            f"stays below half: {start:.0f}% at {LEAST_CONTEXT_TOKENS:,} tokens {where}, "
            f"{end:.0f}% at {MOST_CONTEXT_TOKENS:,}"
        )
    if share.half_tokens <= LEAST_CONTEXT_TOKENS:
        return f"is over half from {LEAST_CONTEXT_TOKENS:,} tokens {where} on ({start:.0f}%)"
    return (
        f"passes half at **{share.half_tokens:,} tokens** {where} ({start:.0f}% at "
        f"{LEAST_CONTEXT_TOKENS:,}, {end:.0f}% at {MOST_CONTEXT_TOKENS:,})"
    )
