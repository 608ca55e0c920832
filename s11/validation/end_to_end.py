"""Whole measured serving runs, each simulated and compared."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from s11.catalog import TENSOR_PARALLEL, Deployment, gpu_of_measured, model_of_measured
from s11.costs.constants import constants_of
from s11.validation.errors import Comparison
from s11.validation.kernels import DTYPES
from s11.validation.serving import ServingMeans, ServingRun, serve
from s11.validation.tables import COUNT, MILLISECONDS, TEXT, Column, MeasuredTable

FILE = "end_to_end.csv"
COLUMNS: dict[str, Column] = {
    "source": TEXT,
    "backend": TEXT,
    "model": TEXT,
    "precision": TEXT,
    "gpu": TEXT,
    "tp": COUNT,
    "prompt_tokens": COUNT,
    "output_tokens": COUNT,
    "concurrency": Column("count", 4_096),
    "mean_ttft_ms": MILLISECONDS,
    "mean_tpot_ms": MILLISECONDS,
}
BACKENDS = {
    "vllm": "vllm",
    "sglang": "sglang",
    "trtllm": "trtllm",
    "tensorrt-llm": "trtllm",
    "tensorrt_llm": "trtllm",
}
"""By the name in a table, the engine as it is called here."""

MOST_TOKENS_SERVED = 60_000_000  # of a run's ten requests a client: bounds its steps and memory
Progress = Callable[[int, int], None]


@dataclass(frozen=True, slots=True)
class Served:
    """One row: the run, what was measured and what was simulated."""

    run: ServingRun
    gpu: str  # as the file names it
    ttft_ms: float
    tpot_ms: float
    means: ServingMeans


def serving_run(table: MeasuredTable, row: int) -> ServingRun:
    """Return the run that a row tells.

    Raises:
        ValueError: an engine, a model, a GPU or a precision that is not modelled.
    """
    named = str(table.columns["backend"][row])
    backend = BACKENDS.get(named.lower())
    if backend is None:
        raise ValueError(f"backend: {named!r} is not modelled (allowed: {', '.join(BACKENDS)})")
    named = str(table.columns["precision"][row])
    precision = DTYPES.get(named.lower())
    if precision is None:
        raise ValueError(f"precision: {named!r} is not modelled (allowed: {', '.join(DTYPES)})")
    size = int(table.numbers("tp")[row])
    if size not in TENSOR_PARALLEL:
        raise ValueError(f"tp: {size} is not modelled (allowed: 1, 2, 4, 8)")
    prompt, output, clients = (
        int(table.numbers(name)[row]) for name in ("prompt_tokens", "output_tokens", "concurrency")
    )
    if output == 1:
        raise ValueError("output_tokens: 1 has no TPOT to compare (allowed: 2 or more)")
    if 10 * clients * (prompt + output) > MOST_TOKENS_SERVED:
        raise ValueError(
            f"concurrency: {clients:,} of {prompt + output:,} tokens is too much to run"
        )
    return ServingRun(
        source=str(table.columns["source"][row]),
        backend=backend,
        deployment=Deployment(
            model=model_of_measured(str(table.columns["model"][row])),
            gpu=gpu_of_measured(str(table.columns["gpu"][row])),
            tensor_parallel=size,
            precision=precision,
        ),
        prompt_tokens=prompt,
        output_tokens=output,
        concurrency=clients,
    )


def served_rows(
    table: MeasuredTable, progress: Progress | None = None
) -> tuple[list[Served], list[str]]:
    """Simulate every row; return them, and why each of the others was left out."""
    served: list[Served] = []
    left_out: list[str] = []
    for row in range(table.rows):
        try:
            run = serving_run(table, row)
            means = serve(run)
        except ValueError as error:
            left_out.append(f"{FILE}, row {row + 2:,}: {error}")
        else:
            served.append(
                Served(
                    run=run,
                    gpu=str(table.columns["gpu"][row]),
                    ttft_ms=float(table.numbers("mean_ttft_ms")[row]),
                    tpot_ms=float(table.numbers("mean_tpot_ms")[row]),
                    means=means,
                )
            )
        if progress:
            progress(row + 1, table.rows)
    return served, left_out


def group_of(row: Served) -> str:
    """Return the group that a run is told in: its engine, and whether KV blocks ran short."""
    return row.run.backend + (", KV exhausted" if row.means.kv_exhausted else "")


def _engine_place(row: Served) -> int:
    return list(BACKENDS.values()).index(row.run.backend)


def comparisons(served: list[Served]) -> Iterator[Comparison]:
    """Compare TPOT, request latency and TTFT by GPU, engine, and whether KV blocks ran short.

    A request's latency is TTFT + (output tokens - 1) · TPOT.
    """
    groups: defaultdict[tuple[str, str], list[Served]] = defaultdict(list)
    for row in sorted(served, key=lambda row: (row.means.kv_exhausted, _engine_place(row))):
        groups[row.gpu, group_of(row)].append(row)
    for (gpu, group), rows in groups.items():
        decodes = np.array([row.run.output_tokens - 1 for row in rows], dtype=np.float64)
        measured = np.array([(row.ttft_ms, row.tpot_ms) for row in rows])  # (rows, 2)
        simulated = np.array([(row.means.ttft_ms, row.means.tpot_ms) for row in rows])
        calibrated = all(
            constants_of(row.run.deployment.gpu, row.run.deployment.precision).calibrated
            for row in rows
        )
        for quantity, of_ttft, of_tpot in (
            ("mean_tpot_ms", 0.0, 1.0),
            ("latency_ms", 1.0, decodes),
            ("mean_ttft_ms", 1.0, 0.0),
        ):
            yield Comparison(
                file=FILE,
                gpu=gpu,
                quantity=quantity,
                group=group,
                measured=of_ttft * measured[:, 0] + of_tpot * measured[:, 1],
                predicted=of_ttft * simulated[:, 0] + of_tpot * simulated[:, 1],
                calibrated=calibrated,
            )
