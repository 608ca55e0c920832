"""Scheduler cases: what real schedulers must do, as data, and whether ours do it.

A case is a configuration, requests that arrive at step numbers, and the tokens that each
step must schedule. It is run on a clock of one millisecond a step, so that step numbers are
times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path
from typing import Any

from s11.costs import LinearCost
from s11.experiment import Experiment
from s11.plan import EngineLimits
from s11.policies import POLICIES
from s11.results import Result
from s11.simulator import simulate
from s11.workload import Request, Workload

MAX_FILE_BYTES = 64 * 2**20
MAX_CASE_STEPS = 200_000
# vLLM V0 with chunked prefill: decodes first, then prompts, as the chapter's scheduler.
STAND_IN = {"vllm_v0": "chunked"}
CONFIG_KEYS = {
    "token_budget": "token_budget",
    "max_seqs": "max_seqs",
    "max_chunk": "chunk_tokens",
    "chunking": "chunking",
    "block_size": "block_size",
    "kv_blocks": "kv_blocks",
    "prefix_caching": "prefix_caching",
    "reserve_full_prompt": "reserve_full_prompt",
    "max_model_len": "max_model_len",
    "align_first_chunk": "align_first_chunk",
    "mixed": "mixed",
    "prefill_interval": "prefill_interval",
}
"""What a case's configuration may hold, and our names for it; null is our default."""


REQUEST_KEYS = {"id", "arrival_step", "prompt_tokens", "max_new_tokens", "shared_prefix"}


class Outcome(StrEnum):
    """How a case came out."""

    PASSED = "passed"
    FAILED = "failed"
    SKIPPED = "skipped"


@dataclass(frozen=True, slots=True, kw_only=True)
class CaseOutcome:
    """One case's outcome, with the reason where it did not pass."""

    case_id: str
    outcome: Outcome
    reason: str = ""


def read_cases(path: Path) -> list[dict[str, Any]]:
    """Return the cases in a JSON file: a list of objects.

    Raises:
        ValueError: a file that is not there, too large, not JSON, or not a list of objects.
    """
    try:
        if path.stat().st_size > MAX_FILE_BYTES:
            raise ValueError(f"FILE: {path.name} is larger than {MAX_FILE_BYTES >> 20} MiB")
        cases = json.loads(path.read_text(encoding="utf-8-sig"))
    except OSError as error:
        raise ValueError(f"FILE: {path.name} cannot be read ({error.strerror})") from error
    except (ValueError, RecursionError) as error:
        if str(error).startswith("FILE:"):
            raise
        raise ValueError(f"FILE: {path.name} is not JSON text ({_first_line(error)})") from error
    if not isinstance(cases, list) or not all(isinstance(case, dict) for case in cases):
        raise ValueError(f"FILE: {path.name} is not a list of cases")
    return cases


def run_case(case: dict[str, Any]) -> CaseOutcome:
    """Run one case and hold it against what it expects.

    Raises:
        ValueError: a malformed case, naming the case, the field and the value.
    """
    case_id = _printable(case.get("id", "(no id)"))
    try:
        missing = _needs(case)
        if missing:
            reason = _printable(missing)
            return CaseOutcome(case_id=case_id, outcome=Outcome.SKIPPED, reason=reason)
        result = simulate(_experiment(case), max_steps=MAX_CASE_STEPS)
        difference = _difference(case, result)
    except (KeyError, TypeError, AttributeError) as error:
        raise ValueError(f"case {case_id}: malformed ({_first_line(error)})") from error
    except ValueError as error:
        raise ValueError(f"case {case_id}: {_printable(error)}") from error
    if difference:
        reason = _printable(difference)
        return CaseOutcome(case_id=case_id, outcome=Outcome.FAILED, reason=reason)
    return CaseOutcome(case_id=case_id, outcome=Outcome.PASSED)


def _needs(case: dict[str, Any]) -> str:
    """Return what the case needs that is not built, "" where there is nothing."""
    for key in case["config"]:
        if key not in CONFIG_KEYS:
            return f"needs the unknown setting {key!r}"
    for request in case["requests"]:
        for key in request.keys():  # noqa: SIM118  # what is no object has none: malformed
            if key not in REQUEST_KEYS:
                return f"needs the unknown request field {key!r}"
    policy = case["policy"]
    if policy not in POLICIES and policy not in STAND_IN:
        return f"needs the policy {policy!r}, which is not built"
    return ""


def _experiment(case: dict[str, Any]) -> Experiment:
    config, policy = case["config"], case["policy"]
    limits = {
        ours: config[theirs]
        for theirs, ours in CONFIG_KEYS.items()
        if config.get(theirs) is not None
    }
    return Experiment(
        workload=Workload(requests=tuple([_request(row) for row in case["requests"]])),
        policy=STAND_IN.get(policy, policy),
        limits=EngineLimits(**{"chunk_tokens": None} | limits),
        cost=LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
    )


def _request(row: dict[str, Any]) -> Request:
    shared = row.get("shared_prefix") or {}
    for key in shared:
        if key not in ("group", "tokens", "continues"):
            raise ValueError(f"shared_prefix: {key!r} is not one of group, tokens, continues")
    group, continues = shared.get("group"), shared.get("continues")
    return Request(
        request_id=str(row["id"]),
        arrival_ms=row.get("arrival_step", 0),
        prompt_tokens=row["prompt_tokens"],
        output_tokens=row["max_new_tokens"],
        shared_group=None if group is None else str(group),
        shared_tokens=0 if group is None else shared["tokens"],
        continues=None if continues is None else str(continues),
    )


def _difference(case: dict[str, Any], result: Result) -> str:
    """Return the first difference between the run and the case, "" where there is none."""
    steps = {
        int(start_ms): batch
        for start_ms, batch in zip(result.steps.start_ms, result.schedule(), strict=True)
    }
    expected = case["expected_steps"]
    if not isinstance(expected, list) or not all(isinstance(batch, dict) for batch in expected):
        raise ValueError("expected_steps: not a list of batches")
    for number, batch in enumerate(expected):
        if steps.get(number, {}) != batch:
            return f"step {number}: expected {batch}, got {steps.get(number, {})}"
    if expected and expected[-1] == {} and steps and max(steps) >= len(expected):
        return f"step {max(steps)}: expected the end, got {steps[max(steps)]}"

    notes = case.get("expected_notes", {})
    row = {name: number for number, name in enumerate(result.requests.request_id)}
    for name, step in notes.get("finished", {}).items():
        end_ms = result.requests.last_token_ms[row[name]]
        if end_ms != step + 1:
            return f"finished: expected {name} in step {step}, got {end_ms - 1}"
    for name, tokens in notes.get("total_tokens", {}).items():
        scheduled = sum(batch.get(name, 0) for batch in steps.values())
        if scheduled != tokens:
            return f"total_tokens: expected {tokens} for {name}, got {scheduled}"
    never = notes.get("never_scheduled")
    if never is not None and sorted(never) != sorted(result.never_scheduled):
        return f"never_scheduled: expected {never}, got {list(result.never_scheduled)}"
    admissions = result.admissions
    for name, expected_hits in notes.get("cached", {}).items():
        hits = admissions.cached_tokens[admissions.request == row[name]].tolist()
        if hits != expected_hits:
            return f"cached: expected {expected_hits} for {name}, got {hits}"
    rejected = notes.get("rejected")
    if rejected is not None and sorted(rejected) != sorted(result.rejected):
        return f"rejected: expected {rejected}, got {list(result.rejected)}"
    preempted = notes.get("preempted")
    if preempted is not None:
        return _preempted_difference(preempted, result, len(expected))
    return ""


def _preempted_difference(
    expected: dict[str, list[str]], result: Result, expected_steps: int
) -> str:
    """Return how the preemptions differ as far as the expected steps go."""
    table = result.preemptions
    got: dict[str, list[str]] = {}
    for time_ms, request in zip(table.time_ms.tolist(), table.request.tolist(), strict=True):
        if time_ms < expected_steps:
            got.setdefault(str(int(time_ms)), []).append(result.requests.request_id[request])
    if {step: sorted(ids) for step, ids in expected.items()} != {
        step: sorted(ids) for step, ids in got.items()
    }:
        return f"preempted: expected {expected}, got {got}"
    return ""


def _printable(text: object) -> str:
    """Return text that every terminal takes, lone surrogates spelt out."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
