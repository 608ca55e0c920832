"""How many KV blocks requests held in each step, told from a run's tables.

The engine needs only the blocks that are free now; a column for every step would cost it more
than the counting itself. The tables say it all: who was admitted when, what each slice and each
decode added, and who left.
"""

from __future__ import annotations

import numpy as np

from s11.results import AdmissionTable, Ints, PreemptionTable, SliceTable, SpanTable


def held_blocks(
    block_size: int,
    *,
    decodes_in_step: Ints,
    slices: SliceTable,
    admissions: AdmissionTable,
    preemptions: PreemptionTable,
    spans: SpanTable,
) -> Ints:  # (steps,)
    """Return the blocks held in each step, without a prefix cache: (steps,).

    A request holds a block for every begun `block_size` tokens, from the step that computes
    them to its last step, or to the preemption that takes them all.
    """
    steps = len(decodes_in_step)
    decode_steps = np.flatnonzero(decodes_in_step)  # step of each decode step
    change = np.zeros(steps + 1, dtype=np.int64)
    before = -(-slices.start_token // block_size)
    after = -(-(slices.start_token + slices.tokens) // block_size)
    np.add.at(change, slices.step, after - before)

    # A span of decodes goes on from the slice that was a stay's last.
    last = np.flatnonzero(slices.tokens == slices.wanted_tokens)  # in the order of the steps
    by_request = last[np.argsort(slices.request[last], kind="stable")]  # as the spans are
    known = slices.start_token[by_request] + slices.tokens[by_request]  # (spans,)
    assert len(known) == len(spans), "every complete prefill begins a span"
    to_boundary = -known % block_size
    boundaries = np.maximum(0, -(-(spans.decodes - to_boundary) // block_size))
    nth = np.arange(boundaries.sum()) - (boundaries.cumsum() - boundaries).repeat(boundaries)
    decode = (spans.first_decode + to_boundary).repeat(boundaries) + nth * block_size
    np.add.at(change, decode_steps[decode], 1)

    # Who leaves gives back all: in the step after the last, or in the step of the preemption.
    left_after = slices.step[by_request].copy()
    decoded = spans.decodes > 0
    left_after[decoded] = decode_steps[(spans.first_decode + spans.decodes - 1)[decoded]]
    held = -(-(known + spans.decodes) // block_size)
    stay_of_span = _stays(admissions, spans.request, slices.step[by_request])
    gone = _preempted_stays(admissions, preemptions)  # stay -> step
    at = left_after + 1
    for span in np.flatnonzero(np.isin(stay_of_span, list(gone))):
        at[span] = gone.pop(int(stay_of_span[span]))
    np.subtract.at(change, np.minimum(at, steps), held)
    for stay, step in gone.items():  # preempted before their prefill was complete
        computed = slices.tokens[
            (slices.request == admissions.request[stay])
            & (slices.step >= admissions.step[stay])
            & (slices.step < step)
        ].sum()
        change[min(step, steps)] -= -(-computed // block_size)
    held_in_step: Ints = change[:steps].cumsum()
    return held_in_step


def _stays(admissions: AdmissionTable, request: Ints, step: Ints) -> Ints:  # (n,), (n,) -> (n,)
    """Return the admission that a request was on in a step, by row."""
    order = np.lexsort((admissions.step, admissions.request))
    most = int(max(admissions.step.max(initial=0), step.max(initial=0))) + 1
    keys = admissions.request[order] * most + admissions.step[order]
    place = np.searchsorted(keys, request * most + step, side="right") - 1
    rows: Ints = order[place]
    return rows


def _preempted_stays(admissions: AdmissionTable, preemptions: PreemptionTable) -> dict[int, int]:
    """Return the step of the preemption by the admission that it ended."""
    if not len(preemptions):
        return {}
    stays = _stays(admissions, preemptions.request, preemptions.step - 1)
    return dict(zip(stays.tolist(), preemptions.step.tolist(), strict=True))
