"""The engines of a comparison: a policy or a preset, with its own values of some knobs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from s11.checks import require_choice
from s11.experiment import Experiment
from s11.policies import POLICIES
from s11.presets import PRESETS, TITLES

ENGINES = (*POLICIES, *PRESETS)
"""What can be compared: policies on the common limits, and presets on their own."""

SHORT_KNOBS: dict[str, str] = {
    "token_budget": "budget",
    "chunk_tokens": "cap",
    "max_seqs": "seats",
    "chunking": "chunking",
    "mixed": "mixed",
    "prefill_interval": "interval",
    "block_size": "block",
    "kv_blocks": "blocks",
    "prefix_caching": "caching",
    "reserve_full_prompt": "reserve",
    "max_model_len": "longest",
    "align_first_chunk": "align",
}
"""By knob of `EngineLimits`, its name in a link and in a short label."""

Change = tuple[str, int | bool | None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Entry:
    """One engine of a comparison: a policy or a preset, and its own values of some knobs.

    Raises:
        ValueError: an engine or a knob that is not known, a knob that is given twice.
    """

    engine: str
    changes: tuple[Change, ...] = ()

    def __post_init__(self) -> None:
        require_choice("engine", self.engine, ENGINES)
        for knob, _ in self.changes:
            require_choice("knob", knob, tuple(SHORT_KNOBS))
        if len(dict(self.changes)) < len(self.changes):
            raise ValueError("knob: one is given twice for the same engine")

    @property
    def policy(self) -> str:
        """The policy that plans its steps."""
        return PRESETS[self.engine].policy if self.engine in PRESETS else self.engine

    @property
    def title(self) -> str:
        """What the engine is called, its own knobs aside."""
        return PRESETS[self.engine].title if self.engine in PRESETS else TITLES[self.engine]

    def of(self, common: Experiment) -> Experiment:
        """Return the common experiment on this engine.

        Raises:
            ValueError: knobs that do not go together, or not with this policy.
        """
        mine = replace(common, policy="chunked")
        if self.engine in PRESETS:
            mine = PRESETS[self.engine].of(mine)
        values: dict[str, Any] = dict(self.changes)
        return replace(mine, policy=self.policy, limits=replace(mine.limits, **values))

    def changed(self, **values: int | bool | None) -> Entry:
        """Return the entry with other values of some knobs."""
        return replace(self, changes=tuple({**dict(self.changes), **values}.items()))

    def without(self, knob: str) -> Entry:
        """Return the entry with the common value of a knob."""
        return replace(self, changes=tuple([pair for pair in self.changes if pair[0] != knob]))


def knob_words(knob: str, value: int | bool | None) -> str:
    """Return a knob's value in a few words: "budget 2,048", "no cap", "caching on"."""
    name = SHORT_KNOBS[knob]
    if isinstance(value, bool):
        return f"{name} {'on' if value else 'off'}"
    if value is None:
        return {"kv_blocks": "ample KV"}.get(knob, f"no {name}")
    return {
        "max_seqs": f"{value:,} seat" + ("s" if value != 1 else ""),
        "kv_blocks": f"{value:,} KV block" + ("s" if value != 1 else ""),
    }.get(knob, f"{name} {value:,}")


def entry_labels(entries: Sequence[Entry]) -> list[str]:
    """Return a label for each entry: its title, and what tells it from its like.

    Where an engine is there several times, the knobs that differ are named.
    """
    labels = []
    for entry in entries:
        alike = [other for other in entries if other.engine == entry.engine]
        knobs = [k for k in SHORT_KNOBS if len({_own(other, k) for other in alike}) > 1]
        told = [
            knob_words(knob, dict(entry.changes)[knob])
            if knob in dict(entry.changes)
            else f"common {SHORT_KNOBS[knob]}"
            for knob in knobs
        ]
        labels.append(", ".join([entry.title, *told]))
    return labels


def _own(entry: Entry, knob: str) -> object:
    return dict(entry.changes).get(knob, "common")
