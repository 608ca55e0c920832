"""What of a sweep travels to another process: its requests once, then only what differs."""

from __future__ import annotations

import hashlib
import json
import pickle
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, fields, replace
from operator import attrgetter
from typing import Any

from s11.experiment import Experiment
from s11.traces import Trace
from s11.traffic import Traffic
from s11.workload import Request, Workload

NO_REQUESTS = Workload(requests=())
Source = Workload | Traffic | Trace
"""Where requests come from: given, drawn with a rate and a seed, or recorded."""
AT_HAND = 2  # workloads that a process holds ready: a million requests take hundreds of MB


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Variant:
    """One experiment of a sweep: a base, where its requests come from, and what is changed.

    frame: the base; its workload has no requests.
    rate_per_s, seed, policy: in place of the source's or base's own; None: as it is.
    limits: the engine's limits that are changed, by name.
    """

    frame: Experiment
    source: Source
    rate_per_s: float | None = None
    seed: int | None = None
    policy: str | None = None
    limits: tuple[tuple[str, int | bool | None], ...] = ()

    def experiment(self) -> Experiment:
        """Return the whole experiment.

        Raises:
            ValueError: parts that do not go together, or a source without a rate or a seed.
        """
        changed: dict[str, Any] = {} if self.policy is None else {"policy": self.policy}
        if self.limits:
            changed["limits"] = replace(self.frame.limits, **dict(self.limits))  # type: ignore[arg-type]
        return replace(self.frame, workload=self._workload(), **changed)

    def _workload(self) -> Workload:
        # The source is held with its workload: an id alone may come to mean another object.
        key = (id(self.source), self.rate_per_s, self.seed, self.frame.workload)
        held = _workloads.get(key)
        if held is None:
            held = self.source, replace(self.frame.workload, requests=self._requests())
            _hold(_workloads, key, held)
        return held[1]

    def _requests(self) -> tuple[Request, ...]:
        source = self.source
        require_drawn(source, rate_per_s=self.rate_per_s, seed=self.seed)
        if isinstance(source, Workload):
            return source.requests
        if isinstance(source, Traffic) and self.seed is not None:
            source = replace(source, seed=self.seed)
        if self.rate_per_s is not None:
            source = source.at_rate(self.rate_per_s)
        return source.workload().requests


def require_drawn(source: Source, *, rate_per_s: float | None, seed: int | None) -> None:
    """Refuse a rate or a seed for requests that do not come at another.

    Raises:
        ValueError: a rate for given requests, a seed for what is not drawn.
    """
    if rate_per_s is not None and isinstance(source, Workload):
        raise ValueError(
            f"rate_per_s: {rate_per_s:g} does not go with requests that are given one by one "
            "(allowed: traffic, or a trace)"
        )
    if seed is not None and not isinstance(source, Traffic):
        raise ValueError(
            f"seed: {seed} does not go with requests that are not drawn (allowed: traffic)"
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Packed:
    """A source as bytes, and their digest.

    Pickled, for it goes to processes of the same sweep only and never into a file.
    """

    digest: str
    data: bytes


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class PackedVariant:
    """A variant on its way to another process, where its source is unpacked once.

    bare: the variant without its source, whose digest is here in place of it.
    packed: the source; None where that process keeps the one with this digest (`keep`).
    """

    bare: Variant
    digest: str
    packed: Packed | None

    def experiment(self) -> Experiment:
        """Return the whole experiment."""
        source = _sources.get(self.digest)
        if source is None:
            source = pickle.loads((self.packed or _kept[self.digest]).data)
            _hold(_sources, self.digest, source)
        return replace(self.bare, source=source).experiment()


_kept: dict[str, Packed] = {}
_sources: dict[str, Any] = {}
_workloads: dict[tuple[Any, ...], tuple[Any, Workload]] = {}


def keep(shared: Iterable[Packed]) -> None:
    """Keep sources in this process for the variants that come without them."""
    _kept.update({packed.digest: packed for packed in shared})


def forget(shared: Iterable[Packed]) -> None:
    """Let go of sources that this process kept."""
    for packed in shared:
        _kept.pop(packed.digest, None)
        _sources.pop(packed.digest, None)


def variant(experiment: Experiment) -> Variant:
    """Return an experiment as a variant of its own workload."""
    workload = experiment.workload
    frame = replace(experiment, workload=replace(workload, requests=()))
    return Variant(frame=frame, source=workload)


def pack(variants: Sequence[Variant], *, apart: bool) -> tuple[list[PackedVariant], list[Packed]]:
    """Return what to send for each variant, and what to send to each process before.

    apart: a source of several variants is among the latter and not sent with each of them.
    """
    packs: dict[int, Packed] = {}
    uses: dict[int, int] = {}
    for each in variants:
        uses[id(each.source)] = uses.get(id(each.source), 0) + 1
    for each in variants:
        if id(each.source) not in packs:
            data = pickle.dumps(each.source, protocol=pickle.HIGHEST_PROTOCOL)
            packs[id(each.source)] = Packed(digest=hashlib.sha256(data).hexdigest(), data=data)
    shared = {source for source, count in uses.items() if apart and count > 1}
    sent = [
        PackedVariant(
            bare=replace(each, source=NO_REQUESTS),
            digest=packs[id(each.source)].digest,
            packed=None if id(each.source) in shared else packs[id(each.source)],
        )
        for each in variants
    ]
    return sent, [packs[source] for source in shared]


def digests(variants: Sequence[Variant]) -> list[str]:
    """Return a name for each variant that is the same wherever and whenever it is described."""
    sources = {id(each.source): each.source for each in variants}
    named = {number: _source_digest(source) for number, source in sources.items()}
    return [
        hashlib.sha256(
            json.dumps(
                {
                    "frame": each.frame.to_dict(),
                    "source": named[id(each.source)],
                    "changed": [each.rate_per_s, each.seed, each.policy, each.limits],
                },
                sort_keys=True,
            ).encode()
        ).hexdigest()
        for each in variants
    ]


def _source_digest(source: Source) -> str:
    digest = hashlib.sha256()
    if isinstance(source, Traffic):
        digest.update(json.dumps(source.to_dict(), sort_keys=True).encode())
    else:
        workload = source if isinstance(source, Workload) else source.workload()
        values = attrgetter(*(field.name for field in fields(Request)))
        for request in workload.requests:
            digest.update(repr(values(request)).encode())
    return digest.hexdigest()


def _hold(held: dict[Any, Any], key: Any, value: Any) -> None:
    """Put a value in place of the oldest, where there are more than `AT_HAND`."""
    held[key] = value
    while len(held) > AT_HAND:
        held.pop(next(iter(held)), None)
