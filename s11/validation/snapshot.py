"""The validation as it ships: the errors, and enough points to draw them.

snapshot.json is written by scripts/validation_snapshot.py; nobody edits it by hand. The measured
values in it are thinned from tables that others published; `sources` names them.
"""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import numpy as np

from s11.costs.constants import document as constants_document
from s11.validation import end_to_end
from s11.validation.end_to_end import Served
from s11.validation.errors import Comparison, ErrorRow, Floats
from s11.validation.report import Validation

SCHEMA_VERSION = 1
MOST_POINTS = 120  # of one file, GPU, quantity and group
SIGNIFICANT_DIGITS = 4
SOURCES = (
    "gemm, prefill_attention, decode_attention, allreduce, end_to_end: ai-dynamo/aiconfigurator "
    "at commit 095f58a (Apache-2.0), measured performance tables and silicon samples, thinned",
    "layer_linear: microsoft/vidur at commit 7d47513 (MIT), profiling tables, summed per layer "
    "and thinned",
)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Points:
    """Measured and predicted values of one file, GPU, quantity and group, in milliseconds.

    total: how many there were before thinning.
    labels: what each point is; empty where a table does not tell in a few words.
    """

    file: str
    gpu: str
    quantity: str
    group: str
    calibrated: bool
    total: int
    measured: Floats  # (points,)
    predicted: Floats  # (points,)
    labels: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class Snapshot:
    """What `validate` found on a day, with the constants of a day."""

    date: str
    constants_date: str
    sources: tuple[str, ...]
    rows: tuple[ErrorRow, ...]
    points: tuple[Points, ...]
    left_out: tuple[str, ...]


@cache
def snapshot() -> Snapshot:
    """Return the snapshot that ships with the package.

    Raises:
        ValueError: of another schema version.
    """
    text = resources.files("s11.validation").joinpath("snapshot.json").read_text(encoding="utf-8")
    return snapshot_of(json.loads(text))


def snapshot_of(document: dict[str, Any]) -> Snapshot:
    """Return a snapshot from its document.

    Raises:
        ValueError: of another schema version.
    """
    if document.get("schema_version") != SCHEMA_VERSION:
        raise ValueError(
            f"schema_version: {document.get('schema_version')!r} (allowed: {SCHEMA_VERSION})"
        )
    return Snapshot(
        date=document["date"],
        constants_date=document["constants_date"],
        sources=tuple(document["sources"]),
        rows=tuple(ErrorRow(**row) for row in document["rows"]),
        points=tuple(
            Points(
                **{
                    **group,
                    "measured": np.array(group["measured"], dtype=np.float64),
                    "predicted": np.array(group["predicted"], dtype=np.float64),
                    "labels": tuple(group["labels"]),
                }
            )
            for group in document["points"]
        ),
        left_out=tuple(document["left_out"]),
    )


def document_of(validation: Validation, *, date: str) -> dict[str, Any]:
    """Return a validation as the plain data that snapshot.json holds."""
    labels = _labels(validation.served)
    return {
        "schema_version": SCHEMA_VERSION,
        "date": date,
        "constants_date": constants_document()["date"],
        "sources": list(SOURCES),
        "rows": [
            {name: _rounded(value) for name, value in row.to_dict().items()}
            for row in validation.rows
        ],
        "points": [
            _thinned(comparison, labels.get((comparison.gpu, comparison.group), ()))
            for comparison in validation.comparisons
        ],
        "left_out": list(validation.left_out),
    }


def text_of(document: dict[str, Any]) -> str:
    """Return the document as JSON text, one line for each row and group of points."""
    parts = []
    for key, value in document.items():
        if isinstance(value, list):
            lines = ",\n".join(f"  {json.dumps(item, ensure_ascii=False)}" for item in value)
            parts.append(f' "{key}": [\n{lines}\n ]' if value else f' "{key}": []')
        else:
            parts.append(f' "{key}": {json.dumps(value)}')
    return "{\n" + ",\n".join(parts) + "\n}\n"


def chosen_places(measured: Floats, most: int = MOST_POINTS) -> list[int]:
    """Return which points stay: in order of their measured times, evenly by rank.

    What is left out does not depend on how far off a point is; the first and the last stay.
    """
    order = np.argsort(measured, kind="stable")
    if len(order) > most:
        order = order[np.round(np.linspace(0, len(order) - 1, most)).astype(np.intp)]
    return [int(place) for place in order]


def _thinned(comparison: Comparison, labels: tuple[str, ...]) -> dict[str, Any]:
    places = chosen_places(comparison.measured)
    on_runs = comparison.file == end_to_end.FILE
    return {
        "file": comparison.file,
        "gpu": comparison.gpu,
        "quantity": comparison.quantity,
        "group": comparison.group,
        "calibrated": comparison.calibrated,
        "total": len(comparison.measured),
        "measured": [_rounded(float(comparison.measured[place])) for place in places],
        "predicted": [_rounded(float(comparison.predicted[place])) for place in places],
        "labels": [labels[place] for place in places] if on_runs and labels else [],
    }


def _labels(served: Iterable[Served]) -> dict[tuple[str, str], tuple[str, ...]]:
    """Return what each serving run was, by GPU and group, in the order of their comparison."""
    found: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
    for row in served:
        run = row.run
        machine = f"{run.deployment.model.title}, TP {run.deployment.tensor_parallel}"
        load = f"{run.prompt_tokens:,} → {run.output_tokens:,} tokens, {run.concurrency} clients"
        found[row.gpu, end_to_end.group_of(row)].append(f"{machine}, {load}")
    return {group: tuple(labels) for group, labels in found.items()}


def _rounded(value: Any) -> Any:
    return float(f"{value:.{SIGNIFICANT_DIGITS}g}") if isinstance(value, float) else value
