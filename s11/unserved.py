"""Who never gets all tokens, and whose fault that is."""

from __future__ import annotations

from dataclasses import dataclass

from s11.experiment import Experiment
from s11.plan import BlockedBy
from s11.results import REASONS, Result
from s11.step_story import names
from s11.suffering import WHY_WAITING
from s11.words import count, quoted


@dataclass(frozen=True, slots=True, kw_only=True)
class Unserved:
    """A request that never gets all its tokens.

    note: why, in a few words; it does not begin with its name.
    behind: whom it waits for, for ever; None where the reason is its own.
    outgrows: that reason is that it is larger than the whole KV pool.
    """

    request_id: str
    note: str
    behind: str | None = None
    outgrows: bool = False


def unserved(experiment: Experiment, result: Result) -> list[Unserved]:
    """Return who never gets all tokens: the one that blocks, who waits behind it, who is refused.

    One that outgrows the whole KV pool goes back to the front of the queue again and again, so
    all that wait wait for it.
    """
    too_large = [name for name in result.never_finished if _outgrows(experiment, name)]
    found = [_outgrown(experiment, name) for name in too_large]
    others = [name for name in result.never_finished if name not in too_large]
    blocker = too_large[0] if too_large else None
    if result.prefill_worker:
        found += [Unserved(request_id=name, note="never gets a seat to decode") for name in others]
        others = []
    elif others and blocker is None:
        last, reason = _last_blocked(result)
        blocker = last if last is not None and last in others else others[0]
        note = f"never ends: {reason}" if reason else "never ends"
        found.append(Unserved(request_id=blocker, note=note))
    found += [_behind(name, blocker) for name in others if blocker and name != blocker]
    for name in result.never_scheduled:
        if blocker:
            found.append(_behind(name, blocker))
            continue
        blocker = name
        because = result.never_scheduled_because
        if because == BlockedBy.KV_BLOCKS and _outgrows(experiment, name):
            found.append(_outgrown(experiment, name))
            continue
        note = f"never runs: {because}" if because else "never runs"
        found.append(Unserved(request_id=name, note=note))
    found += [
        Unserved(request_id=name, note="refused: longer than max_model_len")
        for name in result.rejected
    ]
    return found


def unserved_sentences(experiment: Experiment, result: Result) -> list[str]:
    """Return the same in sentences."""
    found = unserved(experiment, result)
    parts = []
    for one in found:
        if one.behind is not None or one.request_id in result.rejected:
            continue
        behind = sum(other.behind == one.request_id for other in found)
        wait = f"{count(behind, 'request')} behind it {'waits' if behind == 1 else 'wait'}"
        tail = f", and {wait} for ever" if behind else ""
        parts.append(f"{_why(experiment, result, one)}{tail}.")
    if result.rejected:
        one_alone = len(result.rejected) == 1
        who = names([quoted(name) for name in result.rejected])
        parts.append(f"{who} {'is' if one_alone else 'are'} refused as too long.")
    return parts


def _why(experiment: Experiment, result: Result, one: Unserved) -> str:
    name, pool = quoted(one.request_id), experiment.limits.kv_blocks
    if one.outgrows:
        blocks = count(_own_blocks(experiment, one.request_id), "KV block")
        return f"{name} can never finish, since it grows to {blocks} and the pool has {pool:,}"
    if one.request_id in result.never_scheduled:
        reason = result.never_scheduled_because
        since = f", since {WHY_WAITING[BlockedBy(reason)]}" if reason else ""
        return f"{name} never runs{since}"
    return f"{name} {one.note}"


def _behind(name: str, blocker: str) -> Unserved:
    return Unserved(
        request_id=name, note=f"waits behind {quoted(blocker)} for ever", behind=blocker
    )


def _outgrown(experiment: Experiment, name: str) -> Unserved:
    blocks, pool = _own_blocks(experiment, name), experiment.limits.kv_blocks
    note = f"never ends: needs {blocks:,} KV blocks of {pool:,}"
    return Unserved(request_id=name, note=note, outgrows=True)


def _last_blocked(result: Result) -> tuple[str | None, BlockedBy | None]:
    """Return who was blocked in the last step, and by what."""
    steps = result.steps
    if not len(steps) or steps.blocked_request[-1] < 0:
        return None, None
    return result.requests.request_id[steps.blocked_request[-1]], REASONS[steps.blocked_by[-1]]


def _outgrows(experiment: Experiment, name: str) -> bool:
    pool = experiment.limits.kv_blocks
    return pool is not None and _own_blocks(experiment, name) > pool


def _own_blocks(experiment: Experiment, name: str) -> int:
    """Return the KV blocks that a request holds at its end: its last output has no KV."""
    request = next(r for r in experiment.workload.requests if r.request_id == name)
    tokens = request.prompt_tokens + request.output_tokens - 1
    return -(-tokens // experiment.limits.block_size)
