"""Scheduler cases: what real schedulers must do, as data, and whether ours do it.

A case is a configuration, requests that arrive at step numbers, and the tokens that each
step must schedule. It is run on a clock of one millisecond a step, so that step numbers are
times.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from enum import StrEnum
from math import isnan
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
STAND_IN = {"vllm_v1": {True: "chunked", False: "whole_prompt"}}
CONFIG_KEYS = {
    "token_budget",
    "max_seqs",
    "max_chunk",
    "chunking",
    "block_size",
    "kv_blocks",
    "prefix_caching",
    "reserve_full_prompt",
    "max_model_len",
    "align_first_chunk",
}


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
    config = case["config"]
    for key in config:
        if key not in CONFIG_KEYS:
            return f"needs the unknown setting {key!r}"
    if config.get("kv_blocks") is not None or config.get("reserve_full_prompt"):
        return "needs KV blocks, which are not built yet"
    if config.get("prefix_caching"):
        return "needs the prefix cache, which is not built yet"
    if any(request.get("shared_prefix") for request in case["requests"]):
        return "needs the prefix cache, which is not built yet"
    if config.get("max_model_len") is not None:
        return "needs max_model_len, which is not built yet"
    if config.get("align_first_chunk"):
        return "needs align_first_chunk, which is not built yet"
    policy = case["policy"]
    if policy not in POLICIES and policy not in STAND_IN:
        return f"needs the policy {policy!r}, which is not built yet"
    if policy in STAND_IN and not config.get("chunking", True) and config.get("max_chunk"):
        return f"needs the chunk cap of {policy!r} with chunking off, which is not built yet"
    return ""


def _experiment(case: dict[str, Any]) -> Experiment:
    config, policy = case["config"], case["policy"]
    chunking = bool(config.get("chunking", True))
    # With KV blocks to spare, vLLM V1 and the chapter's scheduler plan the same steps.
    name = STAND_IN[policy][chunking] if policy in STAND_IN else policy
    requests = tuple(
        Request(
            request_id=str(row["id"]),
            arrival_ms=row.get("arrival_step", 0),
            prompt_tokens=row["prompt_tokens"],
            output_tokens=row["max_new_tokens"],
        )
        for row in case["requests"]
    )
    return Experiment(
        workload=Workload(requests=requests),
        policy=name,
        limits=EngineLimits(
            token_budget=config.get("token_budget"),
            chunk_tokens=config.get("max_chunk"),
            max_seqs=config.get("max_seqs"),
        ),
        cost=LinearCost(fixed_ms=1.0, prefill_ms_per_token=0.0, decode_ms_per_token=0.0),
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
    for name, hits in notes.get("cached", {}).items():
        admissions = 0 if isnan(result.requests.first_scheduled_ms[row[name]]) else 1
        if hits != [0] * admissions:
            return f"cached: expected {hits} for {name}, got {[0] * admissions}"
    for what in ("preempted", "rejected"):
        if notes.get(what):
            return f"{what}: expected {notes[what]}, got none"
    return ""


def _printable(text: object) -> str:
    """Return text that every terminal takes, lone surrogates spelt out."""
    return str(text).encode("utf-8", "backslashreplace").decode("utf-8")


def _first_line(error: BaseException) -> str:
    return (str(error).splitlines() or [type(error).__name__])[0][:120]
