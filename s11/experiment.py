"""`Experiment`: the one frozen, hashable description of a run."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field, fields, replace
from typing import Any

from s11.checks import require_choice, require_keys, require_ms
from s11.costs import COST_MODELS, AnyCost, LinearCost
from s11.plan import EngineLimits, HandOver
from s11.policies import CHUNKING, DISAGGREGATED, POLICIES
from s11.workload import Request, Workload, chapter_scenario

SCHEMA_VERSION = 1
MAX_TARGET_MS = 1e6


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """A workload on an engine: the cache key, the JSON header and the CLI's configuration.

    Without arguments it is the chapter's scenario at the chapter's defaults.

    Raises:
        ValueError: an unknown policy, a target out of range, limits that the streaming
            users alone exceed (each takes a seat, and a token of every step's budget), or
            limits that the policy does not go with.
    """

    workload: Workload = field(default_factory=chapter_scenario)
    policy: str = "chunked"
    limits: EngineLimits = field(default_factory=EngineLimits)
    cost: AnyCost = field(default_factory=LinearCost)
    itl_target_ms: float = 50.0
    ttft_target_ms: float | None = None
    hand_over: HandOver = field(default_factory=HandOver)

    def __post_init__(self) -> None:
        require_choice("policy", self.policy, tuple(POLICIES))
        for name, kind in (
            ("workload", Workload),
            ("limits", EngineLimits),
            ("cost", AnyCost),
            ("hand_over", HandOver),
        ):
            if not isinstance(getattr(self, name), kind):
                raise ValueError(f"{name}: {getattr(self, name)!r:.60} is none")
        target = require_ms("itl_target_ms", self.itl_target_ms, 0, MAX_TARGET_MS, above=True)
        object.__setattr__(self, "itl_target_ms", target)
        if self.ttft_target_ms is not None:
            target = require_ms("ttft_target_ms", self.ttft_target_ms, 0, MAX_TARGET_MS, above=True)
            object.__setattr__(self, "ttft_target_ms", target)
        users = self.workload.streaming_users
        for name in ("token_budget", "max_seqs"):
            limit = getattr(self.limits, name)
            if limit is not None and limit < users:
                raise ValueError(
                    f"{name}: {limit:,} is less than the {users:,} streaming users need "
                    f"(allowed: {users:,} or more, or none)"
                )

        if self.policy == "slo_adaptive" and not self.limits.chunking:
            raise ValueError("chunking: False does not go with slo_adaptive (allowed: True)")
        if self.policy == DISAGGREGATED:
            for name in ("kv_blocks", "prefix_caching"):
                if getattr(self.limits, name):
                    raise ValueError(
                        f"{name}: {getattr(self.limits, name)} is not simulated for the two "
                        f"workers of {DISAGGREGATED} (allowed: none)"
                    )
            if any(request.after is not None for request in self.workload.requests):
                raise ValueError(
                    "after: requests sent when another ends are not simulated for the two "
                    f"workers of {DISAGGREGATED} (allowed: none)"
                )

    @property
    def chunking(self) -> bool:
        """Whether this engine may cut a prompt."""
        return self.policy in CHUNKING and self.limits.chunking

    def first_step_ms(self, prefill_tokens: int) -> float:
        """Return what a step of a prompt's first tokens takes beside the streaming users, in ms.

        The users' contexts are those before the first step.
        """
        users = self.workload.streaming_users
        return self.cost.step_ms(
            prefill_tokens=prefill_tokens,
            decode_tokens=users,
            decode_context_tokens=users * self.workload.user_context_tokens,
        )

    def chunking_off(self) -> Experiment:
        """Return the same experiment with whole prompts."""
        if self.policy in ("chunked", "slo_adaptive"):
            return replace(self, policy="whole_prompt")
        if not self.chunking:
            return self
        limits = replace(self.limits, chunking=False, chunk_tokens=None)
        return replace(self, limits=limits)

    def with_chunk_tokens(self, chunk_tokens: int) -> Experiment:
        """Return the same experiment, chunked, with another chunk size in tokens."""
        limits = replace(self.limits, chunk_tokens=chunk_tokens, chunking=True)
        policy = self.policy if self.policy in CHUNKING else "chunked"
        return replace(self, policy=policy, limits=limits)

    def to_dict(self) -> dict[str, Any]:
        """Return plain data that `from_dict` reads back to an equal experiment."""
        data = {
            "schema_version": SCHEMA_VERSION,
            "workload": asdict(self.workload)
            | {"requests": [request_data(request) for request in self.workload.requests]},
            "policy": self.policy,
            "limits": asdict(self.limits),
            "cost": self.cost.to_dict(),
            "itl_target_ms": self.itl_target_ms,
            "hand_over": asdict(self.hand_over),
        }
        if self.ttft_target_ms is not None:
            data["ttft_target_ms"] = self.ttft_target_ms
        return data

    @classmethod
    def from_dict(cls, data: Any) -> Experiment:
        """Return the experiment that `to_dict` described; what is left out takes its default.

        Raises:
            ValueError: another schema version, an unknown key, a value of the wrong kind.
        """
        top = require_keys("experiment", data, {f.name for f in fields(cls)} | {"schema_version"})
        version = top.get("schema_version", SCHEMA_VERSION)
        if isinstance(version, bool) or version != SCHEMA_VERSION:
            raise ValueError(
                f"schema_version: {str(version)[:40]!r} is not known (allowed: {SCHEMA_VERSION})"
            )
        plain = ("policy", "itl_target_ms", "ttft_target_ms")
        parts: dict[str, Any] = {name: top[name] for name in plain if name in top}
        if "workload" in top:
            parts["workload"] = _workload(top["workload"])
        if "limits" in top:
            known = {f.name for f in fields(EngineLimits)}
            parts["limits"] = EngineLimits(**require_keys("limits", top["limits"], known))
        if "hand_over" in top:
            known = {f.name for f in fields(HandOver)}
            parts["hand_over"] = HandOver(**require_keys("hand_over", top["hand_over"], known))
        if "cost" in top:
            if not isinstance(top["cost"], dict):
                raise ValueError("cost: not an object with named values")
            model = top["cost"].get("model", LinearCost.name)
            model = require_choice("cost model", model, tuple(COST_MODELS))
            parts["cost"] = COST_MODELS[model].from_dict(top["cost"])
        return cls(**parts)


def request_data(request: Request) -> dict[str, Any]:
    """Return a request's fields, without those that are none of its concern."""
    data = asdict(request) | {"hash_ids": list(request.hash_ids)}
    alone: dict[str, object] = {"shared_group": None, "shared_tokens": 0}
    alone |= {"continues": None, "after": None, "hash_ids": []}
    return {name: value for name, value in data.items() if alone.get(name, ...) != value}


def _workload(data: Any) -> Workload:
    known = require_keys("workload", data, {f.name for f in fields(Workload)})
    rows = known.get("requests", ())
    if not isinstance(rows, list | tuple):
        raise ValueError("requests: not a list of requests")
    names = {f.name for f in fields(Request)}
    requests = []
    for row in rows:
        values = require_keys("request", row, names)
        for needed in ("request_id", "prompt_tokens"):
            if needed not in values:
                raise ValueError(f"request: {needed} is missing")
        requests.append(Request(**values))
    return Workload(**{**known, "requests": tuple(requests)})
