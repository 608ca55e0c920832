"""The one-object-per-request simulator does what the field's own schedulers do."""

import json
from pathlib import Path
from typing import Any

from s11 import EngineLimits, Experiment, Request, Workload
from tests.loads import CLOCK
from tests.reference_simulator import ReferenceRun

# vLLM V0 is the chapter's scheduler with `align_first_chunk`.
POLICY = {"vllm_v0": "chunked"}


def experiment(case: dict[str, Any]) -> Experiment:
    config = case["config"]
    requests = []
    for row in case["requests"]:
        shared = row.get("shared_prefix", {})
        requests.append(
            Request(
                request_id=row["id"],
                arrival_ms=row["arrival_step"],
                prompt_tokens=row["prompt_tokens"],
                output_tokens=row["max_new_tokens"],
                shared_group=shared.get("group"),
                shared_tokens=shared.get("tokens", 0),
                continues=shared.get("continues"),
            )
        )
    names = ("token_budget", "max_seqs", "chunking", "kv_blocks", "prefix_caching")
    limits = {name: config[name] for name in names} | {"chunk_tokens": config["max_chunk"]}
    for name in ("block_size", "reserve_full_prompt", "max_model_len", "align_first_chunk"):
        if config.get(name) is not None:
            limits[name] = config[name]
    return Experiment(
        workload=Workload(requests=tuple(requests)),
        policy=POLICY.get(case["policy"], case["policy"]),
        limits=EngineLimits(**limits),
        cost=CLOCK,
    )


def differences(case: dict[str, Any], run: ReferenceRun) -> list[str]:
    """What the run does otherwise than the case says."""
    starts = [int(step.start_ms) for step in run.steps]
    by_start = dict(zip(starts, run.schedule(), strict=True))
    expected, notes = case["expected_steps"], case.get("expected_notes", {})
    got: list[dict[str, int]] = [by_start.get(number, {}) for number in range(len(expected))]
    found = [] if got == expected else [f"steps: {got}"]
    if expected[-1] == {} and any(number >= len(expected) for number in by_start):
        found.append(f"steps: {by_start}")
    calls = {call.name: call for call in run.calls}
    tokens = {name: sum(batch.get(name, 0) for batch in by_start.values()) for name in calls}
    preempted: dict[str, list[str]] = {}
    for step, name in run.preemptions:
        preempted.setdefault(str(int(run.steps[step].start_ms)), []).append(name)
    cached: dict[str, list[int]] = {name: [] for name in calls}
    for _, name, hit in run.admissions:
        cached[name].append(hit)
    finished = {n: int(c.token_times_ms[-1]) - 1 for n, c in calls.items() if c.done}
    of_each: dict[str, dict[str, Any]] = {
        "finished": finished,
        "total_tokens": tokens,
        "cached": cached,
    }
    for note, values in of_each.items():
        for name, value in notes.get(note, {}).items():
            if values.get(name) != value:
                found.append(f"{note}: {name} {values.get(name)}")
    of_all: dict[str, Any] = {
        "preempted": preempted,
        "rejected": [call.name for call in run.rejected()],
        "never_scheduled": [call.name for call in run.never_scheduled()],
    }
    for note, value in of_all.items():
        if note in notes and notes[note] != value:
            found.append(f"{note}: {value}")
    return found


def test_every_shared_case_passes(shared_dir: Path) -> None:
    path = shared_dir / "cases" / "scheduler_cases.json"
    cases = json.loads(path.read_text(encoding="utf-8"))
    assert len(cases) >= 32
    found = {case["id"]: differences(case, ReferenceRun(experiment(case))) for case in cases}
    assert {name: differs for name, differs in found.items() if differs} == {}
