"""The two public traces, against readers of another kind, and run."""

import csv
import json
from dataclasses import replace
from datetime import datetime, timedelta
from pathlib import Path

import numpy as np
import pytest

from s11 import EngineLimits, Experiment, measure, simulate
from s11.traces import Trace, read_trace

AZURE, MOONCAKE = "azure_conv_2023.csv", "mooncake_conversation_head.jsonl"


@pytest.fixture(scope="module")
def azure_path(shared_dir: Path) -> Path:
    return shared_dir / "traces" / AZURE


@pytest.fixture(scope="module")
def mooncake_path(shared_dir: Path) -> Path:
    return shared_dir / "traces" / MOONCAKE


def public(path: Path) -> Trace:
    return read_trace(path, name=path.name)


def test_azure_row_by_row(azure_path: Path) -> None:
    """Python's datetime holds microseconds, so the seventh digit is added by hand."""
    trace = public(azure_path)
    with azure_path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(trace) == len(rows) == 19_366
    times = [datetime.strptime(row["TIMESTAMP"][:-1], "%Y-%m-%d %H:%M:%S.%f") for row in rows]
    last_digit = [int(row["TIMESTAMP"][-1]) for row in rows]
    tenths_us = [  # whole tenths of a microsecond from the first row
        10 * ((time - times[0]) // timedelta(microseconds=1)) + digit - last_digit[0]
        for time, digit in zip(times, last_digit, strict=True)
    ]
    assert trace.arrival_ms.tolist() == [tenths / 10_000 for tenths in tenths_us]
    assert trace.prompt_tokens.tolist() == [int(row["ContextTokens"]) for row in rows]
    assert trace.output_tokens.tolist() == [int(row["GeneratedTokens"]) for row in rows]
    assert (trace.zero_output_rows, trace.zero_prompt_rows, trace.out_of_order_rows) == (0, 0, 0)


def test_mooncake_row_by_row(mooncake_path: Path) -> None:
    trace = public(mooncake_path)
    rows = [json.loads(line) for line in mooncake_path.read_text(encoding="utf-8").splitlines()]
    assert len(trace) == len(rows) == 1_500
    assert trace.arrival_ms.tolist() == [row["timestamp"] - rows[0]["timestamp"] for row in rows]
    assert trace.prompt_tokens.tolist() == [row["input_length"] for row in rows]
    assert trace.output_tokens.tolist() == [row["output_length"] for row in rows]
    assert [list(ids) for ids in trace.hash_ids or ()] == [row["hash_ids"] for row in rows]


@pytest.mark.parametrize("name", [AZURE, MOONCAKE])
def test_they_run(shared_dir: Path, name: str) -> None:
    trace = read_trace(shared_dir / "traces" / name, name=name, first=400)
    experiment = replace(
        Experiment(),
        workload=trace.workload(),
        limits=EngineLimits(
            chunk_tokens=512, max_seqs=128, prefix_caching=True, kv_blocks=1_000_000
        ),
    )
    result = simulate(experiment)
    metrics = measure(result, itl_target_ms=50)
    assert metrics.finished_requests == 400
    decodes = int(trace.output_tokens.sum()) - 400
    assert int(result.steps.decode_tokens.sum()) == decodes
    computed = int(np.sum(result.steps.prefill_tokens))
    assert computed + metrics.cached_tokens == int(trace.prompt_tokens.sum())
