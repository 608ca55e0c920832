"""The compare page's link: a comparison as short texts, and back, each text checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from s11.checks import require_bool, require_int, require_ms
from s11.costs import LinearCost
from s11.entries import SHORT_KNOBS, Entry
from s11.experiment import Experiment
from s11.plan import MAX_INTERVAL, EngineLimits
from s11.scenes import SCENES
from s11.ui.compare_requests import (
    FIELD,
    MOST_LETTERS,
    ROW,
    Row,
    complete_rows,
    float_or_text,
    requests_from,
    requests_of,
    requests_text,
    row_of,
    whole_or_text,
)
from s11.ui.frame import PICTURE_FORMATS
from s11.ui.link_checks import one_of
from s11.workload import Workload

MOST_ENTRIES = 4
MOST_TOKENS, MOST_SEATS, MOST_BLOCKS, MOST_BLOCK = 1_048_576, 4_096, 1_048_576, 4_096
LEAST_TARGET_MS, MOST_TARGET_MS, MOST_COEFFICIENT_MS = 0.1, 10_000.0, 1_000.0
NONE = "none"

KNOB_MOST: dict[str, int] = {
    "token_budget": MOST_TOKENS,
    "chunk_tokens": MOST_TOKENS,
    "max_seqs": MOST_SEATS,
    "kv_blocks": MOST_BLOCKS,
    "block_size": MOST_BLOCK,
    "prefill_interval": MAX_INTERVAL,
}
OPTIONAL = ("token_budget", "chunk_tokens", "max_seqs", "kv_blocks")
SWITCHES = ("chunking", "mixed", "prefix_caching", "reserve_full_prompt")
COMMON_KNOBS = (
    "token_budget",
    "chunk_tokens",
    "max_seqs",
    "kv_blocks",
    "block_size",
    "prefill_interval",
    "prefix_caching",
    "reserve_full_prompt",
)
OWN_KNOBS = (*COMMON_KNOBS, "chunking", "mixed")
KNOB_OF = {short: knob for knob, short in SHORT_KNOBS.items() if knob in OWN_KNOBS}
COST_KEYS = {
    "fixed": "fixed_ms",
    "prefill": "prefill_ms_per_token",
    "decode": "decode_ms_per_token",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Asked:
    """What the page's controls hold: a scene, and how it was changed.

    rows: the table of requests, as typed: it may hold what no request can be, and rows that
        are not filled in yet.
    """

    scene: str
    entries: tuple[Entry, ...]
    rows: tuple[Row, ...]
    limits: EngineLimits
    cost: LinearCost
    itl_target_ms: float

    @classmethod
    def of_scene(cls, slug: str) -> Asked:
        """Return a scene as it comes."""
        scene = SCENES[slug]
        common = scene.common
        return cls(
            scene=slug,
            entries=scene.entries,
            rows=tuple([row_of(request) for request in common.workload.requests]),
            limits=common.limits,
            cost=common.cost if isinstance(common.cost, LinearCost) else LinearCost(),
            itl_target_ms=common.itl_target_ms,
        )

    def common(self) -> Experiment:
        """Return the load with the common knobs; rows that are not filled in are left out.

        Raises:
            ValueError: a row that is no request, in one sentence.
        """
        return Experiment(
            workload=Workload(requests=requests_of(complete_rows(self.rows))),
            limits=self.limits,
            cost=self.cost,
            itl_target_ms=self.itl_target_ms,
        )

    def is_its_scene(self) -> bool:
        """Whether nothing of the scene was changed."""
        return self.entries == Asked.of_scene(self.scene).entries and self.has_its_load()

    def has_its_load(self) -> bool:
        """Whether requests, common knobs, costs and target are those of the scene."""
        plain = Asked.of_scene(self.scene)
        try:
            same = requests_of(self.rows) == requests_of(plain.rows)
        except ValueError:
            return False
        return same and (self.limits, self.cost, self.itl_target_ms) == (
            plain.limits,
            plain.cost,
            plain.itl_target_ms,
        )

    def with_limit(self, knob: str, value: int | bool | None) -> Asked:
        """Return the same with another common limit."""
        values: dict[str, Any] = {knob: value}
        return replace(self, limits=replace(self.limits, **values))


def to_link(asked: Asked) -> dict[str, str]:
    """Return the query parameters that bring a comparison back: what differs from its scene."""
    plain, first = Asked.of_scene(asked.scene), next(iter(SCENES))
    texts = {} if asked.scene == first else {"scene": asked.scene}
    if asked.entries != plain.entries:
        texts["engines"] = ROW.join(entry_text(entry) for entry in asked.entries)
    try:
        requests = requests_of(complete_rows(asked.rows))
        Workload(requests=tuple(requests))  # a link that the page itself would refuse is none
    except ValueError:
        requests = requests_of(plain.rows)
    if requests != requests_of(plain.rows):
        texts["requests"] = requests_text(requests)
    for knob in COMMON_KNOBS:
        value = getattr(asked.limits, knob)
        if value != getattr(plain.limits, knob):
            texts[SHORT_KNOBS[knob]] = value_text(value)
    if asked.itl_target_ms != plain.itl_target_ms:
        texts["target"] = f"{asked.itl_target_ms!r}"
    for key, name in COST_KEYS.items():
        if getattr(asked.cost, name) != getattr(plain.cost, name):
            texts[key] = f"{getattr(asked.cost, name)!r}"
    return texts


def from_link(texts: Mapping[str, str]) -> Asked:
    """Return what query parameters ask for; each has passed its check.

    Raises:
        ValueError: costs that do not go together.
    """
    asked = Asked.of_scene(texts.get("scene", next(iter(SCENES))))
    if "engines" in texts:
        asked = replace(asked, entries=entries_from(texts["engines"]))
    if "requests" in texts:
        rows = tuple([row_of(request) for request in requests_from(texts["requests"])])
        asked = replace(asked, rows=rows)
    for knob in COMMON_KNOBS:
        if SHORT_KNOBS[knob] in texts:
            asked = asked.with_limit(knob, value_from(knob, texts[SHORT_KNOBS[knob]]))
    if "target" in texts:
        asked = replace(asked, itl_target_ms=float(texts["target"]))
    costs = {name: float(texts[key]) for key, name in COST_KEYS.items() if key in texts}
    return replace(asked, cost=replace(asked.cost, **costs))


def entry_text(entry: Entry) -> str:
    """Return an engine and its own knobs: `vllm_v1~cap-1024`."""
    knobs = [f"{SHORT_KNOBS[knob]}-{value_text(value)}" for knob, value in entry.changes]
    return FIELD.join([entry.engine, *knobs])


def entry_from(text: str) -> Entry:
    """Return the engine that a text describes.

    Raises:
        ValueError: an engine, a knob or a value that is not known.
    """
    engine, *parts = text.split(FIELD)
    changes = []
    for part in parts:
        short, _, value = part.partition("-")
        if short not in KNOB_OF:
            raise ValueError(f"knob: {short[:40]!r} is not one of {', '.join(KNOB_OF)}")
        changes.append((KNOB_OF[short], value_from(KNOB_OF[short], value)))
    return Entry(engine=engine, changes=tuple(changes))


def entries_from(text: str) -> tuple[Entry, ...]:
    """Return one to four different engines.

    Raises:
        ValueError: too many, one twice, or one that is not known.
    """
    if len(text) > MOST_LETTERS:
        raise ValueError(f"value: {len(text):,} letters are more than {MOST_LETTERS:,}")
    entries = tuple([entry_from(part) for part in text.split(ROW)])
    require_int("engines", len(entries), 1, MOST_ENTRIES)
    if len(set(entries)) < len(entries):
        raise ValueError("engines: one is given twice with the same knobs")
    return entries


def value_text(value: int | bool | None) -> str:
    """Return a knob's value: `none`, `on`, `off` or a number."""
    if isinstance(value, bool):
        return "on" if value else "off"
    return NONE if value is None else str(value)


def value_from(knob: str, text: str) -> int | bool | None:
    """Return the value of a knob that a text describes.

    Raises:
        ValueError: a value that the knob cannot have.
    """
    if knob in SWITCHES:
        one_of("on", "off")(text)
        return require_bool("value", text == "on")
    if knob in OPTIONAL and text == NONE:
        return None
    return require_int("value", whole_or_text(text), 1, KNOB_MOST[knob])


def _decimal(low: float, high: float) -> Callable[[str], Any]:
    return lambda text: require_ms("value", float_or_text(text), low, high)


def _knob(knob: str) -> Callable[[str], Any]:
    return lambda text: value_from(knob, text)


LINK_CHECKS: dict[str, Callable[[str], Any]] = {
    "scene": one_of(*SCENES),
    "engines": entries_from,
    "requests": requests_from,
    **{SHORT_KNOBS[knob]: _knob(knob) for knob in COMMON_KNOBS},
    "target": _decimal(LEAST_TARGET_MS, MOST_TARGET_MS),
    **{key: _decimal(0, MOST_COEFFICIENT_MS) for key in COST_KEYS},
    "picture": one_of(*PICTURE_FORMATS),
}
