"""The numbers behind the prefix cache page's pictures of steps and of blocks."""

from __future__ import annotations

from typing import Any

from s11.figures.prefix_blocks_info import NAMES, BlocksInfo
from s11.figures.prefix_info import FourRuns


def step_columns(four: FourRuns) -> dict[str, list[Any]]:
    """Return the steps of all four runs, one row per step."""
    columns: dict[str, list[Any]] = {"switched_on": []}
    for run in four:
        steps = run.result.steps
        columns["switched_on"] += [run.name] * len(steps)
        for name, values in (
            ("start_ms", steps.start_ms),
            ("duration_ms", steps.duration_ms),
            ("prefill_tokens", steps.prefill_tokens),
            ("decode_tokens", steps.decode_tokens),
        ):
            columns.setdefault(name, []).extend(values.tolist())
    return columns


def block_columns(info: BlocksInfo) -> dict[str, list[Any]]:
    """Return the blocks of each admission by kind, one row per admission."""
    columns: dict[str, list[Any]] = {
        "request": list(info.names),
        "known_tokens": [row.known_tokens for row in info.rows],
    }
    for kind, name in NAMES.items():
        columns[f"{name} (blocks)"] = [row.count(kind) for row in info.rows]
    return columns
